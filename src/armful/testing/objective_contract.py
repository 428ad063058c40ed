"""The tests that every objective passes: what the theory of the general problem assumes, on random instances."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints import AtMost, Quotas, TopK
from armful.objectives import Objective, best, best_by_enumeration


class ObjectiveContract:
    """The tests that every objective passes: monotone in rewards, Lipschitz, and submodular if it says so.

    Attributes
    ----------
    n_arms, n_features : int
        The size of each instance.
    instances : int
        The number of random instances.

    Examples
    --------
    >>> from armful import Diverse
    >>> class TestDiverse(ObjectiveContract):
    ...     def objective(self, n_arms, rng):
    ...         return Diverse(weight=rng.random())
    """

    n_arms: int = 7
    n_features: int = 3
    instances: int = 60

    def objective(self, n_arms: int, rng: Generator) -> Objective:
        """Return the objective to test.

        Parameters
        ----------
        n_arms : int
            The number of arms, for objectives that are made for certain arms.
        rng : Generator
            The source of randomness.
        """
        raise NotImplementedError(f"{type(self).__name__} must define objective(self, n_arms, rng)")

    def test_the_value_does_not_fall_as_rewards_rise(self) -> None:
        for objective, rewards, X, members, rng in self._instances():
            more = rewards + rng.exponential(size=rewards.size) * rng.integers(2, size=rewards.size)
            before, after = objective.value(rewards, X, members), objective.value(more, X, members)
            assert after >= before - 1e-9, f"the value fell from {before} to {after} as rewards rose"

    def test_the_value_changes_by_at_most_the_lipschitz_constant(self) -> None:
        for objective, rewards, X, members, rng in self._instances():
            other = rewards + rng.standard_normal(rewards.size)
            change = abs(objective.value(rewards, X, members) - objective.value(other, X, members))
            allowed = objective.lipschitz * float(np.abs(rewards - other)[members].sum())
            assert change <= allowed + 1e-9, f"the value changed by {change}, {allowed} is stated"

    def test_rewards_outside_the_set_do_not_matter(self) -> None:
        for objective, rewards, X, members, rng in self._instances():
            outside = np.setdiff1d(np.arange(rewards.size), members)
            other = rewards.copy()
            other[outside] += rng.standard_normal(outside.size)
            assert objective.value(other, X, members) == objective.value(rewards, X, members)

    def test_a_submodular_objective_gains_less_as_the_set_grows(self) -> None:
        for objective, rewards, X, members, rng in self._instances():
            outside = np.setdiff1d(np.arange(rewards.size), members)
            if not objective.submodular or not outside.size:
                continue
            arm = rng.choice(outside)
            few = members[rng.random(members.size) < 0.5]
            early, late = (
                objective.value(rewards, X, np.append(each, arm)) - objective.value(rewards, X, each)
                for each in (few, members)
            )
            assert late <= early + 1e-9, f"arm {arm} adds {early} to {few} but {late} to {members}"

    def test_a_monotone_objective_never_falls_as_the_set_grows(self) -> None:
        for objective, rewards, X, members, rng in self._instances():
            outside = np.setdiff1d(np.arange(rewards.size), members)
            if not objective.monotone or not outside.size:
                continue
            arm, positive = rng.choice(outside), np.abs(rewards)
            before, after = (objective.value(positive, X, each) for each in (members, np.append(members, arm)))
            assert after >= before - 1e-9, f"the value fell from {before} to {after} as arm {arm} was added"
            assert objective.value(positive, X, members[:0]) >= -1e-9, "the value of the empty set is negative"

    def test_greedy_reaches_the_ratio_it_states(self) -> None:
        for objective, rewards, X, _, rng in self._instances():
            for scores in (rewards, np.abs(rewards)):
                for constraint in (TopK(3), AtMost(4), Quotas(np.arange(self.n_arms) % 3, at_least={0: 1}, at_most=2)):
                    answer = best(objective, scores, X, constraint, rng)
                    assert constraint.violation(answer.indices) == 0.0
                    assert abs(answer.value - objective.value(scores, X, answer.indices)) < 1e-9
                    most = best_by_enumeration(objective, scores, X, constraint).value
                    assert answer.value <= most + 1e-9
                    if not math.isnan(answer.ratio):
                        assert answer.value >= answer.ratio * most - 1e-9, f"{answer}, the best value is {most}"

    def _instances(self) -> Iterator[tuple[Objective, FloatArray, FloatArray, IntArray, Generator]]:
        for seed in range(self.instances):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((self.n_arms, self.n_features))
            members = rng.permutation(self.n_arms)[: rng.integers(1, self.n_arms)]
            objective = self.objective(self.n_arms, rng)
            yield objective, rng.standard_normal(self.n_arms), X, members.astype(np.int64), rng
