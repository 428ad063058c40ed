import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from armful import C2UCB, AtMost, CombLinTS, CombLinUCB, Diverse, EpsilonGreedy, OneOf, Policy, Quotas, TopK, simulate
from armful.constraints import Constraint, Selection
from armful.environments import Campaign, CombinedLowerBound, PaperInstance, Round, Slates
from armful.simulation.loop import BATCH, run_alone, worker_pool


@dataclass
class Mixed:
    """Constraints of every kind, sets of every size, and numbers of arms that may differ between repetitions."""

    ragged: bool = False
    any_noise: bool = False
    n_features: int = 3

    def rounds(self, n_rounds: int, rng: np.random.Generator) -> Iterator[Round]:
        theta = rng.standard_normal(3)
        for t in range(n_rounds):
            n = int(rng.integers(6, 12)) if self.ragged else 9
            X = rng.standard_normal((n, 3))
            groups = rng.integers(2, size=n)
            groups[:2] = 0, 1
            constraint = [
                TopK(3),
                AtMost(4),
                Quotas(groups, at_least={0: 1}, at_most=2),
                OneOf([[0, 1, 2], [3, 4], [5]]),
            ][t % 4]
            noise = (0.1, "bernoulli", 0.0)[rng.integers(3) * self.any_noise]
            mean = np.clip(X @ theta, 0.0, 1.0) if noise == "bernoulli" else X @ theta
            yield Round(X, constraint, mean, noise)


ENVIRONMENTS = {
    "paper": PaperInstance(k=3),
    "uniform": PaperInstance(k=2, kind="uniform"),
    "combined": CombinedLowerBound(n_features=4, k=2),
    "campaign": Campaign(n_arms=700, n_features=4, k=30),
    "slates": Slates(n_arms=20, n_features=4, k=3),
    "mixed": Mixed(),
    "any noise": Mixed(any_noise=True),
    "ragged": Mixed(ragged=True),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_batched_repetitions_equal_the_plain_loop(name, make_policy):
    environment = ENVIRONMENTS[name]
    policy = make_policy(environment.n_features)
    batch = simulate(policy, environment, rounds=24, repetitions=4, seed=3)
    for i in range(4):
        alone = run_alone(policy, environment, 24, 3, i)
        np.testing.assert_array_equal(batch.pulled[i], alone.pulled[0])
        np.testing.assert_allclose(batch.regret[i], alone.regret[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(batch.rewards[i], alone.rewards[0], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_the_result():
    arguments = {"rounds": 10, "repetitions": 2 * BATCH + 7, "seed": 5}
    policy = EpsilonGreedy(n_features=5, epsilon=0.3)
    one, two, three = (simulate(policy, Slates(n_features=5), workers=w, **arguments) for w in (1, 2, 3))
    np.testing.assert_array_equal(one.regret, two.regret)
    np.testing.assert_array_equal(one.regret, three.regret)


def test_a_repetition_is_the_same_however_many_there_are():
    few, many = (simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=6, repetitions=n) for n in (2, 9))
    np.testing.assert_array_equal(few.regret, many.regret[:2])


def test_policies_that_choose_alike_meet_the_same_luck():
    greedy = simulate(CombLinUCB(n_features=5, radius=0.0), Slates(n_features=5), rounds=15, repetitions=5)
    same = simulate(C2UCB(n_features=5, radius=0.0), Slates(n_features=5), rounds=15, repetitions=5)
    np.testing.assert_array_equal(greedy.rewards, same.rewards)


@pytest.mark.parametrize("noise", [0.0, 0.3, "bernoulli"])
def test_an_arm_pays_the_same_whichever_others_were_chosen(noise):
    shown = Round(np.ones((50, 1)), TopK(3), np.linspace(0, 1, 50), noise)
    everything = shown.rewards(np.random.default_rng(1))
    chosen = np.array([49, 3, 17, 3])
    np.testing.assert_array_equal(shown.rewards(np.random.default_rng(1), chosen), everything[chosen])


def test_a_policy_sees_arms_that_every_repetition_has_of_its_own():
    class Summing(Policy):
        def score(self, arms, k):
            return arms.X.sum(axis=-1) + 0 * arms.norm

    policy = Summing(n_features=3)
    batch = simulate(policy, Mixed(), rounds=3, repetitions=4, seed=3)
    alone = [run_alone(policy, Mixed(), 3, 3, i) for i in range(4)]
    np.testing.assert_allclose(batch.regret, np.concatenate([each.regret for each in alone]), atol=1e-12)


def test_different_seeds_and_repetitions_differ():
    result = simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=5, repetitions=3, seed=1)
    other = simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=5, repetitions=3, seed=2)
    assert len({tuple(row) for row in np.vstack([result.regret, other.regret])}) == 6


def test_a_policy_starts_from_what_it_knows_and_is_not_changed():
    policy = C2UCB(n_features=5, radius=0.1, seed=0)
    X = np.random.default_rng(0).standard_normal((4, 5))
    policy.learn(X, [1.0, 2.0, 3.0, 4.0])
    before = policy.state.V.copy(), policy.rng.bit_generator.state
    warm = simulate(policy, Slates(n_features=5), rounds=1, repetitions=3)
    np.testing.assert_array_equal(policy.state.V, before[0])
    assert policy.rng.bit_generator.state == before[1]
    cold = simulate(C2UCB(n_features=5, radius=0.1), Slates(n_features=5), rounds=1, repetitions=3)
    assert not np.array_equal(warm.regret, cold.regret)


class Wrapped:
    """Not a `Policy`: anything that chooses and learns can be simulated."""

    def __init__(self) -> None:
        self.inner = C2UCB(n_features=5)
        self.calls = 0

    def choose(self, X, constraint):
        return self.inner.choose(X, constraint)

    def learn(self, features, rewards):
        self.calls += 1
        assert self.calls <= 4, "every repetition must have a learner of its own"
        self.inner.learn(features, rewards)


def test_any_object_that_chooses_and_learns_can_be_simulated():
    result = simulate(Wrapped(), Slates(n_features=5), rounds=4, repetitions=3)
    assert result.regret.shape == (3, 4)


def test_a_policy_that_cannot_run_batched_runs_alone():
    class Alone(C2UCB):
        batched = False

        def score(self, arms, k):
            assert arms.X.ndim == 2
            assert self.state.batch == ()
            return super().score(arms, k)

    alone = simulate(Alone(n_features=5), Slates(n_features=5), rounds=5, repetitions=3)
    batch = simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=5, repetitions=3)
    np.testing.assert_allclose(alone.regret, batch.regret, rtol=1e-9)


