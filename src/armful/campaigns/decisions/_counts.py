"""What the summary of a campaign needs of a segment: counts and sums, nothing of any single decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.decisions._rows import DecisionRows
from armful.campaigns.holdout import hashes
from armful.checks import FloatArray, IntArray

BUCKET = 64
"""Decisions in a bucket: the finest step of the series."""

SHARES = ("chosen", "explored", "holdout")
SUMS = ("n", "sum", "squares", "product", "sizes")
"""Of the known rewards of a share: with n_i and s_i the number and the sum in a decision, the sums of n_i, s_i, s_i^2,
n_i s_i and n_i^2; the last three give an error that allows for decisions whose rewards are alike."""

COLUMNS = (
    "decisions",
    "arms",
    "came",
    "outstanding",
    "by_policy",
    "explored_arms",
    "capped",
    "predicted",
    "n_predicted",
    "largest",
    "first_at",
    "last_at",
    *(f"{share}_{name}" for share in SHARES for name in SUMS),
)

N_PLACES = 100
"""Places of a slate that are counted; those beyond count for the last."""

N_CLUSTERS = 128
"""Units are put into so many clusters at random, for the variance of the lift: so its size does not grow."""

MOST_GROUPS = 200
"""Groups of a quota that are counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts:
    """Counts and sums over the decisions of a segment.

    Attributes
    ----------
    buckets : ndarray of shape (n_buckets, len(COLUMNS))
        For each `BUCKET` decisions; the means of shares are of closed decisions alone.
    places : ndarray of shape (n_places, 5)
        For each place: number and sum of known rewards, and number, sum and sum of squares of explored arms alone.
    clusters : ndarray of shape (2, N_CLUSTERS)
        The sums of rewards minus their mean in each cluster of units: of the holdout, and of the others.
    seen : ndarray of bool, shape (2, N_CLUSTERS)
        Which clusters have known rewards.
    groups : mapping of str to mapping of str to int
        For each quota the number of arms in each group.
    """

    buckets: FloatArray
    places: FloatArray
    clusters: FloatArray
    seen: NDArray[np.bool_]
    groups: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, rows: DecisionRows) -> Self:
        """Return the counts of a block."""
        known = np.flatnonzero(rows.closed & np.isfinite(rows.rewards) & (rows.block.shares != "no-contact"))
        clusters, seen = _clusters(rows, known)
        return cls(
            buckets=_buckets(rows, known),
            places=_places(rows, known),
            clusters=clusters,
            seen=seen,
            groups=_groups(rows),
        )

    def total(self, name: str) -> float:
        """Return the sum of one column over all buckets."""
        return float(self.buckets[:, COLUMNS.index(name)].sum())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        names = ("buckets", "places", "clusters", "seen")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], groups: Mapping[str, Mapping[str, int]]) -> Self:
        """Return the counts of what `to_arrays` returned."""
        counts = cls(groups=groups, **{name: arrays[name] for name in ("buckets", "places", "clusters", "seen")})
        if counts.buckets.ndim != 2 or counts.buckets.shape[1] != len(COLUMNS) or counts.places.shape[1] != 5:
            raise ValueError("not the counts of a segment")
        return counts


def _buckets(rows: DecisionRows, known: IntArray) -> FloatArray:
    block = rows.block
    of_round = (block.numbers - block.numbers[0]) // BUCKET
    of_arm, n = of_round[block.of_round], int(of_round[-1]) + 1
    table = {name: np.zeros(n) for name in COLUMNS}

    def count(name: str, of: IntArray, weights: FloatArray | None = None) -> None:
        table[name] = np.bincount(of, weights=weights, minlength=n).astype(np.float64)

    policy = np.isin(block.shares, ("chosen", "explored"))
    count("decisions", of_round)
    count("arms", of_arm[block.shares != "no-contact"])
    count("came", of_arm[rows.came])
    count("outstanding", of_arm[(block.shares != "no-contact") & ~rows.closed & ~rows.came])
    count("by_policy", of_arm[policy])
    count("explored_arms", of_arm[block.shares == "explored"])
    count("capped", of_arm[policy & block.capped])
    predicted = known[np.isin(known, np.flatnonzero(policy & np.isfinite(block.predicted)))]
    count("n_predicted", of_arm[predicted])
    count("predicted", of_arm[predicted], block.predicted[predicted])
    np.maximum.at(table["largest"], of_arm[known], np.abs(rows.rewards[known]))
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
    return np.column_stack([table[name] for name in COLUMNS])


def _places(rows: DecisionRows, known: IntArray) -> FloatArray:
    block = rows.block
    places = np.clip(block.positions[known], 0, N_PLACES - 1)
    n, rewards = int(places.max(initial=-1)) + 1, rows.rewards[known]
    explored = block.shares[known] == "explored"
    columns = [np.bincount(places, minlength=n), np.bincount(places, weights=rewards, minlength=n)]
    columns += [np.bincount(places[explored], weights=rewards[explored] ** power, minlength=n) for power in (0, 1, 2)]
    return np.column_stack(columns).astype(np.float64)


def _clusters(rows: DecisionRows, known: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    block = rows.block
    names = [
        str(number) if unit is None else f"u{unit}" for number, unit in zip(block.numbers, block.units, strict=True)
    ]
    cluster = (hashes(names, "clusters of units") % np.uint64(N_CLUSTERS)).astype(np.int64)[block.of_round]
    sums, seen = np.zeros((2, N_CLUSTERS)), np.zeros((2, N_CLUSTERS), dtype=bool)
    holdout = block.shares[known] == "holdout"
    for share, inside in enumerate((holdout, ~holdout)):
        here = known[inside]
        if here.size:
            rewards = rows.rewards[here]
            sums[share] = np.bincount(cluster[here], weights=rewards - rewards.mean(), minlength=N_CLUSTERS)
            seen[share, cluster[here]] = True
    return sums, seen


def _groups(rows: DecisionRows) -> dict[str, dict[str, int]]:
    contacted = rows.block.shares != "no-contact"
    counted = {}
    for column, labels in rows.block.groups.items():
        names, sizes = np.unique(labels[contacted & (labels != "")], return_counts=True)
        order = np.argsort(-sizes, kind="stable")[:MOST_GROUPS]
        counted[column] = dict(zip(names[order].tolist(), sizes[order].tolist(), strict=True))
    return counted
