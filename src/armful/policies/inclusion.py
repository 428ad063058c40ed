"""Choices with the probability with which each arm was included, for off-policy evaluation later."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.cluster._chunks import is_dask
from armful.constraints._checks import NO_ARMS
from armful.constraints.base import Constraint
from armful.constraints.cardinality import TopK
from armful.policies._monte_carlo import drawn_scores, most_in_time, most_rows, random_inclusion, random_scores, sets_of
from armful.policies._problem import Problem
from armful.policies._slots import Slots
from armful.policies.choice import Choice
from armful.policies.epsilon_greedy import EpsilonGreedy
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import as_generator
from armful.tables import Table

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Inclusion:
    """A chosen set with exploration mixed in, and how probable each of its arms was.

    Attributes
    ----------
    choice : Choice
        The policy's own choice, before exploration.
    indices : ndarray of shape (k,)
        The arms to show, in the order of the slate, as rows of X.
    probabilities : ndarray of shape (k,)
        The probability with which each of them was included.
    explored : ndarray of bool, of shape (k,)
        Where exploration drew the arm at random.
    draws : int
        The number of Monte Carlo draws behind the probabilities; 0 where they are exact. Where both the policy's own
        sets and random ones were drawn, the smaller of both numbers.
    """

    choice: Choice
    indices: IntArray
    probabilities: FloatArray
    explored: BoolArray
    draws: int

    def __len__(self) -> int:
        return self.indices.size

    @property
    def scores(self) -> Scores:
        """Mean, bonus, score and cap of each arm of the set, `(k,)`."""
        if self.indices is self.choice.indices:
            choice = self.choice
            return Scores(choice.mean, choice.bonus, choice.scores, choice.capped)
        return self.choice._problem.scores.at(self.indices)


def choose_with_inclusion(
    policy: Policy,
    X: ArrayLike | Table,
    constraint: Constraint,
    *,
    explore: float = 0.0,
    draws: int = 100,
    seconds: float | None = None,
    caps: ArrayLike | None = None,
    rng: Generator | int | None = None,
) -> Inclusion:
    """Choose as `policy.choose` does, explore a share of the set, and return each arm's probability of inclusion.

    Parameters
    ----------
    policy : Policy
        Any policy; its own random numbers are used for its own choice alone.
    X : array_like of shape (n_arms, n_features), DataFrame, Arrow table or Table
        The arms, as for `choose`; dask arrays are refused.
    constraint : Constraint
        Which sets are allowed.
    explore : float, default 0.0
        e, the expected share of the set that is drawn at random: 0 for none, 1 for a set that is wholly random.
    draws : int, default 100
        How many Monte Carlo draws estimate a probability that has no closed form.
    seconds : float, optional
        The time for these draws: where each is an integer program, a hundred can take a minute. Then there are fewer,
        one at least, and the probabilities depend on the machine. Without it there is no limit.
    caps : array_like of shape (n_arms,), optional
        As for `choose`.
    rng : Generator or int, optional
        For exploration and for Monte Carlo.

    Returns
    -------
    Inclusion

    Notes
    -----
    *Slots*, under `TopK`, also with excluded and required arms (then n and k are those of the arms that are neither):
    b of the k places are explored, `b = floor(e k)` or one more, so that its mean is `e k`. The best `k - b` arms stay,
    and b are drawn at random from the other `n - k + b`; they take random places of the slate, so that the effect of a
    place can be told from that of the arms in it. The arm of rank r (0 for the best) is included with probability

        p = E_b[ 1 if r < k - b, else b / (n - k + b) ]

    which is averaged over the ranks of arms whose scores are equal.

    *Whole rounds*, under other constraints: with probability e the set is the best one for independent random scores,
    in random order.

    Where the policy draws its scores (`Policy.randomised`), p is averaged over the choice and `draws` more; without
    exploration that is `(hits + 1) / (draws + 1)`. `EpsilonGreedy` under `TopK` has the exact
    `(1 - epsilon) p + epsilon k / n`, where p is that of the greedy arms. Under other constraints than `TopK` the
    probability of a random set and that of ties are averages too. Arms that a constraint treats alike are counted
    together, and the random sets that a process has drawn under the same bounds for groups of the same sizes are
    remembered: with each use one is added, up to 10,000.

    Examples
    --------
    The third of four arms is never among the best two, and one place of two is explored in half of the rounds:

    >>> from armful.constraints import TopK
    >>> from armful.policies import C2UCB
    >>> policy = C2UCB(n_features=1, radius=0.0)
    >>> policy.learn([[1.0]], [1.0])
    >>> shown = choose_with_inclusion(policy, [[4.0], [3.0], [2.0], [1.0]], TopK(2), explore=0.25, rng=0)
    >>> shown.choice.indices, shown.indices, shown.explored, shown.probabilities.round(3)
    (array([0, 1]), array([0, 1]), array([False, False]), array([1.   , 0.667]))
    """
    share = checks.probability("explore", explore, zero_and_one=True)
    draws = checks.count("draws", draws)
    limit = math.inf if seconds is None else checks.positive("seconds", seconds, "it is the time for all draws")
    if is_dask(X):
        raise ValueError("inclusion probabilities need all arms on one machine; shortlist with policy.choose first")
    choice = policy.choose(X, constraint, caps=caps)
    problem = choice._problem
    if share == 0 and not policy.randomised and type(constraint) is TopK and _is_strict(choice, problem):
        return Inclusion(choice, choice.indices, np.ones(len(choice)), np.zeros(len(choice), dtype=bool), 0)
    generator = as_generator(rng)
    slots = Slots.of(problem.constraint, problem.arms.n_arms, share)
    if slots is None:
        return _by_rounds(policy, choice, problem, share, draws, generator, limit)
    return _by_slots(policy, choice, problem, slots, draws, generator)


def _is_strict(choice: Choice, problem: Problem) -> bool:
    """Return whether no other arm has the score of the last of the best k."""
    return int(np.count_nonzero(problem.scores.value >= choice.scores[-1])) == len(choice)


def _by_slots(policy: Policy, choice: Choice, problem: Problem, slots: Slots, draws: int, rng: Generator) -> Inclusion:
    indices, explored = slots.explore(choice.indices, rng)
    scores = problem.scores.value
    if not policy.randomised:
        return Inclusion(choice, indices, slots.probabilities(indices, scores), explored, 0)
    if type(policy) is EpsilonGreedy:
        greedy = slots.probabilities(indices, problem.scores.mean)
        at_random = slots.probabilities(indices, np.zeros(scores.size))
        return Inclusion(choice, indices, (1 - policy.epsilon) * greedy + policy.epsilon * at_random, explored, 0)
    weights = slots.weights_of(choice.indices, scores.size)
    for some in most_rows(draws, scores.size):
        weights += slots.weights_of_each(drawn_scores(policy, problem, some, rng), rng)
    return Inclusion(choice, indices, slots.mixed(indices, weights / (draws + 1)), explored, draws)


def _by_rounds(
    policy: Policy, choice: Choice, problem: Problem, share: float, draws: int, rng: Generator, seconds: float
) -> Inclusion:
    n_arms = problem.arms.n_arms
    explores = share > 0 and rng.random() < share
    indices = rng.permutation(sets_of(problem, random_scores(problem, 1, rng), rng)[0]) if explores else choice.indices
    used = []
    chosen = np.zeros(n_arms)
    chosen[choice.indices] = 1.0
    if share < 1 and (policy.randomised or _may_tie(problem, choice)):
        n_drawn = 0
        for some in most_in_time(draws, n_arms, seconds):
            drawn = drawn_scores(policy, problem, some, rng)
            chosen += np.bincount(np.concatenate(sets_of(problem, drawn, rng)), minlength=n_arms)
            n_drawn += some
        chosen /= n_drawn + 1
        used.append(n_drawn)
    if share > 0:
        drawn_already = indices if explores else NO_ARMS
        at_random, n_sets = random_inclusion(problem, drawn_already, draws, rng, seconds)
        chosen = (1 - share) * chosen + share * at_random
        used.append(n_sets)
    return Inclusion(choice, indices, chosen[indices], np.full(indices.size, explores), min(used, default=0))


def _may_tie(problem: Problem, choice: Choice) -> bool:
    """Return whether an arm outside the set has the score of one in it, so that another set may be as good."""
    scores = problem.scores.value
    outside = np.ones(scores.size, dtype=bool)
    outside[choice.indices] = False
    return bool(np.isin(choice.scores, scores[outside]).any())