def test_mean_and_standard_error_are_those_of_the_totals():
    result = simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=5, repetitions=8)
    totals = [sum(row) for row in result.regret.tolist()]
    assert result.mean == pytest.approx(np.mean(totals))
    assert result.stderr == pytest.approx(np.std(totals, ddof=1) / 8**0.5)
    assert np.isnan(simulate(C2UCB(n_features=5), Slates(n_features=5), rounds=2, repetitions=1).stderr)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "rounds must be"),
        ({"repetitions": 0}, "repetitions must be"),
        ({"workers": 0}, "workers must be"),
        ({"seed": -1}, "seed must be"),
        ({"policy": C2UCB(n_features=4)}, "the policy has 4 features, the environment 5"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(wrong, message):
    arguments = {"policy": C2UCB(n_features=5), "environment": Slates(n_features=5), "rounds": 2, **wrong}
    policy, environment = arguments.pop("policy"), arguments.pop("environment")
    with pytest.raises(ValueError, match=message):
        simulate(policy, environment, **arguments)


class Short:
    n_features = 5

    def rounds(self, n_rounds, rng):
        for _ in range(n_rounds - 1):
            X = rng.standard_normal((4, 5))
            yield Round(X, TopK(1), X[:, 0])


@pytest.mark.parametrize("batched", [True, False])
def test_an_environment_that_gives_too_few_rounds_is_refused(batched):
    policy = type("Tried", (C2UCB,), {"batched": batched})(n_features=5)
    with pytest.raises(ValueError, match="Short gave 3 rounds where 4 were asked for"):
        simulate(policy, Short(), rounds=4, repetitions=2)


class Endless:
    n_features = 5

    def rounds(self, n_rounds, rng):
        while True:
            X = rng.standard_normal((4, 5))
            yield Round(X, TopK(1), X[:, 0])


@pytest.mark.parametrize("batched", [True, False])
def test_an_environment_without_end_is_left_after_the_last_round(batched):
    policy = type("Tried", (C2UCB,), {"batched": batched})(n_features=5)
    assert simulate(policy, Endless(), rounds=4, repetitions=2).regret.shape == (2, 4)


def test_an_array_that_was_handed_out_cannot_be_changed_behind_the_simulation():
    X, mean = np.ones((4, 5)), np.ones(4)
    Round(X, TopK(1), mean)
    with pytest.raises(ValueError, match="read-only"):
        X[0, 0] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        mean[0] = 2.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mean": np.ones(3)}, "a mean reward for each arm"),
        ({"features": np.ones(4)}, "a mean reward for each arm"),
        ({"features": np.ones((4, 5, 1))}, "a mean reward for each arm"),
        ({"noise": "gauss"}, "noise must be a number or 'bernoulli'"),
        ({"noise": -1.0}, "noise must not be negative"),
    ],
)
def test_a_round_that_does_not_fit_together_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Round(**{"features": np.ones((4, 5)), "constraint": TopK(1), "mean": np.ones(4), **wrong})


