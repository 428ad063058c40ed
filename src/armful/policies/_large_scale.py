"""Choosing from many arms, here or on a cluster."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful.checks import FloatArray, IntArray
from armful.cluster._arms import ClusterArms
from armful.constraints.base import Selection
from armful.model._blocks import BLOCK
from armful.policies._locks import Turn
from armful.policies.choice import Choice
from armful.policies.explanation import Problem
from armful.policies.scores import Scores
from armful.scan._exact_choice import RankedConstraint, choose_from
from armful.scan._memory import remembering
from armful.scan._scoring import Scoring
from armful.scan._threads import blas_at_one_thread
from armful.scan._whole_table import WholeTable
from armful.tables import Table
from armful.tables.rows import Rows

if TYPE_CHECKING:
    from armful.policies.policy import Policy


def choose_from_many(policy: "Policy", rows: Rows, constraint: RankedConstraint, caps: ArrayLike | None) -> Choice:
    """The choice of a policy, looking closely only at the arms that could be chosen."""
    constraint.refuse_misfit(rows.n_arms)
    caps = policy.check_caps(caps, rows.n_arms)
    with remembering(rows, policy) as memory:
        scoring, turn = _begun(policy, constraint.k, caps, rows.take(np.zeros(1, dtype=np.int64)))
        with turn:
            picked, features, scores = choose_from(rows, scoring, constraint, memory)
            i = picked.indices
            ids = rows.ids_of(i)
        if memory is not None:
            memory.keep(i, features)
    some_rows = partial(_first, rows) if hasattr(rows, "blocks") else rows.take
    policy.remarks.chosen_from(rows.n_arms, some_rows, stacklevel=4)
    return _chosen(picked, features, ids, scores, partial(_all_scored, scoring, rows, constraint, i))


def choose_on_cluster(
    policy: "Policy", X: Any, constraint: RankedConstraint, caps: ArrayLike | None, client: Any
) -> Choice:
    """The same on a dask cluster, whose workers look at their parts of the arms."""
    arms = ClusterArms.of(X, client, policy.n_features)
    if arms.n_arms <= BLOCK:  # no more than a choice may bring here anyway
        features, ids = arms.take(np.arange(arms.n_arms))
        choice = policy.choose(features, constraint, caps=caps)
        return choice if ids is None else replace(choice, ids=ids[choice.indices])
    constraint.refuse_misfit(arms.n_arms)
    scoring, turn = _begun(policy, constraint.k, policy.check_caps(caps, arms.n_arms), np.ones((1, arms.n_features)))
    with turn:
        picked, features, ids = arms.choose(scoring, constraint, policy)
    scores = scoring.score(features, picked.indices) if picked.indices.size else None
    policy.remarks.chosen_from(arms.n_arms, lambda some: _first(arms, some)[0], stacklevel=4)
    return _chosen(picked, features, ids, scores, partial(_not_here, arms.n_arms))


def _begun(policy: "Policy", k: int, caps: FloatArray | None, row: FloatArray) -> tuple[Scoring, Turn]:
    """The scores of a round by one state of the policy, with all that is drawn for it: the rest needs no locks.

    row: `(1, n_features)`, an arm to score.
    """
    with policy.thread_locks.drawing:
        turn = Turn(policy.thread_locks, policy.generator)
        with turn:
            with policy.thread_locks.state:
                scoring = Scoring(policy, k, caps)
            scoring.key_for_ties(policy.generator, row)
    return scoring, turn


def _chosen(
    picked: Selection,
    features: FloatArray,
    ids: NDArray[Any] | None,
    scores: Scores | None,
    chosen_from: Callable[[], Problem],
) -> Choice:
    """A choice from arms of which only the chosen ones are at hand; there are no scores if none was chosen."""
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


def _first(arms: Any, some: IntArray) -> Any:
    """The first rows, as many as `some`, where it may be slow to read a row here and a row there."""
    return arms.take(np.arange(some.size))


def _not_here(n_arms: int) -> Problem:
    raise ValueError(
        f"explain needs the scores of all {n_arms} arms on one machine, and these were chosen on a cluster: "
        "shortlist there with TopK, choose from shortlist.features here, and explain that"
    )


def _all_scored(scoring: Scoring, rows: Rows, constraint: RankedConstraint, chosen: IntArray) -> Problem:
    """What was chosen from, worked out when it is asked for, if it is still what it was."""
    if isinstance(rows, Table):
        rows.refuse_changed()
    arms = WholeTable(rows, scoring.state, scoring.caps)
    with blas_at_one_thread():  # as when they were chosen
        scores = scoring.score_arms(arms)
    if not np.array_equal(constraint.best_among(scores.value, scoring.key).indices, chosen):
        raise ValueError("the arms have changed since they were chosen; choose again, then explain")
    return Problem(arms, scores, constraint)
