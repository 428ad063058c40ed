"""One policy for several threads: its locks, and the random numbers of a choice that fails."""

from threading import RLock
from typing import Self

from numpy.random import Generator


class Locks:
    """The locks of a policy; each is held only as long as what it protects is in use.

    A thread that needs several takes them in this order: drawing or learning, then state. A shallow copy of a policy
    has the same locks, since it draws from the same generator; a deep copy and an unpickled policy have their own.

    Attributes
    ----------
    drawing : RLock
        Held while random numbers are drawn: for a whole choice from few arms, and at the start of one from many.
    state : RLock
        Held while arms are scored and while the state is replaced, so that all scores of a choice are by one state.
    learning : RLock
        Held from reading the state until it is replaced by what was learned, so that no observation is lost.
    last_draw : RewindOnError or None
        The choice that drew last.
    """

    def __init__(self) -> None:
        self.drawing, self.state, self.learning = RLock(), RLock(), RLock()
        self.last_draw: RewindOnError | None = None

    def __deepcopy__(self, memo: object) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class RewindOnError:
    """Hold `locks.drawing` during a choice; if the choice fails, rewind the generator to the start of the round.

    After `let_others_draw` the rest of the choice runs without the lock; if it fails then, the generator is rewound
    only if no other thread has drawn since.
    """

    def __init__(self, locks: Locks, generator: Generator) -> None:
        self._locks, self._bits = locks, generator.bit_generator

    def __enter__(self) -> Self:
        self._locks.drawing.acquire()
        self._holds_lock = True
        self._before = self._bits.state
        self._locks.last_draw = self
        return self

    def let_others_draw(self) -> None:
        """Release the lock: this choice has drawn all its random numbers."""
        self._holds_lock = False
        self._locks.drawing.release()

    def __exit__(self, failed: type[BaseException] | None, *error: object) -> None:
        if failed is not None:
            with self._locks.drawing:
                if self._locks.last_draw is self:
                    self._bits.state = self._before
        if self._holds_lock:
            self._locks.drawing.release()