@pytest.mark.parametrize("mean", [-0.1, 1.1, np.nan])
def test_chances_that_are_none_are_refused(mean):
    with pytest.raises(ValueError, match="means must be from 0 to 1, got "):
        Round(np.ones((2, 5)), TopK(1), np.array([0.5, mean]), "bernoulli")


def test_a_policy_without_score_says_so():
    with pytest.raises(NotImplementedError, match="must define score"):
        Policy(n_features=5).choose(np.ones((2, 5)), TopK(1))


def test_a_constraint_with_a_best_of_its_own_is_asked_for_it():
    class Worst(TopK):
        def best(self, scores, X=None, rng=None):
            return super().best(-np.asarray(scores), X, rng)

    @dataclass
    class Custom:
        n_features: int = 2

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                X = rng.standard_normal((8, 2))
                yield Round(X, Worst(3), X[:, 0], noise=0.1)

    batch = simulate(C2UCB(n_features=2), Custom(), rounds=4, repetitions=3, seed=3)
    for i in range(3):
        np.testing.assert_allclose(batch.regret[i], run_alone(C2UCB(n_features=2), Custom(), 4, 3, i).regret[0])


def test_a_constraint_that_goes_by_the_features_sees_those_of_its_repetition():
    @dataclass(frozen=True)
    class OneOfTheLong(Constraint):
        k: int = 1

        def best(self, scores, X=None, rng=None):
            long = np.flatnonzero(np.linalg.norm(X, axis=1) > 1)
            best = long[[np.argmax(scores[long])]]
            return Selection(best, float(scores[best].sum()))

        def violation(self, indices):
            return 0.0

    @dataclass
    class Custom:
        mean: np.ndarray | None
        n_features: int = 2

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                X = rng.standard_normal((8, 2))
                X[0] += 5.0
                yield Round(X, OneOfTheLong(), X[:, 0] if self.mean is None else self.mean, noise=0.1)

    for environment in (Custom(mean=None), Custom(mean=np.linspace(0.0, 1.0, 8))):
        batch = simulate(C2UCB(n_features=2), environment, rounds=4, repetitions=6, seed=3)
        for i in range(6):
            np.testing.assert_allclose(batch.regret[i], run_alone(C2UCB(n_features=2), environment, 4, 3, i).regret[0])


def test_what_is_to_beat_follows_the_features_under_an_objective():
    @dataclass
    class Custom:
        n_features: int = 2

        def rounds(self, n_rounds, rng):
            mean = rng.random(6)
            for _ in range(n_rounds):
                yield Round(rng.standard_normal((6, 2)), TopK(2), mean, noise=0.1, objective=Diverse(weight=1.0))

    batch = simulate(C2UCB(n_features=2), Custom(), rounds=4, repetitions=3, seed=3)
    for i in range(3):
        np.testing.assert_allclose(batch.regret[i], run_alone(C2UCB(n_features=2), Custom(), 4, 3, i).regret[0])


@dataclass
class Staying:
    """All of a round stays the same for some time but one part, which now and then is another."""

    part: str
    share_with_objective: float
    n_features: int = 2

    def rounds(self, n_rounds: int, rng: np.random.Generator) -> Iterator[Round]:
        new = {
            "features": lambda: rng.standard_normal((6, 2)),
            "mean": lambda: rng.random(6),
            "constraint": lambda: TopK(int(rng.integers(1, 4))),
            "objective": lambda: Diverse(weight=rng.random()) if rng.random() < self.share_with_objective else None,
        }
        parts = {name: draw() for name, draw in new.items()}
        for _ in range(n_rounds):
            if rng.random() < 0.5:
                parts[self.part] = new[self.part]()
            yield Round(**parts, noise=0.1)


