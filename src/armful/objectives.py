"""What a set is worth, when that is more than the sum of its rewards."""

import math
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint, Selection
from armful.constraints._incremental import Growth
from armful.constraints.base import arm_name
from armful.errors import InfeasibleError
from armful.model.ridge import RidgeState

FIRST_LOOK = 32
"""How many of the most promising arms are looked at first when one is to be added."""

MOST_SETS = 200_000
"""How many sets `best_by_enumeration` is willing to look at."""


class Objective:
    """What a set is worth, when that is not the sum of its rewards: the base class of all objectives.

    A subclass writes `value`, monotone in the rewards. If what an arm adds never grows as the set grows, it says
    `submodular = True`, and if that is never negative where rewards are not, `monotone = True`: greedy then knows how
    good it is. Replacing `extra`, as `Diverse` does, makes it fast.

    Attributes
    ----------
    lipschitz : float
        By how much the value changes at most when one reward changes by 1.
    submodular, monotone : bool
        What is known of the value as a function of the set.
    """

    lipschitz: float = math.inf
    submodular: bool = False
    monotone: bool = False

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        """Return what a set is worth.

        Parameters
        ----------
        rewards : ndarray of shape (n_arms,)
            The reward of every arm.
        X : ndarray of shape (n_arms, n_features)
            The features of every arm.
        indices : ndarray of shape (k,)
            The set.
        """
        raise NotImplementedError(f"{type(self).__name__} must define value(self, rewards, X, indices)")

    def extra(self, rewards: FloatArray, X: FloatArray) -> "Extra":
        """Return what arms add, beside their rewards, to a set that grows; by default from differences of `value`."""
        return _Differences(self, rewards, X)


class Extra(Protocol):
    """What arms would add, beside their rewards, to a set that grows."""

    def gains(self, arms: IntArray) -> FloatArray:
        """What each of these would add now."""
        ...

    def add(self, arm: int) -> None:
        """Take an arm."""
        ...


class Diverse(Objective):
    """Rewards and variety: `sum of rewards + weight/2 * log det(I + X_I X_I' / scale^2)`.

    weight: gamma >= 0, what variety is worth. scale: sigma > 0, how far apart features count as different.
    Monotone, 1-Lipschitz and, with rewards that are not negative, monotone submodular in the set: greedy by marginal
    gain reaches 1 - 1/e of the best under `TopK` and `AtMost`, 1/2 under `Quotas` and `NestedQuotas`.

    >>> X = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> from armful.constraints import TopK
    >>> best(Diverse(weight=1.0, scale=0.5), [1.0, 0.99, 0.8], X, TopK(2), np.random.default_rng(0)).indices
    array([0, 2])

    Qin and Zhu 2013, Qin et al. 2014; Takemura et al. 2021, general problem.
    """

    lipschitz = 1.0
    submodular = monotone = True

    def __init__(self, *, weight: float, scale: float = 1.0) -> None:
        self.weight = checks.at_least_zero("weight", weight)
        self.scale = checks.positive("scale", scale)

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        """What the set is worth."""
        rows = X[indices] / self.scale
        spread = np.linalg.slogdet(np.eye(len(rows)) + rows @ rows.T)[1]
        return float(rewards[indices].sum() + self.weight / 2 * spread)

    def extra(self, rewards: FloatArray, X: FloatArray) -> Extra:
        """What arms add to the variety of a growing set."""
        return _Variety(X / self.scale, self.weight)


class _Variety:
    """`log det(I + A)` grows by `log(1 + width(x)^2)` when x is added: the width of a ridge state of ridge 1."""

    def __init__(self, rows: FloatArray, weight: float) -> None:
        self._rows, self._weight = rows, weight
        self._state = RidgeState(n_features=rows.shape[1], ridge=1.0)

    def gains(self, arms: IntArray) -> FloatArray:
        """What each of these would add now."""
        return self._weight / 2 * np.log1p(self._state.width(self._rows[arms]) ** 2)

    def add(self, arm: int) -> None:
        """Take an arm."""
        self._state = self._state.learn(self._rows[[arm]], [0.0])


