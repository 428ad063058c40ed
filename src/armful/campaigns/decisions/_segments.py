"""Segments: the sums over consecutive decisions that are made anew when one of these changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from armful.campaigns.decisions._counts import Counts
from armful.campaigns.decisions._packing import pack, unpack
from armful.campaigns.decisions._rows import DecisionRows, microseconds
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.errors import FileFormatError, LedgerError
from armful.ledger import RoundBlock
from armful.model import RidgeState
from armful.model._qr import stacked_root

SIZE = 512
"""Decisions in a segment: a late reward makes so many anew, and so few sums are added for a million decisions."""

KIND, LAYOUT = "segment of decisions", 4
BEYOND = 2**62


def index_of(number: int) -> int:
    """Return the segment that a decision is in."""
    return (number - 1) // SIZE


@dataclass(frozen=True, eq=False, kw_only=True)
class Learning:
    """What the sums of a segment depend on besides the ledger.

    `weights`: the examination weight of each place, the last one for all places beyond; empty for 1 everywhere.
    """

    settings: Settings
    empty: RidgeState
    weights: FloatArray

    def weights_at(self, places: IntArray) -> FloatArray:
        """Return the weight of each place, `(m,)`."""
        if not self.weights.size:
            return np.ones(places.size)
        return self.weights[np.clip(places, 0, self.weights.size - 1)]

    @property
    def made_with(self) -> dict[str, Any]:
        """Everything as JSON has it: a segment that was saved with something else is made anew."""
        settings = self.settings
        return {
            "layout": LAYOUT,
            "n_features": self.empty.n_features,
            "ridge": self.empty.ridge,
            "missing": settings.outcomes.missing,
            "at_once": settings.outcomes.learn_at_once,
            "shock": settings.learning.shock,
            "discount": settings.learning.discount,
            "weights": self.weights.tolist(),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment:
    """The sums over the decisions `first` to `last`, as they are known at a time.

    Attributes
    ----------
    first, last : int
    next_close : int
        When the next window closes, in microseconds; far in the future where none is open.
    last_close : int
        When the last closed window closed; far in the past where none is.
    root : ndarray of shape (n_features + 1, n_features + 1)
        The square root of the sum over what is learned, discounted to decision `last`, without the ridge.
    n : float
        The sum of the weights of what is learned.
    pending : ndarray of shape (n_features, n_features)
        A triangular root of the Gram matrix of outstanding arms; without rows where there are none.
    closes : ndarray of int, shape (last - first + 1,)
        When each window closes, in microseconds; empty where all have closed.
    counts : Counts
        What the summary needs.
    """

    first: int
    last: int
    next_close: int
    last_close: int
    root: FloatArray
    n: float
    pending: FloatArray
    closes: IntArray
    counts: Counts

    @classmethod
    def of(cls, block: RoundBlock, learning: Learning, now: int) -> Self:
        """Return the sums over a block at a time in microseconds."""
        d = learning.empty.n_features
        if block.features.shape[1] != d and block.features.size:
            raise LedgerError(
                f"decisions {block.numbers[0]} to {block.numbers[-1]} have {block.features.shape[1]} features, "
                f"the campaign has {d}: set the features back to what they were, or begin a new campaign"
            )
        rows = DecisionRows.of(block, learning.settings, now)
        weights = learning.weights_at(block.positions)
        X = block.features.reshape(-1, d) * weights[:, None]
        state = _learned(X, rows, learning)
        closes = microseconds(block.closes_at)
        return cls(
            first=int(block.numbers[0]),
            last=int(block.numbers[-1]),
            next_close=int(closes[closes > now].min(initial=BEYOND)),
            last_close=int(closes[closes <= now].max(initial=-BEYOND)),
            root=state._sum.root,
            n=float(state.n),
            pending=_root_of(X[rows.outstanding]),
            closes=closes if (closes > now).any() else closes[:0],
            counts=Counts.of(rows),
        )

    @classmethod
    def merged(cls, segments: Sequence[Self], learning: Learning) -> Self:
        """Return consecutive segments as one, in which all windows have closed."""
        empty, last = learning.empty, segments[-1].last
        root, n = summed(empty._sum.root, segments, learning)
        return cls(
            first=segments[0].first,
            last=last,
            next_close=BEYOND,
            last_close=max(segment.last_close for segment in segments),
            root=root,
            n=n,
            pending=segments[0].pending[:0],
            closes=segments[0].closes[:0],
            counts=Counts.merged([segment.counts for segment in segments]),
        )

    def is_as_of(self, now: int) -> bool:
        """Return whether the same windows are closed at a time in microseconds."""
        return self.last_close <= now < self.next_close

    def is_open(self, number: int) -> bool:
        """Return whether the window of a decision was open."""
        return bool(self.closes.size and self.closes[number - self.first] > self.last_close)

    def to_bytes(self, learning: Learning) -> bytes:
        """Return the segment for `Ledger.write_segments`."""
        own = {"first": self.first, "last": self.last, "n": self.n, "closing": [self.next_close, self.last_close]}
        header = {"made_with": learning.made_with, **own, "groups": self.counts.groups}
        arrays = {"root": self.root, "pending": self.pending, "closes": self.closes, **self.counts.to_arrays()}
        return pack(KIND, header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, learning: Learning) -> Self | None:
        """Return a segment that was saved; None if it is damaged or was made with other settings."""
        try:
            header, arrays = unpack(KIND, data)
            if header["made_with"] != learning.made_with:
                return None
            return cls(
                first=header["first"],
                last=header["last"],
                n=header["n"],
                next_close=header["closing"][0],
                last_close=header["closing"][1],
                counts=Counts.from_arrays(arrays, header["groups"]),
                **{name: arrays[name] for name in ("root", "pending", "closes")},
            )
        except (FileFormatError, KeyError, TypeError, ValueError):
            return None


def summed(root: FloatArray, segments: Sequence[Segment], learning: Learning) -> tuple[FloatArray, float]:
    """Return the root of a sum and of all segments, discounted to the last decision, and the sum of their weights."""
    n = 0.0
    for segment in segments:
        weight = learning.settings.learning.discount ** (segments[-1].last - segment.last)
        if segment.n and weight:
            root = stacked_root(root, math.sqrt(weight) * segment.root, triangle=True)
            n += weight * segment.n
    return root, n


def weights_of(data: bytes) -> FloatArray | None:
    """Return the examination weights that a segment was saved with; None if it is damaged."""
    try:
        made_with: Mapping[str, Any] = unpack(KIND, data)[0]["made_with"]
        return np.array(made_with["weights"], dtype=np.float64)
    except (FileFormatError, KeyError, TypeError, ValueError):
        return None


def _learned(X: FloatArray, rows: DecisionRows, learning: Learning) -> RidgeState:
    """Return the state of what is learned of a block, discounted to its last decision."""
    block, settings = rows.block, learning.settings.learning
    here = np.flatnonzero(rows.learned)
    X, rewards, of_round = X[here], rows.rewards[here], block.of_round[here]
    if settings.shock > 0:
        X, rewards = _without_shocks(X, rewards, of_round, settings.shock)
    if settings.discount == 1:
        return learning.empty.learn(X, rewards)
    age = block.numbers[-1] - block.numbers[of_round]
    return learning.empty.learn(X, rewards, weights=settings.discount**age)


def _without_shocks(
    X: FloatArray, rewards: FloatArray, of_round: IntArray, shock: float
) -> tuple[FloatArray, FloatArray]:
    """Return observations whose plain sum is that with `W = (I + shock 11')^-1` within each decision.

    A square root of W is `I - c 11'` with `c = (1 - 1 / sqrt(1 + shock k)) / k` for a decision of k arms.
    """
    rows = np.column_stack([X, rewards])
    begins = np.flatnonzero(np.diff(of_round, prepend=-1))
    sizes = np.diff(begins, append=of_round.size)
    sums = np.add.reduceat(rows, begins, axis=0) if begins.size else rows
    c = -np.expm1(-0.5 * np.log1p(shock * sizes)) / sizes
    rows = rows - np.repeat(c[:, None] * sums, sizes, axis=0)
    return rows[:, :-1], rows[:, -1]


def _root_of(X: FloatArray) -> FloatArray:
    """Return a triangular square root of `X'X`, `(d, d)`; without rows where X has none."""
    return stacked_root(np.zeros((X.shape[1], X.shape[1])), np.ascontiguousarray(X)) if X.size else X[:0]