@pytest.mark.parametrize("part", ["features", "mean", "constraint", "objective"])
@pytest.mark.parametrize("share_with_objective", [0.0, 0.5, 1.0])
def test_what_stays_the_same_in_some_repetitions_is_not_taken_to_stay_in_all(part, share_with_objective):
    policy, environment = C2UCB(n_features=2), Staying(part, share_with_objective)
    batch = simulate(policy, environment, rounds=20, repetitions=3, seed=3)
    alone = [run_alone(policy, environment, 20, 3, i) for i in range(3)]
    np.testing.assert_allclose(batch.regret, np.concatenate([each.regret for each in alone]), atol=1e-9)
    np.testing.assert_allclose(batch.rewards, np.concatenate([each.rewards for each in alone]), atol=1e-9)


def test_repetitions_without_arms_are_refused_in_a_sentence():
    @dataclass
    class Custom:
        n_features: int = 3

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                yield Round(np.ones((0, 3)), AtMost(2), np.ones(0))

    with pytest.raises(ValueError, match=r"^features must have at least one row"):
        simulate(C2UCB(n_features=3), Custom(), rounds=2, repetitions=3)


@pytest.mark.parametrize("ratio", [0.5, float("nan")])
@pytest.mark.parametrize("inherits", [True, False])
def test_a_sampler_under_an_approximate_constraint_warns_in_a_simulation_too(ratio, inherits):
    @dataclass(frozen=True)
    class Approximate(Constraint):
        k: int = 2

        def best(self, scores, X=None, rng=None):
            return replace(TopK(self.k).best(scores, X, rng), ratio=ratio)

        def violation(self, indices):
            return TopK(self.k).violation(indices)

    class Heir(TopK):
        best = Approximate.best

    constraint = Heir(2) if inherits else Approximate()

    @dataclass
    class Custom:
        n_features: int = 3

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                yield Round(np.ones((5, 3)), constraint, np.ones(5))

    with pytest.warns(UserWarning, match="approximate choice"):
        simulate(CombLinTS(n_features=3), Custom(), rounds=2, repetitions=3)


def test_scores_that_are_no_numbers_are_refused():
    class Lost(Policy):
        def score(self, arms, k):
            scores = arms.mean.copy()
            scores[2, 7] = np.nan
            return scores

    with pytest.raises(ValueError, match=r"^scores must be finite, got nan for arm 7 of repetition 2$"):
        simulate(Lost(n_features=7), PaperInstance(k=1), rounds=2, repetitions=4)


def test_scores_without_the_axis_of_the_repetitions_are_refused():
    class Norms(Policy):
        def score(self, arms, k):
            return np.linalg.norm(arms.X, axis=-1)  # of the arms that all share

    with pytest.raises(ValueError, match=r"^Norms.score must give scores of shape \(4, \d+\), got"):
        simulate(Norms(n_features=7), PaperInstance(k=1), rounds=2, repetitions=4)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.array([["a", "b", "c"]] * 5), "features must be an array of real numbers"),
        (np.ma.masked_array(np.ones((5, 3)), mask=True), "without a mask"),
        (np.ones((5, 4)), "features must have shape"),
        (np.ones((0, 3)), "needs 2 arms, 0 are there"),
    ],
)
def test_bad_arms_of_each_repetition_are_refused_in_a_sentence(features, message):
    @dataclass
    class Custom:
        n_features: int = 3

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                yield Round(features.copy(), TopK(2), np.ones(len(features)))

    with pytest.raises(ValueError, match=message):
        simulate(C2UCB(n_features=3), Custom(), rounds=2, repetitions=3)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_a_round_keeps_the_very_arrays_it_is_given(kind):
    X, mean = np.ones((4, 2), dtype=kind), np.ones(4, dtype=kind)
    shown = Round(X, TopK(2), mean)
    assert shown.features is X
    assert shown.mean is mean


def test_a_constraint_that_answers_with_a_pair_is_refused():
    class Pair(TopK):
        def best(self, scores, X=None, rng=None):
            return np.arange(self.k), 1.0

    class Custom:
        n_features = 2

        def rounds(self, n_rounds, rng):
            for _ in range(n_rounds):
                yield Round(rng.standard_normal((4, 2)), Pair(2), np.ones(4))

    for batched in (True, False):
        policy = type("Tried", (C2UCB,), {"batched": batched})(n_features=2)
        with pytest.raises(ValueError, match="must answer with a Selection, got tuple"):
            simulate(policy, Custom(), rounds=2, repetitions=2)


