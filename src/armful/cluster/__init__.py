"""Exact choice and learning on a dask cluster. Everything in it is internal."""
