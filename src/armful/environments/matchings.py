"""Workers and tasks: a world of assignments."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints.assignment import Assignment
from armful.environments.round import Round


class Matchings:
    """Fresh tasks come in every round and each is given to at most one worker, each worker at most one of them.

    A worker has two skills and a task two demands, all standard normal. The features of a pair are an intercept, the
    four products of a skill and a demand, and the distance between the two, `(6,)`, of mean squared length about 1;
    mean rewards are linear in them. theta* has length 1 and is drawn in each repetition, as are the workers. A pair
    whose mean reward is negative is best left alone.
    """

    n_features = 6

    def __init__(self, *, n_workers: int = 10, n_tasks: int = 15, noise: float = 0.5) -> None:
        self.n_workers = checks.count("n_workers", n_workers)
        self.n_tasks = checks.count("n_tasks", n_tasks)
        checks.fits_in_memory(f"n_workers = {n_workers} with n_tasks = {n_tasks}", 20 * n_workers * n_tasks)
        self.noise = checks.at_least_zero("noise", noise)
        self.constraint = Assignment(np.repeat(np.arange(n_workers), n_tasks), np.tile(np.arange(n_tasks), n_workers))

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """The same workers and new tasks in every round."""
        theta = rng.standard_normal(self.n_features)
        theta /= math.sqrt(theta @ theta)
        skills = rng.standard_normal((self.n_workers, 2))
        for _ in range(n_rounds):
            features = self._features(skills, rng.standard_normal((self.n_tasks, 2)))
            yield Round(features, self.constraint, features @ theta, self.noise)

    def _features(self, skills: FloatArray, demands: FloatArray) -> FloatArray:
        """All pairs, worker by worker: `(n_workers * n_tasks, 6)`."""
        shape = (self.n_workers, self.n_tasks)
        products = np.einsum("wi,tj->wtij", skills, demands).reshape(*shape, 4)
        distance = np.linalg.norm(skills[:, None] - demands[None], axis=-1, keepdims=True)
        together = np.concatenate([np.ones((*shape, 1)), products, distance / 2], axis=-1)
        return together.reshape(-1, self.n_features) / math.sqrt(self.n_features)
