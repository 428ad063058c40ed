"""Choices with the probability with which each arm was included, for off-policy evaluation later."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.cluster._chunks import is_dask
from armful.constraints._checks import NO_ARMS
from armful.constraints.base import Constraint, refuse_no_constraint
from armful.constraints.cardinality import TopK
from armful.policies._choosing import choice_of, solve_round
from armful.policies._monte_carlo import drawn_scores, most_in_time, most_rows, random_inclusion, random_scores, sets_of
from armful.policies._problem import Problem
from armful.policies._slots import Slots
from armful.policies.choice import Choice
from armful.policies.epsilon_greedy import EpsilonGreedy
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.randomness import as_generator
from armful.scan._dispatch import SCAN_FROM
from armful.tables import Table

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Inclusion:
    """A chosen set with exploration mixed in, and how probable each of its arms was.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The arms to show, in the order of the slate, as rows of X.
    probabilities : ndarray of shape (k,)
        The probability with which each of them was included.
    explored : ndarray of bool, of shape (k,)
        Where exploration drew the arm at random.
    draws : int
        The number of Monte Carlo draws behind the probabilities; 0 where they are exact. Where both the policy's own
        sets and random ones were drawn, the smaller of both numbers.
    all_scores : Scores
        Mean, bonus, score and cap of each arm of X.
    find_choice : callable
        Returns `choice`, which is made when it is asked for.
    """

    indices: IntArray
    probabilities: FloatArray
    explored: BoolArray
    draws: int
    all_scores: Scores = field(repr=False)
    find_choice: Callable[[], Choice] = field(repr=False)

    def __len__(self) -> int:
        return self.indices.size

    @cached_property
    def choice(self) -> Choice:
        """The policy's own choice, before exploration."""
        return self.find_choice()

    @property
    def scores(self) -> Scores:
        """Mean, bonus and score of each arm of the set, `(k,)`."""
        return self.all_scores.at(self.indices)


@dataclass(frozen=True, eq=False)
class _Round:
    """A problem, the policy's own set, and what makes a choice of it."""

    problem: Problem
    own: IntArray
    find_choice: Callable[[], Choice]

    @classmethod
    def of(cls, policy: Policy, X: ArrayLike | Table, constraint: Constraint, caps: ArrayLike | None) -> Self:
        if type(X) is np.ndarray and len(X) < SCAN_FROM:
            problem, picked = solve_round(policy, X, constraint, caps, None, stacklevel=5)
            return cls(problem, picked.indices, partial(choice_of, problem, picked))
        choice = policy.choose(X, constraint, caps=caps)
        return cls(choice._problem, choice.indices, lambda: choice)

    def shown(self, indices: IntArray, probabilities: FloatArray, explored: BoolArray, draws: int = 0) -> Inclusion:
        return Inclusion(indices, probabilities, explored, draws, self.problem.scores, self.find_choice)


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
    refuse_no_constraint(constraint)
    this = _Round.of(policy, X, constraint, caps)
    if share == 0 and not policy.randomised and type(constraint) is TopK and _is_strict(this):
        return this.shown(this.own, np.ones(this.own.size), np.zeros(this.own.size, dtype=bool))
    generator = as_generator(rng)
    slots = Slots.of(this.problem.constraint, this.problem.arms.n_arms, share)
    if slots is None:
        return _by_rounds(policy, this, share, draws, generator, limit)
    return _by_slots(policy, this, slots, draws, generator)


def _is_strict(this: _Round) -> bool:
    """Return whether no other arm has the score of the last of the best k."""
    scores = this.problem.scores.value
    return int(np.count_nonzero(scores >= scores[this.own[-1]])) == this.own.size


def _by_slots(policy: Policy, this: _Round, slots: Slots, draws: int, rng: Generator) -> Inclusion:
    problem = this.problem
    indices, explored = slots.explore(this.own, rng)
    scores = problem.scores.value
    if not policy.randomised:
        return this.shown(indices, slots.probabilities(indices, scores), explored)
    if type(policy) is EpsilonGreedy:
        greedy = slots.probabilities(indices, problem.scores.mean)
        at_random = slots.probabilities(indices, np.zeros(scores.size))
        return this.shown(indices, (1 - policy.epsilon) * greedy + policy.epsilon * at_random, explored)
    weights = slots.weights_of(this.own, scores.size)
    for some in most_rows(draws, scores.size):
        weights += slots.weights_of_each(drawn_scores(policy, problem, some, rng), rng)
    return this.shown(indices, slots.mixed(indices, weights / (draws + 1)), explored, draws)


def _by_rounds(policy: Policy, this: _Round, share: float, draws: int, rng: Generator, seconds: float) -> Inclusion:
    problem, own = this.problem, this.own
    n_arms = problem.arms.n_arms
    explores = share > 0 and rng.random() < share
    indices = rng.permutation(sets_of(problem, random_scores(problem, 1, rng), rng)[0]) if explores else own
    used = []
    chosen = np.zeros(n_arms)
    chosen[own] = 1.0
    if share < 1 and (policy.randomised or _may_tie(this)):
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
    return this.shown(indices, chosen[indices], np.full(indices.size, explores), min(used, default=0))


def _may_tie(this: _Round) -> bool:
    """Return whether an arm outside the set has the score of one in it, so that another set may be as good."""
    scores = this.problem.scores.value
    outside = np.ones(scores.size, dtype=bool)
    outside[this.own] = False
    return bool(np.isin(scores[this.own], scores[outside]).any())
