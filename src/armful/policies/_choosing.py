"""The three ways to choose: from one array, from many arms, on a cluster. Each returns the same set."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.cluster._arms import ClusterArms
from armful.constraints.base import Constraint, name_if_any
from armful.constraints.ranked import RankedConstraint
from armful.constraints.restricted import on_table
from armful.constraints.selection import Selection
from armful.model._blocks import BLOCK
from armful.objectives import Objective
from armful.policies._locks import RewindOnError
from armful.policies._problem import Problem
from armful.policies.choice import Choice
from armful.policies.scores import Scores
from armful.scan._dispatch import ranked, refuse_too_many, refuse_unfit
from armful.scan._exact_choice import choose_from
from armful.scan._scoring import Scoring
from armful.scan._table_cache import borrow_cache
from armful.scan._threads import blas_at_one_thread
from armful.scan._whole_table import WholeTable
from armful.tables import Table
from armful.tables.rows import Rows

if TYPE_CHECKING:
    from armful.policies.policy import Policy


def choose_from_array(
    policy: "Policy", X: ArrayLike | Table, constraint: Constraint, caps: ArrayLike | None, objective: Objective | None
) -> Choice:
    """Choose with the exact score of every arm."""
    if isinstance(X, Table):
        refuse_too_many(X, constraint, objective)
        constraint = on_table(constraint, X)
    problem, picked = solve_round(policy, X, constraint, caps, objective, stacklevel=5)
    return choice_of(problem, picked, X.ids_of(picked.indices) if isinstance(X, Table) else None)


def solve_round(
    policy: "Policy",
    X: ArrayLike | Table,
    constraint: Constraint,
    caps: ArrayLike | None,
    objective: Objective | None,
    *,
    stacklevel: int,
) -> tuple[Problem, Selection]:
    """Return the problem of a round, with the exact score of every arm, and its best set.

    stacklevel: of a warning to the user.
    """
    with RewindOnError(policy._thread_locks, policy._generator):
        with policy._thread_locks.state:  # released before solving, so that other threads can learn
            arms = arms_for(policy, X, caps)
            scores = score_under(policy, arms, constraint)
        problem = Problem(arms, scores, constraint, objective)
        picked = problem.solve(constraint, policy._generator)
    if policy.is_thompson and picked.ratio != 1:
        warnings.warn(
            f"{type(policy).__name__} with an approximate choice (ratio {picked.ratio:.3g}) may lose linearly in the "
            "number of rounds; an optimistic policy such as CappedC2UCB does not",
            stacklevel=stacklevel - 1,
        )
    policy._warnings_once.chosen_from(arms.n_arms, arms.rows, under_costs=arms.only_costs, stacklevel=stacklevel)
    return problem, picked


def choice_of(problem: Problem, picked: Selection, ids: NDArray[Any] | None = None) -> Choice:
    """Return a set that solves a problem as a choice."""
    i, find_problem = picked.indices, partial(_kept_problem, problem)
    return _choice(picked, problem.arms.rows(i), ids, problem.scores.at(i), find_problem, problem.constraint)


def choose_from_many(policy: "Policy", rows: Rows, constraint: RankedConstraint, caps: ArrayLike | None) -> Choice:
    """Choose with exact scores only of the arms that could be in the best set."""
    constraint.check_n_arms(rows.n_arms)
    checked_caps = _checked_caps(policy, caps, rows.n_arms)
    with borrow_cache(rows, policy) as cache:
        any_row = rows.take(np.zeros(1, dtype=np.int64))
        with RewindOnError(policy._thread_locks, policy._generator) as draws:
            scoring = _start_round(policy, constraint, checked_caps, any_row)
            draws.let_others_draw()
            picked, features, scores = choose_from(rows, scoring, constraint, cache)
            i = picked.indices
            ids = rows.ids_of(i)
        if cache is not None:
            cache.set_chosen(i, features)
    policy._warnings_once.chosen_from(rows.n_arms, lambda some: rows.sample_rows(some.size), stacklevel=4)
    return _choice(picked, features, ids, scores, partial(_rescored_problem, scoring, rows, constraint, i), constraint)


def choose_on_cluster(
    policy: "Policy", X: Any, constraint: Constraint, caps: ArrayLike | None, objective: Objective | None, client: Any
) -> Choice:
    """Choose on a dask cluster: its workers reduce their partitions to the arms that could be in the best set."""
    by_rank = ranked(policy, constraint, objective)
    arms = ClusterArms.of(X, client, policy.n_features)
    if arms.n_arms <= BLOCK:  # no more than a choice may bring here anyway
        features, ids = arms.take(np.arange(arms.n_arms))
        choice = policy.choose(features, constraint, caps=caps)
        return choice if ids is None else replace(choice, ids=ids[choice.indices])
    by_rank.check_n_arms(arms.n_arms)
    checked_caps = _checked_caps(policy, caps, arms.n_arms)
    with RewindOnError(policy._thread_locks, policy._generator) as draws:
        scoring = _start_round(policy, constraint, checked_caps, np.ones((1, arms.n_features)))
        draws.let_others_draw()
        picked, features, ids = arms.choose(scoring, by_rank, policy)
    scores = scoring.score(features, picked.indices) if picked.indices.size else None
    policy._warnings_once.chosen_from(arms.n_arms, lambda some: arms.take(np.arange(some.size))[0], stacklevel=4)
    return _choice(picked, features, ids, scores, partial(_refuse_to_explain, arms.n_arms), constraint)


def name_in_round(X: ArrayLike | Table, constraint: Constraint, row: int) -> str | None:
    """Return what the arm in a row is called, by its id or by the constraint; None if it has no name."""
    ids = X.ids_of([row]) if isinstance(X, Table) else None
    return name_if_any(constraint, row) if ids is None else repr(ids[0].item())


def arms_for(policy: "Policy", X: ArrayLike | Table, caps: ArrayLike | None) -> Arms:
    """Return the arms as the policy's current state sees them."""
    if isinstance(X, Table):
        refuse_unfit(X, policy.n_features)
        X.refuse_changed()
        return WholeTable(X, policy.state, _checked_caps(policy, caps, X.n_arms))
    arms = Arms(X, policy.state)
    arms.caps = _checked_caps(policy, caps, arms.n_arms)
    if arms.X.ndim != 2:
        raise ValueError(f"features must have shape (n_arms, {policy.n_features}), got {arms.X.shape}")
    return arms


