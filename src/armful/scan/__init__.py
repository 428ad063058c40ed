"""Exact choice from millions of arms: dispatch, pruning, thresholds, threads. Everything in it is internal."""
