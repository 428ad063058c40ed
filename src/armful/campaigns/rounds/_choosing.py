"""Choosing one round: who is picked from each share of people, and why."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.holdout import CHOSEN, HOLDOUT, SHARES, uniforms
from armful.campaigns.lift._data import describe_pool
from armful.campaigns.rounds._allowed import NOBODY, Allowed, allowed_sets
from armful.campaigns.rounds._customers import Customers
from armful.campaigns.settings import Settings
from armful.checks import FloatArray, IntArray
from armful.constraints import Knapsack
from armful.ledger import ChosenArms
from armful.model import RidgeState
from armful.model._pending import with_pending
from armful.policies import Policy
from armful.policies.choice import Choice
from armful.scan._threads import blas_at_one_thread

MOST_FOR_PRICES = 200_000
"""Customers up to which the price of each quota is computed, which takes about 20 further choices."""


PARTS = 4
"""While fewer outcomes are known than there are features, a round is chosen in so many parts: the customers of whom
least is known are much alike, and asking only them teaches little (docs/decisions/0021)."""


AT_A_TIME = 4096
"""Rows of features that are put in order at a time, so that they need no memory besides."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Picked:
    """Who is on the list of a round, and what is recorded of it."""

    arms: ChosenArms
    details: Mapping[str, Any]


@blas_at_one_thread()  # several threads take longer for the many small products of a round
def choose_round(
    customers: Customers,
    settings: Settings,
    policy: Policy,
    state: RidgeState,
    pending: NDArray[np.float32],
    number: int,
) -> Picked:
    """Return who is picked in a round.

    Parameters
    ----------
    customers : Customers
        All customers of the round.
    settings : Settings
        What may be chosen.
    policy : Policy
        Seeded for this round; what it knows is replaced.
    state : RidgeState
        What has been learned.
    pending : ndarray, shape (m, n_features)
        The features of those whose outcome may still come. They count as learned for the widths, so that rounds
        before the first outcomes do not ask the same again.
    number : int
        The number of the round.
    """
    rng = np.random.default_rng([settings.seed, number])
    allowed = allowed_sets(customers, settings, offset=float(rng.random()))
    policy.state = with_pending(state, pending) if len(pending) else state
    parts: list[_Part] = []
    details: dict[str, Any] = {"n_customers": customers.shares.size, "n_excluded": int(customers.excluded.sum())}
    for share, sets in allowed.items():
        if share == HOLDOUT:
            parts.append(_by_house_rule(customers, settings, sets, state, number, rng))
            if customers.scores is None and settings.choose.budget is None and sets.candidates is not None:
                details["holdout_pool"] = _pool(customers, sets.candidates)
            continue
        with ThreadPoolExecutor(1) as pool:
            own = np.random.default_rng([settings.seed, number, 2])
            best = pool.submit(_best_by_estimate, customers, sets, state, own) if share == CHOSEN else None
            choices = _choose(policy, customers, sets, n_parts=PARTS if state.n < state.n_features else 1)
            parts += _by_policy(customers, sets, share, choices, state)
        if best is not None and choices:
            picked = np.concatenate([each.indices for each in choices])
            details["exploring"] = float(1 - np.isin(picked, best.result()).mean())
            with_prices = len(choices) == 1 and customers.shares.size <= MOST_FOR_PRICES
            details["prices"] = _prices(choices[0]) if with_prices else []
    return Picked(arms=_joined(customers, parts), details=details)


def _choose(policy: Policy, customers: Customers, sets: Allowed, n_parts: int) -> list[Choice]:
    """Return the choice of the policy, in several parts if the constraint allows that.

    Each part counts for the widths of the next, so that not all who are picked are alike.
    """
    if sets.constraint is None:
        return []
    if sets.candidates is not None:
        return [policy.choose(customers.table.take(sets.candidates), sets.constraint)]
    if sets.sizes is None or n_parts == 1:
        return [policy.choose(customers.table, sets.constraint)]
    before, choices, constraint = policy.state, list[Choice](), sets.sizes.constraint
    for size in sets.sizes.parts(n_parts):
        picked = np.concatenate([each.indices for each in choices]) if choices else None
        choices.append(policy.choose(customers.table, constraint(size, picked)))
        policy.state = with_pending(policy.state, choices[-1].features)  # type: ignore[arg-type]
    policy.state = before
    return choices


def _best_by_estimate(customers: Customers, sets: Allowed, state: RidgeState, rng: np.random.Generator) -> IntArray:
    """Return the best set by the estimates alone, which are in float32; nobody if there is no estimate."""
    if sets.constraint is None or not state.theta.any():
        return np.zeros(0, dtype=np.int64)
    estimates = customers.estimates if sets.candidates is None else customers.estimates[sets.candidates]
    return sets.constraint.best(estimates.astype(np.float64), rng=rng).indices