def score_under(policy: "Policy", arms: Arms, constraint: Constraint) -> Scores:
    """Return the scores for a choice under this constraint; where arms are costs, no score is above 0."""
    arms.only_costs = constraint.only_costs
    scores = policy._score_arms(arms, constraint.k)
    return scores.of_costs() if arms.only_costs else scores


def _choice(
    picked: Selection,
    features: FloatArray,
    ids: NDArray[Any] | None,
    scores: Scores | None,
    find_problem: Callable[[], Problem],
    constraint: Constraint,
) -> Choice:
    """Return the choice; scores: of the chosen arms, None if none was chosen."""
    scores = scores or Scores.uncapped(np.zeros(0), np.zeros(0))
    return Choice(
        indices=picked.indices,
        features=features,
        value=picked.value,
        ratio=picked.ratio,
        mean=scores.mean,
        bonus=scores.bonus,
        scores=scores.value,
        capped=scores.capped,
        find_problem=find_problem,
        constraint=constraint,
        ids=ids,
    )


def _start_round(policy: "Policy", constraint: Constraint, caps: FloatArray | None, any_row: FloatArray) -> Scoring:
    """Draw all random numbers of a round and return the scores by one state; what follows needs no locks.

    any_row: `(1, n_features)`; scoring it draws what scoring all arms would.
    """
    with policy._thread_locks.state:
        scoring = Scoring(policy, constraint.k, caps)
    scoring.key_for_ties(policy._generator, any_row)
    return scoring


def _checked_caps(policy: "Policy", caps: ArrayLike | None, n_arms: int) -> FloatArray | None:
    if caps is None:
        return None
    if not policy.takes_caps:
        raise ValueError(f"{type(policy).__name__} takes no caps; CappedC2UCB does")
    return checks.caps(caps, n_arms)


# -- what Choice.explain works on: functions of a module, so that a choice can be pickled -------------


def _kept_problem(problem: Problem) -> Problem:
    return problem


def _rescored_problem(scoring: Scoring, rows: Rows, constraint: RankedConstraint, chosen: IntArray) -> Problem:
    """Score every arm as in the round; raise if the arms are no longer the same."""
    if isinstance(rows, Table):
        rows.refuse_changed()
    arms = WholeTable(rows, scoring.state, scoring.caps)
    with blas_at_one_thread():  # as when they were chosen
        scores = scoring.score_arms(arms)
    if not np.array_equal(constraint.best_among(scores.value, scoring.key).indices, chosen):
        raise ValueError("the arms have changed since they were chosen; choose again, then explain")
    return Problem(arms, scores, constraint)


def _refuse_to_explain(n_arms: int) -> Problem:
    raise ValueError(
        f"explain needs the scores of all {n_arms} arms on one machine, and these were chosen on a cluster: "
        "shortlist there with TopK, choose from shortlist.features here, and explain that"
    )
