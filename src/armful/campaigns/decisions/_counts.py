"""What the summary of a campaign needs of a segment: counts and sums, nothing of any single decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.decisions._pauses import after_pauses, pauses_before
from armful.campaigns.decisions._rows import DecisionRows
from armful.campaigns.holdout import hashes
from armful.checks import FloatArray, IntArray

BUCKET = 64
"""Decisions in a bucket: the finest step of the series, but for pauses."""

SHARES = ("chosen", "explored", "holdout")
SUMS = ("n", "sum", "squares", "product", "sizes")
"""Of the known rewards of a share: with n_i and s_i the number and the sum in a decision, the sums of n_i, s_i, s_i^2,
n_i s_i and n_i^2; the last three give an error that allows for decisions whose rewards are alike."""

OPEN_SUMS = ("open_n", "open_sum")
"""Of a share in decisions whose window is open: the number of rewards as if none came any more, and their sum."""

COLUMNS = (
    "decisions",
    "open",
    "arms",
    "came",
    "outstanding",
    "by_policy",
    "explored_arms",
    "capped",
    "predicted",
    "n_predicted",
    "amounts",
    "largest",
    "first_at",
    "last_at",
    "buckets",
    "pause",
    *(f"{share}_{name}" for share in SHARES for name in (*SUMS, *OPEN_SUMS)),
)
"""Sums, but for `EXTREMES` and `pause`.

amounts: the known rewards that are neither 0 nor 1. buckets: those that begin in a row, none in one that goes on with a
bucket after a pause. pause: how many buckets of decisions would usually have come in the time before the row, once
segments are merged; 0 before."""

EXTREMES = {"largest": np.maximum, "first_at": np.minimum, "last_at": np.maximum}
"""Columns that are not sums."""

N_PLACES = 100
"""Places of a slate that are counted; those beyond count for the last."""

N_CLUSTERS = 128
"""Units are put into so many clusters at random, for the variance of the lift: so its size does not grow."""

MOST_GROUPS = 200
"""Groups of a quota that are counted, the largest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts:
    """Counts and sums over the decisions of a segment, or of several.

    Attributes
    ----------
    buckets : ndarray of shape (n_rows, len(COLUMNS))
        For each bucket of `BUCKET` decisions, or several, and fewer where a pause ends or begins a row; rewards are
        those of closed decisions, but for `OPEN_SUMS`.
    places : ndarray of shape (n_places, 5)
        For each place: number and sum of known rewards, and number, sum and sum of squares of explored arms alone.
    compared : ndarray of shape (5,)
        The number of segments in which holdout and others have two known rewards each, and over these segments the
        sums of their numbers of rewards and of their mean rewards: of the holdout, and of the others.
    clusters : ndarray of shape (2, N_CLUSTERS)
        Over the same segments what each cluster of units adds to the error of these means.
    seen : ndarray of bool, shape (2, N_CLUSTERS)
        Which clusters have known rewards there.
    groups : mapping of str to mapping of str to int
        For each quota the number of arms in each group.
    """

    buckets: FloatArray
    places: FloatArray
    compared: FloatArray
    clusters: FloatArray
    seen: NDArray[np.bool_]
    groups: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, rows: DecisionRows) -> Self:
        """Return the counts of a block."""
        known = np.flatnonzero(rows.closed & np.isfinite(rows.rewards) & (rows.block.shares != "no-contact"))
        compared, clusters, seen = _clusters(rows, known)
        return cls(
            buckets=_buckets(rows, known),
            places=_places(rows, known),
            compared=compared,
            clusters=clusters,
            seen=seen,
            groups=_groups(rows),
        )

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """Return the counts of consecutive segments together; each but the last has whole buckets."""
        groups: dict[str, Counter[str]] = {}
        for part in parts:
            for column, counted in part.groups.items():
                groups.setdefault(column, Counter()).update(counted)
        buckets = np.concatenate([part.buckets for part in parts])
        buckets[:, COLUMNS.index("pause")] = pauses_of(buckets)
        return cls(
            buckets=buckets,
            places=sum_of_places([part.places for part in parts]),
            compared=np.sum([part.compared for part in parts], axis=0),
            clusters=np.sum([part.clusters for part in parts], axis=0),
            seen=np.any([part.seen for part in parts], axis=0),
            groups={column: dict(counted.most_common(MOST_GROUPS)) for column, counted in groups.items()},
        )

    def coarse(self, per_row: int) -> Self:
        """Return the counts with so many buckets in a row, a power of two; pauses longer than that end a row as before.

        The result does not depend on the steps in which it is reached.
        """
        begins = np.diff(starts_of(self.buckets) // per_row, prepend=-1) != 0
        begins |= self.buckets[:, COLUMNS.index("pause")] >= per_row
        return replace(self, buckets=summed(self.buckets, np.flatnonzero(begins)))

    def total(self, name: str) -> float:
        """Return the sum of one column over all buckets."""
        return float(self.buckets[:, COLUMNS.index(name)].sum())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], groups: Mapping[str, Mapping[str, int]]) -> Self:
        """Return the counts of what `to_arrays` returned."""
        kept: Mapping[str, Any] = {name: arrays[name] for name in ARRAYS}
        counts = cls(groups=groups, **kept)
        if counts.buckets.ndim != 2 or counts.buckets.shape[1] != len(COLUMNS) or counts.places.shape[1] != 5:
            raise ValueError("not the counts of a segment")
        return counts


