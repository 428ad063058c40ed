"""Exact choice over millions of arms in bounded memory: tables, and the scan of them."""

from armful.scan.parquet import ParquetTable
from armful.scan.table import Table

__all__ = ["ParquetTable", "Table"]
