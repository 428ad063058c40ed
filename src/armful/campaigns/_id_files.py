"""Files of ids: customers who must not, or must, be chosen."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._customers import as_ids
from armful.campaigns._rows import open_rows
from armful.campaigns.settings import Settings


def read_ids(files: Iterable[str], settings: Settings) -> list[NDArray[np.str_]]:
    """Return the ids in each of some files, which have the campaign's id column; relative to the campaign's folder."""
    result = []
    for name in files:
        reader = open_rows(
            settings.folder / name, columns=[settings.id], text=[settings.id], delimiter=settings.delimiter
        )
        for batch in reader.batches:
            column = as_ids(batch.column(settings.id), settings.id)
            result.append(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.str_))
    return result
