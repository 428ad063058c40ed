"""Many repetitions of a policy in a world, each step of the loop done for all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint
from armful.environments.round import Environment, Round, checked_rounds, draw_rewards
from armful.model._blocks import EachOwn
from armful.model.ridge import RidgeState
from armful.policies import Policy
from armful.policies._choosing import score_under
from armful.policies._repetitions import repeated, repetition
from armful.randomness import Streams, draw_key
from armful.simulation.trajectories import NOISE, POLICY, WORLD, Trajectories, generator

KEPT = 31 << 20
"""Bytes. Once an array of this size was given back to it, the C library of Linux keeps smaller ones for the next time;
else it takes each from the system anew, page by page. Larger ones it never keeps."""


class SeparateArms(Arms):
    """Arms that every repetition has of its own, copied beside each other only if a policy asks for them."""

    def __init__(self, arms: EachOwn, state: RidgeState) -> None:
        self.each_own = EachOwn([checks.features(X, state.n_features, finite=False) for X in arms.arrays])
        self.state, self.caps, self.some_of_many = state, None, False
        self.refuse_none()

    @cached_property
    def X(self) -> FloatArray:  # type: ignore[override]
        """All of them, `(repetitions, n_arms, n_features)`."""
        return self.each_own.rows(slice(None))

    @property
    def n_arms(self) -> int:
        """How many arms each repetition has."""
        return int(self.each_own.shape[-2])

    @cached_property
    def mean_and_width(self) -> tuple[FloatArray, FloatArray]:
        """A few repetitions at a time."""
        return self.state.mean_and_width(self.each_own)

    def project(self, theta: FloatArray) -> FloatArray:
        """A few repetitions at a time."""
        return self.state.project(self.each_own, theta)


def run_batched(policy: Policy, environment: Environment, rounds: int, seed: int, repetitions: range) -> Trajectories:
    """The given repetitions of the loop: see the arms, choose, see the rewards, learn."""
    np.empty(KEPT, dtype=np.uint8)
    generators = [generator(seed, i, POLICY) for i in repetitions]
    noises = [generator(seed, i, NOISE) for i in repetitions]
    worlds = [checked_rounds(environment, rounds, generator(seed, i, WORLD)) for i in repetitions]
    learners = repeated(policy, generators)
    result = Trajectories.empty(len(repetitions), rounds)
    scene = None
    for t in range(rounds):
        scene = Scene.of([next(world) for world in worlds], scene)
        chosen, present = _filled_up(_choose(learners, scene, generators))
        rewards = scene.rewards(chosen, noises) * present
        learners.state = learners.state.learn(scene.rows(chosen), rewards, weights=present)
        result.regret[:, t] = scene.to_beat - scene.worth(chosen, present)
        result.rewards[:, t] = rewards.sum(axis=1)
        result.pulled[:, t] = present.sum(axis=1)
    return result


@dataclass(frozen=True, eq=False)
class Scene:
    """One round as all repetitions see it.

    features: `(n_arms, n_features)` where all see the same arms, or what each sees, None where they differ in number.
    constraint: the common one, None where they differ.
    to_beat: `(repetitions,)`, what regret is counted from.
    """

    rounds: list[Round]
    features: FloatArray | EachOwn | None
    constraint: Constraint | None
    to_beat: FloatArray

    @classmethod
    def of(cls, rounds: list[Round], previous: Self | None) -> Self:
        """The scene; what is the same as in the previous round is not worked out again."""
        constraints = [shown.constraint for shown in rounds]
        arms_stay = previous is not None and all(
            now.features is then.features for now, then in zip(rounds, previous.rounds, strict=True)
        )
        truth_stays = arms_stay and all(
            now.mean is then.mean and now.constraint == then.constraint and now.objective is then.objective
            for now, then in zip(rounds, previous.rounds if previous else [], strict=True)
        )
        return cls(
            rounds,
            previous.features if previous and arms_stay else _common_features(rounds),
            constraints[0] if all(each == constraints[0] for each in constraints) else None,
            previous.to_beat if previous and truth_stays else _to_beat(rounds),
        )

    def rows(self, chosen: IntArray) -> FloatArray:
        """The features of the chosen arms: `(repetitions, k, n_features)`."""
        if isinstance(self.features, np.ndarray):
            return self.features[chosen]
        return np.stack([shown.features[i] for shown, i in zip(self.rounds, chosen, strict=True)])

    def rewards(self, chosen: IntArray, noises: Sequence[Generator]) -> FloatArray:
        """What the chosen arms pay: `(repetitions, k)`."""
        means, noise = self.means(chosen), self.rounds[0].noise
        if all(shown.noise == noise for shown in self.rounds):
            return draw_rewards(means, noise, draw_key(Streams(noises)), chosen)
        return np.stack([shown.rewards(rng, i) for shown, rng, i in zip(self.rounds, noises, chosen, strict=True)])

    def means(self, chosen: IntArray) -> FloatArray:
        """The true means of the chosen arms: `(repetitions, k)`."""
        return np.stack([shown.mean[i] for shown, i in zip(self.rounds, chosen, strict=True)])

    @property
    def only_sums(self) -> bool:
        """Whether sets are worth the sum of their rewards in all repetitions."""
        return all(shown.objective is None for shown in self.rounds)

    def worth(self, chosen: IntArray, present: FloatArray) -> FloatArray:
        """What the chosen sets are worth in true means: `(repetitions,)`."""
        if not self.only_sums:
            sets = zip(self.rounds, chosen, present, strict=True)
            return np.array([shown.value(members[mark > 0]) for shown, members, mark in sets])
        return np.asarray((self.means(chosen) * present).sum(axis=1))


def _choose(learners: Policy, scene: Scene, generators: Sequence[Generator]) -> Sequence[IntArray] | IntArray:
    """The chosen arms of each repetition."""
    approximate = learners.is_thompson and scene.constraint is not None and not scene.constraint.always_exact
    if scene.features is None or scene.constraint is None or not scene.only_sums or approximate:  # `choose` may warn
        return [
            repetition(learners, i).choose(shown.features, shown.constraint, objective=shown.objective).indices
            for i, shown in enumerate(scene.rounds)
        ]
    state, seen = learners.state, scene.features
    arms = SeparateArms(seen, state) if isinstance(seen, EachOwn) else Arms(seen, state)
    scores = score_under(learners, arms, scene.constraint).value
    if not checks.all_finite(scores):
        i, arm = np.argwhere(~np.isfinite(scores))[0]
        raise ValueError(f"scores must be finite, got {scores[i, arm]} for arm {arm} of repetition {i}")
    learners._warnings_once.chosen_from(scene.rounds[0].features.shape[0], scene.rounds[0].features.__getitem__)
    return scene.constraint.best_each(scores, generators, [shown.features for shown in scene.rounds])[0]


def _filled_up(chosen: Sequence[IntArray] | IntArray) -> tuple[IntArray, FloatArray]:
    """Sets of different sizes as one array `(repetitions, k)`, and 1.0 where an arm is meant, 0.0 where it fills up."""
    if isinstance(chosen, np.ndarray):
        return chosen, np.ones(chosen.shape)
    indices = np.zeros((len(chosen), max(len(members) for members in chosen)), dtype=np.int64)
    present = np.zeros(indices.shape)
    for i, members in enumerate(chosen):
        indices[i, : len(members)], present[i, : len(members)] = members, 1.0
    return indices, present


def _common_features(rounds: list[Round]) -> FloatArray | EachOwn | None:
    first = rounds[0].features
    if all(shown.features is first for shown in rounds):
        return first
    alike = all(shown.features.shape == first.shape for shown in rounds)
    return EachOwn([shown.features for shown in rounds]) if alike else None


def _to_beat(rounds: list[Round]) -> FloatArray:
    first = rounds[0]
    alike = all(
        shown.constraint == first.constraint and shown.mean.size == first.mean.size and shown.objective is None
        for shown in rounds
    )
    if not alike:
        return np.array([shown.best_value() for shown in rounds])
    if all(shown.mean is first.mean and shown.features is first.features for shown in rounds):
        return np.full(len(rounds), first.best_value())
    means, features = np.stack([shown.mean for shown in rounds]), [shown.features for shown in rounds]
    return first.constraint.best_values(means, features)
