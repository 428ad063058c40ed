"""The files of orders of `armful demo`: late, partly repeated, some corrected, and some of people never contacted."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from armful.campaigns.demo._customers import DemoCustomers

START = date(2026, 1, 5)
REPEATED, RETURNED, NOT_CONTACTED = 0.05, 0.03, 0.15
"""Of the orders of a week: sent again a week later, sent back in the next week, and by people who were on no list."""

Order = tuple[str, date, int]
"""Who, when, and 1 for a purchase or 0 for one that was sent back."""


class DemoShop:
    """What customers order, week by week."""

    def __init__(self, customers: DemoCustomers) -> None:
        self._people = customers
        self._ids: NDArray[np.str_] = customers.columns["customer_id"].to_numpy().astype(str)
        self._index = {id_: index for index, id_ in enumerate(self._ids.tolist())}
        self._contacted: set[str] = set()
        self._orders: list[Order] = []
        self._previous: list[Order] = []

    def contact(self, week: int, ids: Sequence[str]) -> None:
        """Contact customers at the beginning of a week, counted from 1."""
        buys, days = self._people.responses(week)
        for id_ in ids:
            index = self._index[id_]
            if buys[index]:
                self._orders.append((id_, day(week) + timedelta(days=int(days[index])), 1))
        self._contacted.update(ids)

    def write_week(self, week: int, path: Path) -> int:
        """Write the orders of a week as they are exported at its end, and return the number of rows."""
        rng = np.random.default_rng([self._people.seed, week, 1])
        new = [order for order in self._orders if day(week) < order[1] <= day(week + 1)]
        fate = rng.random(len(self._previous))
        again = [order for order, u in zip(self._previous, fate, strict=True) if u < REPEATED]
        returned = [(id_, when, 0) for (id_, when, _), u in zip(self._previous, fate, strict=True) if u > 1 - RETURNED]
        strangers = rng.choice(self._ids, size=round(NOT_CONTACTED * len(new)) + 1, replace=False)
        others = [(str(id_), day(week + 1), 1) for id_ in strangers if id_ not in self._contacted]
        rows = [*new, *again, *returned, *others]
        order = rng.permutation(len(rows))
        names = ("customer_id", "date", "bought")
        columns = {name: [rows[i][column] for i in order] for column, name in enumerate(names)}
        pa.csv.write_csv(pa.table(columns), path, pa.csv.WriteOptions(quoting_style="none"))
        self._previous = new
        return len(rows)


def day(week: int) -> date:
    """Return the first day of a week, counted from 1."""
    return START + timedelta(weeks=week - 1)
