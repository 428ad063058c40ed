"""The slower truth: every arm scored in float64, and all scores given to the constraint."""

import copy

import numpy as np

from armful.arms import Arms


def plain_choice(policy, X, constraint, caps=None):
    """Indices, value and scores that the plain computation gives, and the state its generator is left in."""
    twin = copy.copy(policy)
    twin.rng = copy.deepcopy(policy.rng)
    scores = twin.score_all(Arms(np.asarray(X, dtype=np.float64), twin.state, caps), constraint.k)
    best = constraint.best(scores.value, None, twin.rng)
    return best, scores, twin.rng.bit_generator.state


def assert_plain(policy, arms, X, constraint, caps=None, **options):
    """Choose from `arms`, whose rows are X, and compare everything with the plain computation."""
    best, scores, state = plain_choice(policy, X, constraint, caps)
    choice = policy.choose(arms, constraint, caps=caps, **options)
    i = best.indices
    assert np.array_equal(choice.indices, i)
    assert choice.value == best.value
    assert np.array_equal(choice.features, np.asarray(X, dtype=np.float64)[i])
    assert np.array_equal(choice.mean, scores.mean[i])
    assert np.array_equal(choice.bonus, scores.bonus[i])
    assert np.array_equal(choice.scores, scores.value[i])
    assert np.array_equal(choice.capped, scores.capped[i])
    assert policy.rng.bit_generator.state == state
    return choice
