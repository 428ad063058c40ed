"""Many repetitions of a policy in a world, each step of the loop done for all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator

from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint, best_each
from armful.environments import Environment, Round, played
from armful.policies import Policy
from armful.trajectories import NOISE, POLICY, WORLD, Trajectories, generator

LARGEST_STACK = 2**21
"""Numbers: arms of several repetitions beyond this are not copied beside each other, since they leave the cache."""


def run_together(policy: Policy, environment: Environment, rounds: int, seed: int, repetitions: range) -> Trajectories:
    """The given repetitions of the loop: see the arms, choose, see the rewards, learn."""
    generators = [generator(seed, i, POLICY) for i in repetitions]
    noises = [generator(seed, i, NOISE) for i in repetitions]
    worlds = [played(environment, rounds, generator(seed, i, WORLD)) for i in repetitions]
    learners = policy.repeated(generators)
    result = Trajectories.empty(len(repetitions), rounds)
    scene = None
    for t in range(rounds):
        scene = Scene.of([next(world) for world in worlds], scene)
        chosen, present = _filled_up(_choose(learners, scene, generators))
        paid = [shown.rewards(noise)[i] for shown, noise, i in zip(scene.rounds, noises, chosen, strict=True)]
        rewards = np.stack(paid) * present
        learners.state = learners.state.learn(scene.rows(chosen) * present[..., None], rewards, weights=present)
        result.regret[:, t] = scene.to_beat - scene.worth(chosen, present)
        result.rewards[:, t] = rewards.sum(axis=1)
        result.pulled[:, t] = present.sum(axis=1)
    return result


@dataclass(frozen=True, eq=False)
class Scene:
    """One round as all repetitions see it.

    features: `(n_arms, n_features)` where all see the same arms, `(repetitions, n_arms, n_features)` where each sees
    its own, None where they differ in number or are too many to copy.
    constraint: the common one, None where they differ.
    to_beat: `(repetitions,)`, what regret is counted from.
    """

    rounds: list[Round]
    features: FloatArray | None
    constraint: Constraint | None
    to_beat: FloatArray

    @classmethod
    def of(cls, rounds: list[Round], previous: Self | None) -> Self:
        """The scene; what is the same as in the previous round is not worked out again."""
        constraints = [shown.constraint for shown in rounds]
        arms_stay = previous is not None and all(
            now.features is then.features for now, then in zip(rounds, previous.rounds, strict=True)
        )
        truth_stays = previous is not None and all(
            now.mean is then.mean and now.constraint == then.constraint and now.objective is then.objective
            for now, then in zip(rounds, previous.rounds, strict=True)
        )
        return cls(
            rounds,
            previous.features if previous and arms_stay else _common_features(rounds),
            constraints[0] if all(each == constraints[0] for each in constraints) else None,
            previous.to_beat if previous and truth_stays else _to_beat(rounds),
        )

    def rows(self, chosen: IntArray) -> FloatArray:
        """The features of the chosen arms: `(repetitions, k, n_features)`."""
        if self.features is None:
            return np.stack([shown.features[i] for shown, i in zip(self.rounds, chosen, strict=True)])
        if self.features.ndim == 2:
            return self.features[chosen]
        return self.features[np.arange(len(chosen))[:, None], chosen]

    @property
    def only_sums(self) -> bool:
        """Whether sets are worth the sum of their rewards in all repetitions."""
        return all(shown.objective is None for shown in self.rounds)

    def worth(self, chosen: IntArray, present: FloatArray) -> FloatArray:
        """What the chosen sets are worth in true means: `(repetitions,)`."""
        if not self.only_sums:
            sets = zip(self.rounds, chosen, present, strict=True)
            return np.array([shown.worth(members[mark > 0]) for shown, members, mark in sets])
        means = np.stack([shown.mean[i] for shown, i in zip(self.rounds, chosen, strict=True)])
        return np.asarray((means * present).sum(axis=1))


def _choose(learners: Policy, scene: Scene, generators: Sequence[Generator]) -> Sequence[IntArray] | IntArray:
    """The chosen arms of each repetition."""
    approximate = learners.samples and not hasattr(scene.constraint, "best_each")  # then `choose` may have to warn
    if scene.features is None or scene.constraint is None or not scene.only_sums or approximate:
        return [
            learners.repetition(i).choose(shown.features, shown.constraint, objective=shown.objective).indices
            for i, shown in enumerate(scene.rounds)
        ]
    scores = learners.score_all(Arms(scene.features, learners.state), scene.constraint.k).value
    return best_each(scene.constraint, scores, generators, [shown.features for shown in scene.rounds])[0]


def _filled_up(chosen: Sequence[IntArray] | IntArray) -> tuple[IntArray, FloatArray]:
    """Sets of different sizes as one array `(repetitions, k)`, and 1.0 where an arm is meant, 0.0 where it fills up."""
    if isinstance(chosen, np.ndarray):
        return chosen, np.ones(chosen.shape)
    indices = np.zeros((len(chosen), max(len(members) for members in chosen)), dtype=np.int64)
    present = np.zeros(indices.shape)
    for i, members in enumerate(chosen):
        indices[i, : len(members)], present[i, : len(members)] = members, 1.0
    return indices, present


def _common_features(rounds: list[Round]) -> FloatArray | None:
    first = rounds[0].features
    if all(shown.features is first for shown in rounds):
        return first
    if all(shown.features.shape == first.shape for shown in rounds) and first.size * len(rounds) <= LARGEST_STACK:
        return np.stack([shown.features for shown in rounds])
    return None


def _to_beat(rounds: list[Round]) -> FloatArray:
    first = rounds[0]
    alike = all(
        shown.constraint == first.constraint and shown.mean.size == first.mean.size and shown.objective is None
        for shown in rounds
    )
    if not alike:
        return np.array([shown.to_beat() for shown in rounds])
    if all(shown.mean is first.mean for shown in rounds):
        return np.full(len(rounds), first.to_beat())
    any_order = [np.random.default_rng()] * len(rounds)  # which of several best sets is found does not matter
    features = [shown.features for shown in rounds]
    return best_each(first.constraint, np.stack([shown.mean for shown in rounds]), any_order, features)[1]
