"""One policy as a batch of independent learners, for simulations of many repetitions at once."""

import copy
from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

from armful.policies.policy import Policy
from armful.randomness import Streams

P = TypeVar("P", bound=Policy)


def can_batch(policy: Policy) -> bool:
    """Return whether repetitions can be simulated at once: `batched`, and its own `choose` and `learn` not replaced."""
    kind = type(policy)
    for step in ("choose", "learn"):
        if step in vars(policy):
            raise ValueError(f"{step} was replaced in one {kind.__name__} alone; a subclass can be copied")
    return policy.batched and kind.choose is Policy.choose and kind.learn is Policy.learn


def repeated(policy: P, generators: Sequence[Generator]) -> P:
    """Return the policy as a batch of learners, one for each generator, that all know what this one knows."""
    batch = copy.copy(policy)
    batch._state = policy.state.repeat(len(generators))
    batch.rng = Streams(generators)
    return batch


def repetition(batch: P, i: int) -> P:
    """Return learner `i` of a batch; it draws from the same generator."""
    if not isinstance(batch.rng, Streams):
        raise TypeError("this policy is a single learner, not a batch of repetitions")
    single = copy.copy(batch)
    single._state = batch.state[i]
    single.rng = batch.rng.generators[i]
    return single
