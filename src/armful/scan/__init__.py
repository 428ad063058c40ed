"""Exact choice over millions of arms in bounded memory: tables, and the scan of them."""

from armful.scan.table import Table

__all__ = ["Table"]
