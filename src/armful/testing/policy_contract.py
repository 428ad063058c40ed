"""The contract suite of policies."""

import copy
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.random import Generator

from armful.arms import Arms
from armful.checks import FloatArray
from armful.constraints import AtMost, Constraint, OneOf, Quotas, TopK
from armful.model.base import Model
from armful.policies import Choice, Policy, load
from armful.policies._repetitions import can_batch, repeated
from armful.testing._expectations import FALSE_ALARM, expect_close, expect_read_only, expect_refusal, tail_bound
from armful.theory import check_trajectory

PlayedRound = tuple[FloatArray, Constraint, Choice]


class PolicyContract:
    """The checks that every policy passes. Inherit it in a test file and write `policy`.

    Attributes
    ----------
    n_features : int
        The length of the feature vectors that are tested with.

    Examples
    --------
    >>> from armful import C2UCB
    >>> class TestC2UCB(PolicyContract):
    ...     def policy(self, n_features, seed):
    ...         return C2UCB(n_features=n_features, seed=seed)
    """

    n_features = 5

    def policy(self, n_features: int, seed: int) -> Policy:
        """Return a new policy.

        Parameters
        ----------
        n_features : int
            The length of a feature vector.
        seed : int
            The seed of its random numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} must define policy(self, n_features, seed)")

    # -- choosing ------------------------------------------------------------------------------------

    def test_what_is_chosen_obeys_the_constraint(self) -> None:
        for _, constraint, choice in self._run(seed=0, rounds=30):
            violation = constraint.violation(choice.indices)
            assert violation == 0.0, f"{choice.indices} violates {constraint!r} by {violation}"

    def test_a_choice_explains_itself(self) -> None:
        for X, _, choice in self._run(seed=1, rounds=30):
            size = (choice.indices.size,)
            assert np.issubdtype(choice.indices.dtype, np.integer), f"indices are {choice.indices.dtype}"
            for name in ("indices", "mean", "bonus", "scores", "capped"):
                shape = getattr(choice, name).shape
                assert shape == size, f"choice.{name} has shape {shape}, expected {size}"
            assert choice.capped.dtype == np.bool_, f"choice.capped is {choice.capped.dtype}"
            assert len(choice) == size[0], f"len(choice) is {len(choice)}, {size[0]} arms are chosen"
            assert np.array_equal(choice.features, X[choice.indices]), "choice.features are not the chosen rows"
            assert 0 < choice.ratio <= 1, f"choice.ratio is {choice.ratio}"
            expect_close(choice.value, choice.scores.sum(), "choice.value, the sum of choice.scores")
            free = ~choice.capped
            expect_close(choice.scores[free], (choice.mean + choice.bonus)[free], "scores that no cap has touched")
            expect_read_only(choice)
            assert X.flags.writeable, "choosing made the features that were given read-only"

    def test_choosing_learns_nothing_and_leaves_the_features_alone(self) -> None:
        policy = self._experienced(seed=2)
        before, X = policy.state, np.random.default_rng(2).standard_normal((9, self.n_features))
        X.flags.writeable = False
        policy.choose(X, TopK(3))
        policy.scores(X, k=3)
        _expect_same_state(policy.state, before, "choosing changed what was learned")

    def test_the_same_seed_makes_the_same_choices(self) -> None:
        _expect_same_choices(*(self._run(seed=3, rounds=20) for _ in range(2)))

    def test_equal_arms_are_chosen_equally_often(self) -> None:
        """Whatever their index. False alarms: one in a million, for any seed (summed over the arms)."""
        draws = 300
        for n_arms, k in ((2, 1), (13, 1), (8, 3)):
            policy = self._experienced(seed=4)
            X = np.tile(np.random.default_rng(4).standard_normal(self.n_features), (n_arms, 1))
            times = np.zeros(n_arms, dtype=np.int64)
            for _ in range(draws):
                times[policy.choose(X, TopK(k)).indices] += 1
            chance = min(tail_bound(int(chosen), draws, k / n_arms) for chosen in times)
            assert 2 * 3 * n_arms * chance >= FALSE_ALARM, f"{n_arms} equal arms were chosen {times} times in {draws}"

    # -- learning ------------------------------------------------------------------------------------

    def test_learning_one_by_one_or_in_shards_is_learning_at_once(self) -> None:
        rng = np.random.default_rng(5)
        X, rewards = rng.standard_normal((24, self.n_features)), rng.standard_normal(24)
        at_once = self.policy(self.n_features, 5)
        at_once.learn(X, rewards)
        one_by_one = self.policy(self.n_features, 5)
        for i in rng.permutation(24).tolist():
            one_by_one.learn(X[i : i + 1], rewards[i : i + 1])
        merged = self.policy(self.n_features, 5)
        for shard in (slice(16, 24), slice(0, 3), slice(3, 16)):
            other = self.policy(self.n_features, 99)
            other.learn(X[shard], rewards[shard])
            merged.merge(other.state)
        arms = rng.standard_normal((10, self.n_features))
        expected = at_once.scores(arms, k=3)
        for policy, how in ((one_by_one, "one by one"), (merged, "in merged shards")):
            expect_close(policy.scores(arms, k=3), expected, f"scores after learning {how}", tolerance=1e-8)

    def test_a_batch_of_repetitions_scores_as_each_alone(self) -> None:
        policy = self._experienced(seed=6)
        if not can_batch(policy):
            return
        rng, repetitions = np.random.default_rng(6), 7
        batch = repeated(policy, [np.random.default_rng([6, i]) for i in range(repetitions)])
        alone = [copy.deepcopy(policy) for _ in range(repetitions)]
        for i, single in enumerate(alone):
            single.rng = np.random.default_rng([6, i])
        for n_arms, k in ((9, 3), (1, 1), (40, 8), (9, 2)):
            X = rng.standard_normal((repetitions, n_arms, self.n_features))
            for shown in (X, X[0]):  # each repetition its own arms; all the same arms
                together = batch._score_arms(Arms(shown, batch.state), k)
                for i, single in enumerate(alone):
                    its_own = single._score_arms(Arms(shown if shown.ndim == 2 else shown[i], single.state), k)
                    for name in ("mean", "bonus", "value", "capped"):
                        one, other = getattr(together, name), getattr(its_own, name)
                        assert one.shape == (repetitions, n_arms), f"batched {name} has shape {one.shape}"
                        expect_close(one[i], other, f"{name} of repetition {i} of a batch")
            rewards = rng.standard_normal((repetitions, n_arms))
            batch.state = batch.state.learn(X, rewards)
            for i, single in enumerate(alone):
                single.learn(X[i], rewards[i])

    # -- files ---------------------------------------------------------------------------------------

    def test_a_saved_policy_goes_on_exactly(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.npz"
            policy = self._experienced(seed=7)
            policy.save(path)
            assert [file.name for file in Path(folder).iterdir()] == ["policy.npz"], "save leaves other files behind"
            loaded = load(path)
            assert type(loaded) is type(policy), f"a {type(policy).__name__} was saved, {loaded!r} loaded"
            assert repr(loaded) == repr(policy), f"{policy!r} was saved, {loaded!r} loaded"
            _expect_same_state(loaded.state, policy.state, "the loaded state is another")
            _expect_same_choices(*(_rounds_of(each, seed=8, rounds=20) for each in (policy, loaded)))

    # -- bad input -----------------------------------------------------------------------------------

    def test_arms_that_cannot_be_scored_are_refused(self) -> None:
        d = self.n_features
        for policy in (self.policy(d, 9), self._experienced(seed=9)):
            before = policy.state
            for shape in ((0, d), (4, d + 1), (4, d - 1), (d,), (2, 4, d), ()):
                expect_refusal(f"features of shape {shape}", policy.choose, np.ones(shape), TopK(1))
            for bad in (np.nan, np.inf, -np.inf):
                for row in (0, 3):
                    X = np.ones((4, d))
                    X[row, d // 2] = bad
                    expect_refusal(f"a feature of {bad}", policy.choose, X, TopK(1))
            expect_refusal("5 of 4 arms", policy.choose, np.ones((4, d)), TopK(5))
            expect_refusal("arm 7 of 4", policy.choose, np.ones((4, d)), OneOf([[7]]))
            _expect_same_state(policy.state, before, "a refused choice changed what was learned")

    def test_rewards_that_cannot_be_learned_are_refused(self) -> None:
        d = self.n_features
        for policy in (self.policy(d, 10), self._experienced(seed=10)):
            before = policy.state
            for bad in (np.nan, np.inf, -np.inf):
                X, rewards = np.ones((3, d)), np.ones(3)
                X[1, 0], rewards[2] = bad, bad
                expect_refusal(f"learning a feature of {bad}", policy.learn, X, np.ones(3))
                expect_refusal(f"a reward of {bad}", policy.learn, np.ones((3, d)), rewards)
            for shape, n_rewards in (((3, d), 2), ((3, d + 1), 3), ((d,), 1), ((2, 3, d), 3)):
                what = f"{n_rewards} rewards for features of shape {shape}"
                expect_refusal(what, policy.learn, np.ones(shape), np.ones(n_rewards))
            stranger = policy.model_class(n_features=d + 1, ridge=policy.ridge)
            expect_refusal("merging a state of another dimension", policy.merge, stranger)
            expect_refusal("a state of another dimension", setattr, policy, "state", stranger)
            expect_refusal("a discount of 1.5", policy.discount, 1.5)
            _expect_same_state(policy.state, before, "refused learning changed what was learned")

    # -- theory --------------------------------------------------------------------------------------

    def test_the_trajectory_inequalities_hold(self) -> None:
        for growth in (1.0, 2.0):  # 2: features of very different sizes, as in the paper's instances
            policy = self.policy(self.n_features, 11)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # rewards grow with the features, beyond any cap
                features = [choice.features for _, _, choice in _rounds_of(policy, seed=11, rounds=40, growth=growth)]
            report = check_trajectory([chosen for chosen in features if len(chosen)], ridge=policy.ridge)
            assert report.holds, str(report)

    # -- internals --------------------------------------------------------------------------------------

    def _run(self, seed: int, rounds: int) -> Iterator[PlayedRound]:
        return _rounds_of(self.policy(self.n_features, seed), seed, rounds)

    def _experienced(self, seed: int) -> Policy:
        """Return a policy that has learned a few rounds."""
        policy = self.policy(self.n_features, seed)
        for _ in _rounds_of(policy, seed, rounds=6):
            pass
        return policy


def _rounds_of(policy: Policy, seed: int, rounds: int, growth: float = 1.0) -> Iterator[PlayedRound]:
    """Yield the arms, the constraint and the choice of each round; the policy then learns noisy linear rewards."""
    rng = np.random.default_rng([seed, 1])
    theta = rng.standard_normal(policy.n_features) / np.sqrt(policy.n_features)
    for t in range(rounds):
        n_arms = int(rng.integers(6, 12))
        X = rng.standard_normal((n_arms, policy.n_features)) * growth ** (t % 8)
        constraint = _constraint(t, n_arms, rng)
        choice = policy.choose(X, constraint)
        yield X, constraint, choice
        policy.learn(choice, choice.features @ theta + rng.standard_normal(len(choice)))


def _constraint(t: int, n_arms: int, rng: Generator) -> Constraint:
    groups = (rng.permutation(n_arms) % 3).tolist()
    return (
        TopK(int(rng.integers(1, n_arms + 1))),
        AtMost(int(rng.integers(1, n_arms + 1))),
        Quotas(groups, exactly={0: 1, 1: 2}),
        Quotas(groups, at_least={0: 1}, at_most=2, total=(2, 4)),
        OneOf([rng.permutation(n_arms)[: int(size)] for size in rng.integers(1, 5, 4)]),
    )[t % 5]


def _expect_same_choices(first: Iterator[PlayedRound], second: Iterator[PlayedRound]) -> None:
    for (_, _, one), (_, _, other) in zip(first, second, strict=True):
        assert one.indices.tolist() == other.indices.tolist(), f"{one.indices}, then {other.indices}"
        assert np.array_equal(one.scores, other.scores), f"scores {one.scores}, then {other.scores}"


def _expect_same_state(state: Model, before: Model, what: str) -> None:
    for name in ("theta", "root", "n", "residual"):
        now, then = getattr(state, name), getattr(before, name)
        assert np.array_equal(now, then), f"{what}: {name} was {then}, is {now}"
