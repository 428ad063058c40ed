"""Many repetitions of a policy in an environment as one batch: each step of the loop is done for all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint
from armful.environments.round import Environment, Round, checked_rounds, draw_rewards
from armful.policies import Policy
from armful.policies._choosing import score_under
from armful.policies._repetitions import repeated, repetition
from armful.randomness import Streams, draw_key
from armful.simulation.trajectories import ENVIRONMENT, NOISE, POLICY, Trajectories, generator

MALLOC_CACHED = 31 << 20
"""Bytes. Once an array of this size was freed, the C library of Linux keeps freed memory up to this size for the next
array; otherwise it asks the system each time, page by page. Larger arrays it never keeps."""


def run_batched(policy: Policy, environment: Environment, rounds: int, seed: int, repetitions: range) -> Trajectories:
    """Return the trajectories of the given repetitions."""
    np.empty(MALLOC_CACHED, dtype=np.uint8)
    generators = [generator(seed, i, POLICY) for i in repetitions]
    noises = [generator(seed, i, NOISE) for i in repetitions]
    environments = [checked_rounds(environment, rounds, generator(seed, i, ENVIRONMENT)) for i in repetitions]
    learners = repeated(policy, generators)
    result = Trajectories.empty(len(repetitions), rounds)
    batch = None
    for t in range(rounds):
        batch = BatchedRound.of([next(each) for each in environments], batch)
        chosen, present = _padded(_choose(learners, batch, generators))
        rewards = batch.rewards(chosen, noises) * present
        learners.state = learners.state.learn(batch.rows(chosen), rewards, weights=present)
        result.regret[:, t] = batch.best_values - batch.values(chosen, present)
        result.rewards[:, t] = rewards.sum(axis=1)
        result.pulled[:, t] = present.sum(axis=1)
    return result


@dataclass(frozen=True, eq=False)
class BatchedRound:
    """One round of all repetitions.

    features: `(n_arms, n_features)` if all repetitions have the same arms, else `(repetitions, n_arms, n_features)`,
    which the next round overwrites; None if the numbers of arms differ.
    constraint: the common one, None if they differ.
    best_values: `(repetitions,)`, what regret is measured against.
    """

    rounds: list[Round]
    features: FloatArray | None
    constraint: Constraint | None
    best_values: FloatArray

    @classmethod
    def of(cls, rounds: list[Round], previous: Self | None) -> Self:
        """Return the batch; what is the same as in the previous round is not computed again."""
        constraints = [shown.constraint for shown in rounds]
        before = rounds if previous is None else previous.rounds
        same_arms = all(now.features is then.features for now, then in zip(rounds, before, strict=True))
        same_values = same_arms and all(
            now.mean is then.mean and now.constraint == then.constraint and now.objective is then.objective
            for now, then in zip(rounds, before, strict=True)
        )
        last = None if previous is None else previous.features
        return cls(
            rounds,
            last if previous and same_arms else _common_features(rounds, last),
            constraints[0] if all(each == constraints[0] for each in constraints) else None,
            previous.best_values if previous and same_values else _best_values(rounds),
        )

    def rows(self, chosen: IntArray) -> FloatArray:
        """Return the features of the chosen arms, `(repetitions, k, n_features)`."""
        if self.features is not None and self.features.ndim == 2:
            return self.features[chosen]
        return np.stack([shown.features[i] for shown, i in zip(self.rounds, chosen, strict=True)])

    def rewards(self, chosen: IntArray, noises: Sequence[Generator]) -> FloatArray:
        """Draw the rewards of the chosen arms, `(repetitions, k)`."""
        means, noise = self.means(chosen), self.rounds[0].noise
        if all(shown.noise == noise for shown in self.rounds):
            return draw_rewards(means, noise, draw_key(Streams(noises)), chosen)
        return np.stack([shown.rewards(rng, i) for shown, rng, i in zip(self.rounds, noises, chosen, strict=True)])

    def means(self, chosen: IntArray) -> FloatArray:
        """Return the true means of the chosen arms, `(repetitions, k)`."""
        return np.stack([shown.mean[i] for shown, i in zip(self.rounds, chosen, strict=True)])

    @property
    def only_sums(self) -> bool:
        """Whether the value of a set is the sum of its rewards in all repetitions."""
        return all(shown.objective is None for shown in self.rounds)

    def values(self, chosen: IntArray, present: FloatArray) -> FloatArray:
        """Return the values of the chosen sets by the true means, `(repetitions,)`."""
        if not self.only_sums:
            sets = zip(self.rounds, chosen, present, strict=True)
            return np.array([shown.value(members[mark > 0]) for shown, members, mark in sets])
        return np.asarray((self.means(chosen) * present).sum(axis=1))


def _choose(learners: Policy, batch: BatchedRound, generators: Sequence[Generator]) -> Sequence[IntArray] | IntArray:
    """Return the chosen arms of each repetition."""
    approximate = learners.is_thompson and batch.constraint is not None and not batch.constraint.always_exact
    if batch.features is None or batch.constraint is None or not batch.only_sums or approximate:  # `choose` may warn
        return [
            repetition(learners, i).choose(shown.features, shown.constraint, objective=shown.objective).indices
            for i, shown in enumerate(batch.rounds)
        ]
    scores = score_under(learners, Arms(batch.features, learners.state), batch.constraint).value
    if not checks.all_finite(scores):
        i, arm = np.argwhere(~np.isfinite(scores))[0]
        raise ValueError(f"scores must be finite, got {scores[i, arm]} for arm {arm} of repetition {i}")
    first = batch.rounds[0].features
    learners._warnings_once.chosen_from(len(first), first.__getitem__)
    return batch.constraint.best_each(scores, generators, [shown.features for shown in batch.rounds])[0]


def _padded(chosen: Sequence[IntArray] | IntArray) -> tuple[IntArray, FloatArray]:
    """Return sets of different sizes as one array `(repetitions, k)`, and 1.0 for a member, 0.0 for padding."""
    if isinstance(chosen, np.ndarray):
        return chosen, np.ones(chosen.shape)
    indices = np.zeros((len(chosen), max(len(members) for members in chosen)), dtype=np.int64)
    present = np.zeros(indices.shape)
    for i, members in enumerate(chosen):
        indices[i, : len(members)], present[i, : len(members)] = members, 1.0
    return indices, present


def _common_features(rounds: list[Round], last: FloatArray | None) -> FloatArray | None:
    """Return the features of a batch, stacked into the array of the last round where it fits: new memory is slow."""
    first = rounds[0].features
    if all(shown.features is first for shown in rounds):
        return first
    if any(shown.features.shape != first.shape for shown in rounds):
        return None
    shape = (len(rounds), *first.shape)
    stack = last if last is not None and last.shape == shape else np.empty(shape)
    return np.stack([checks.floats("features", shown.features) for shown in rounds], out=stack)


def _best_values(rounds: list[Round]) -> FloatArray:
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
