"""So many arms from each group: partition matroids."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import check_indices
from armful.constraints._groups import Counts, Groups, Level, Total, as_ranks, total_bounds
from armful.constraints._ranks import Ranks
from armful.constraints.base import Limit
from armful.constraints.ranked import RankedConstraint
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError
from armful.randomness import draw_key


class BoundedGroups(RankedConstraint):
    """The base class of `Quotas` and `NestedQuotas`; `_levels` from the finest groups to the coarsest."""

    _levels: Sequence[Level]

    @property
    def k(self) -> int:
        """The size of the largest allowed set."""
        return self._high

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self._levels[0].groups.of_arm.size)

    def _set_total(self, total: Total, least: int, most: int) -> None:
        self._least, self._most = least, most  # what the groups need and allow
        self._low, self._high = total_bounds(total, least, most)
        if self._high == 0:
            raise ValueError(f"{type(self).__name__} allows the empty set only; raise a quota or the total")

    @cached_property
    def ranks(self) -> Ranks:
        return as_ranks(self._levels, self._low, self._high)

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        indices = self.ranks.best(scores, draw_key(rng), required=required, excluded=excluded)
        self._refuse_unmet(indices)
        return Selection(indices, float(scores[indices].sum()))

    def _refuse_unmet(self, chosen: IntArray) -> None:
        """Raise and name the first bound that required and excluded arms made impossible."""
        for level in self._levels:
            taken = level.taken(chosen)
            for i in np.flatnonzero((taken < level.lower) | (taken > level.upper)).tolist():
                name = level.groups.name(i)
                if taken[i] < level.lower[i]:
                    raise InfeasibleError(f"{name} needs at least {level.lower[i]} arms, {taken[i]} are left")
                raise InfeasibleError(f"{name} allows {level.upper[i]} arms, {taken[i]} are required")
        if not self._low <= chosen.size <= self._high:
            total = f"{self._low}" if self._low == self._high else f"{self._low} to {self._high}"
            raise InfeasibleError(f"a total of {total} arms is asked for, {chosen.size} is all that the rest allows")

    def _total_limits(self, chosen: IntArray) -> Iterator[Limit]:
        low, high = self._low, self._high
        full, least = chosen.size == high < self._most, chosen.size == low > self._least
        if full or least:
            words = f"exactly {high}" if full and least else f"at most {high}" if full else f"at least {low}"
            yield Limit(f"{words} in all", self.with_(total=(low - least, high + full)))


class Quotas(BoundedGroups):
    """Bounds on how many arms come from each group: the best set in rising order of index.

    With `exactly` the allowed sets are the bases of a partition matroid, the paper's constraint. Solved greedily, which
    is exact for scores of any sign (the proof is in `_ranks.Ranks.best`). Each count may be one number for all groups,
    or a mapping from label to number.

    Parameters
    ----------
    groups : iterable of hashable, of length n_arms
        A label for each arm: strings, numbers, tuples.
    exactly : int or mapping, optional
        How many from each group; none from a group that is not named. Not together with the other options.
    at_least, at_most : int or mapping, optional
        Bounds for each group; a group that is not named has none (0 and its size).
    total : int or pair of int, optional
        How many in all: a number, or a range `(low, high)`. Without it any number, and then no arm of negative score
        beyond what `at_least` asks for.

    Raises
    ------
    ValueError
        If options are missing, contradict each other, or allow the empty set only.
    InfeasibleError
        If a group, or the total, needs more arms than there are.

    Examples
    --------
    >>> regions = ["north", "north", "south", "south", "south"]
    >>> Quotas(regions, exactly={"north": 1, "south": 2}).best([1.0, 2.0, 3.0, -1.0, 4.0]).indices
    array([1, 2, 4])
    >>> Quotas(regions, at_least={"north": 1}, at_most=2, total=3).best([1.0, 2.0, 3.0, -1.0, 4.0]).indices
    array([1, 2, 4])
    """

    def __init__(
        self,
        groups: Iterable[Hashable] | Groups,
        *,
        exactly: Counts | None = None,
        at_least: Counts | None = None,
        at_most: Counts | None = None,
        total: Total = None,
    ) -> None:
        found = Groups.of(groups)
        self.options = {
            "groups": found,
            "exactly": copy(exactly),
            "at_least": copy(at_least),
            "at_most": copy(at_most),
            "total": total,
        }
        if exactly is None and at_least is None and at_most is None and total is None:
            raise ValueError("Quotas needs exactly, at_least, at_most or total")
        if exactly is not None and (at_least is not None or at_most is not None or total is not None):
            raise ValueError("Quotas takes exactly, or at_least, at_most and total, not both")
        level = Level.between(found, at_least, at_most) if exactly is None else Level.exactly(found, exactly)
        self._levels = [level]
        self._set_total(total, int(level.lower.sum()), int(level.upper.sum()))

    @property
    def labels(self) -> list[Hashable]:
        """The groups, in order of appearance."""
        return self._levels[0].groups.labels

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the groups and the total that have reached a bound, each loosened by one."""
        chosen, level = check_indices(indices), self._levels[0]
        total = self.options["total"] if self.options["exactly"] is None else None
        for group, name, bound in level.binding(chosen):
            words = f"{name.replace('_', ' ')} {bound} from {level.groups.labels[group]!r}"
            yield Limit(words, self.with_(exactly=None, total=total, **level.loosened(group, name)))
        if self.options["exactly"] is None:
            yield from self._total_limits(chosen)
