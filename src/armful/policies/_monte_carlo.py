"""Further draws of a round's scores, and the sets that they lead to."""

import copy
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.policies._choosing import score_under
from armful.policies._problem import Problem
from armful.policies._random_sets import MOST_SETS, Alike, drawn_of
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import Streams

LARGEST = 2**20
"""The largest number of scores that are drawn at once."""

FEWEST_SETS = 10
"""Random sets that are drawn at least, where arms of a kind are counted together."""


def most_rows(draws: int, n_arms: int) -> Iterator[int]:
    """Yield numbers of draws that sum to `draws`, each with at most `LARGEST` scores."""
    size = max(LARGEST // n_arms, 1)
    for begin in range(0, draws, size):
        yield min(size, draws - begin)


def most_in_time(draws: int, n_arms: int, seconds: float) -> Iterator[int]:
    """Yield numbers of draws that sum to `draws`, or to fewer, one at least, where these would take longer."""
    began, done, size = time.monotonic(), 0, 1
    while done < draws:
        before = time.monotonic()
        some = min(size, draws - done, max(LARGEST // n_arms, 1))
        yield some
        done, size, now = done + some, 2 * size, time.monotonic()
        if now - began + 2 * (now - before) > seconds:
            return


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


def random_inclusion(
    problem: Problem, drawn_already: IntArray, draws: int, rng: Generator, seconds: float
) -> tuple[FloatArray, int]:
    """Return the probability of each arm to be in a random set, `(n_arms,)`, and the number of sets that were drawn.

    Arms that the constraint treats alike have the same probability. They are counted together, so fewer sets give the
    same error, and sets that were drawn for the same structure before count too. drawn_already: a random set that
    counts as one more draw, or none.
    """
    n_arms, constraint = problem.arms.n_arms, problem.constraint
    alike = Alike.of(constraint, n_arms)
    own = int(drawn_already.size > 0)
    if alike is None:
        hits, n_sets = _hits(problem, np.arange(n_arms), draws, rng, seconds)
        hits += np.bincount(drawn_already, minlength=n_arms)
        return hits / (n_sets + own), n_sets
    kinds, drawn = alike.kinds, drawn_of(alike)
    wanted = min(draws, max(FEWEST_SETS, -(-draws * drawn.hits.size // n_arms)))
    with drawn.lock:
        missing = max(wanted - drawn.n_sets, int(drawn.n_sets < MOST_SETS))
        hits, n_sets = _hits(problem, kinds, missing, drawn.rng, seconds)
        drawn.hits, drawn.n_sets = drawn.hits + hits, drawn.n_sets + n_sets
        hits, n_sets = drawn.hits, drawn.n_sets
    hits = hits + np.bincount(kinds[drawn_already], minlength=hits.size)
    return (hits / np.bincount(kinds))[kinds] / (n_sets + own), n_sets


def _hits(problem: Problem, kinds: IntArray, draws: int, rng: Generator, seconds: float) -> tuple[FloatArray, int]:
    """Return how many arms of each kind random sets have, and how many sets were drawn."""
    hits, n_sets = np.zeros(int(kinds.max()) + 1), 0
    for some in most_in_time(draws, kinds.size, seconds):
        sets = sets_of(problem, random_scores(problem, some, rng), rng)
        hits += np.bincount(kinds[np.concatenate(sets)], minlength=hits.size)
        n_sets += some
    return hits, n_sets


def sets_of(problem: Problem, scores: FloatArray, rng: Generator) -> Sequence[IntArray]:
    """Return the best set of each row of `scores` `(draws, n_arms)`."""
    constraint = problem.constraint
    features = [problem.arms.X] * len(scores) if constraint.uses_features else None
    return list(constraint.best_each(np.asarray(scores), [rng] * len(scores), features)[0])