@dataclass(frozen=True, eq=False, kw_only=True)
class _Part:
    """Some of those who are picked, as the ledger records them; features: of all of them, in the order `order`."""

    indices: IntArray
    share: int
    predicted: FloatArray
    bonus: FloatArray
    capped: NDArray[np.bool_]
    probabilities: FloatArray
    features: FloatArray
    order: IntArray


def _by_policy(
    customers: Customers, sets: Allowed, share: int, choices: list[Choice], state: RidgeState
) -> list[_Part]:
    """Return those whom the policy picked, in each part the highest score first, after those who are required."""
    parts = [_part(customers, sets.required, share, state)]
    for choice in choices:
        order = np.argsort(-choice.scores, kind="stable")
        indices = choice.indices if sets.candidates is None else sets.candidates[choice.indices]
        parts.append(
            _Part(
                indices=indices[order],
                share=share,
                predicted=choice.mean[order],
                bonus=choice.bonus[order],
                capped=choice.capped[order],
                probabilities=np.full(order.size, np.nan),
                features=choice.features,
                order=order,
            )
        )
    return parts


def _by_house_rule(
    customers: Customers, settings: Settings, sets: Allowed, state: RidgeState, number: int, rng: np.random.Generator
) -> _Part:
    """Return those of the holdout whom the house rule picks: a random draw, or the highest of a column of scores."""
    indices, probabilities = sets.required, np.ones(sets.required.size)
    if sets.constraint is not None and sets.candidates is not None:
        people, known = sets.candidates, sets.probabilities
        if customers.scores is None:
            scores = uniforms(customers.ids_at(people), f"{settings.name} round {number}")
        else:
            scores, known = customers.scores[people], None
        if customers.scores is None and isinstance(sets.constraint, Knapsack):
            best = _random_within_budget(sets.constraint, np.argsort(-scores))
        else:
            best = sets.constraint.best(scores, rng=rng).indices
            best = best[np.argsort(-scores[best], kind="stable")]
        indices = np.concatenate([indices, people[best]])
        probabilities = np.concatenate([probabilities, np.full(best.size, np.nan) if known is None else known[best]])
    return _part(customers, indices, HOLDOUT, state, probabilities)


def _random_within_budget(constraint: Knapsack, order: IntArray) -> IntArray:
    """Return people in a random order until the budget or their number is used up.

    The best set by random scores would be one of cheap people, which is no house rule.
    """
    order = order[constraint.costs[order] <= constraint.budget]
    n = int(np.searchsorted(np.cumsum(constraint.costs[order]), constraint.budget, side="right"))
    return order[: n if constraint.at_most is None else min(n, constraint.at_most)]


def _pool(customers: Customers, people: IntArray) -> dict[str, Any]:
    """Return what is kept of those from whom the holdout is drawn at random, for the lift."""
    groups = {
        column: np.array(groups.labels, dtype=np.str_)[groups.of_arm[people]]
        for column, groups in customers.groups.items()
    }
    return describe_pool(customers.estimates[people].astype(np.float64), groups)


def _part(
    customers: Customers, indices: IntArray, share: int, state: RidgeState, probabilities: FloatArray | None = None
) -> _Part:
    """Return customers whom no policy picked."""
    X, n = customers.table.take(indices), indices.size
    return _Part(
        indices=indices,
        share=share,
        predicted=state.mean(X),
        bonus=np.zeros(n),
        capped=np.zeros(n, dtype=bool),
        probabilities=np.full(n, np.nan) if probabilities is None else probabilities,
        features=X,
        order=np.arange(n),
    )


def _joined(customers: Customers, parts: list[_Part]) -> ChosenArms:
    """Return all who were picked; positions count within a share."""
    sizes = [part.indices.size for part in parts]
    indices = np.concatenate([part.indices for part in parts])
    shares = np.repeat([part.share for part in parts], sizes)
    positions = np.zeros(shares.size, dtype=np.int64)
    for share in range(len(SHARES)):
        positions[shares == share] = np.arange(np.count_nonzero(shares == share))
    features = np.empty((indices.size, customers.table.n_features), dtype=np.float32)
    for part, end in zip(parts, np.cumsum(sizes).tolist(), strict=True):
        own = features[end - part.indices.size : end]
        for begin in range(0, len(own), AT_A_TIME):
            some = slice(begin, begin + AT_A_TIME)
            own[some] = part.features[part.order[some]]
    return ChosenArms(
        ids=customers.ids_at(indices),
        positions=positions,
        shares=np.array(SHARES)[shares],
        predicted=np.concatenate([part.predicted for part in parts]),
        bonus=np.concatenate([part.bonus for part in parts]),
        capped=np.concatenate([part.capped for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        features=features,
        groups={
            column: np.array(groups.labels, dtype=np.str_)[groups.of_arm[indices]]
            for column, groups in customers.groups.items()
        },
    )


def _prices(choice: Choice) -> list[dict[str, Any]]:
    """Return what each limit that binds costs: by how much the value of the set would rise if it were one looser."""
    return [
        {"limit": str(price["limit"]), "price": float(price["price"])}
        for price in choice.explain().prices
        if NOBODY not in str(price["limit"])
    ]
