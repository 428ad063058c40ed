"""Which customers of a file may be chosen in a round, and which must be."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.reading._person_ids import Ids, IdSet, as_array, as_ids
from armful.campaigns.reading._rows import open_rows
from armful.campaigns.rounds._customers import Customers, read_customers
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.errors import NoRowsError
from armful.ledger import Ledger
from armful.tables._columns import import_pyarrow


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
    listed: dict[str, list[Ids]] = {}

    def ids_in(files: Iterable[str]) -> Iterator[Ids]:
        for name in files:
            listed[name] = read_id_files([name], settings)
            yield from listed[name]

    def excluded() -> IdSet:
        resting = [ledger.ids_chosen(rest)] if rest else []
        return IdSet([*resting, *ids_in(settings.choose.exclude)], settings.name)

    required = IdSet(ids_in(settings.choose.require), settings.name)
    with ThreadPoolExecutor(1) as pool:  # reading customers begins meanwhile
        customers = read_customers(
            source, settings, recipe, theta, path, excluded=pool.submit(excluded), required=required, progress=progress
        )
    strangers = tuple(name for name, ids in listed.items() if ids and not _any_customer(customers, np.concatenate(ids)))
    return replace(customers, strangers=strangers)


def _any_customer(customers: Customers, ids: Ids) -> bool:
    """Return whether one of the ids of a file is that of a customer, who is then excluded or required."""
    from pyarrow import compute  # noqa: PLC0415 - an extra

    named = customers.ids.filter(import_pyarrow().array(customers.excluded | customers.required))
    found = compute.is_in(named, value_set=import_pyarrow().array(ids, type=named.type))
    return bool(compute.any(found, min_count=0).as_py())


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
