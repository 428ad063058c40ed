"""What a policy keeps of a table from one round to the next: the last choice, and bounds on the widths."""

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.model.base import Model
from armful.scan._rounding import Rounding, growth
from armful.tables.rows import Rows
from armful.tables.table import Table

MARGIN = 1e-6
"""By this fraction stored widths, which are float32, are larger than computed ones; it covers every rounding error."""

LARGEST_GROWTH = 2.0
"""If widths may have grown by more than this factor, the bounds are dropped."""

UNKNOWN = np.float32(np.inf)


def widths_are_accurate(state: Model) -> bool:
    """Return whether the rounding errors of computed widths are so small that `MARGIN` covers them."""
    return Rounding.of(state, np.float64).width < MARGIN / 4


class TableCache:
    """The arms chosen last with their features, and an upper bound on the width of every arm.

    Widths only shrink while a state learns, so a computed width is a bound for all later rounds. When the state
    changes in another way (it is discounted or replaced), all bounds grow by the largest possible factor.
    """

    def __init__(self, n_arms: int) -> None:
        self.chosen: IntArray = NO_ARMS
        self.features: FloatArray = np.zeros((0, 0))
        self._widths: NDArray[np.float32] = np.full(n_arms, UNKNOWN, dtype=np.float32)
        self._factor = 1.0  # all widths are multiplied by it
        self._state: Model | None = None

    def set_chosen(self, chosen: IntArray, features: FloatArray) -> None:
        """Store the choice: its scores in the next round are thresholds, and its features need not be read again.

        The features are not copied but made read-only.
        """
        self.chosen, self.features = chosen.copy(), features
        features.flags.writeable = False

    def pop_chosen(self) -> tuple[IntArray, FloatArray]:
        """Return the arms chosen last and their features, and remove them."""
        last, self.chosen, self.features = (self.chosen, self.features), NO_ARMS, np.zeros((0, 0))
        return last

    def update_to(self, state: Model) -> None:
        """Adapt the bounds so that they hold for this state."""
        if self._state is not None and state is not self._state:
            factor = growth(self._state.root, state)
            if not factor <= LARGEST_GROWTH or not widths_are_accurate(state):
                self._widths[:] = UNKNOWN
            else:
                self._factor *= factor * (1 + MARGIN)
            if not 1 / LARGEST_GROWTH <= self._factor <= LARGEST_GROWTH:
                with np.errstate(over="ignore"):
                    self._widths *= np.float32(self._factor * (1 + MARGIN))
                self._widths += np.finfo(np.float32).tiny  # so that a width too small for float32 stays bounded
                self._factor = 1.0
        self._state = state

    def has_bounds(self, begin: int, end: int) -> bool:
        """Return whether there are bounds for all arms from `begin` to `end`."""
        return bool(np.isfinite(self._widths[begin:end]).all())

    def width_bounds(self, begin: int, end: int) -> FloatArray:
        """Return upper bounds on the widths, exact or computed, `(end - begin,)`."""
        return np.multiply(self._widths[begin:end], self._factor, dtype=np.float64)

    def set_bounds(self, arms: slice | IntArray, bounds: FloatArray) -> None:
        """Store upper bounds on the exact widths of these arms."""
        with np.errstate(over="ignore"):
            self._widths[arms] = bounds * ((1 + MARGIN) / self._factor) + np.finfo(np.float32).tiny


_caches: "WeakKeyDictionary[Table, WeakKeyDictionary[object, TableCache]]" = WeakKeyDictionary()


@contextmanager
def borrow_cache(rows: Rows, policy: object) -> Iterator[TableCache | None]:
    """Give the cache of this policy for this table; None if the rows are not a table.

    The cache is removed during a round and restored on success: another thread starts with an empty one, and an
    interrupted round leaves nothing half-changed. It is deleted with the table or the policy.
    """
    if not isinstance(rows, Table):
        yield None
        return
    rows.refuse_changed()
    if type(policy).__hash__ is None:  # not usable as a key
        yield TableCache(rows.n_arms)
        return
    by_policy = _caches.setdefault(rows, WeakKeyDictionary())
    cache = by_policy.pop(policy, None) or TableCache(rows.n_arms)
    yield cache
    by_policy[policy] = cache
