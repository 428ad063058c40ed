"""Campaigns: rounds chosen from files, outcomes that come late, knowledge that survives, a report that says whether it worked."""
