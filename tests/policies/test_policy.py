import copy
import json
import math
import pickle

import numpy as np
import pytest

import armful
from armful import (
    C2UCB,
    Arms,
    ArmwiseThompson,
    CappedC2UCB,
    CombLinTS,
    CombLinUCB,
    EpsilonGreedy,
    FileFormatError,
    InfeasibleError,
    Policy,
    RidgeState,
    Scores,
    TopK,
)
from armful.policies._repetitions import repeated
from armful.testing import PolicyContract

D = 3
RNG = np.random.default_rng(0)
X, REWARDS = RNG.standard_normal((12, D)), RNG.standard_normal(12)

EVERY = [
    EpsilonGreedy(n_features=D, seed=1),
    C2UCB(n_features=D, ridge=2.0, radius="theory", noise=0.3, norm=2.0, delta=0.01, length=4.0, seed=1),
    C2UCB(n_features=D, ridge="theory", noise=0.3, norm=2.0, seed=1),
    CappedC2UCB(n_features=D, cap=1.0, norm=2.0, spread=0.5, seed=1),
    CappedC2UCB(n_features=D, cap=1.0, rule="paper", radius=math.sqrt(D), seed=1),
    ArmwiseThompson(n_features=D, radius=1, seed=1),
    CombLinUCB(n_features=D, noise=0.5, seed=1),
    CombLinTS(n_features=D, noise=0.5, seed=1),
]


class Optimist(Policy):
    """A user's policy with an option of its own, kept under its name."""

    def __init__(self, *, bonus=1.0, **common):
        self.bonus = bonus
        super().__init__(**common)

    def score(self, arms, k):
        return arms.mean + self.bonus * arms.norm


class Plain(Policy):
    """A user's policy in the fewest lines, with a plain signature."""

    def __init__(self, n_features, factor=2.0, seed=None):
        super().__init__(n_features=n_features, seed=seed)
        self.factor = factor

    def score(self, arms, k):
        return self.factor * arms.mean


class Forgetful(Policy):
    """Does not keep its option as an attribute."""

    def __init__(self, *, n_features, gamma=1.0, seed=None):
        super().__init__(n_features=n_features, seed=seed)

    def score(self, arms, k):
        return arms.mean


class TestUsersPolicyContract(PolicyContract):
    def policy(self, n_features, seed):
        return Optimist(n_features=n_features, bonus=0.3, seed=seed)


class TestUsersPlainPolicyContract(PolicyContract):
    def policy(self, n_features, seed):
        return Plain(n_features, factor=0.5, seed=seed)


# -- options, state, merging -------------------------------------------------------------------------


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_a_repr_makes_the_policy_again(policy):
    again = eval(repr(policy), vars(armful))
    assert type(again) is type(policy)
    assert again.options == policy.options
    assert again.ridge == policy.ridge


def test_a_users_option_is_found_with_its_parents():
    assert Optimist(n_features=2, bonus=3.0).options == {"bonus": 3.0, "n_features": 2, "ridge": 1.0}
    assert Plain(2).options == {"n_features": 2, "factor": 2.0}


def test_learning_discounting_and_merging_are_those_of_the_state():
    policy, state = C2UCB(n_features=D, radius=1.0), RidgeState(n_features=D)
    other = RidgeState(n_features=D).learn(X[8:], REWARDS[8:])
    policy.learn(X[:4], REWARDS[:4], weights=[1, 2, 3, 4])
    policy.discount(0.5)
    policy.learn(X[4:8], REWARDS[4:8], shock=0.4)
    policy.merge(other)
    state = state.learn(X[:4], REWARDS[:4], weights=[1, 2, 3, 4]).discount(0.5)
    state = state.learn(X[4:8], REWARDS[4:8], shock=0.4) + other
    assert np.array_equal(policy.state.V, state.V)
    assert np.array_equal(policy.state.b, state.b)
    assert policy.state.n == state.n == 0.5 * 10 + 4 + 4


def test_a_set_learned_in_parts_and_late_is_learned_all_the_same():
    prompt, late = (C2UCB(n_features=D, radius=1.0) for _ in range(2))
    for begin in (0, 4, 8):
        prompt.learn(X[begin : begin + 4], REWARDS[begin : begin + 4])
    for arms in ([9, 1], [5], [0, 2, 3, 4, 11], [10, 8, 7, 6]):
        late.learn(X[arms], REWARDS[arms])
    assert np.allclose(prompt.state.V, late.state.V)
    assert np.allclose(prompt.scores(X, k=1), late.scores(X, k=1))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (RidgeState(n_features=D + 1), "expected a state of 3 features, got one of 4"),
        (RidgeState(n_features=D, ridge=2.0), "expected a state of ridge 1.0, got one of ridge 2.0"),
        (RidgeState(n_features=D, batch=(2,)), "expected a state with leading axes (), got (2,)"),
        (np.eye(D), "state must be a RidgeState, got ndarray"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state, message):
    policy = C2UCB(n_features=D)
    before = policy.state
    with pytest.raises(ValueError) as refusal:
        policy.state = state
    assert str(refusal.value) == message
    assert policy.state is before
    policy.state = RidgeState(n_features=D).learn(X, REWARDS)
    assert policy.state.n == 12


