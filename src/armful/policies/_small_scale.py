"""Choosing from arms that are all looked at."""

import warnings
from functools import partial
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from armful.arms import Arms
from armful.constraints import Constraint
from armful.constraints.restricted import on_table
from armful.objectives import Objective
from armful.policies._locks import Turn
from armful.policies.choice import Choice
from armful.policies.explanation import Problem
from armful.scan._dispatch import refuse_too_many, refuse_unfit
from armful.scan._whole_table import WholeTable
from armful.tables import Table

if TYPE_CHECKING:
    from armful.policies.policy import Policy


def choose_from_few(
    policy: "Policy", X: ArrayLike | Table, constraint: Constraint, caps: ArrayLike | None, objective: Objective | None
) -> Choice:
    """The choice of a policy, every arm scored."""
    if isinstance(X, Table):
        refuse_too_many(X, constraint, objective)
        constraint = on_table(constraint, X)
    locks, generator = policy.thread_locks, policy.generator
    with locks.drawing, Turn(locks, generator):
        with locks.state:  # others may learn again while the best set is looked for
            arms = arms_for(policy, X, caps)
            scores = policy.score_under(arms, constraint)
        problem = Problem(arms, scores, constraint, objective)
        picked = problem.solve(constraint, generator)
    if policy.samples and picked.ratio != 1:
        warnings.warn(
            f"{type(policy).__name__} with an approximate choice (ratio {picked.ratio:.3g}) may lose linearly in the "
            "number of rounds; an optimistic policy such as CappedC2UCB does not",
            stacklevel=3,
        )
    i = picked.indices
    policy.remarks.chosen_from(arms.n_arms, arms.rows, under_costs=arms.only_costs, stacklevel=4)
    return Choice(
        indices=i,
        features=arms.rows(i),
        value=picked.value,
        ratio=picked.ratio,
        mean=scores.mean[i],
        bonus=scores.bonus[i],
        scores=scores.value[i],
        capped=scores.capped[i],
        chosen_from=partial(_given, problem),
        ids=X.ids_of(i) if isinstance(X, Table) else None,
    )


def arms_for(policy: "Policy", X: ArrayLike | Table, caps: ArrayLike | None) -> Arms:
    """The arms as the policy sees them, by the state that it has."""
    if isinstance(X, Table):
        refuse_unfit(X, policy.n_features)
        X.refuse_changed()
        return WholeTable(X, policy.state, policy.check_caps(caps, X.n_arms))
    arms = Arms(X, policy.state)
    arms.caps = policy.check_caps(caps, arms.n_arms)
    if arms.X.ndim != 2:
        raise ValueError(f"features must have shape (n_arms, {policy.n_features}), got {arms.X.shape}")
    return arms


def _given(problem: Problem) -> Problem:
    return problem
