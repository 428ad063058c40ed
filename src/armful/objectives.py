"""The value of a set, where that is not the sum of its rewards."""

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
from armful.constraints._value import Value
from armful.constraints.base import arm_name
from armful.errors import InfeasibleError
from armful.model.ridge import RidgeState

FIRST_CANDIDATES = 32
"""How many of the arms with the largest bounds are evaluated first when one is to be added."""

MOST_SETS = 200_000
"""The most sets that `best_by_enumeration` enumerates."""


class Objective(Value):
    """The value of a set, where that is not the sum of its rewards: the base class of all objectives.

    A subclass writes `value`, which must not fall when a reward rises. Overriding `extra`, as `Diverse` does, makes it
    fast. If `options` holds the arguments, then `with_`, `==`, `hash` and `repr` work.

    Attributes
    ----------
    lipschitz : float
        By how much the value changes at most when one reward changes by 1.
    submodular : bool
        Whether what an arm adds never grows as the set grows: the greedy algorithm is then lazy.
    monotone : bool
        Whether no arm lowers the value where rewards are not negative: with `submodular`, the ratio of the greedy
        algorithm is then known.
    """

    lipschitz: float = math.inf
    submodular: bool = False
    monotone: bool = False

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        """Return the value of a set.

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
        """Return what arms add, besides their rewards, to a growing set; by default from differences of `value`."""
        return _Differences(self, rewards, X)


class Extra(Protocol):
    """What arms would add, besides their rewards, to a set that grows."""

    def gains(self, arms: IntArray) -> FloatArray:
        """Return what each of these arms would add now."""

    def add(self, arm: int) -> None:
        """Add an arm."""


class Diverse(Objective):
    """Rewards and variety: `sum of rewards + weight/2 * log det(I + X_I X_I' / scale^2)`.

    Monotone, 1-Lipschitz and, with rewards that are not negative, monotone submodular: the greedy algorithm reaches
    1 - 1/e of the best value under `TopK` and `AtMost`, 1/2 under `Quotas` and `NestedQuotas`.

    Parameters
    ----------
    weight : float
        The weight of variety, at least 0.
    scale : float
        The distance between features that counts as different, above 0.

    References
    ----------
    Qin and Zhu 2013; Qin et al. 2014; Takemura et al. 2021, general problem.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> from armful.constraints import TopK
    >>> best(Diverse(weight=1.0, scale=0.5), [1.0, 0.99, 0.8], X, TopK(2), np.random.default_rng(0)).indices
    array([0, 2])
    """

    lipschitz = 1.0
    submodular = monotone = True

    def __init__(self, *, weight: float, scale: float = 1.0) -> None:
        self.weight = checks.at_least_zero("weight", weight)
        self.scale = checks.positive("scale", scale)
        self.options = {"weight": self.weight, "scale": self.scale}

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        rows = X[indices] / self.scale
        spread = np.linalg.slogdet(np.eye(len(rows)) + rows @ rows.T)[1]
        return float(rewards[indices].sum() + self.weight / 2 * spread)

    def extra(self, rewards: FloatArray, X: FloatArray) -> Extra:
        return _Variety(X / self.scale, self.weight)


class _Variety:
    """`log det(I + A)` grows by `log(1 + width(x)^2)` when x is added: the width of a ridge state of ridge 1."""

    def __init__(self, rows: FloatArray, weight: float) -> None:
        self._rows, self._weight = rows, weight
        self._state = RidgeState(n_features=rows.shape[1], ridge=1.0)

    def gains(self, arms: IntArray) -> FloatArray:
        return self._weight / 2 * np.log1p(self._state.width(self._rows[arms]) ** 2)

    def add(self, arm: int) -> None:
        self._state = self._state.learn(self._rows[[arm]], [0.0])


class Coverage(Objective):
    """Rewards and topics: `sum of rewards + weight * sum over topics of how well each is covered`.

    Like `Diverse` it is monotone, 1-Lipschitz and, with rewards that are not negative, monotone submodular.

    Parameters
    ----------
    topics : array_like of shape (n_arms, n_topics)
        How much each arm is about each topic, at least 0 (0 and 1 for plain membership).
    weight : float
        The weight of coverage, at least 0.
    saturation : {"once", "log"}
        Whether the amounts of a topic count up to 1 in all, or by log(1 + amount).

    Examples
    --------
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
        self.options = {"topics": self.topics, "weight": self.weight, "saturation": self.saturation}

    def _covered(self, amounts: FloatArray) -> FloatArray:
        """Return how well topics are covered by `amounts` `(..., n_topics)`, summed over the last axis."""
        saturated = np.minimum(amounts, 1.0) if self.saturation == "once" else np.log1p(amounts)
        return np.asarray(saturated.sum(axis=-1))

    def value(self, rewards: FloatArray, X: FloatArray, indices: IntArray) -> float:
        return float(rewards[indices].sum() + self.weight * self._covered(self.topics[indices].sum(axis=0)))

    def extra(self, rewards: FloatArray, X: FloatArray) -> Extra:
        if len(X) != len(self.topics):
            raise ValueError(f"Coverage has topics for {len(self.topics)} arms, got {len(X)}")
        return _Covering(self)


