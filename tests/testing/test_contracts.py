"""The contract suites catch what they are there to catch: each broken class below fails the check named beside it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from armful import C2UCB, AtMost, Constraint, EpsilonGreedy, InfeasibleError, OneOf, Policy, Quotas, Selection, TopK
from armful.testing import ConstraintContract, PolicyContract
from armful.testing._expectations import expect_close, expect_refusal, tail_bound


def checks_of(suite):
    return [name for name in dir(suite) if name.startswith("test_")]


def failures(suite):
    """The checks that a suite fails, by name."""
    failed = []
    for name in checks_of(suite):
        try:
            getattr(suite(), name)()
        except AssertionError:
            failed.append(name)
    return failed


# -- policies ----------------------------------------------------------------------------------------


class Sound(Policy):
    def score(self, arms, k):
        return arms.mean


class DisobeysConstraint(Sound):
    def choose(self, X, constraint, *, caps=None):
        return super().choose(X, TopK(1), caps=caps)


class ByRowOrder(Sound):
    def score(self, arms, k):
        return arms.mean - 1e-12 * np.arange(arms.n_arms)


class LatterHalfFavoured(Sound):
    def score(self, arms, k):
        draws = np.random.default_rng(0).random(arms.n_arms)
        return arms.mean + 1e-9 * draws


class DrawsElsewhere(Sound):
    def score(self, arms, k):
        return arms.mean + np.random.default_rng().random(arms.n_arms)


class MixesRepetitions(Sound):
    def score(self, arms, k):
        return arms.mean - arms.mean.max()


class DrawsAlikeForAll(Sound):
    """Draws from the first generator of a batch only."""

    def score(self, arms, k):
        first = getattr(self.rng, "generators", [self.rng])[0]
        return arms.mean + first.standard_normal(arms.n_arms)


class Counts(Sound):
    """Scores by how many calls of learn there were, which is no sum over observations, and is not saved."""

    calls = 0

    def learn(self, features, rewards, **how):
        super().learn(features, rewards, **how)
        self.calls += 1

    def score(self, arms, k):
        return arms.mean + (self.calls % 2) * arms.norm


class LearnsWhileChoosing(Sound):
    def choose(self, X, constraint, *, caps=None):
        choice = super().choose(X, constraint, caps=caps)
        self.learn(choice.features, np.zeros(len(choice)))
        return choice


class HalfLearnsBadInput(Sound):
    def learn(self, features, rewards, **how):
        self.discount(0.9)
        super().learn(features, rewards, **how)


class SwallowsBadInput(Sound):
    def learn(self, features, rewards, **how):
        try:
            super().learn(features, rewards, **how)
        except ValueError:
            return


class HidesBadFeatures(Sound):
    def choose(self, X, constraint, *, caps=None):
        return super().choose(np.nan_to_num(X, posinf=0.0, neginf=0.0), constraint, caps=caps)


class Mislabels(Sound):
    def choose(self, X, constraint, *, caps=None):
        choice = super().choose(X, constraint, caps=caps)
        vars(choice)["features"] = choice.features[::-1]
        return choice


class ForgetsAnOption(Policy):
    def __init__(self, *, n_features, strength=3.0, seed=None):
        super().__init__(n_features=n_features, seed=seed)
        self.strength, self._strength = 1.0, strength

    def score(self, arms, k):
        return arms.mean + self._strength * arms.norm


def suite_of(kind):
    class Suite(PolicyContract):
        def policy(self, n_features, seed):
            return kind(n_features=n_features, seed=seed)

    return Suite


def test_a_sound_policy_passes():
    assert failures(suite_of(Sound)) == []


BATCH = "test_a_batch_of_repetitions_scores_as_each_alone"
SAVED = "test_a_saved_policy_goes_on_exactly"
SHARDS = "test_learning_one_by_one_or_in_shards_is_learning_at_once"
TIES = "test_equal_arms_are_chosen_equally_often"
BAD_REWARDS = "test_rewards_that_cannot_be_learned_are_refused"


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (DisobeysConstraint, "test_what_is_chosen_obeys_the_constraint"),
        (ByRowOrder, TIES),
        (LatterHalfFavoured, TIES),
        (DrawsElsewhere, "test_the_same_seed_makes_the_same_choices"),
        (DrawsElsewhere, SAVED),
        (MixesRepetitions, BATCH),
        (DrawsAlikeForAll, BATCH),
        (Counts, SHARDS),
        (LearnsWhileChoosing, "test_choosing_learns_nothing_and_leaves_the_features_alone"),
        (HalfLearnsBadInput, BAD_REWARDS),
        (HalfLearnsBadInput, SHARDS),
        (SwallowsBadInput, BAD_REWARDS),
        (HidesBadFeatures, "test_arms_that_cannot_be_scored_are_refused"),
        (Mislabels, "test_a_choice_explains_itself"),
        (ForgetsAnOption, SAVED),
    ],
)
def test_a_broken_policy_is_caught(kind, check):
    with pytest.raises(AssertionError):
        getattr(suite_of(kind)(), check)()


def test_a_policy_whose_choices_break_the_inequalities_is_caught(monkeypatch):
    """No policy can break them, they are theorems: so the check itself is made to fail."""
    import armful.testing.policy_contract as module  # noqa: PLC0415

    class Failed:
        holds = False

        def __str__(self):
            return "(a) fails"

    monkeypatch.setattr(module, "check_trajectory", lambda features, ridge: Failed())
    with pytest.raises(AssertionError, match=r"^\(a\) fails"):
        suite_of(Sound)().test_the_trajectory_inequalities_hold()


def test_a_policy_that_runs_one_repetition_at_a_time_need_not_score_a_batch():
    class Alone(DrawsAlikeForAll):
        batched = False

    assert BATCH not in failures(suite_of(Alone))


def test_a_suite_without_its_method_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"must define policy\(self, n_features, seed\)"):
        PolicyContract().policy(2, 0)
    with pytest.raises(NotImplementedError, match=r"must define constraint\(self, rng\)"):
        ConstraintContract().constraint(np.random.default_rng(0))


# -- constraints -------------------------------------------------------------------------------------


class Broken(Constraint):
    """A sound constraint with one thing wrong."""

    def __init__(self, sound):
        self.sound, self.k = sound, sound.k

    def best(self, scores, X=None, rng=None):
        return self.sound.best(scores, X, rng)

    def violation(self, indices):
        return self.sound.violation(indices)


class TakesTheWorst(Broken):
    def best(self, scores, X=None, rng=None):
        answer = self.sound.best(-np.asarray(scores), X, rng)
        return Selection(answer.indices, -answer.value)


class TakesOneTooMany(Broken):
    def best(self, scores, X=None, rng=None):
        answer = self.sound.best(scores, X, rng)
        others = np.setdiff1d(np.arange(len(scores)), answer.indices)[:1]
        indices = np.concatenate([answer.indices, others])
        return Selection(indices, float(np.asarray(scores)[indices].sum()))


class TakesAbsoluteScores(Broken):
    def best(self, scores, X=None, rng=None):
        indices = self.sound.best(np.abs(scores), X, rng).indices
        return Selection(indices, float(np.asarray(scores)[indices].sum()))


class MiscountsValue(Broken):
    def best(self, scores, X=None, rng=None):
        answer = self.sound.best(scores, X, rng)
        return Selection(answer.indices, answer.value + 1.0)


class Overstates(Broken):
    """Answers with some allowed set and calls it exact."""

    def best(self, scores, X=None, rng=None):
        indices = self.sound.best(np.zeros(len(scores)), X, rng).indices
        return Selection(indices, float(np.asarray(scores)[indices].sum()))


class AdmitsItsRatio(Overstates):
    """Answers with some allowed set, if its value is positive, and says how good it is."""

    def best(self, scores, X=None, rng=None):
        some, best = super().best(scores, X, rng), self.sound.best(scores, X, rng)
        if some.value <= 0:
            return best
        return Selection(some.indices, some.value, min(some.value / best.value, 1.0))


class TiesByRow(Broken):
    def best(self, scores, X=None, rng=None):
        return self.sound.best(scores, X, np.random.default_rng(0))


class IgnoresTheGenerator(Broken):
    def best(self, scores, X=None, rng=None):
        return self.sound.best(scores, X, None)


class MiscountsK(Broken):
    def __init__(self, sound):
        super().__init__(sound)
        self.k += 1


class AllowsTwice(Broken):
    def violation(self, indices):
        return self.sound.violation(np.unique(np.asarray(indices, dtype=np.int64)))


class ForgivesNaN(Broken):
    def best(self, scores, X=None, rng=None):
        return self.sound.best(np.nan_to_num(scores, posinf=1.0, neginf=-1.0), X, rng)


class FlattensScores(Broken):
    def best(self, scores, X=None, rng=None):
        return self.sound.best(np.ravel(scores), X, rng)


class SharesItsAnswer(Broken):
    """Hands out the array that it keeps."""

    def __init__(self, sound):
        super().__init__(sound)
        self.kept = {}

    def best(self, scores, X=None, rng=None):
        answer = self.sound.best(scores, X, rng)
        return Selection(self.kept.setdefault(tuple(answer.indices.tolist()), answer.indices), answer.value)


class RowsAreOthers(Broken):
    def best_each(self, scores, rngs, X=None):
        answers = [self.sound.best(-row, None, rng) for row, rng in zip(scores, rngs, strict=True)]
        return [answer.indices for answer in answers], np.array([answer.value for answer in answers])


def constraint_suite_of(make):
    class Suite(ConstraintContract):
        instances = 12

        def constraint(self, rng):
            n_arms = int(rng.integers(3, 7))
            return make(TopK(int(rng.integers(1, n_arms)))), n_arms

    return Suite


def test_a_sound_constraint_passes():
    assert failures(constraint_suite_of(lambda sound: sound)) == []
    assert failures(constraint_suite_of(Broken)) == []


ALLOWED = "test_the_answer_is_an_allowed_set"
BEST = "test_no_allowed_set_has_a_larger_value_than_the_ratio_says"
CONSTRAINT_TIES = "test_ties_are_broken_at_random_and_by_the_generator_alone"


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (TakesTheWorst, BEST),
        (TakesOneTooMany, ALLOWED),
        (TakesAbsoluteScores, BEST),
        (MiscountsValue, "test_the_value_is_the_sum_of_the_scores"),
        (Overstates, BEST),
        (TiesByRow, CONSTRAINT_TIES),
        (IgnoresTheGenerator, CONSTRAINT_TIES),
        (MiscountsK, "test_k_is_the_size_of_the_largest_allowed_set"),
        (AllowsTwice, "test_a_violation_is_a_number_and_an_arm_counts_once"),
        (ForgivesNaN, "test_scores_that_are_not_numbers_in_a_row_are_refused"),
        (FlattensScores, "test_scores_that_are_not_numbers_in_a_row_are_refused"),
        (SharesItsAnswer, "test_neither_question_nor_answer_is_shared"),
        (RowsAreOthers, "test_many_rows_at_once_are_answered_as_one_by_one"),
    ],
)
def test_a_broken_constraint_is_caught(kind, check):
    with pytest.raises(AssertionError):
        getattr(constraint_suite_of(kind)(), check)()


def test_scores_that_are_written_to_are_caught():
    class Writes(Broken):
        def best(self, scores, X=None, rng=None):
            answer = self.sound.best(scores, X, rng)
            scores[0] = 0.0
            return answer

    with pytest.raises(ValueError, match=r"read-only"):
        constraint_suite_of(Writes)().test_neither_question_nor_answer_is_shared()


def test_an_answer_within_its_ratio_is_not_caught():
    constraint_suite_of(AdmitsItsRatio)().test_no_allowed_set_has_a_larger_value_than_the_ratio_says()


def test_an_instance_that_allows_nothing_is_pointed_out():
    @dataclass
    class Nothing(Broken):
        sound: object = TopK(1)
        k: int = 1

        def violation(self, indices):
            return 1.0

    with pytest.raises(AssertionError, match=r"allows no set"):
        constraint_suite_of(lambda sound: Nothing())().test_the_answer_is_an_allowed_set()


def test_each_suite_keeps_instances_of_its_own():
    class First(ConstraintContract):
        def constraint(self, rng):
            return AtMost(1), 2

    class Second(First):
        def constraint(self, rng):
            return OneOf([[0, 1]]), 2

    First().test_the_answer_is_an_allowed_set()
    assert isinstance(Second()._instances()[0].constraint, OneOf)
    assert isinstance(First()._instances()[0].constraint, AtMost)


# -- expectations ------------------------------------------------------------------------------------


def test_a_refusal_is_a_value_error_of_one_line():
    def raising(error):
        raise error

    expect_refusal("fine", raising, ValueError("no"))
    expect_refusal("fine", raising, InfeasibleError("no"))
    for action, argument in (
        (raising, ValueError("")),
        (raising, ValueError("two\nlines")),
        (raising, TypeError("no")),
        (abs, 1),
    ):
        with pytest.raises(AssertionError):
            expect_refusal("not fine", action, argument)


def test_closeness_sees_shapes_and_numbers():
    expect_close([1.0, 2.0], [1.0, 2.0 + 1e-12], "fine")
    for other in ([1.0, 2.1], [1.0], [1.0, np.nan]):
        with pytest.raises(AssertionError):
            expect_close([1.0, 2.0], other, "not fine")


@pytest.mark.parametrize(("n", "p"), [(10, 0.5), (50, 0.1), (200, 0.7)])
def test_the_tail_bound_is_above_the_tail(n, p):
    mass = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    for i in range(n + 1):
        tail = sum(mass[: i + 1]) if i < n * p else sum(mass[i:])
        assert tail_bound(i, n, p) >= tail * (1 - 1e-9)
    assert tail_bound(n, n, p) == pytest.approx(p**n)


def test_the_suites_are_not_collected_by_themselves():
    assert not PolicyContract.__name__.startswith("Test")
    assert not ConstraintContract.__name__.startswith("Test")
    assert len(checks_of(PolicyContract)) >= 10
    assert len(checks_of(ConstraintContract)) >= 8


def test_the_suites_pass_classes_that_come_with_armful_under_other_sizes():
    class Wide(PolicyContract):
        n_features = 17

        def policy(self, n_features, seed):
            return C2UCB(n_features=n_features, seed=seed)

    class Narrow(PolicyContract):
        n_features = 1

        def policy(self, n_features, seed):
            return EpsilonGreedy(n_features=n_features, seed=seed)

    class Loose(ConstraintContract):
        instances = 3

        def constraint(self, rng):
            return Quotas(rng.integers(0, 2, 5), at_most=5), 5

    assert failures(Wide) == failures(Narrow) == failures(Loose) == []
