"""One policy for several threads: its locks, and the random numbers of a choice that fails."""

from threading import RLock
from typing import Self

from numpy.random import Generator


class Locks:
    """The locks of a policy; each is held only as long as what it protects is in use.

    drawing: while random numbers are drawn: for a whole choice from few arms, and at the beginning of one from many.
    state: while arms are scored, and while the state is replaced: so the scores of a choice are of one state.
    learning: from reading the state until it is replaced by what was learned, so that nothing is lost.

    Whoever holds several takes them in this order: drawing or learning, then state. A shallow copy of a policy has the
    same locks, since it draws from the same generator; a deep copy and an unpickled policy have their own.
    """

    def __init__(self) -> None:
        self.drawing, self.state, self.learning = RLock(), RLock(), RLock()
        self.turn: RewindOnError | None = None

    def __deepcopy__(self, memo: object) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class RewindOnError:
    """The random numbers of one choice: if it fails, the generator is rewound, unless somebody has drawn since.

    Made while `locks.drawing` is held.
    """

    def __init__(self, locks: Locks, generator: Generator) -> None:
        self._locks, self._bits = locks, generator.bit_generator
        self._before = self._bits.state
        locks.turn = self

    def __enter__(self) -> None:
        """Nothing is done before it fails."""

    def __exit__(self, failed: type[BaseException] | None, *what: object) -> None:
        if failed is not None:
            with self._locks.drawing:
                if self._locks.turn is self:
                    self._bits.state = self._before
