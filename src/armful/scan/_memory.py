"""What a policy remembers of a table from one round to the next."""

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
"""Widths are kept in float32, so much larger than they are; that covers every rounding."""

LARGEST_GROWTH = 2.0
"""When widths may have grown by more, what was remembered is of no use."""

UNKNOWN = np.float32(np.inf)


def reliable(state: Model) -> bool:
    """Whether computed widths are so exact that `MARGIN` covers their rounding."""
    return Rounding.of(state, np.float64).width < MARGIN / 4


class Memory:
    """The arms chosen last with their features, and for every arm a number that its width does not exceed.

    Widths only shrink while a state learns, so one that was computed once bounds it ever after. When the state
    changes in another way (it forgets, or is replaced), all bounds grow by what the worst of them could.
    """

    def __init__(self, n_arms: int) -> None:
        self.chosen: IntArray = NO_ARMS
        self.features: FloatArray = np.zeros((0, 0))
        self._widths: NDArray[np.float32] = np.full(n_arms, UNKNOWN, dtype=np.float32)
        self._factor = 1.0  # of all widths
        self._state: Model | None = None

    def keep(self, chosen: IntArray, features: FloatArray) -> None:
        """Remember what was chosen: next time it says what another arm must reach, and need not be read again.

        The features are not copied but made read-only.
        """
        self.chosen, self.features = chosen.copy(), features
        features.flags.writeable = False

    def drop_chosen(self) -> tuple[IntArray, FloatArray]:
        """The arms chosen last and their features, which are not kept any longer."""
        last, self.chosen, self.features = (self.chosen, self.features), NO_ARMS, np.zeros((0, 0))
        return last

    def bring_to(self, state: Model) -> None:
        """Make the bounds hold for this state."""
        if self._state is not None and state is not self._state:
            larger = growth(self._state.root, state)
            if not larger <= LARGEST_GROWTH or not reliable(state):
                self._widths[:] = UNKNOWN
            else:
                self._factor *= larger * (1 + MARGIN)
            if not 1 / LARGEST_GROWTH <= self._factor <= LARGEST_GROWTH:
                with np.errstate(over="ignore"):
                    self._widths *= np.float32(self._factor * (1 + MARGIN))
                self._widths += np.finfo(np.float32).tiny  # what became too small for float32 stays a bound
                self._factor = 1.0
        self._state = state

    def knows(self, begin: int, end: int) -> bool:
        """Whether the arms from `begin` to `end` were seen before."""
        return bool(np.isfinite(self._widths[begin:end]).all())

    def widths(self, begin: int, end: int) -> FloatArray:
        """What the widths, true or computed, do not exceed, `(end - begin,)`."""
        return np.multiply(self._widths[begin:end], self._factor, dtype=np.float64)

    def remember(self, arms: slice | IntArray, widths: FloatArray) -> None:
        """Keep what the true widths of these arms do not exceed."""
        with np.errstate(over="ignore"):
            self._widths[arms] = widths * ((1 + MARGIN) / self._factor) + np.finfo(np.float32).tiny


_memories: "WeakKeyDictionary[Table, WeakKeyDictionary[object, Memory]]" = WeakKeyDictionary()


@contextmanager
def remembering(rows: Rows, policy: object) -> Iterator[Memory | None]:
    """What this policy remembers of these arms, if they are a table's; it is gone when either is.

    It is taken out while it is in use, and put back when all went well: another thread finds nothing then, and what
    was interrupted is forgotten.
    """
    if not isinstance(rows, Table):
        yield None
        return
    rows.refuse_changed()
    if type(policy).__hash__ is None:  # it cannot be told from others
        yield Memory(rows.n_arms)
        return
    by_policy = _memories.setdefault(rows, WeakKeyDictionary())
    memory = by_policy.pop(policy, None) or Memory(rows.n_arms)
    yield memory
    by_policy[policy] = memory