class _Covering:
    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._amounts = np.zeros(coverage.topics.shape[1])

    def gains(self, arms: IntArray) -> FloatArray:
        covered = self._coverage._covered
        return self._coverage.weight * (covered(self._amounts + self._coverage.topics[arms]) - covered(self._amounts))

    def add(self, arm: int) -> None:
        self._amounts = self._amounts + self._coverage.topics[arm]


def best_by_enumeration(objective: Objective, rewards: FloatArray, X: FloatArray, constraint: Constraint) -> Selection:
    """Return the best set by enumerating all of them: for few arms."""
    sizes = range(min(constraint.k, len(X)) + 1)
    if sum(math.comb(len(X), size) for size in sizes) > MOST_SETS:
        raise ValueError(
            "the best set under an objective is found by enumerating all sets, and "
            f"{len(X)} arms with k = {constraint.k} have more than {MOST_SETS:,}; use fewer arms"
        )
    sets = (np.array(members, dtype=np.int64) for size in sizes for members in combinations(range(len(X)), size))
    valued = ((objective.value(rewards, X, each), each) for each in sets if constraint.violation(each) == 0)
    value, indices = max(valued, key=lambda pair: pair[0])
    return Selection(indices, value)


def best(objective: Objective, scores: ArrayLike, X: FloatArray, constraint: Constraint, rng: Generator) -> Selection:
    """Return a set of large value, by the greedy algorithm: add the arm that adds most, ties at random.

    The ratio is, for a monotone submodular objective and scores that are not negative, 1 - 1/e where only the size is
    limited, and 1/2 under quotas (Nemhauser, Wolsey and Fisher 1978); otherwise it is unknown, NaN.
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
    """Return arms in the order in which they are added.

    The lazy variant: what an arm adds only falls, so what it would have added earlier is an upper bound, and only arms
    with large bounds are evaluated.
    """
    chosen: list[int] = []

    def add(arm: int) -> None:
        extra.add(arm)
        growth.add(arm)
        chosen.append(arm)

    must_have = constraint.must_have
    for arm in must_have.tolist():
        if not growth.addable()[arm]:
            which = arm_name(constraint, arm)
            raise InfeasibleError(f"no allowed set has all {must_have.size} required arms; {which} does not fit")
        add(arm)
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
        add(arm)
    return np.array(chosen, dtype=np.int64)


def _most_gain(
    extra: Extra, rewards: FloatArray, bounds: FloatArray, candidates: IntArray, rng: Generator, lazy: bool
) -> int:
    """Return the candidate that adds most, and update `bounds` of those that were evaluated."""
    n_evaluated = FIRST_CANDIDATES if lazy else candidates.size
    while True:
        n_evaluated = min(n_evaluated, candidates.size)
        split = candidates.size - n_evaluated
        order = np.argpartition(bounds[candidates], split - 1) if split else np.arange(candidates.size)
        seen, unseen = candidates[order[split:]], candidates[order[:split]]
        bounds[seen] = rewards[seen] + extra.gains(seen)
        most = bounds[seen].max()
        if not unseen.size or most > bounds[unseen].max():
            return int(rng.choice(seen[bounds[seen] == most]))
        n_evaluated *= 4


class _Differences:
    """What arms add under an objective that only has the value of whole sets."""

    def __init__(self, objective: Objective, rewards: FloatArray, X: FloatArray) -> None:
        self._objective, self._rewards, self._X = objective, rewards, X
        self._chosen: list[int] = []

    def gains(self, arms: IntArray) -> FloatArray:
        now = self._value([])
        return np.array([self._value([arm]) - now - self._rewards[arm] for arm in arms.tolist()])

    def add(self, arm: int) -> None:
        self._chosen.append(arm)

    def _value(self, more: list[int]) -> float:
        return self._objective.value(self._rewards, self._X, np.array([*self._chosen, *more], dtype=np.int64))
