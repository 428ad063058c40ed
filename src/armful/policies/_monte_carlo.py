"""Further draws of a round's scores, and the sets that they lead to."""

import copy
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.policies._choosing import score_under
from armful.policies._problem import Problem
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Streams

LARGEST = 2**20
"""The largest number of scores that are drawn at once."""

FEWEST_SETS = 10
"""Random sets that are drawn at least, where arms of a group are counted together."""


def most_rows(draws: int, n_arms: int) -> Iterator[int]:
    """Yield numbers of draws that sum to `draws`, each with at most `LARGEST` scores."""
    size = max(LARGEST // n_arms, 1)
    for begin in range(0, draws, size):
        yield min(size, draws - begin)


def drawn_scores(policy: Policy, problem: Problem, draws: int, rng: Generator) -> FloatArray:
    """Return the scores of all arms as the policy would draw them again, `(draws, n_arms)`."""
    arms, constraint = problem.arms, problem.constraint
    shape = draws, arms.n_arms
    if not policy.randomised:
        return np.broadcast_to(problem.scores.value, shape)
    again = copy.copy(policy)
    again._state = arms.state
    if policy.batched:
        again.rng = Streams([rng] * draws)
        scores = again.score(arms, constraint.k)
        if isinstance(scores, Scores) and scores.value.shape == shape:
            return (scores.of_costs() if arms.only_costs else scores).value
    again.rng = rng
    return np.stack([score_under(again, arms, constraint).value for _ in range(draws)])


def random_scores(problem: Problem, draws: int, rng: Generator) -> FloatArray:
    """Return scores that are independent of the arms, `(draws, n_arms)`: positive, so that sets are large, or costs."""
    scores = rng.random((draws, problem.arms.n_arms))
    return -scores if problem.constraint.only_costs else scores


def random_inclusion(problem: Problem, drawn_already: IntArray, draws: int, rng: Generator) -> tuple[FloatArray, int]:
    """Return the probability of each arm to be in a random set, `(n_arms,)`, and the number of sets that were drawn.

    Under bounds on groups, arms of the same groups have the same probability. They are counted together, so fewer sets
    give the same error. drawn_already: a random set that counts as one more draw, or none.
    """
    n_arms, ranks = problem.arms.n_arms, problem.constraint.ranks
    groups, n_sets = np.arange(n_arms), draws
    if ranks is not None:
        groups = np.zeros(n_arms, dtype=np.int64) if ranks.of_arm is None else ranks.of_arm
        n_sets = min(draws, max(FEWEST_SETS, -(-draws * (int(groups.max()) + 1) // n_arms)))
    hits = np.bincount(drawn_already, minlength=n_arms)
    for some in most_rows(n_sets, n_arms):
        sets = sets_of(problem, random_scores(problem, some, rng), rng)
        hits += np.bincount(np.concatenate(sets), minlength=n_arms)
    shown = np.bincount(groups, weights=hits) / np.bincount(groups)
    return shown[groups] / (n_sets + (drawn_already.size > 0)), n_sets


def sets_of(problem: Problem, scores: FloatArray, rng: Generator) -> Sequence[IntArray]:
    """Return the best set of each row of `scores` `(draws, n_arms)`."""
    constraint = problem.constraint
    features = [problem.arms.X] * len(scores) if constraint.uses_features else None
    return list(constraint.best_each(np.asarray(scores), [rng] * len(scores), features)[0])