ARRAYS = ("buckets", "places", "compared", "clusters", "seen")


def summed(buckets: FloatArray, begins: IntArray) -> FloatArray:
    """Return the rows from each of `begins` to the next as one, `(len(begins), len(COLUMNS))`."""
    rows: FloatArray = np.add.reduceat(buckets, begins, axis=0)
    for name, extreme in EXTREMES.items():
        i = COLUMNS.index(name)
        rows[:, i] = extreme.reduceat(buckets[:, i], begins)
    pause = COLUMNS.index("pause")
    rows[:, pause] = buckets[begins, pause]
    return rows


def starts_of(buckets: FloatArray) -> IntArray:
    """Return for each row in which bucket it begins, counted from 0."""
    n = buckets[:, COLUMNS.index("buckets")]
    starts: IntArray = (np.cumsum(n) - np.maximum(n, 1)).astype(np.int64)
    return starts


def pauses_of(buckets: FloatArray) -> FloatArray:
    """Return the pause before each row, as `pauses_before`."""
    first, last, n = (buckets[:, COLUMNS.index(name)] for name in ("first_at", "last_at", "decisions"))
    return pauses_before(first, last, n, BUCKET)


def sum_of_places(each: Sequence[FloatArray]) -> FloatArray:
    """Return the sum of `Counts.places` of several segments."""
    total = np.zeros((max((len(part) for part in each), default=0), 5))
    for part in each:
        total[: len(part)] += part
    return total