@dataclass
class Tuples:
    """Rounds as plain tuples and lists, as one writes them down first."""

    n_features: int = 2
    shown: object = None

    def rounds(self, n_rounds, rng):
        X = rng.standard_normal((4, 2))
        for _ in range(n_rounds):
            yield self.shown or (X.tolist(), TopK(2), X[:, 0].tolist(), 0.5)


class Rounds(Tuples):
    def rounds(self, n_rounds, rng):
        for shown in super().rounds(n_rounds, rng):
            yield Round(*map(np.array, shown[:1]), shown[1], np.array(shown[2]), shown[3])


def test_rounds_may_be_plain_tuples_and_options_by_place():
    policy = C2UCB(n_features=2)
    plain, named = simulate(policy, Tuples(), 5, 3, 7), simulate(policy, Rounds(), rounds=5, repetitions=3, seed=7)
    np.testing.assert_array_equal(plain.rewards, named.rewards)
    np.testing.assert_array_equal(plain.regret, named.regret)
    for shown in ([1, 2, 3], (1, 2), "a round"):
        with pytest.raises(ValueError, match=r"^an environment must give rounds as Round\(features, .*, got "):
            simulate(policy, Tuples(shown=shown), rounds=5)


class Forgets(C2UCB):
    def learn(self, features, rewards, **how):
        super().learn(features, rewards, **how)
        self.discount(0.5)


class Shocked(C2UCB):
    def learn(self, features, rewards, **how):
        super().learn(features, rewards, **how, shock=1.0)


class Wavers(C2UCB):
    """Now and then any set will do."""

    def choose(self, X, constraint, **how):
        if self.rng.random() < 0.3:
            X = self.rng.permutation(X)
        return super().choose(X, constraint, **how)


class Draws(Policy):
    """Draws in ways that armful's own policies do not."""

    def score(self, arms, k):
        luck = self.rng.normal(0.0, 0.1, size=arms.n_arms) + self.rng.beta(2.0, 3.0, arms.n_arms)
        return arms.mean + luck + 0.1 * self.rng.integers(3, size=arms.n_arms)


@pytest.mark.parametrize("kind", [Forgets, Shocked, Wavers, Draws])
def test_whatever_else_a_users_policy_does_is_done_in_a_simulation(kind):
    environment = Slates(n_arms=20, n_features=4, k=3)
    result = simulate(kind(n_features=4), environment, rounds=30, repetitions=4, seed=3)
    alone = [run_alone(kind(n_features=4), environment, 30, 3, i) for i in range(4)]
    np.testing.assert_allclose(result.regret, np.concatenate([each.regret for each in alone]), rtol=1e-9, atol=1e-12)
    plain = simulate(C2UCB(n_features=4), environment, rounds=30, repetitions=4, seed=3)
    assert (plain.regret != result.regret).any()


def test_a_step_replaced_in_one_policy_alone_is_refused():
    policy = C2UCB(n_features=10)
    policy.learn = lambda features, rewards: None
    with pytest.raises(ValueError, match=r"^learn was replaced in one C2UCB alone; a subclass can be copied$"):
        simulate(policy, Slates(), rounds=5, repetitions=2)


@pytest.mark.parametrize(
    ("policy", "environment", "message"),
    [
        (C2UCB, Slates(), r"^policy must be an object that has choose and learn, got <class"),
        (None, Slates(), r"^policy must be an object that has choose and learn, got None"),
        (C2UCB(n_features=10), Slates, r"^environment must be an object that has rounds and n_features, got <class"),
        (
            C2UCB(n_features=10),
            "slates",
            r"^environment must be an object that has rounds and n_features, got 'slates'",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(policy, environment, message):
    with pytest.raises(ValueError, match=message):
        simulate(policy, environment, rounds=2)


@pytest.mark.slow
def test_a_worker_that_ends_too_soon_is_reported_in_a_sentence():
    with (
        pytest.raises(ChildProcessError, match=r"^a worker process ended before its work was done: "),
        worker_pool(1) as pool,
    ):
        pool.submit(os._exit, 1).result()


@pytest.mark.parametrize(("rounds", "repetitions"), [(10**13, 1), (1, 10**13), (10**7, 10**7)])
def test_more_than_memory_holds_is_refused_before_anything_runs(rounds, repetitions):
    with pytest.raises(ValueError, match=f"^{repetitions} repetitions of {rounds} rounds would take .* GB of memory"):
        simulate(EpsilonGreedy(n_features=10), Slates(), rounds=rounds, repetitions=repetitions)