def test_a_policy_must_say_how_it_scores():
    with pytest.raises(NotImplementedError, match=r"^Mute must define score\(self, arms, k\)$"):
        type("Mute", (Policy,), {})(n_features=2).scores(np.eye(2), k=1)


def test_a_users_scores_may_come_with_their_reasons():
    class Reasoned(Policy):
        def score(self, arms, k):
            return Scores(arms.mean, arms.norm, arms.norm - 1, np.ones(arms.n_arms, dtype=bool))

    choice = Reasoned(n_features=2).choose([[3.0, 4.0], [0.0, 1.0]], TopK(1))
    assert (choice.scores.tolist(), choice.bonus.tolist(), choice.capped.tolist()) == ([4.0], [5.0], [True])


# -- choosing ----------------------------------------------------------------------------------------


def test_k_reaches_the_scores():
    class Told(Policy):
        def score(self, arms, k):
            return np.full(arms.n_arms, float(k))

    assert Told(n_features=D).choose(X, TopK(5)).value == 25.0
    assert Told(n_features=D).scores(X, k=7).tolist() == [7.0] * 12


@pytest.mark.parametrize("k", [0, -1, 1.5, None])
def test_scores_for_no_number_of_arms_are_refused(k):
    with pytest.raises(ValueError, match=r"^k must be a whole number of at least 1, got "):
        C2UCB(n_features=D).scores(X, k=k)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((0, D)), "features must have at least one row, got (0, 3)"),
        (np.zeros((2, D + 1)), "features must have shape (n_arms, 3), got (2, 4)"),
        (np.zeros((2, 2, D)), "features must have shape (n_arms, 3), got (2, 2, 3)"),
        ([[0.0, 0.0, np.nan]], "features must be finite, got nan in row 0"),
        ([[0.0, 0.0, 0.0], [0.0, -np.inf, 0.0]], "features must be finite, got -inf in row 1"),
        ("arms", "features must be an array of real numbers, got words like 'arms'"),
        (None, "features must be an array of real numbers, got None"),
    ],
)
@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: type(policy).__name__)
def test_arms_that_cannot_be_get_one_sentence(policy, features, message):
    with pytest.raises(ValueError) as refusal:
        policy.choose(features, TopK(1))
    assert str(refusal.value) == message


def test_too_many_arms_asked_for_is_infeasible():
    with pytest.raises(InfeasibleError, match=r"^TopK\(13\) needs 13 arms, 12 are there$"):
        C2UCB(n_features=D).choose(X, TopK(13))


def test_features_of_whole_numbers_lists_and_float32_will_do():
    for rows in ([[1, 0, 0], [0, 2, 0]], np.array([[1, 0, 0], [0, 2, 0]], dtype=np.float32)):
        choice = C2UCB(n_features=D, radius=1.0).choose(rows, TopK(1))
        assert choice.indices.tolist() == [1]
        assert choice.features.dtype == np.float64


def test_a_batch_neither_chooses_nor_saves(tmp_path):
    batch = repeated(C2UCB(n_features=D), [np.random.default_rng(i) for i in range(2)])
    assert batch.score(Arms(X, batch.state), 2).value.shape == (2, 12)
    for action in (lambda: batch.choose(X, TopK(1)), lambda: batch.save(tmp_path / "file")):
        with pytest.raises(TypeError, match=r"^this policy is a batch of repetitions"):
            action()


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_every_option_is_saved(tmp_path, policy):
    policy.save(tmp_path / "policy")
    loaded = armful.load(tmp_path / "policy")
    assert type(loaded) is type(policy)
    assert loaded.options == policy.options


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_is_saved(tmp_path, bits):
    policy = ArmwiseThompson(n_features=D, seed=np.random.Generator(getattr(np.random, bits)(5)))
    policy.scores(X, k=1)
    policy.save(tmp_path / "policy")
    loaded = armful.load(tmp_path / "policy")
    for _ in range(3):
        assert np.array_equal(loaded.scores(X, k=1), policy.scores(X, k=1))
        assert loaded.choose(np.ones((9, D)), TopK(3)).indices.tolist() == (
            policy.choose(np.ones((9, D)), TopK(3)).indices.tolist()
        )


