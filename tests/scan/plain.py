"""The slower truth: every arm scored in float64, and all scores given to the constraint."""

import copy

import numpy as np

from armful.arms import Arms


def plain_choice(policy, X, constraint, caps=None):
    """Indices, value and scores that the plain computation gives, and the state its generator is left in."""
    twin = copy.copy(policy)
    twin.rng = copy.deepcopy(policy.rng)
    scores = twin._score_arms(Arms(np.asarray(X, dtype=np.float64), twin.state, caps), constraint.k)
    best = constraint.best(scores.value, None, twin.rng)
    return best, scores, twin.rng.bit_generator.state


def assert_plain(policy, arms, X, constraint, caps=None, **options):
    """Choose from `arms`, whose rows are X, and compare everything with the plain computation.

    Both may round in another way. So where another arm was chosen, its plain score must be another one, and by no more
    than rounding explains; of equal plain scores the same arm is chosen.
    """
    best, scores, state = plain_choice(policy, X, constraint, caps)
    choice = policy.choose(arms, constraint, caps=caps, **options)
    i, chosen = best.indices, choice.indices
    assert chosen.shape == i.shape
    allowed = rounding_of(scores)
    apart = np.abs(scores.value[chosen] - scores.value[i])
    assert (apart <= allowed).all()
    assert (apart[chosen != i] > 0).all()
    assert abs(choice.value - best.value) <= allowed * (1 + i.size)
    assert np.array_equal(choice.features, np.asarray(X, dtype=np.float64)[chosen])
    assert np.allclose(choice.mean, scores.mean[chosen], rtol=0, atol=allowed)
    assert np.allclose(choice.bonus, scores.bonus[chosen], rtol=0, atol=allowed)
    assert np.allclose(choice.scores, scores.value[chosen], rtol=0, atol=allowed)
    assert np.array_equal(choice.capped, scores.capped[chosen])
    assert policy.rng.bit_generator.state == state
    return choice


def rounding_of(scores):
    """How far two computations of one score may be apart in these tests: 1e-12 of the largest number in them."""
    largest = max(float(np.abs(values).max(initial=0.0)) for values in (scores.mean, scores.bonus, scores.value))
    return 1e-12 * largest
