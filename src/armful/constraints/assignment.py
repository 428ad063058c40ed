"""Pairs of rows and columns, like workers and tasks: bipartite b-matchings."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices, plain, repeated, with_others
from armful.constraints._groups import Groups
from armful.constraints._matching import Matcher, Pairs, largest_number, too_few_columns
from armful.constraints._restrictable import RestrictableConstraint
from armful.constraints.base import Limit
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError

Capacity = int | Mapping[Hashable, int]

MOST_LIMITS = 100
MOST_NAMES = 10


class Assignment(RestrictableConstraint):
    """Arms are pairs (row, column), and each row and column is used at most so many times; in rising order of index.

    Exact for scores of any sign, by scipy's shortest augmenting paths on a dense or a sparse matrix
    (docs/decisions/0014). Where the row and the column of a pair may both be used more than once, by the dual simplex
    of HiGHS: the constraints are totally unimodular, so that a vertex of the relaxation is a set.

    Parameters
    ----------
    rows, columns : iterable of hashable, of length n_arms
        The labels of each pair; a pair may be there more than once.
    row_capacity, column_capacity : int or mapping
        How often each is used at most: one number for all, or a mapping from label to number, 1 for a label that is not
        named.
    every_row, every_column : bool
        Whether each is used exactly as often as its capacity says. Otherwise no arm of negative score is chosen, and
        arms that score exactly 0 are added in random order while they fit.

    Raises
    ------
    ValueError
        If rows and columns differ in length, or a capacity names a label that is not there.
    InfeasibleError
        If not every row or column can be used; the message names some that compete for too few others.

    References
    ----------
    Jonker and Volgenant 1987; Crouse 2016; Hall 1935.

    Examples
    --------
    >>> workers, tasks = ["ann", "ann", "bob", "bob"], ["paint", "drive", "paint", "drive"]
    >>> Assignment(workers, tasks).best([5.0, 4.0, 4.0, 1.0]).indices
    array([1, 2])
    >>> Assignment(workers, tasks, column_capacity=2).best([5.0, 4.0, 4.0, 1.0]).indices
    array([0, 2])
    """

    always_exact = True
    _arms_are = "pairs"

    def __init__(
        self,
        rows: Iterable[Hashable] | Groups,
        columns: Iterable[Hashable] | Groups,
        *,
        row_capacity: Capacity = 1,
        column_capacity: Capacity = 1,
        every_row: bool = False,
        every_column: bool = False,
    ) -> None:
        self._rows, self._columns = _groups("rows", rows), _groups("columns", columns)
        self.n_arms = self._rows.of_arm.size
        if self._columns.of_arm.size != self.n_arms:
            raise ValueError(
                f"rows and columns must be of one length, got {self.n_arms} and {self._columns.of_arm.size}"
            )
        self.every_row, self.every_column = bool(every_row), bool(every_column)
        self._pairs = Pairs(
            self._rows.of_arm,
            self._columns.of_arm,
            _capacities("row", self._rows, row_capacity),
            _capacities("column", self._columns, column_capacity),
            self.every_row,
            self.every_column,
        )
        self.options = {
            "rows": self._rows,
            "columns": self._columns,
            "row_capacity": row_capacity,
            "column_capacity": column_capacity,
            "every_row": every_row,
            "every_column": every_column,
        }
        if self.every_row or self.every_column:
            self._refuse_infeasible()

    @cached_property
    def k(self) -> int:
        """The size of the largest allowed set."""
        largest = largest_number(self._pairs)
        if largest == 0:
            raise ValueError("Assignment allows the empty set only; raise a capacity")
        return largest

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._pairs)

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        matcher = self._matcher
        if required.size or excluded.size:
            allowed = np.ones(self.n_arms, dtype=bool)
            allowed[required] = allowed[excluded] = False
            rest = self._pairs.left(required)
            self._refuse_overfull(rest)
            matcher = Matcher(rest, np.flatnonzero(allowed))
        chosen = matcher.best(scores, rng)
        if chosen is None:
            raise InfeasibleError(self._no_assignment(required, excluded))
        indices = np.sort(np.concatenate([required, chosen]))
        return Selection(indices, float(scores[indices].sum()))

    def arm_names(self, indices: ArrayLike) -> list[str]:
        """Return the pairs by their labels, like `(ann, paint)`; one that is there again, with its number."""
        arms, pairs = check_indices(indices, self.n_arms), self._pairs
        again = with_others(pairs.row, pairs.column)[arms].tolist()
        names = []
        for arm, is_again in zip(arms.tolist(), again, strict=True):
            row, column = self._rows.labels[pairs.row[arm]], self._columns.labels[pairs.column[arm]]
            names.append(f"({plain(row)}, {plain(column)}{f', arm {arm}' if is_again else ''})")
        return names

    def violation(self, indices: ArrayLike) -> float:
        """Return how often rows and columns are used too often or too rarely, and how many pairs are repeated."""
        chosen = check_indices(indices, self.n_arms)
        rest = self._pairs.left(np.unique(chosen))
        by_row = np.abs(rest.row_capacity) if self.every_row else np.maximum(-rest.row_capacity, 0)
        by_column = np.abs(rest.column_capacity) if self.every_column else np.maximum(-rest.column_capacity, 0)
        return float(by_row.sum() + by_column.sum() + repeated(chosen))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the rows and columns that are full, with room for one more; the first hundred.

        Not those that must be used exactly so many times: there is no looser form.
        """
        return islice(self._limits(check_indices(indices)), MOST_LIMITS)

    def _limits(self, chosen: IntArray) -> Iterator[Limit]:
        rest = self._pairs.left(chosen)
        sides: list[tuple[str, Groups, IntArray, IntArray, bool]] = [
            ("row", self._rows, self._pairs.row_capacity, rest.row_capacity, self.every_row),
            ("column", self._columns, self._pairs.column_capacity, rest.column_capacity, self.every_column),
        ]
        for side, groups, capacity, left, exactly in sides:
            if exactly:
                continue
            for i in np.flatnonzero((left == 0) & (capacity < groups.sizes)).tolist():
                label, now = groups.labels[i], int(capacity[i])
                raised = _with_one_more(self.options[f"{side}_capacity"], groups, i)
                changes: dict[str, Any] = {f"{side}_capacity": raised}
                yield Limit(f"{side} {label!r} at most {now}", self.with_(**changes))

    def _refuse_overfull(self, rest: Pairs) -> None:
        for side, groups, left in (
            ("row", self._rows, rest.row_capacity),
            ("column", self._columns, rest.column_capacity),
        ):
            for i in np.flatnonzero(left < 0).tolist():
                raise InfeasibleError(f"the required pairs use {side} {groups.labels[i]!r} more often than it allows")

    def _no_assignment(self, required: IntArray, excluded: IntArray) -> str:
        named = {"has all the required pairs": required, "does without all the excluded pairs": excluded}
        parts = [f"{what} ({_enumerated(self.arm_names(arms))})" for what, arms in named.items() if arms.size]
        return f"no assignment {' and '.join(parts)}"

    def _refuse_infeasible(self) -> None:
        """Raise and name rows (or columns) that cannot all be used, if there are any."""
        pairs = self._pairs
        in_rows, in_columns = int(pairs.row_capacity.sum()), int(pairs.column_capacity.sum())
        if self.every_row and self.every_column and in_rows != in_columns:
            raise InfeasibleError(
                f"every row and every column is to be used, but rows have room for {in_rows}, columns for {in_columns}"
            )
        if largest_number(pairs) == (in_rows if self.every_row else in_columns):
            return
        side, groups, others = "row", self._rows, self._columns
        if not self.every_row:
            side, groups, others, pairs = "column", self._columns, self._rows, pairs.transposed()
        these, theirs, room = too_few_columns(pairs)
        needed = int(pairs.row_capacity[these].sum())
        names = _enumerated([repr(groups.labels[i]) for i in these])
        where = _enumerated([repr(others.labels[i]) for i in theirs])
        other = "row" if side == "column" else "column"
        if len(these) == 1:
            raise InfeasibleError(f"{side} {names} needs {needed} pairs, its {other}s ({where}) have room for {room}")
        raise InfeasibleError(f"{side}s {names} need {needed} pairs, their {other}s ({where}) have room for {room}")


def _groups(name: str, labels: Iterable[Hashable] | Groups) -> Groups:
    try:
        return replace(Groups.of(labels), kind=name.removesuffix("s"))
    except ValueError as error:
        raise ValueError(str(error).replace("groups", name)) from None


def _capacities(side: str, groups: Groups, capacity: Capacity) -> IntArray:
    if isinstance(capacity, Mapping):
        known = set(groups.labels)
        for label in capacity:
            if label not in known:
                raise ValueError(f"{side}_capacity names {label!r}, which is in no pair")
    name = f"{side}_capacity"
    return np.array(groups.counts(name, capacity, default=np.ones(len(groups.labels), dtype=np.int64)))


def _with_one_more(capacity: Capacity, groups: Groups, i: int) -> dict[Hashable, int]:
    numbers = groups.counts("capacity", capacity, default=np.ones(len(groups.labels), dtype=np.int64)).tolist()
    numbers[i] += 1
    return dict(zip(groups.labels, numbers, strict=True))


def _enumerated(names: list[str]) -> str:
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
