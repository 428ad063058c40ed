"""The progress bar of reading a file."""

from collections.abc import Iterator
from typing import Any

from armful.campaigns.reading._rows import RowReader
from armful.tables._progress import progress_bar

MEGABYTE = 1_000_000


def with_progress(reader: RowReader, description: str, *, show: bool) -> Iterator[Any]:
    """Yield the batches, with a bar that counts rows if their number is known, else the megabytes of the file."""
    by_rows = reader.n_rows is not None
    total = reader.n_rows if by_rows or reader.n_bytes is None else -(-reader.n_bytes // MEGABYTE)
    done = 0
    with progress_bar(description, total, show=show) as advance:
        for batch in reader.batches:
            yield batch
            now = done + batch.num_rows if by_rows else reader.read_bytes() // MEGABYTE
            advance(now - done, "rows" if by_rows else "MB")
            done = now
