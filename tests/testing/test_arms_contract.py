"""The suite for what arms are chosen from catches what it is there to catch."""

import numpy as np
import pytest

from armful.testing import ArmsContract

ALL = sorted(name for name in dir(ArmsContract) if name.startswith("test_"))


class Sound(ArmsContract):
    def arms(self, X):
        return X


class InAnotherOrder(Sound):
    def arms(self, X):
        return X[::-1]


class OneRowSlightlyOff(Sound):
    """The arm that is off is chosen sometimes."""

    def arms(self, X):
        return np.concatenate([X[: self.n_arms // 2] * (1 + 1e-15), X[self.n_arms // 2 :]])


class OverlooksWhatIsNotFinite(Sound):
    def arms(self, X):
        return np.nan_to_num(X, posinf=0.0)


class ForgetsWeights(Sound):
    def learn(self, policy, X, rewards, weights):
        policy.learn(X, rewards)


class LearnsAgainWhatWasKnown(Sound):
    def learn(self, policy, X, rewards, weights):
        before = policy.state
        policy.learn(X, rewards, weights=weights)
        policy.state = policy.state + before


class DrawsTwice(Sound):
    """Leaves the generator in another state than scoring one array."""

    def _expect_same_choice(self, policy, arms, X, constraint, rng, *rest, **more):
        choose = policy.choose

        def twice(*arguments, **options):
            choice = choose(*arguments, **options)
            policy.rng.random()
            return choice

        policy.choose = twice
        try:
            return super()._expect_same_choice(policy, arms, X, constraint, rng, *rest, **more)
        finally:
            del policy.choose


class BreaksTiesByIndex(Sound):
    """Equal arms get features that differ by their index, too little to see."""

    def arms(self, X):
        return X + np.arange(len(X))[:, None] * 1e-13


def failures(suite):
    failed = []
    for name in ALL:
        try:
            getattr(suite(), name)()
        except AssertionError:
            failed.append(name)
    return failed


def test_sound_arms_pass():
    assert failures(Sound) == []


CHOOSING = [name for name in ALL if name.endswith("_one_array") and "learning" not in name]
assert CHOOSING, "no test of the contract is known to compare choices"


@pytest.mark.parametrize(
    ("suite", "caught_by"),
    [
        (InAnotherOrder, CHOOSING),
        (OneRowSlightlyOff, CHOOSING[:1]),
        (OverlooksWhatIsNotFinite, ["test_arms_that_cannot_be_chosen_from_are_refused_and_nothing_changes"]),
        (ForgetsWeights, ["test_learning_from_all_rows_gives_the_state_of_one_array"]),
        (LearnsAgainWhatWasKnown, ["test_learning_from_all_rows_gives_the_state_of_one_array"]),
        (DrawsTwice, CHOOSING),
        (BreaksTiesByIndex, ["test_ties_are_broken_as_with_one_array"]),
    ],
)
def test_broken_arms_are_caught(suite, caught_by):
    assert set(caught_by) <= set(failures(suite))


def test_arms_must_be_supplied():
    with pytest.raises(NotImplementedError, match=r"^ArmsContract must define arms\(self, X\)$"):
        ArmsContract().test_every_policy_chooses_as_from_one_array()
