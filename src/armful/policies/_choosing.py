"""The three ways to choose: from one array, from many arms, on a cluster. Each finds the same set."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.cluster._arms import ClusterArms
from armful.constraints.base import Constraint, Selection
from armful.constraints.ranked import RankedConstraint
from armful.constraints.restricted import on_table
from armful.model._blocks import BLOCK
from armful.objectives import Objective
from armful.policies._locks import RewindOnError
from armful.policies._problem import Problem
from armful.policies.choice import Choice
from armful.policies.scores import Scores
from armful.scan._dispatch import refuse_too_many, refuse_unfit
from armful.scan._exact_choice import choose_from
from armful.scan._memory import remembering
from armful.scan._scoring import Scoring
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
    locks, generator = policy._thread_locks, policy._generator
    with locks.drawing, RewindOnError(locks, generator):
        with locks.state:  # others may learn again while the best set is looked for
            arms = arms_for(policy, X, caps)
            scores = policy._score_for(arms, constraint)
        problem = Problem(arms, scores, constraint, objective)
        picked = problem.solve(constraint, generator)
    if policy.is_thompson and picked.ratio != 1:
        warnings.warn(
            f"{type(policy).__name__} with an approximate choice (ratio {picked.ratio:.3g}) may lose linearly in the "
            "number of rounds; an optimistic policy such as CappedC2UCB does not",
            stacklevel=3,
        )
    i = picked.indices
    policy._warnings_once.chosen_from(arms.n_arms, arms.rows, under_costs=arms.only_costs, stacklevel=4)
    ids = X.ids_of(i) if isinstance(X, Table) else None
    return _choice(picked, arms.rows(i), ids, scores.at(i), partial(_given, problem))


def choose_from_many(policy: "Policy", rows: Rows, constraint: RankedConstraint, caps: ArrayLike | None) -> Choice:
    """Choose with exact scores only of the arms that could be in the best set."""
    constraint.check_n_arms(rows.n_arms)
    caps = policy._check_caps(caps, rows.n_arms)
    with remembering(rows, policy) as memory:
        scoring, rewind = _begun(policy, constraint.k, caps, rows.take(np.zeros(1, dtype=np.int64)))
        with rewind:
            picked, features, scores = choose_from(rows, scoring, constraint, memory)
            i = picked.indices
            ids = rows.ids_of(i)
        if memory is not None:
            memory.keep(i, features)
    some_rows = partial(_first, rows) if hasattr(rows, "blocks") else rows.take
    policy._warnings_once.chosen_from(rows.n_arms, some_rows, stacklevel=4)
    return _choice(picked, features, ids, scores, partial(_all_scored, scoring, rows, constraint, i))


def choose_on_cluster(
    policy: "Policy", X: Any, constraint: RankedConstraint, caps: ArrayLike | None, client: Any
) -> Choice:
    """Choose on a dask cluster: its workers reduce their partitions to the arms that could be in the best set."""
    arms = ClusterArms.of(X, client, policy.n_features)
    if arms.n_arms <= BLOCK:  # no more than a choice may bring here anyway
        features, ids = arms.take(np.arange(arms.n_arms))
        choice = policy.choose(features, constraint, caps=caps)
        return choice if ids is None else replace(choice, ids=ids[choice.indices])
    constraint.check_n_arms(arms.n_arms)
    scoring, rewind = _begun(policy, constraint.k, policy._check_caps(caps, arms.n_arms), np.ones((1, arms.n_features)))
    with rewind:
        picked, features, ids = arms.choose(scoring, constraint, policy)
    scores = scoring.score(features, picked.indices) if picked.indices.size else None
    policy._warnings_once.chosen_from(arms.n_arms, lambda some: _first(arms, some)[0], stacklevel=4)
    return _choice(picked, features, ids, scores, partial(_not_here, arms.n_arms))


def arms_for(policy: "Policy", X: ArrayLike | Table, caps: ArrayLike | None) -> Arms:
    """Return the arms as the policy sees them, by the state that it has."""
    if isinstance(X, Table):
        refuse_unfit(X, policy.n_features)
        X.refuse_changed()
        return WholeTable(X, policy.state, policy._check_caps(caps, X.n_arms))
    arms = Arms(X, policy.state)
    arms.caps = policy._check_caps(caps, arms.n_arms)
    if arms.X.ndim != 2:
        raise ValueError(f"features must have shape (n_arms, {policy.n_features}), got {arms.X.shape}")
    return arms


def _choice(
    picked: Selection,
    features: FloatArray,
    ids: NDArray[Any] | None,
    scores: Scores | None,
    chosen_from: Callable[[], Problem],
) -> Choice:
    """Return a choice; scores: of the chosen arms, None if none was chosen."""
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
        chosen_from=chosen_from,
        ids=ids,
    )


def _begun(policy: "Policy", k: int, caps: FloatArray | None, row: FloatArray) -> tuple[Scoring, RewindOnError]:
    """Return the scores of a round by one state of the policy, with all that is drawn for it: the rest needs no locks.

    row: `(1, n_features)`, an arm to score.
    """
    with policy._thread_locks.drawing:
        rewind = RewindOnError(policy._thread_locks, policy._generator)
        with rewind:
            with policy._thread_locks.state:
                scoring = Scoring(policy, k, caps)
            scoring.key_for_ties(policy._generator, row)
    return scoring, rewind


def _first(arms: Any, some: IntArray) -> Any:
    """Return the first rows, as many as `some`, where reading single rows may be slow."""
    return arms.take(np.arange(some.size))


def _given(problem: Problem) -> Problem:
    return problem


def _not_here(n_arms: int) -> Problem:
    raise ValueError(
        f"explain needs the scores of all {n_arms} arms on one machine, and these were chosen on a cluster: "
        "shortlist there with TopK, choose from shortlist.features here, and explain that"
    )


def _all_scored(scoring: Scoring, rows: Rows, constraint: RankedConstraint, chosen: IntArray) -> Problem:
    """Return what was chosen from, with every arm scored, if the arms are still what they were."""
    if isinstance(rows, Table):
        rows.refuse_changed()
    arms = WholeTable(rows, scoring.state, scoring.caps)
    with blas_at_one_thread():  # as when they were chosen
        scores = scoring.score_arms(arms)
    if not np.array_equal(constraint.best_among(scores.value, scoring.key).indices, chosen):
        raise ValueError("the arms have changed since they were chosen; choose again, then explain")
    return Problem(arms, scores, constraint)