class Coverage(Objective):
    """Rewards and topics: `sum of rewards + weight * sum over topics of how well each is covered`.

    topics: `(n_arms, n_topics)`, how much each arm is about each topic, at least 0 (0 and 1 for plain membership).
    saturation: `"once"` counts a topic up to 1 and no further; `"log"` by log(1 + amount), ever more slowly.
    Like `Diverse` it is monotone, 1-Lipschitz and, with rewards that are not negative, monotone submodular.

    >>> from armful.constraints import TopK
    >>> topics = [[1, 0], [1, 0], [0, 1]]
    >>> best(Coverage(topics, weight=1.0), [0.9, 0.8, 0.1], np.ones((3, 1)), TopK(2), np.random.default_rng(0)).indices
    array([0, 2])
    """

    lipschitz = 1.0
    submodular = monotone = True

    def __init__(self, topics: ArrayLike, *, weight: float, saturation: str = "once") -> None:
        self.topics = checks.floats("topics", topics).copy()
        checks.refuse_not_finite("topics", self.topics)
        if self.topics.ndim != 2 or (self.topics < 0).any():
            raise ValueError(f"topics must be (n_arms, n_topics) numbers of at least 0, got shape {self.topics.shape}")
        self.weight = checks.at_least_zero("weight", weight)
        self.saturation = checks.one_of("saturation", saturation, ("once", "log"))

    def covered(self, amounts: FloatArray) -> FloatArray:
        """How well topics are covered by these amounts, summed over the last axis."""
        saturated = np.minimum(amounts, 1.0) if self.saturation == "once" else np.log1p(amounts)
        return np.asarray(saturated.sum(axis=-1))

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        """What the set is worth."""
        return float(rewards[indices].sum() + self.weight * self.covered(self.topics[indices].sum(axis=0)))

    def extra(self, rewards: FloatArray, X: FloatArray) -> Extra:
        """What arms add to the coverage of a growing set."""
        if len(X) != len(self.topics):
            raise ValueError(f"Coverage has topics for {len(self.topics)} arms, got {len(X)}")
        return _Covering(self)


class _Covering:
    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._amounts = np.zeros(coverage.topics.shape[1])

    def gains(self, arms: IntArray) -> FloatArray:
        """What each of these would add now."""
        covered = self._coverage.covered
        return self._coverage.weight * (covered(self._amounts + self._coverage.topics[arms]) - covered(self._amounts))

    def add(self, arm: int) -> None:
        """Take an arm."""
        self._amounts = self._amounts + self._coverage.topics[arm]


def best_by_enumeration(objective: Objective, rewards: FloatArray, X: FloatArray, constraint: Constraint) -> Selection:
    """The best set there is, by looking at every one: for few arms."""
    sizes = range(min(constraint.k, len(X)) + 1)
    if sum(math.comb(len(X), size) for size in sizes) > MOST_SETS:
        raise ValueError(
            "the best set under an objective is found by looking at every set, and "
            f"{len(X)} arms with k = {constraint.k} have more than {MOST_SETS:,}; use fewer arms"
        )
    sets = (np.array(members, dtype=np.int64) for size in sizes for members in combinations(range(len(X)), size))
    worth = ((objective.value(rewards, X, each), each) for each in sets if constraint.violation(each) == 0)
    value, indices = max(worth, key=lambda pair: pair[0])
    return Selection(indices, value)


