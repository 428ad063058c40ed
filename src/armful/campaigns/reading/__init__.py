"""Reading files of customers, outcomes and ids in bounded memory."""
