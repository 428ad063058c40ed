"""Before the launch: what a campaign of so many contacts, rounds and held-out people can learn and show."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from armful import checks, theory
from armful.campaigns.planning._power import Comparison
from armful.campaigns.planning._records import HoldoutPower, PlannedRound, PlanResult
from armful.campaigns.planning._simulation import Sample, SimulatedRounds, draw_truth, simulate_rounds
from armful.campaigns.planning._words import sentences
from armful.checks import FloatArray
from armful.policies import Policy

__all__ = ["HoldoutPower", "PlanResult", "PlannedRound", "make_plan"]

MOST_ROWS = 20_000
"""Rows of customers that are simulated, at most."""

N_TRUTHS = 3
SHARES_SHOWN = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


def make_plan(
    *,
    X: ArrayLike,
    n_customers: int,
    k: int,
    rounds: int,
    make_policy: Callable[[int], Policy],
    holdout: float = 0.05,
    window_rounds: int = 0,
    rest: int = 0,
    cap: float | None = 1.0,
    base_rate: float | None = None,
    noise: float | None = None,
    spread: float = 0.5,
    lifts: Sequence[float] = (0.05, 0.1, 0.2, 0.5),
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> PlanResult:
    """Return what a campaign can learn and show, by simulating the real policy on a sample of the customers.

    What rewards will be is not known, so mean rewards are drawn at random as linear functions of the features, three
    times. Quotas and budgets are not simulated.

    Parameters
    ----------
    X : array_like of shape (m, n_features)
        The features of a random sample of the customers; of more than 20,000 rows, as many are drawn.
    n_customers : int
        How many customers there are.
    k : int
        The contacts of a round, those of the holdout included.
    rounds : int
        How many rounds are planned.
    make_policy : callable
        Returns a new policy for a seed, like `lambda seed: settings.policy.make(n_features, seed)`.
    holdout : float, default 0.05
        The share of people held out, who are contacted at random.
    window_rounds : int, default 0
        How many rounds pass before the outcomes of one are known; 0 if they are known before the next.
    rest : int, default 0
        For how many rounds nobody is contacted again.
    cap : float or None, default 1.0
        What no mean reward exceeds.
    base_rate : float, optional
        The mean reward of a contact chosen at random; a tenth of the cap if not given.
    noise : float, optional
        The standard deviation of a reward around its mean. If not given, the largest that rewards between 0 and the cap
        can have with that mean, which is that of sales.
    spread : float, default 0.5
        The standard deviation of the mean rewards of customers, relative to `base_rate`.
    lifts : sequence of float
        Relative lifts for which the holdout is planned.
    seed : int, default 0
        For the simulation.
    progress : callable, optional
        Called as `progress(done, of)` after each simulated round.

    Returns
    -------
    PlanResult

    Raises
    ------
    ValueError
        If an argument is not possible, such as more contacts than customers who may be contacted.

    Examples
    --------
    >>> from armful import CappedC2UCB
    >>> X = np.random.default_rng(0).random((500, 4)) / 2
    >>> plan = make_plan(X=X, n_customers=5000, k=500, rounds=4, holdout=0.1, base_rate=0.2,
    ...                  make_policy=lambda seed: CappedC2UCB(n_features=4, cap=1.0, seed=seed))
    >>> len(plan.per_round), plan.n_sampled
    (4, 500)
    """
    checks.count("n_customers", n_customers)
    checks.count("k", k)
    checks.count("rounds", rounds)
    late, rest = checks.count("window_rounds", window_rounds, minimum=0), checks.count("rest", rest, minimum=0)
    checks.probability("holdout", holdout, zero_and_one=True)
    if holdout == 1:
        raise ValueError("holdout must leave somebody to choose from, got 1; 0.05 is a usual start")
    if k * (rest + 1) > n_customers:
        raise ValueError(
            f"k must leave people for every round, got k = {k} of {n_customers} customers who rest for {rest} rounds; "
            "lower k or rest"
        )
    mean, sigma, bound = _rewards(cap, base_rate, noise)
    rng = np.random.default_rng(seed)
    rows = _sampled(X, n_customers, rng)
    sample = Sample.draw(rows, n_customers=n_customers, k=k, holdout=holdout, rng=rng)
    truths = [draw_truth(rows, base_rate=mean, spread=spread, cap=bound, rng=rng) for _ in range(N_TRUTHS)]
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, N_TRUTHS * rounds)

    runs = [
        simulate_rounds(
            sample, truth, make_policy(seed + i), noise=sigma, rounds=rounds, late=late, rest=rest, rng=rng, step=step
        )
        for i, truth in enumerate(truths)
    ]
    largest = bound if math.isfinite(bound) else float(np.max(truths))
    per_round = _per_round(runs, n_customers)
    comparison = Comparison(
        k=k,
        rounds=rounds,
        n_customers=n_customers,
        noise=sigma,
        variance0=float(np.mean([run.variance_of_all for run in runs])),
        variance1=float(np.mean([run.variance for run in runs])),
    )
    result = PlanResult(
        k=k,
        rounds=rounds,
        n_customers=n_customers,
        n_sampled=len(rows),
        window_rounds=late,
        holdout=holdout,
        base_rate=mean,
        noise=sigma,
        spread=spread,
        cap=cap,
        cadence=theory.cadence(decisions=k * rounds, noise=sigma, bound=largest),
        per_round=per_round,
        rounds_to_learn=next((each.number for each in per_round if each.number > late + 1 and each.at_cap < k), None),
        lift=float(np.mean([each.lift for each in per_round])),
        best_lift=float(np.mean([run.best.mean() / run.everybody - 1 for run in runs])),
        smallest_lift=_finite(comparison.smallest_lift(holdout) / mean),
        holdouts=tuple(_holdout(comparison, share, mean, lifts) for share in sorted({*SHARES_SHOWN, holdout} - {0.0})),
        needed={_percent(lift): comparison.smallest_share(lift * mean) for lift in lifts},
    )
    return replace(result, sentences=tuple(sentences(result)))


def _rewards(cap: float | None, base_rate: float | None, noise: float | None) -> tuple[float, float, float]:
    """Return the mean reward, its standard deviation and the largest mean, those that are not given guessed."""
    bound = math.inf if cap is None else checks.positive("cap", cap)
    mean = min(bound, 1.0) / 10 if base_rate is None else checks.positive("base_rate", base_rate, "0.05 is five in 100")
    if mean >= bound:
        raise ValueError(f"base_rate must be below the cap, got {mean!r} and {cap!r}")
    if noise is not None:
        return mean, checks.positive("noise", noise), bound
    return mean, math.sqrt(mean * ((bound if math.isfinite(bound) else 2 * mean) - mean)), bound


def _sampled(X: ArrayLike, n_customers: int, rng: np.random.Generator) -> FloatArray:
    rows = checks.floats("X", X)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"X must be rows of features, (m, n_features), got shape {rows.shape}")
    if len(rows) > n_customers:
        raise ValueError(f"n_customers must be at least the {len(rows)} rows of X, got {n_customers}")
    checks.refuse_not_finite("X", rows)
    return rows if len(rows) <= MOST_ROWS else rows[np.sort(rng.permutation(len(rows))[:MOST_ROWS])]


def _per_round(runs: Sequence[SimulatedRounds], n_customers: int) -> tuple[PlannedRound, ...]:
    at_cap = np.mean([run.at_cap for run in runs], axis=0) * n_customers
    exploring = np.mean([run.exploring for run in runs], axis=0)
    lift = np.mean([run.chosen / run.everybody - 1 for run in runs], axis=0)
    columns = zip(at_cap.tolist(), exploring.tolist(), lift.tolist(), strict=True)
    return tuple(
        PlannedRound(number=i, at_cap=round(cap), exploring=explored, lift=gain)
        for i, (cap, explored, gain) in enumerate(columns, start=1)
    )


def _holdout(comparison: Comparison, share: float, mean: float, lifts: Sequence[float]) -> HoldoutPower:
    return HoldoutPower(
        share=share,
        contacts=round(share * comparison.k),
        smallest_lift=_finite(comparison.smallest_lift(share) / mean),
        power={_percent(lift): comparison.power(share, lift * mean) for lift in lifts},
    )


def _percent(lift: float) -> str:
    return f"{100 * lift:g} %"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
