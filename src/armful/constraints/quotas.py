"""So many arms from each group: partition matroids."""

from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints.cardinality import largest
from armful.constraints.selection import Selection, check_indices, check_scores, repeated
from armful.errors import InfeasibleError

Counts = int | Mapping[Hashable, int]


class Quotas:
    """Bounds on how many arms come from each group, exact for scores of any sign.

    groups: a label for each arm, `(n_arms,)`: strings, numbers, tuples, anything hashable.
    exactly: so many from each group, no more and no fewer; a group that is not named gives none.
    at_least, at_most: bounds for each group; a group that is not named has none (0 and its size).
    total: how many in all: a number for exactly so many, a pair `(low, high)` for a range, or None for any number,
        which then takes no arm of negative score beyond what `at_least` asks for.
    Each count may be one number for all groups, or a mapping from label to number.

    Exact because every best set holds the `at_least` best arms of each group (any other could be exchanged for one
    of them), and what remains is greedy: the best of the rest that `at_most` admits, until the total is reached.

    >>> regions = ["north", "north", "south", "south", "south"]
    >>> Quotas(regions, exactly={"north": 1, "south": 2}).best([1.0, 2.0, 3.0, -1.0, 4.0]).indices
    array([1, 2, 4])
    >>> Quotas(regions, at_least={"north": 1}, at_most=2, total=3).best([1.0, 2.0, 3.0, -1.0, 4.0]).indices
    array([1, 2, 4])
    """

    def __init__(
        self,
        groups: Iterable[Hashable],
        *,
        exactly: Counts | None = None,
        at_least: Counts | None = None,
        at_most: Counts | None = None,
        total: int | tuple[int, int] | None = None,
    ) -> None:
        self.labels, self._group_of_arm = _encode(groups)
        self._sizes = np.bincount(self._group_of_arm, minlength=len(self.labels))
        if exactly is None and at_least is None and at_most is None and total is None:
            raise ValueError("Quotas needs exactly, at_least, at_most or total")
        if exactly is not None:
            if at_least is not None or at_most is not None or total is not None:
                raise ValueError("Quotas takes exactly, or at_least, at_most and total, not both")
            self._lower = self._upper = self._counts("exactly", exactly, default=np.zeros_like(self._sizes))
        else:
            self._lower = self._counts("at_least", at_least, default=np.zeros_like(self._sizes))
            self._upper = np.minimum(self._counts("at_most", at_most, default=self._sizes), self._sizes)
        self._refuse_infeasible_groups()
        self._low, self._high = self._total(total)
        self.k = self._high
        if self.k == 0:
            raise ValueError("Quotas allows the empty set only; raise a quota or the total")

    def __repr__(self) -> str:
        return f"Quotas({len(self.labels)} groups over {self._group_of_arm.size} arms, up to {self.k})"

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The allowed set with the largest sum of scores, in rising order of index."""
        values = check_scores(scores)
        if values.size != self._group_of_arm.size:
            raise ValueError(f"Quotas has groups for {self._group_of_arm.size} arms, got {values.size} scores")
        rng = rng or np.random.default_rng()
        order, rank = self._ranked(values, rng)
        group = self._group_of_arm[order]
        needed = order[rank < self._lower[group]]
        spare = order[(rank >= self._lower[group]) & (rank < self._upper[group])]
        spare = spare[largest(values[None, spare], min(self._high - needed.size, spare.size), [rng])[0]]
        n_forced = max(self._low - needed.size, 0)
        wanted = spare[n_forced:][values[spare[n_forced:]] >= 0]
        indices = np.sort(np.concatenate([needed, spare[:n_forced], wanted]))
        return Selection(indices, float(values[indices].sum()))

    def violation(self, indices: ArrayLike) -> float:
        """How many arms would have to be added or taken away at least, group by group and in all."""
        chosen = check_indices(indices)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self._group_of_arm.size):
            raise ValueError(f"indices must be from 0 to {self._group_of_arm.size - 1}, got {chosen}")
        distinct = np.unique(chosen)
        taken = np.bincount(self._group_of_arm[distinct], minlength=len(self.labels))
        by_group = np.maximum(self._lower - taken, 0).sum() + np.maximum(taken - self._upper, 0).sum()
        in_all = max(self._low - distinct.size, 0) + max(distinct.size - self._high, 0)
        return float(by_group + in_all + repeated(chosen))

    def _ranked(self, scores: FloatArray, rng: Generator) -> tuple[IntArray, IntArray]:
        """The arms group by group, best first, ties at random, and the place of each within its group."""
        shuffled = rng.permutation(scores.size)
        order = shuffled[np.lexsort((-scores[shuffled], self._group_of_arm[shuffled]))]
        begins = np.cumsum(self._sizes) - self._sizes
        return order, np.arange(scores.size) - begins[self._group_of_arm[order]]

    def _counts(self, name: str, counts: Counts | None, default: IntArray) -> IntArray:
        if counts is None:
            return default
        if not isinstance(counts, Mapping):
            return np.full(len(self.labels), checks.count(name, counts, minimum=0))
        result = default.copy()
        place = {label: i for i, label in enumerate(self.labels)}
        for label, number in counts.items():
            checks.count(f"{name} of group {label!r}", number, minimum=0)
            if label in place:
                result[place[label]] = number
            elif name != "at_most" and number > 0:
                raise InfeasibleError(f"group {label!r} needs {_phrase(name, number)}, none are there")
        return result

    def _refuse_infeasible_groups(self) -> None:
        for label, lower, upper, size in zip(self.labels, self._lower, self._upper, self._sizes, strict=True):
            if lower > size:
                name = "exactly" if self._lower is self._upper else "at_least"
                raise InfeasibleError(f"group {label!r} needs {_phrase(name, lower)}, {size} are there")
            if lower > upper:
                raise InfeasibleError(f"group {label!r} needs at least {lower} arms and at most {upper}")

    def _total(self, total: int | tuple[int, int] | None) -> tuple[int, int]:
        least, most = int(self._lower.sum()), int(self._upper.sum())
        if total is None:
            return least, most
        if isinstance(total, tuple | list):
            if len(total) != 2:
                raise ValueError(f"total must be a number or a pair (low, high), got {total!r}")
            low, high = (checks.count("total", end, minimum=0) for end in total)
            if low > high:
                raise ValueError(f"total must be a pair (low, high) with low <= high, got {total!r}")
        else:
            low = high = checks.count("total", total)
        if low > most:
            raise InfeasibleError(f"a total of {low} arms is asked for, the groups allow at most {most}")
        if high < least:
            raise InfeasibleError(f"a total of {high} arms is asked for, the groups need at least {least}")
        return max(low, least), min(high, most)


def _phrase(name: str, number: int) -> str:
    arms = "arm" if number == 1 else "arms"
    return f"{'exactly' if name == 'exactly' else 'at least'} {number} {arms}"


def _encode(groups: Iterable[Hashable]) -> tuple[list[Hashable], IntArray]:
    """The distinct labels in order of appearance, and the number of each arm's label."""
    if isinstance(groups, np.ndarray) and groups.ndim != 1:
        raise ValueError(f"groups must be one label for each arm, got an array of shape {groups.shape}")
    if isinstance(groups, np.ndarray) and groups.size and groups.dtype.kind in "iubUS":
        labels, first, codes = np.unique(groups, return_index=True, return_inverse=True)
        appearance = np.argsort(np.argsort(first))
        return labels[np.argsort(first)].tolist(), appearance[codes].astype(np.int64)
    numbers: dict[Hashable, int] = {}
    try:
        coded = [numbers.setdefault(label, len(numbers)) for label in groups]
    except TypeError:
        raise ValueError("groups must be hashable labels, one for each arm") from None
    if not coded:
        raise ValueError("groups must be one label for each arm, got none")
    return list(numbers), np.array(coded, dtype=np.int64)
