"""Which customers of a file may be chosen in a round, and which must be."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.reading._person_ids import Ids, IdSet, as_array, as_ids
from armful.campaigns.reading._rows import open_rows
from armful.campaigns.rounds._customers import Customers, read_customers
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.errors import NoRowsError
from armful.ledger import Ledger


def customers_of_round(
    source: Any,
    settings: Settings,
    recipe: FeatureRecipe,
    theta: FloatArray,
    ledger: Ledger,
    number: int,
    path: Path,
    *,
    progress: bool = False,
) -> Customers:
    """Read the customers of a round, and who of them rests or is excluded; theta, path: as in `read_customers`."""
    rest = range(max(1, number - settings.choose.rest), number)

    def excluded() -> IdSet:
        resting = [ledger.ids_chosen(rest)] if rest else []
        return IdSet([*resting, *read_id_files(settings.choose.exclude, settings)], settings.name)

    required = IdSet(read_id_files(settings.choose.require, settings), settings.name)
    with ThreadPoolExecutor(1) as pool:  # reading customers begins meanwhile
        return read_customers(
            source, settings, recipe, theta, path, excluded=pool.submit(excluded), required=required, progress=progress
        )


def read_id_files(files: Iterable[str], settings: Settings) -> list[Ids]:
    """Return the ids in some files, which have the campaign's id column; relative to the campaign's folder."""
    result = []
    for name in files:
        path, begin = settings.folder / name, 0
        with suppress(NoRowsError):  # nobody has opted out yet
            reader = open_rows(path, columns=[settings.id], text=[settings.id], delimiter=settings.delimiter)
            for batch in reader.batches:
                column = as_ids(batch.column(settings.id), settings.id, begin, name)
                result.append(as_array(column))
                begin += batch.num_rows
    return result
