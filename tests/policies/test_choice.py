import copy
import dataclasses
import pickle

import numpy as np
import pytest

from armful import C2UCB, Constraint, OneOf, Policy, Table, TopK
from armful.policies.choice import ARRAYS

D = 3
X = np.random.default_rng(0).standard_normal((12, D))
REWARDS = [0.5, -1.0, 2.0]


def policy(**options):
    return C2UCB(n_features=D, seed=0, **options)


def arrays_of(choice):
    return {name: getattr(choice, name) for name in ARRAYS if getattr(choice, name) is not None}


def test_the_arrays_of_a_choice_are_read_only_and_their_originals_are_not():
    mine, ids = X.copy(), [f"arm {i}" for i in range(12)]
    for arms, n_arrays in ((mine, 6), (Table.wrap(mine, ids), 7)):
        found = arrays_of(policy().choose(arms, TopK(3)))
        assert len(found) == n_arrays
        for name, array in found.items():
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]
            assert not array.flags.writeable, name
    assert mine.flags.writeable


def test_an_array_that_a_constraint_keeps_stays_its_own():
    class Fixed(Constraint):
        k = 2

        def __init__(self):
            self.members = np.array([1, 2])

        def best(self, scores, X=None, rng=None):
            return OneOf([[1, 2]]).best(scores, X, rng).__class__(self.members, float(scores[1:3].sum()), 1.0)

        def violation(self, indices):
            return 0.0

    constraint = Fixed()
    choice = policy().choose(X, constraint)
    assert not choice.indices.flags.writeable
    assert constraint.members.flags.writeable


def test_copies_of_a_choice_are_read_only_too():
    choice = policy().choose(X, TopK(3))
    copies = copy.copy(choice), copy.deepcopy(choice), pickle.loads(pickle.dumps(choice)), dataclasses.replace(choice)
    for other in copies:
        for name, array in arrays_of(other).items():
            assert not array.flags.writeable, name
            assert np.array_equal(array, getattr(choice, name))


@pytest.mark.parametrize("options", [{}, {"weights": [1.0, 2.0, 0.0]}, {"shock": 0.5}])
def test_a_choice_is_learned_as_its_features_are(options):
    one, other = policy(), policy()
    choice = one.choose(X, TopK(3))
    one.learn(choice, REWARDS, **options)
    other.learn(choice.features, REWARDS, **options)
    assert np.array_equal(one.state.V, other.state.V)
    assert np.array_equal(one.state.theta, other.state.theta)


def test_rewards_that_do_not_fit_the_choice_are_refused():
    one = policy()
    choice = one.choose(X, TopK(3))
    with pytest.raises(ValueError, match=r"^rewards must have shape \(3,\), one for each row of features, got \(2,\)$"):
        one.learn(choice, [1.0, 2.0])
    expected = r"^rewards must have shape \(3,\), one for each row of features, got the single number 0\.5$"
    for one_number in (0.5, np.float64(0.5), np.array(0.5)):
        with pytest.raises(ValueError, match=expected):
            one.learn(choice, one_number)
    assert one.state.n == 0


def test_a_choice_reaches_a_learn_of_ones_own():
    class Counting(Policy):
        seen = 0

        def score(self, arms, k):
            return arms.mean

        def learn(self, features, rewards, **more):
            self.seen += len(rewards)
            super().learn(features, rewards, **more)

    one = Counting(n_features=D, seed=0)
    one.learn(one.choose(X, TopK(3)), REWARDS)
    assert one.seen == 3
    assert one.state.n == 3
