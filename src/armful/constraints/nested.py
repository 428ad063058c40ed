"""So many arms from groups within groups: laminar matroids, with lower bounds."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armful.checks import IntArray
from armful.constraints._checks import check_indices
from armful.constraints._groups import Counts, Groups, Level, Total, parents_of
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
        for option, bounds in (("at_least", at_least), ("at_most", at_most)):
            if bounds is not None and not isinstance(bounds, Mapping):
                raise ValueError(f"{option} must be a mapping by level, like {{'region': 40}}, got {bounds!r}")
            for name in bounds or {}:
                if name not in columns:
                    raise ValueError(f"{option} names a level {name!r}; there are {', '.join(map(repr, columns))}")
        self._names = list(columns)[::-1]
        self._levels = [
            Level.between(columns[name], (at_least or {}).get(name), (at_most or {}).get(name)) for name in self._names
        ]
        needed, allowed = self._refuse_misfits()
        self._set_total(total, int(needed.sum()), int(allowed.sum()))

    def limits(self, indices: ArrayLike) -> Iterator[Limit]:
        """Return the groups of all levels and the total that have reached a bound, each loosened by one."""
        chosen = check_indices(indices)
        for end, bound, groups in self._binding(chosen):
            given: dict[str, dict[str, Any]] = {
                name: dict(self.options[name] or {}) for name in ("at_least", "at_most")
            }
            for depth, group in groups:
                for option, bounds in self._levels[depth].loosened(group, end).items():
                    given[option][self._names[depth]] = bounds
            (first, *same) = [f"{self._names[depth]} {self._levels[depth].groups.labels[i]!r}" for depth, i in groups]
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
                parent = parents_of(self._levels[depth - 1], level)
                for part in np.flatnonzero(np.bincount(parent)[parent] == 1).tolist():
                    groups[parent[part]] = finest[part]
            finest = groups
            for i, end, bound in level.binding(chosen):
                alike.setdefault((end, bound, *finest[i]), []).append((depth, i))
        for (end, bound, *_), members in alike.items():
            yield end, bound, members

    def _refuse_misfits(self) -> tuple[IntArray, IntArray]:
        """Raise unless levels nest and bounds can be met; return what the coarsest groups need and allow."""
        needed = allowed = np.zeros(0, dtype=np.int64)
        for depth, (name, level) in enumerate(zip(self._names, self._levels, strict=True)):
            n_groups = len(level.groups.labels)
            if depth == 0:
                needed, allowed = level.lower, level.upper
                continue
            finer = self._levels[depth - 1].groups
            if finer.of_arm.size != level.groups.of_arm.size:
                raise ValueError(
                    f"all levels must have a label for each arm, got {level.groups.of_arm.size} by {name} and "
                    f"{finer.of_arm.size} by {self._names[depth - 1]}"
                )
            parent = parents_of(self._levels[depth - 1], level)
            stray = np.flatnonzero(parent[finer.of_arm] != level.groups.of_arm)
            if stray.size:
                label = finer.labels[finer.of_arm[stray[0]]]
                raise ValueError(
                    f"{self._names[depth - 1]} {label!r} lies in more than one {name}; "
                    "groups that cross one another are for overlapping_quotas"
                )
            below = np.bincount(parent, weights=needed, minlength=n_groups).astype(np.int64)
            available = np.bincount(parent, weights=allowed, minlength=n_groups).astype(np.int64)
            for i in np.flatnonzero((below > level.upper) | (available < level.lower)).tolist():
                label = level.groups.labels[i]
                if below[i] > level.upper[i]:
                    raise InfeasibleError(
                        f"{name} {label!r} allows at most {level.upper[i]} arms, its parts need at least {below[i]}"
                    )
                raise InfeasibleError(
                    f"{name} {label!r} needs at least {level.lower[i]} arms, its parts allow at most {available[i]}"
                )
            needed, allowed = np.maximum(below, level.lower), np.minimum(available, level.upper)
        return needed, allowed
