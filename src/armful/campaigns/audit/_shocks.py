"""The check of shocks: whether the outcomes of a round move together."""

import numpy as np
from scipy.special import chdtrc

from armful.campaigns.audit._data import Evidence, blocks, known_rows, pseudo_inverse
from armful.campaigns.audit._finding import Finding, fine, not_checked, number, signed
from armful.campaigns.audit._words import Words
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.theory import estimate_shock

FEWEST_IN_A_ROUND = 20
"""Known outcomes from which on a round counts for shocks."""

NOTICEABLE_SHOCK, LARGE_SHOCK = 1.25, 2.2
"""How many times as uncertain the mean of a round is as the model takes it to be, from which on it is something to
look at, or a problem. At 1.25 times an interval of 95 % still covers 88 %, and bonuses are a fifth too small, which
hardly changes who is chosen; of many outcomes, far smaller shocks can be told from chance."""

NOTICEABLE_CONSTANT, LARGE_CONSTANT = 0.01, 0.1
"""What a constant would explain of the squares that the model leaves, from which on it is something to look at, or a
problem."""

MADE_UP = 0.9
"""If the features make up so much of the squares of a constant, adding one is no remedy. Those with a constant that is
multiplied by the weights of places do."""


def check_shocks(evidence: Evidence, settings: Settings, words: Words, false_alarms: float) -> Finding:
    """Return whether the outcomes of a round move together: the mean residuals of rounds against noise."""
    large = np.flatnonzero(evidence.sizes >= FEWEST_IN_A_ROUND)
    if large.size < 2 or evidence.n < 2 * len(evidence.moment):
        return not_checked(
            "shocks",
            f"Whether {words.periods} have noise in common needs two that are closed, with at least "
            f"{FEWEST_IN_A_ROUND} known outcomes each, and twice as many outcomes as features.",
        )
    residuals, variances, squares = _residuals(evidence)
    sizes, scores = evidence.sizes[large], np.array([residuals[t].sum() for t in large.tolist()])
    centres = evidence.centres[large]
    shares = pseudo_inverse(evidence.gram) @ centres.T
    covariance = np.diag(variances[large] * sizes) + shares.T @ squares @ shares
    cross = (variances[large][:, None] * centres) @ shares
    covariance -= cross + cross.T
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-6 * values[-1]
    statistic = float(((vectors[:, kept].T @ scores) ** 2 / values[kept]).sum())
    if not kept.any() or float(chdtrc(int(kept.sum()), statistic)) > false_alarms:
        return fine(
            "shocks",
            f"The mean outcomes of {large.size} {words.periods} differ from what the model says no more than chance "
            "makes them.",
        )
    means = scores / sizes
    unexplained = sum(float(residuals[t] @ residuals[t]) for t in large.tolist())
    left = float(scores.sum()) ** 2 / float(sizes.sum()) / unexplained
    if (means.min() > 0 or means.max() < 0) and left >= NOTICEABLE_CONSTANT and _constant_share(evidence) < MADE_UP:
        return _all_one_way(means, left, words)
    shock = estimate_shock([residuals[t] for t in large.tolist()])
    factor = (1 + shock * float(sizes.mean())) ** 0.5
    uncertain = (
        f"The mean outcome of a {words.period} is {number(factor)} times as uncertain as the model takes it to be"
    )
    differ = (
        f"the means of {large.size} {words.periods} differ from what it says by {signed(float(means.min()))} to "
        f"{signed(float(means.max()))}"
    )
    if factor < NOTICEABLE_SHOCK:
        return fine("shocks", f"{uncertain}, which changes little: {differ}.")
    what = f"{uncertain}: {differ}, more than chance makes them."
    if settings.learning.shock >= shock / 3:
        return fine("shocks", f"{what} The setting `shock = {number(settings.learning.shock)}` allows for it.")
    return Finding(
        name="shocks",
        level="problem" if factor >= LARGE_SHOCK else "look",
        sentence=what,
        consequence=f"The model is too sure of itself. Differences between chosen and holdout within a {words.period}, "
        "and so the lift, are not affected.",
        repair=words.set_shock.format(shock=number(shock)),
    )


def _constant_share(evidence: Evidence) -> float:
    """Return the fraction of the squares of a constant that the features make up."""
    total = evidence.centres.sum(axis=0)
    return float(total @ pseudo_inverse(evidence.gram) @ total) / evidence.n


def _all_one_way(means: FloatArray, left: float, words: Words) -> Finding:
    """Return the finding of mean residuals of one sign, of which a constant would explain a fraction that is left."""
    side, sizes = ("higher" if means.min() > 0 else "lower"), np.abs(means)
    return Finding(
        name="shocks",
        level="problem" if left >= LARGE_CONSTANT else "look",
        sentence=f"The mean outcomes of {means.size} {words.periods} are all {side} than predicted, by "
        f"{number(float(sizes.min()))} to {number(float(sizes.max()))}.",
        consequence=f"The features leave out what all {words.people} have in common, so all predictions are wrong.",
        repair=f"Add a constant: a feature that has the same value for all {words.people}, such as 1.",
    )


def _residuals(evidence: Evidence) -> tuple[list[FloatArray], FloatArray, FloatArray]:
    """Return residuals by round, the variance of each round's, and the sum of `variance x x'` over all rows.

    The variance of a round is at least that of all rounds: of rare rewards a small round may show none by chance.
    """
    theta, common = evidence.theta, evidence.variance
    residuals, variances, squares = list[FloatArray](), list[float](), np.zeros_like(evidence.gram)
    for record in evidence.records:
        if not record.closed:
            continue
        known = known_rows(record)
        of_round = record.rewards[known].copy()
        gram = np.zeros_like(evidence.gram)
        for begin, rows in zip(range(0, known.size, 1 << 14), blocks(known), strict=True):
            X = record.features[rows].astype(np.float64)
            of_round[begin : begin + rows.size] -= X @ theta
            gram += X.T @ X
        variance = max(float((of_round**2).mean()) if known.size else 0.0, common)
        residuals.append(of_round)
        variances.append(variance)
        squares += variance * gram
    return residuals, np.array(variances), squares