def test_options_that_are_numpys_numbers_are_saved(tmp_path):
    policy = C2UCB(n_features=np.int64(D), radius=np.int64(2), noise=np.float32(0.5), norm=np.float64(2.0))
    policy.save(tmp_path / "policy")
    assert armful.load(tmp_path / "policy").options == policy.options


def test_a_users_policy_is_saved_and_loaded(tmp_path):
    for policy in (Optimist(n_features=D, bonus=0.25, ridge=3.0, seed=4), Plain(D, factor=0.25, seed=4)):
        policy.learn(X, REWARDS)
        policy.save(tmp_path / "policy")
        loaded = armful.load(tmp_path / "policy")
        assert type(loaded) is type(policy)
        assert loaded.options == policy.options
        assert np.array_equal(loaded.scores(X, k=1), policy.scores(X, k=1))


def test_an_option_that_cannot_be_saved_is_refused_and_the_old_file_stays(tmp_path):
    Optimist(n_features=D, bonus=1.5).save(tmp_path / "policy")
    with pytest.raises(ValueError, match=r"^Optimist has an option that cannot be saved: "):
        Optimist(n_features=D, bonus=object()).save(tmp_path / "policy")
    assert [file.name for file in tmp_path.iterdir()] == ["policy"]
    assert armful.load(tmp_path / "policy").bonus == 1.5


def test_an_option_that_is_not_kept_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^Forgetful has an option that cannot be saved: .*gamma"):
        Forgetful(n_features=D).save(tmp_path / "policy")
    assert not any(tmp_path.iterdir())


