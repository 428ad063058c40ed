"""So many arms from groups within groups: laminar matroids, with lower bounds."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from armful.checks import IntArray
from armful.constraints._checks import check_indices
from armful.constraints._groups import Counts, Groups, Level, Total, bounds_by_name, parents_of
from armful.constraints.base import Limit
from armful.constraints.quotas import BoundedGroups
from armful.errors import InfeasibleError


class NestedQuotas(BoundedGroups):
    """Bounds on groups within groups (regions and their cities): the best set in rising order of index.

    Without lower bounds the allowed sets are the independent sets of a laminar matroid. With them the greedy algorithm,
    level by level, is still exact, for scores of any sign (the proof is in `_ranks.Ranks.best`).

    Parameters
    ----------
    groups : mapping of str to iterable of hashable, of length n_arms
        A column of labels for each level, by name, from the coarsest to the finest: `{"region": [...], "city": [...]}`.
        Each group of a level must lie within one group of the level before.
    at_least, at_most : mapping of str to int or mapping, optional
        By name of the level, then as in `Quotas`: `{"region": {"north": 3}, "city": 2}`.
    total : int or pair of int, optional
        As in `Quotas`.

    Raises
    ------
    ValueError
        If levels do not nest, or an option names a level that is not there.
    InfeasibleError
        If the bounds cannot all be met.

    Examples
    --------
    >>> where = {"region": ["n", "n", "n", "s", "s"], "city": ["a", "a", "b", "c", "c"]}
    >>> NestedQuotas(where, at_most={"region": 2, "city": 1}).best([5.0, 4.0, 1.0, 2.0, 3.0]).indices
    array([0, 2, 4])
    """

    def __init__(
        self,
        groups: Mapping[str, Iterable[Hashable] | Groups],
        *,
        at_least: Mapping[str, Counts] | None = None,
        at_most: Mapping[str, Counts] | None = None,
        total: Total = None,
    ) -> None:
        if not isinstance(groups, Mapping) or not groups:
            raise ValueError(
                "NestedQuotas needs a column of labels for each level, like {'region': [...], 'city': [...]}"
            )
        columns = {name: replace(Groups.of(labels), kind=name) for name, labels in groups.items()}
        self.options = {"groups": columns, "at_least": deepcopy(at_least), "at_most": deepcopy(at_most), "total": total}
        least, most = bounds_by_name("level", columns, at_least, at_most)
        finest_first = reversed(columns.items())
        self._levels = [Level.between(labels, least.get(name), most.get(name)) for name, labels in finest_first]
        needed, allowed = self._refuse_misfits()
        self._set_total(total, int(needed.sum()), int(allowed.sum()))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the groups of all levels and the total that have reached a bound, each loosened by one."""
        chosen = check_indices(indices)
        for end, bound, groups in self._binding(chosen):
            given = {option: dict(self.options[option] or {}) for option in ("at_least", "at_most")}
            for depth, group in groups:
                for option, bounds in self._levels[depth].loosened(group, end).items():
                    given[option][self._levels[depth].groups.kind] = bounds
            (first, *same) = [self._levels[depth].groups.name(group) for depth, group in groups]
            words = f"{end.replace('_', ' ')} {bound} from {first}"
            yield Limit(f"{words} (all of {' and '.join(same)})" if same else words, self.with_(**given))
        yield from self._total_limits(chosen)

    def _binding(self, chosen: IntArray) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
        """Yield each limit that binds, and the groups (number of level, number of group) of the same arms with it."""
        alike: dict[tuple[str, int, int, int], list[tuple[int, int]]] = {}
        finest: list[tuple[int, int]] = []
        for depth, level in enumerate(self._levels):
            groups = [(depth, i) for i in range(len(level.groups.labels))]
            if depth > 0:  # a group with one part only has the same arms as that part
                parent = parents_of(self._levels[depth - 1].groups, level.groups)
                for part in np.flatnonzero(np.bincount(parent)[parent] == 1).tolist():
                    groups[parent[part]] = finest[part]
            finest = groups
            for i, end, bound in level.binding(chosen):
                alike.setdefault((end, bound, *finest[i]), []).append((depth, i))
        for (end, bound, *_), members in alike.items():
            yield end, bound, members

    def _refuse_misfits(self) -> tuple[IntArray, IntArray]:
        """Raise unless levels nest and bounds can be met; return what the coarsest groups need and allow."""
        needed, allowed = self._levels[0].lower, self._levels[0].upper
        for finer, level in pairwise(self._levels):
            _refuse_crossing(finer.groups, level.groups)
            parent = parents_of(finer.groups, level.groups)
            below, available = (
                np.bincount(parent, weights=counts, minlength=level.lower.size).astype(np.int64)
                for counts in (needed, allowed)
            )
            for i in np.flatnonzero((below > level.upper) | (available < level.lower)).tolist():
                name, low, high = level.groups.name(i), level.lower[i], level.upper[i]
                if below[i] > high:
                    raise InfeasibleError(f"{name} allows at most {high} arms, its parts need at least {below[i]}")
                raise InfeasibleError(f"{name} needs at least {low} arms, its parts allow at most {available[i]}")
            needed, allowed = np.maximum(below, level.lower), np.minimum(available, level.upper)
        return needed, allowed


def _refuse_crossing(finer: Groups, coarser: Groups) -> None:
    """Raise unless each group of the finer level lies in one group of the coarser."""
    if finer.of_arm.size != coarser.of_arm.size:
        raise ValueError(
            f"all levels must have a label for each arm, got {coarser.of_arm.size} by {coarser.kind} and "
            f"{finer.of_arm.size} by {finer.kind}"
        )
    stray = np.flatnonzero(parents_of(finer, coarser)[finer.of_arm] != coarser.of_arm)
    if stray.size:
        raise ValueError(
            f"{finer.name(finer.of_arm[stray[0]])} lies in more than one {coarser.kind}; "
            "groups that cross one another are for overlapping_quotas"
        )