def best(objective: Objective, scores: ArrayLike, X: FloatArray, constraint: Constraint, rng: Generator) -> Selection:
    """A set that is worth much, by adding the arm that adds most, again and again; ties at random.

    The ratio is what theory gives: for a monotone submodular objective and scores that are not negative 1 - 1/e where
    only the size is limited, 1/2 under quotas (Nemhauser, Wolsey and Fisher 1978); otherwise it is unknown, NaN.
    """
    rewards = checks.vector("scores", scores, len(X))
    growth = constraint.growth(len(X))
    if not isinstance(objective, Objective):
        raise ValueError(
            "objective must be one of armful's or your own subclass of Objective, like Diverse(weight=1.0), "
            f"got {objective!r}"
        )
    extra = objective.extra(rewards, X)
    chosen = _greedy(extra, rewards, growth, rng, constraint, lazy=objective.submodular)
    if constraint.violation(chosen) > 0:
        raise InfeasibleError(f"no allowed set was found under {constraint!r}; too many arms are required or excluded")
    value = objective.value(rewards, X, chosen)
    guaranteed = objective.submodular and objective.monotone and bool((rewards >= 0).all())
    guaranteed = guaranteed and not constraint.must_have.size
    ratio = (1 - 1 / math.e if growth.counts_only else 0.5) if guaranteed else float("nan")
    return Selection(chosen, value, ratio)


def _greedy(
    extra: Extra, rewards: FloatArray, growth: Growth, rng: Generator, constraint: Constraint, *, lazy: bool
) -> IntArray:
    """Arms in the order of being added.

    Lazily: what an arm adds only falls, so what it added when last looked at is a bound, and the arm to add is found as
    soon as one that was looked at now is not below any bound.
    """
    chosen: list[int] = []
    must_have = constraint.must_have
    for arm in must_have.tolist():
        if not growth.addable()[arm]:
            which = arm_name(constraint, arm)
            raise InfeasibleError(f"no allowed set has all {must_have.size} required arms; {which} does not fit")
        extra.add(arm)
        growth.add(arm)
        chosen.append(arm)
    bounds = rewards + extra.gains(np.arange(rewards.size))
    while True:
        needed = growth.needed()
        candidates = np.flatnonzero(growth.addable())
        if not candidates.size:
            break
        arm = _most_gain(extra, rewards, bounds, candidates, rng, lazy)
        if bounds[arm] < 0:
            if needed is None or not needed.any():
                break
            arm = _most_gain(extra, rewards, bounds, np.flatnonzero(needed), rng, lazy)
        extra.add(arm)
        growth.add(arm)
        chosen.append(arm)
    return np.array(chosen, dtype=np.int64)


def _most_gain(
    extra: Extra, rewards: FloatArray, bounds: FloatArray, candidates: IntArray, rng: Generator, lazy: bool
) -> int:
    """The candidate that adds most; `bounds` are brought up to date for those looked at."""
    look = FIRST_LOOK if lazy else candidates.size
    while True:
        look = min(look, candidates.size)
        split = candidates.size - look
        order = np.argpartition(bounds[candidates], split - 1) if split else np.arange(candidates.size)
        seen, unseen = candidates[order[split:]], candidates[order[:split]]
        bounds[seen] = rewards[seen] + extra.gains(seen)
        most = bounds[seen].max()
        if not unseen.size or most > bounds[unseen].max():
            return int(rng.choice(seen[bounds[seen] == most]))
        look *= 4


class _Differences:
    """What arms add by an objective that only knows the worth of whole sets."""

    def __init__(self, objective: Objective, rewards: FloatArray, X: FloatArray) -> None:
        self._objective, self._rewards, self._X = objective, rewards, X
        self._chosen: list[int] = []

    def gains(self, arms: IntArray) -> FloatArray:
        """The difference in worth, less the reward."""
        now = self._worth([])
        return np.array([self._worth([arm]) - now - self._rewards[arm] for arm in arms.tolist()])

    def add(self, arm: int) -> None:
        """Take an arm."""
        self._chosen.append(arm)

    def _worth(self, more: list[int]) -> float:
        return self._objective.value(self._rewards, self._X, np.array([*self._chosen, *more], dtype=np.int64))
