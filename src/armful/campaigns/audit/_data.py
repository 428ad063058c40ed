"""What an audit looks at: the outcomes of closed rounds, all of them as sums and some of them row by row."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._records import RoundRecord
from armful.campaigns.holdout import uniforms
from armful.checks import FloatArray, IntArray

ROUNDING = 1e-12
"""The mean square that rounding may make of something that is 0, as a fraction of the mean square of the rewards."""

MOST_ROWS = 100_000
"""Outcomes that are looked at row by row: what so many do not show is too small to matter."""

SINGULAR = 1e-9
"""Directions whose share of the features' squares is smaller are taken to be constant: features are float32."""

DAY = 86_400.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Known outcomes of contacted people, row by row: all rounds of each person that is in it.

    X: features `(n, d)`. learned: whether the model knew anything when the person was chosen. chosen: whether the
    policy chose the person. delay: days from choosing to the outcome, or to the end of the window if none came.
    period: the position of the round among the closed ones. person: a number that stands for the person.
    """

    X: FloatArray
    rewards: FloatArray
    predicted: FloatArray
    bonus: FloatArray
    learned: NDArray[np.bool_]
    chosen: NDArray[np.bool_]
    delay: FloatArray
    period: IntArray
    person: FloatArray
    ids: NDArray[np.str_]
    groups: Mapping[str, NDArray[np.str_]]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rewards.size

    @property
    def rounding(self) -> float:
        """How far rewards, their means and predictions may be apart by rounding alone."""
        return math.sqrt(ROUNDING * float(self.rewards @ self.rewards) / max(self.n, 1))


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Everything that the checks look at.

    gram `(d, d)`, moment `(d,)`: sums of `x x'` and `x r` over all known outcomes. squares: the sum of `r^2`.
    sizes `(T,)`, centres `(T, d)`: the known outcomes of each closed round, and the sum of their features.
    exploring: the share of exploration in the last closed round. n_came: how many of the outcomes came.
    """

    rows: Rows
    records: Iterable[RoundRecord]
    gram: FloatArray
    moment: FloatArray
    squares: float
    sizes: IntArray
    centres: FloatArray
    exploring: float
    n_came: int

    @property
    def n(self) -> int:
        """The number of known outcomes."""
        return int(self.sizes.sum())

    @property
    def theta(self) -> FloatArray:
        """The least-squares estimate from all known outcomes, `(d,)`."""
        return pseudo_inverse(self.gram) @ self.moment

    @property
    def variance(self) -> float:
        """The variance of the noise about that estimate; at least what rounding may make."""
        unexplained = max(self.squares - float(self.moment @ self.theta), 0.0) / max(self.n - len(self.moment), 1)
        return max(unexplained, ROUNDING * self.squares / max(self.n, 1))


def gather(records: Iterable[RoundRecord], n_features: int) -> Evidence:
    """Return the evidence in the closed rounds; it reads them once, and keeps at most `MOST_ROWS` rows."""
    gram, moment, squares = np.zeros((n_features, n_features)), np.zeros(n_features), 0.0
    sizes, centres, parts = list[int](), list[FloatArray](), list[Rows]()
    share, exploring, n_came = 1.0, math.nan, 0
    for period, record in enumerate(record for record in records if record.closed):
        known = known_rows(record)
        centre = np.zeros(n_features)
        for rows in blocks(known):
            X, r = record.features[rows].astype(np.float64), record.rewards[rows]
            gram += X.T @ X
            moment += X.T @ r
            squares += float(r @ r)
            centre += X.sum(axis=0)
        exploring = record.exploring
        n_came += int(record.came[known].sum())
        sizes.append(known.size)
        centres.append(centre)
        person = uniforms(record.ids[known], "audit")
        parts.append(_rows(record, known[person < share], person[person < share], period))
        while sum(part.n for part in parts) > MOST_ROWS:
            share /= 2
            parts = [_some(part, part.person < share) for part in parts]
    return Evidence(
        rows=_joined(parts, n_features),
        records=records,
        gram=gram,
        moment=moment,
        squares=squares,
        sizes=np.array(sizes, dtype=np.int64),
        centres=np.reshape(centres, (len(sizes), n_features)),
        exploring=exploring,
        n_came=n_came,
    )


def known_rows(record: RoundRecord) -> IntArray:
    """Return the positions of the contacted people whose reward is known."""
    return np.flatnonzero((record.shares != "no-contact") & np.isfinite(record.rewards))


def blocks(rows: IntArray, size: int = 1 << 14) -> Iterator[IntArray]:
    """Return the positions in blocks, so that their features in float64 take little memory."""
    return (rows[begin : begin + size] for begin in range(0, rows.size, size))


def pseudo_inverse(gram: FloatArray) -> FloatArray:
    """Return the pseudo-inverse of a sum of `x x'`, without directions in which nothing varies."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > SINGULAR * max(float(values[-1]), np.finfo(float).tiny)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def _rows(record: RoundRecord, known: IntArray, person: FloatArray, period: int) -> Rows:
    began, ended = record.chosen_at.timestamp(), record.closes_at.timestamp()
    received = np.where(record.came[known], record.received_at[known], ended)
    return Rows(
        X=record.features[known].astype(np.float64),
        rewards=record.rewards[known],
        predicted=record.predicted[known],
        bonus=record.bonus[known],
        learned=np.full(known.size, bool(np.any(record.predicted != 0))),
        chosen=record.shares[known] == "chosen",
        delay=(received - began) / DAY,
        period=np.full(known.size, period),
        person=person,
        ids=record.ids[known],
        groups={name: labels[known] for name, labels in record.groups.items()},
    )


def _some(rows: Rows, kept: NDArray[np.bool_]) -> Rows:
    groups = {name: labels[kept] for name, labels in rows.groups.items()}
    return Rows(groups=groups, **{name: values[kept] for name, values in vars(rows).items() if name != "groups"})


def _joined(parts: list[Rows], n_features: int) -> Rows:
    if not parts:
        none, no = np.zeros(0), np.zeros(0, dtype=bool)
        return Rows(
            X=np.zeros((0, n_features)),
            rewards=none,
            predicted=none,
            bonus=none,
            learned=no,
            chosen=no,
            delay=none,
            period=np.zeros(0, dtype=np.int64),
            person=none,
            ids=np.zeros(0, dtype=np.str_),
            groups={},
        )
    names = set.intersection(*(set(part.groups) for part in parts))  # a quota may be new
    return Rows(
        groups={name: np.concatenate([part.groups[name] for part in parts]) for name in sorted(names)},
        **{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0]) if name != "groups"},
    )
