"""Workers and tasks, to be matched."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from armful import checks
from armful.checks import FloatArray
from armful.constraints.assignment import Assignment
from armful.environments._shared import ShowsOptions, draw_direction
from armful.environments.round import Round


class Matchings(ShowsOptions):
    """New tasks in every round; each is given to at most one worker, and each worker gets at most one.

    Arms are pairs of a worker and a task, and the constraint is an `Assignment`. A worker has two skills and a task two
    demands, all standard normal. The six features of a pair are a constant, the four products of a skill and a demand,
    and the distance between skills and demands, with a mean squared length of about 1. theta* has length 1. Workers and
    theta* are drawn in each repetition. A pair with a negative mean reward is better not chosen.

    Parameters
    ----------
    n_workers : int
        The number of workers.
    n_tasks : int
        The number of tasks in a round.
    noise : float
        The standard deviation of the noise on a reward.

    Examples
    --------
    >>> environment = Matchings(n_workers=4, n_tasks=5)
    >>> next(environment.rounds(10, np.random.default_rng(0))).features.shape
    (20, 6)
    """

    n_features = 6

    def __init__(self, *, n_workers: int = 10, n_tasks: int = 15, noise: float = 0.5) -> None:
        self.n_workers = checks.count("n_workers", n_workers)
        self.n_tasks = checks.count("n_tasks", n_tasks)
        checks.fits_in_memory(f"n_workers = {n_workers} with n_tasks = {n_tasks}", 20 * n_workers * n_tasks)
        self.noise = checks.at_least_zero("noise", noise)
        self.constraint = Assignment(np.repeat(np.arange(n_workers), n_tasks), np.tile(np.arange(n_tasks), n_workers))

    def rounds(self, n_rounds: int, rng: Generator) -> Iterator[Round]:
        """Yield rounds with the same workers and new tasks."""
        theta = draw_direction(rng, self.n_features)
        skills = rng.standard_normal((self.n_workers, 2))
        for _ in range(n_rounds):
            features = self._features(skills, rng.standard_normal((self.n_tasks, 2)))
            yield Round(features, self.constraint, features @ theta, self.noise)

    def _features(self, skills: FloatArray, demands: FloatArray) -> FloatArray:
        """Return the features of all pairs, worker by worker: `(n_workers * n_tasks, 6)`."""
        shape = (self.n_workers, self.n_tasks)
        products = np.einsum("wi,tj->wtij", skills, demands).reshape(*shape, 4)
        distance = np.linalg.norm(skills[:, None] - demands[None], axis=-1, keepdims=True)
        features = np.concatenate([np.ones((*shape, 1)), products, distance / 2], axis=-1)
        return features.reshape(-1, self.n_features) / math.sqrt(self.n_features)
