"""With what probability a random set includes each arm, under constraints that treat many arms alike."""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from armful.checks import FloatArray, IntArray
from armful.constraints._alike import kinds_of
from armful.constraints._checks import NO_ARMS
from armful.constraints._ranks import Ranks
from armful.constraints.base import Constraint
from armful.constraints.linear import Linear
from armful.constraints.restricted import Excluding, Requiring

MOST_SETS = 10_000
"""Random sets that are drawn for a structure in all: with every use one more, so that the error goes on falling."""

MOST_KEPT = 256
"""Structures that are remembered."""


@dataclass(frozen=True, eq=False)
class Alike:
    """Which arms a constraint treats alike, and all that the probabilities of its random sets depend on.

    Attributes
    ----------
    kinds : ndarray of shape (n_arms,)
        Arms of a kind may be exchanged in any set.
    key : tuple
        Equal for two constraints only if their kinds have the same sizes and bounds, in the same order.
    """

    kinds: IntArray
    key: tuple[Any, ...]

    @classmethod
    def of(cls, constraint: Constraint, n_arms: int) -> Self | None:
        """Return it for quotas, programs, and both with arms that are required or excluded; None for others."""
        if constraint.ranks is not None:
            return cls(*_of_ranks(constraint.ranks, n_arms))
        if type(constraint) is Linear:
            found = _of_program(constraint)
            return None if found is None else cls(*found)
        if type(constraint) not in (Excluding, Requiring):
            return None
        inner = cls.of(constraint.constraint, n_arms)  # type: ignore[attr-defined]
        if inner is None:
            return None
        required, excluded = constraint._with_own(NO_ARMS, NO_ARMS)  # type: ignore[attr-defined]
        state = np.zeros(n_arms, dtype=np.int64)
        state[required], state[excluded] = 1, 2
        states, kinds = np.unique(3 * inner.kinds + state, return_inverse=True)
        return cls(kinds, (inner.key, states.tobytes(), np.bincount(kinds).tobytes()))


def _of_ranks(ranks: Ranks, n_arms: int) -> tuple[IntArray, tuple[Any, ...]]:
    size = n_arms, ranks.low, ranks.high
    if ranks.of_arm is None:
        return np.zeros(n_arms, dtype=np.int64), size
    finest = ranks.levels[0]
    sizes = np.bincount(ranks.of_arm, minlength=finest.lower.size)
    order = np.lexsort((sizes, finest.upper, finest.lower)) if len(ranks.levels) == 1 else np.arange(sizes.size)
    place = np.argsort(order)
    arrays = [sizes[order], finest.lower[order], finest.upper[order]]
    for level in ranks.levels[1:]:
        arrays += [level.of_finest, level.lower, level.upper]
    return place[ranks.of_arm], (*size, *(array.astype(np.int64).tobytes() for array in arrays))


def _of_program(constraint: Linear) -> tuple[IntArray, tuple[Any, ...]] | None:
    rows = constraint._rows
    order = np.lexsort((np.asarray(rows.matrix.sum(axis=1)).ravel(), rows.upper, rows.lower))
    sorted_rows = rows.part(order)
    kinds = kinds_of(sorted_rows)
    if kinds is None:
        return None
    first = np.unique(kinds, return_index=True)[1]
    columns = sorted_rows.matrix[:, first].toarray()
    bounds = (sorted_rows.lower.tobytes(), sorted_rows.upper.tobytes(), constraint.gap, constraint.time_limit)
    return kinds, (columns.tobytes(), np.bincount(kinds).tobytes(), *bounds)


class Drawn:
    """How many arms of each kind the random sets of one structure had so far.

    The sets have random numbers of their own, made from the structure: what a caller's generator draws next does not
    depend on how often a structure was seen before.
    """

    def __init__(self, alike: Alike) -> None:
        self.lock = threading.Lock()
        self.hits: FloatArray = np.zeros(int(alike.kinds.max()) + 1)
        self.n_sets = 0
        digest = hashlib.blake2b(repr(alike.key).encode(), digest_size=16).digest()
        self.rng = np.random.default_rng(int.from_bytes(digest, "little"))


_drawn: OrderedDict[tuple[Any, ...], Drawn] = OrderedDict()
_lock = threading.Lock()


def drawn_of(alike: Alike) -> Drawn:
    """Return what was drawn for a structure; the least recently used ones are forgotten."""
    with _lock:
        drawn = _drawn.pop(alike.key, None) or Drawn(alike)
        _drawn[alike.key] = drawn
        if len(_drawn) > MOST_KEPT:
            _drawn.popitem(last=False)
    return drawn


def forget_all() -> None:
    """Forget what was drawn for all structures."""
    with _lock:
        _drawn.clear()