def _buckets(rows: DecisionRows, known: IntArray) -> FloatArray:
    block = rows.block
    bucket_begins = np.diff((block.numbers - block.numbers[0]) // BUCKET, prepend=-1) != 0
    of_round = np.cumsum(bucket_begins | after_pauses(block.chosen_at, BUCKET)) - 1
    of_arm, n = of_round[block.of_round], int(of_round[-1]) + 1
    table = {name: np.zeros(n) for name in COLUMNS}

    def count(name: str, of: IntArray, weights: FloatArray | None = None) -> None:
        table[name] = np.bincount(of, weights=weights, minlength=n).astype(np.float64)

    policy = np.isin(block.shares, ("chosen", "explored"))
    count("decisions", of_round)
    count("buckets", of_round[bucket_begins])
    count("open", of_round[np.unique(block.of_round[~rows.closed])])
    count("arms", of_arm[block.shares != "no-contact"])
    count("came", of_arm[rows.came])
    count("outstanding", of_arm[(block.shares != "no-contact") & ~rows.closed & ~rows.came])
    count("by_policy", of_arm[policy])
    count("explored_arms", of_arm[block.shares == "explored"])
    count("capped", of_arm[policy & block.capped])
    predicted = known[np.isin(known, np.flatnonzero(policy & np.isfinite(block.predicted)))]
    count("n_predicted", of_arm[predicted])
    count("predicted", of_arm[predicted], block.predicted[predicted])
    rewards = rows.rewards[known]
    count("amounts", of_arm[known[(rewards != 0) & (rewards != 1)]])
    np.maximum.at(table["largest"], of_arm[known], np.abs(rewards))
    table["first_at"] = np.full(n, np.inf)
    table["last_at"] = np.full(n, -np.inf)
    np.minimum.at(table["first_at"], of_round, block.chosen_at)
    np.maximum.at(table["last_at"], of_round, block.chosen_at)
    for share in SHARES:
        here = known[block.shares[known] == share]
        sizes = np.bincount(block.of_round[here], minlength=len(block))
        sums = np.bincount(block.of_round[here], weights=rows.rewards[here], minlength=len(block))
        for name, values in zip(SUMS, (sizes, sums, sums**2, sizes * sums, sizes**2), strict=True):
            count(f"{share}_{name}", of_round, values.astype(np.float64))
        early = np.flatnonzero(~rows.closed & np.isfinite(rows.so_far) & (block.shares == share))
        count(f"{share}_open_n", of_arm[early])
        count(f"{share}_open_sum", of_arm[early], rows.so_far[early])
    return np.column_stack([table[name] for name in COLUMNS])


def _places(rows: DecisionRows, known: IntArray) -> FloatArray:
    block = rows.block
    places = np.clip(block.positions[known], 0, N_PLACES - 1)
    n, rewards = int(places.max(initial=-1)) + 1, rows.rewards[known]
    explored = block.shares[known] == "explored"
    columns = [np.bincount(places, minlength=n), np.bincount(places, weights=rewards, minlength=n)]
    columns += [np.bincount(places[explored], weights=rewards[explored] ** power, minlength=n) for power in (0, 1, 2)]
    return np.column_stack(columns).astype(np.float64)


def _clusters(rows: DecisionRows, known: IntArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return `compared`, `clusters` and `seen`: a cluster adds its rewards minus their mean, over their number."""
    block = rows.block
    compared, sums, seen = np.zeros(5), np.zeros((2, N_CLUSTERS)), np.zeros((2, N_CLUSTERS), dtype=bool)
    holdout = block.shares[known] == "holdout"
    if min(holdout.sum(), (~holdout).sum()) < 2:
        return compared, sums, seen
    names = [
        str(number) if unit is None else f"u{unit}" for number, unit in zip(block.numbers, block.units, strict=True)
    ]
    cluster = (hashes(names, "clusters of units") % np.uint64(N_CLUSTERS)).astype(np.int64)[block.of_round]
    compared[0] = 1
    for share, inside in enumerate((holdout, ~holdout)):
        here = known[inside]
        rewards, n, mean = rows.rewards[here], here.size, rows.rewards[here].mean()
        compared[1 + share], compared[3 + share] = n, mean
        scale = np.sqrt(n / (n - 1)) / n
        sums[share] = scale * np.bincount(cluster[here], weights=rewards - mean, minlength=N_CLUSTERS)
        seen[share, cluster[here]] = True
    return compared, sums, seen


def _groups(rows: DecisionRows) -> dict[str, dict[str, int]]:
    contacted = rows.block.shares != "no-contact"
    counted = {}
    for column, labels in rows.block.groups.items():
        names, sizes = np.unique(labels[contacted & (labels != "")], return_counts=True)
        order = np.argsort(-sizes, kind="stable")[:MOST_GROUPS]
        counted[column] = dict(zip(names[order].tolist(), sizes[order].tolist(), strict=True))
    return counted