def changed(path, **changes):
    """The file at `path` with some entries of its header changed, or taken out where the change is None."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header.json"))) | changes
    header = {name: value for name, value in header.items() if value is not None}
    with open(path, "wb") as file:
        np.savez(file, **{"header.json": np.array(json.dumps(header))}, **arrays)


def refusal(path):
    with pytest.raises(FileFormatError) as refused:
        armful.load(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path)).strip()


@pytest.fixture
def saved(tmp_path):
    policy = CappedC2UCB(n_features=D, cap=1.0, seed=0)
    policy.learn(X, REWARDS)
    policy.save(tmp_path / "policy")
    return tmp_path / "policy"


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        armful.load(tmp_path / "nowhere")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    assert refusal(saved) == "is not an armful file, or it is damaged"


def test_foreign_files_are_refused(saved):
    damaged = "is not an armful file, or it is damaged"
    saved.write_bytes(pickle.dumps(EVERY[0]))
    assert refusal(saved) == damaged
    saved.write_text("policy = C2UCB")
    assert refusal(saved) == damaged
    with open(saved, "wb") as file:
        np.savez(file, weights=np.ones(3))
    assert refusal(saved) == damaged
    RidgeState(n_features=2).save(saved)
    assert refusal(saved) == "holds a ridge state, expected a policy"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "has layout version 2; this armful reads version 1: upgrade armful"),
        (
            {"class": "their.module:Policy"},
            "holds a policy of class their.module:Policy; import the module that defines it, then load again",
        ),
        ({"options": {"n_features": D, "color": 1}}, None),
        (
            {"options": {"n_features": D, "cap": -1.0}},
            "does not fit CappedC2UCB of this armful: cap must not be negative, got -1.0",
        ),
        (
            {"options": {"n_features": D + 1, "cap": 1.0}},
            "does not fit CappedC2UCB of this armful: expected a state of 4 features, got one of 3",
        ),
        ({"options": [1]}, None),
        ({"options": None}, None),
        ({"generator": None}, None),
        ({"generator": {"bit_generator": "seed"}}, None),
        ({"generator": {"bit_generator": "PCG64"}}, None),
        ({"generator": {"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}}, None),
        ({"generator": 7}, None),
        ({"ridge": None}, "does not hold a consistent ridge state"),
        ({"ridge": "big"}, "does not hold a consistent ridge state"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(saved, changes, message):
    changed(saved, **changes)
    said = refusal(saved)
    assert said == message if message else said.startswith("does not fit CappedC2UCB of this armful: ")


def test_a_refused_choice_draws_nothing():
    policy = ArmwiseThompson(n_features=2, seed=3)
    before = policy.rng.bit_generator.state
    with pytest.raises(InfeasibleError):
        policy.choose(np.ones((2, 2)), TopK(5))
    assert policy.rng.bit_generator.state == before


def test_the_arrays_of_a_state_are_read_only():
    policy = C2UCB(n_features=2)
    policy.learn([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match="read-only"):
        policy.state.theta[0] = 9.0


def test_refused_scores_draw_nothing():
    policy = EpsilonGreedy(n_features=2, epsilon=1.0, seed=3)
    before = policy.rng.bit_generator.state
    with pytest.raises(ValueError, match="finite"):
        policy.scores([[np.inf, 1.0]], k=1)
    assert policy.rng.bit_generator.state == before


class Pairs(TopK):
    """A constraint that answers with a plain pair."""

    def best(self, scores, X=None, rng=None):
        return np.arange(self.k), 1.0


class Shapeless(armful.Policy):
    def score(self, arms, k):
        return np.ones(7)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: C2UCB(n_features=2, seed=-1), "seed must be a whole number"),
        (lambda: C2UCB(n_features=2, seed="a"), "seed must be a whole number"),
        (lambda: C2UCB(n_features=2, noise=1e200), "noise must be at most"),
        (lambda: C2UCB(n_features=2, ridge=10**400), "ridge must be a number that float64 holds"),
        (lambda: C2UCB(n_features=2).choose(np.eye(2), None), "constraint must be one of"),
        (lambda: C2UCB(n_features=2).choose(np.eye(2), TopK), "constraint must be one of"),
        (lambda: C2UCB(n_features=2).merge(C2UCB(n_features=2)), "another policy's .state"),
        (lambda: C2UCB(n_features=2).learn(np.ma.masked_array(np.eye(2)), [1.0, 2.0]), "without a mask"),
        (lambda: C2UCB(n_features=2).learn(np.eye(2).astype("U3"), [1.0, 2.0]), "real numbers, got words like '1.0'"),
        (lambda: C2UCB(n_features=2).learn(np.eye(2), [1.0, 2.0], shock=None), "shock must be a number"),
        (lambda: C2UCB(n_features=2).choose(np.eye(2), Pairs(1)), "must answer with a Selection, got tuple"),
        (lambda: Shapeless(n_features=2).choose(np.eye(2), TopK(1)), r"scores of shape \(2,\), got \(7,\)"),
    ],
)
def test_more_mistakes_get_a_sentence(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


# -- merging what is there already -------------------------------------------------------------------


def refused_as_known(policy, state):
    before = policy.state
    with pytest.raises(
        ValueError, match=r"^this policy holds observations of that state already .* count twice: merge"
    ):
        policy.merge(state)
    assert policy.state is before


def test_a_policy_does_not_merge_what_it_knows(tmp_path):
    policy, other = C2UCB(n_features=D), C2UCB(n_features=D)
    policy.learn(X[:4], REWARDS[:4])
    snapshot = policy.state
    refused_as_known(policy, policy.state)
    policy.learn(X[4:6], REWARDS[4:6])
    refused_as_known(policy, snapshot)
    other.learn(X[6:], REWARDS[6:])
    policy.merge(other.state)
    assert policy.state.n == 12
    refused_as_known(policy, other.state)  # a second time
    other.learn(X[:1], REWARDS[:1])
    refused_as_known(policy, other.state)  # with one more, of which the rest was merged
    refused_as_known(other, policy.state)  # and back
    policy.save(tmp_path / "policy")
    refused_as_known(armful.load(tmp_path / "policy"), snapshot)
    refused_as_known(policy, armful.load(tmp_path / "policy").state)
    refused_as_known(policy, pickle.loads(pickle.dumps(policy)).state)


def test_policies_that_began_alike_merge_what_each_learned():
    policy = C2UCB(n_features=D)
    other = copy.deepcopy(policy)
    policy.learn(X[:4], REWARDS[:4])
    other.learn(X[4:], REWARDS[4:])
    policy.merge(other.state)
    assert policy.state.n == 12
    policy.merge(C2UCB(n_features=D).state)  # nothing at all
    C2UCB(n_features=D).merge(C2UCB(n_features=D).state)
    fresh = C2UCB(n_features=D)
    fresh.merge(fresh.state)
    assert fresh.state.n == 0


def test_the_parts_of_a_score_are_had_as_the_docstring_of_scores_says():
    policy, caps = CappedC2UCB(n_features=D, cap=0.4, seed=0), np.linspace(0.1, 1.0, 12)
    policy.learn(X[:3], [0.1, 0.2, 0.3])
    assert "policy.score(armful.Arms(X, policy.state, caps), k)" in Policy.scores.__doc__
    parts = policy.score(Arms(X, policy.state, caps), 3)
    assert np.array_equal(parts.value, policy.scores(X, k=3, caps=caps))
    assert np.array_equal((parts.mean + parts.bonus)[~parts.capped], parts.value[~parts.capped])
    assert np.allclose(parts.mean, policy.state.mean(X))
