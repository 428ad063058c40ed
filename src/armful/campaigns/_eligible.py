"""Which customers of a file may be chosen in a round, and which must be."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from armful.campaigns._customers import Customers, Ids, IdSet, as_ids, read_customers
from armful.campaigns._rows import open_rows
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.settings import Settings
from armful.errors import NoRowsError
from armful.ledger import Ledger


def customers_of_round(
    source: Any,
    settings: Settings,
    recipe: FeatureRecipe,
    ledger: Ledger,
    number: int,
    path: Path,
    *,
    progress: bool = False,
) -> Customers:
    """Read the customers of a round, without those who rest or are excluded; path: for the table of their features."""
    rest = range(max(1, number - settings.choose.rest), number)
    resting = [ledger.ids_chosen(rest)] if rest else []
    excluded = IdSet([*resting, *_read_ids(settings.choose.exclude, settings)], settings.name)
    required = IdSet(_read_ids(settings.choose.require, settings), settings.name)
    return read_customers(source, settings, recipe, path, excluded=excluded, required=required, progress=progress)


def _read_ids(files: Iterable[str], settings: Settings) -> list[Ids]:
    """Return the ids in some files, which have the campaign's id column; relative to the campaign's folder."""
    result = []
    for name in files:
        path, begin = settings.folder / name, 0
        with suppress(NoRowsError):  # nobody has opted out yet
            reader = open_rows(path, columns=[settings.id], text=[settings.id], delimiter=settings.delimiter)
            for batch in reader.batches:
                column = as_ids(batch.column(settings.id), settings.id, begin, name)
                result.append(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.str_))
                begin += batch.num_rows
    return result
