"""One round: who may be chosen, who is chosen, what came of it, and what the model learns from it."""
