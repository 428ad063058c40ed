"""Arms that stay the same between rounds: in memory, on disk, in Parquet files."""

from armful.tables.parquet import ParquetTable
from armful.tables.rows import QuickWidths, Rows, Store
from armful.tables.table import Table

__all__ = ["ParquetTable", "QuickWidths", "Rows", "Store", "Table"]
