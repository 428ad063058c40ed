"""Where outcomes and predictions differ: calibration, and the people and groups that surprise most."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from armful.campaigns._intervals import effective_size, interval, is_yes_or_no, wilson
from armful.campaigns.audit._data import Rows
from armful.campaigns.audit._groups import feature_groups
from armful.campaigns.audit._scores import centred, chance
from armful.campaigns.report._data import Bin, Mean, Surprise
from armful.checks import FloatArray, IntArray

N_BINS = 10
FEWEST_IN_A_BIN = 20
MOST_GROUPS, MOST_PEOPLE = 12, 10
FEWEST_IN_A_GROUP = 30


def calibration(rows: Rows) -> tuple[Bin, ...]:
    """Return the mean outcome of people with similar predictions, made after the model had learned something."""
    learned = np.flatnonzero(rows.learned)
    n_bins = min(N_BINS, learned.size // FEWEST_IN_A_BIN)
    if n_bins == 0:
        return ()
    yes_or_no = is_yes_or_no(rows.rewards[learned])
    parts = np.array_split(learned[np.argsort(rows.predicted[learned], kind="stable")], n_bins)
    return tuple(
        Bin(predicted=float(rows.predicted[part].mean()), observed=_clustered_mean(rows, part, yes_or_no))
        for part in parts
    )


def _clustered_mean(rows: Rows, part: IntArray, yes_or_no: bool) -> Mean:
    """Return the mean reward of some rows, with an interval in which a person counts once."""
    rewards = rows.rewards[part]
    value, error = float(rewards.mean()), math.sqrt(_squares(rewards - rewards.mean(), rows.person[part])) / part.size
    low, high = interval(value, error)
    if yes_or_no:
        _, sizes = np.unique(rows.person[part], return_counts=True)
        low, high = wilson(value, effective_size(value, error, part.size, float((sizes**2).sum())))
    return Mean(value=value, low=low, high=high, n=part.size)


def _squares(deviations: FloatArray, person: FloatArray) -> float:
    """Return the sum over people of their squared sums."""
    _, of = np.unique(person, return_inverse=True)
    return float((np.bincount(of, weights=deviations) ** 2).sum())


def surprising_groups(rows: Rows, names: list[str]) -> tuple[tuple[Surprise, ...], int]:
    """Return the groups whose outcomes are furthest from the predictions, and how many were looked at.

    Compared with the rest of the same round, so that a shock that all share is no surprise.
    """
    learned = rows.learned
    errors = centred(rows.rewards - rows.predicted, rows.period)
    variance = max(float((errors[learned] ** 2).mean()), rows.rounding**2) if learned.any() else 0.0
    found = []
    for name, inside in _groups(rows, names):
        part = np.flatnonzero(inside & learned)
        if not FEWEST_IN_A_GROUP <= part.size < learned.sum():
            continue
        spread = math.sqrt(max(_squares(errors[part], rows.person[part]), variance * part.size))
        if spread > 0:
            found.append((name, part, float(errors[part].sum()) / spread))
    found.sort(key=lambda each: -abs(each[2]))
    surprises = tuple(
        Surprise(
            name=name,
            n=part.size,
            predicted=float(rows.predicted[part].mean()),
            observed=float(rows.rewards[part].mean()),
            distance=z,
            chance=chance(z, len(found)),
        )
        for name, part, z in found[:MOST_GROUPS]
    )
    return surprises, len(found)


def _groups(rows: Rows, names: list[str]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the groups of quotas and features, each once."""
    groups = {
        f"{column}: {label}": labels == label for column, labels in rows.groups.items() for label in np.unique(labels)
    }
    return list({**dict(feature_groups(rows.X, names)), **groups}.items())


def surprising_people(rows: Rows) -> tuple[tuple[Surprise, ...], int]:
    """Return the people whose outcomes are furthest from the predictions, and how many were looked at.

    The chance is known for rewards of 0 and 1, from the Poisson distribution, which is on the safe side.
    """
    some = np.flatnonzero(rows.learned)
    if not some.size:
        return (), 0
    _, first, of = np.unique(rows.person[some], return_index=True, return_inverse=True)
    n = np.bincount(of)
    rewards, predicted = (np.bincount(of, weights=each[some]) for each in (rows.rewards, rows.predicted))
    spread = float((rows.rewards - rows.predicted)[some].std())
    if spread <= rows.rounding:
        return (), n.size
    z = (rewards - predicted) / (spread * np.sqrt(n))
    yes_or_no = bool(np.isin(rows.rewards[some], (0.0, 1.0)).all())
    order = np.argsort(-np.abs(z), kind="stable")[:MOST_PEOPLE]
    surprises = tuple(
        Surprise(
            name=str(rows.ids[some[first[i]]]),
            n=int(n[i]),
            predicted=float(predicted[i] / n[i]),
            observed=float(rewards[i] / n[i]),
            distance=float(z[i]),
            chance=_chance_of(float(rewards[i]), float(predicted[i]), n.size) if yes_or_no and z[i] > 0 else math.nan,
        )
        for i in order.tolist()
    )
    return surprises, n.size


def _chance_of(count: float, expected: float, looks: int) -> float:
    """Return the probability that one of so many people has as many successes by chance."""
    tail = float(pdtrc(count - 1, max(expected, 0.0)))
    return -math.expm1(looks * math.log1p(-min(tail, 1 - 1e-12)))
