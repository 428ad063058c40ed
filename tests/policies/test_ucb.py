import math

import numpy as np
import pytest

from armful import C2UCB, AtMost, CappedC2UCB, CombLinUCB, TopK
from armful.model.radius import estimated_noise
from armful.policies.scores import Scores
from armful.testing import PolicyContract


class TestC2UCBContract(PolicyContract):
    def policy(self, n_features, seed):
        return C2UCB(n_features=n_features, ridge=n_features, radius=n_features**0.5, seed=seed)


class TestC2UCBWithTheTheorysRadiusContract(PolicyContract):
    def policy(self, n_features, seed):
        return C2UCB(n_features=n_features, ridge="theory", radius="theory", noise=0.5, norm=2.0, length=3.0, seed=seed)


class TestCappedC2UCBContract(PolicyContract):
    def policy(self, n_features, seed):
        return CappedC2UCB(n_features=n_features, cap=1.0, seed=seed)


class TestCappedC2UCBWithEveryCapContract(PolicyContract):
    def policy(self, n_features, seed):
        return CappedC2UCB(n_features=n_features, cap=1.0, norm=1.0, spread=2.0, noise=1.0, seed=seed)


class TestCappedC2UCBWithASpreadContract(PolicyContract):
    def policy(self, n_features, seed):
        return CappedC2UCB(n_features=n_features, spread=0.3, seed=seed)


class TestPapersCappedC2UCBContract(PolicyContract):
    def policy(self, n_features, seed):
        return CappedC2UCB(n_features=n_features, cap=0.9, rule="paper", ridge=n_features, radius=2.0, seed=seed)


class TestCombLinUCBContract(PolicyContract):
    def policy(self, n_features, seed):
        return CombLinUCB(n_features=n_features, noise=0.5, ridge=0.25, seed=seed)


D = 4
RNG = np.random.default_rng(0)
SEEN, REWARDS = RNG.standard_normal((20, D)), RNG.standard_normal(20)
X = RNG.standard_normal((9, D)) * RNG.random((9, 1)) * 3
RIDGE = 2.0
V = RIDGE * np.eye(D) + SEEN.T @ SEEN
MEAN = X @ np.linalg.solve(V, SEEN.T @ REWARDS)
WIDTH = np.sqrt(np.einsum("ni,ij,nj->n", X, np.linalg.inv(V), X))
UCB = MEAN + 1.5 * WIDTH


def learned(policy):
    policy.learn(SEEN, REWARDS)
    return policy


def capped(**options):
    return learned(CappedC2UCB(n_features=D, ridge=RIDGE, radius=1.5, seed=0, **options))


# -- LinUCB and Wen ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 1.5])
def test_one_arm_a_round_is_lin_ucb(alpha):
    rng = np.random.default_rng(1)
    theta = rng.standard_normal(D)
    policy = C2UCB(n_features=D, ridge=RIDGE, radius=alpha, seed=0)
    V, b = RIDGE * np.eye(D), np.zeros(D)
    for _ in range(400):
        arms = rng.standard_normal((int(rng.integers(1, 30)), D))
        inverse = np.linalg.inv(V)
        scores = arms @ (inverse @ b) + alpha * np.sqrt(np.sum(arms @ inverse * arms, axis=1))
        choice = policy.choose(arms, TopK(1))
        assert choice.indices.tolist() == [int(np.argmax(scores))]
        assert np.isclose(choice.value, scores.max(), rtol=1e-9)
        x = arms[np.argmax(scores)]
        reward = x @ theta + rng.standard_normal()
        policy.learn(choice.features, [reward])
        V, b = V + np.outer(x, x), b + reward * x


@pytest.mark.parametrize(("lam", "sigma"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.4)])
def test_comb_lin_ucb_is_wens_kalman_recursion(lam, sigma):
    """Wen et al. (2015), Algorithm 3 and its CombLinUCB."""
    rng = np.random.default_rng(1)
    policy = CombLinUCB(n_features=D, radius=1.3, noise=sigma, ridge=sigma**2 / lam**2, seed=0)
    truth = rng.standard_normal(D)
    theta, Sigma = np.zeros(D), lam**2 * np.eye(D)
    for _ in range(60):
        arms = rng.standard_normal((12, D))
        scores = arms @ theta + 1.3 * np.sqrt(np.sum(arms @ Sigma * arms, axis=1))
        assert np.allclose(policy.scores(arms, k=3), scores, rtol=1e-8, atol=1e-10)
        choice = policy.choose(arms, TopK(3))
        assert sorted(choice.indices.tolist()) == sorted(np.argsort(-scores)[:3].tolist())
        rewards = choice.features @ truth + sigma * rng.standard_normal(3)
        policy.learn(choice.features, rewards)
        for x, r in zip(choice.features, rewards, strict=True):
            gain = Sigma @ x / (x @ Sigma @ x + sigma**2)
            theta = (np.eye(D) - np.outer(gain, x)) @ theta + gain * r
            Sigma = Sigma - np.outer(gain, x @ Sigma)


def test_by_default_comb_lin_ucb_adds_one_standard_deviation_of_the_estimated_noise():
    policy = learned(CombLinUCB(n_features=D))
    assert policy.options == {"n_features": D, "radius": 1.0, "noise": "auto", "ridge": 1.0}
    bonus = float(estimated_noise(policy.state)) * policy.state.width(X)
    assert np.allclose(policy.scores(X, k=3), policy.state.mean(X) + bonus)


# -- the paper's rule --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_the_papers_rule_is_its_algorithm_2(k):
    policy = capped(cap=0.9, rule="paper")
    wide = np.square(WIDTH) > 1 / k
    assert np.allclose(policy.scores(X, k=k), np.where(wide, 0.9, UCB))
    choice = policy.choose(X, TopK(k))
    assert np.array_equal(choice.capped, wide[choice.indices])


def test_the_papers_rule_meets_wide_and_narrow_arms_here():
    assert 0 < (WIDTH**2 > 1 / 5).sum() < 9


def test_the_papers_rule_may_raise_a_score_which_clip_never_does():
    hopeless, below = capped(cap=0.9, rule="paper"), capped(cap=0.9)
    assert (hopeless.scores(X, k=9) > UCB + 1e-9).any()
    assert (below.scores(X, k=9) <= UCB + 1e-12).all()


def test_at_most_k_counts_as_k():
    policy = capped(cap=0.9, rule="paper")
    choice = policy.choose(X, AtMost(5))
    scores = np.where(WIDTH**2 > 1 / 5, 0.9, UCB)
    assert np.allclose(choice.scores, scores[choice.indices])


# -- clip --------------------------------------------------------------------------------------------

NORMS = np.linalg.norm(X, axis=1)


def at_most(caps):
    """UCB clipped at caps; how ties at a cap are broken is tested in test_ties.py."""
    return Scores.clipped(MEAN, UCB - MEAN, caps).value


@pytest.mark.parametrize(
    ("options", "caps"),
    [
        ({"cap": 0.8}, 0.8),
        ({"norm": 0.5}, 0.5 * NORMS),
        ({"spread": 1.0}, 1.0 + UCB.min()),
        ({"cap": 0.8, "norm": 0.5}, np.minimum(0.8, 0.5 * NORMS)),
        ({"cap": 0.8, "spread": 1.0}, np.minimum(0.8, 1.0 + UCB.min())),
        ({"cap": 0.8, "norm": 0.5, "spread": 1.0}, np.minimum(np.minimum(0.8, 0.5 * NORMS), 1.0 + UCB.min())),
    ],
)
@pytest.mark.parametrize("per_arm", [False, True])
def test_a_clipped_score_is_the_least_of_all_caps(options, caps, per_arm):
    policy = capped(**options)
    own = np.linspace(-1.0, 1.5, 9)
    expected = at_most(np.minimum(caps, own) if per_arm else caps)
    choice = policy.choose(X, TopK(9), caps=own if per_arm else None)
    i = choice.indices
    assert np.allclose(choice.scores, expected[i], rtol=1e-12, atol=1e-12)
    assert np.allclose(choice.mean, MEAN[i])
    assert np.allclose(choice.bonus, 1.5 * WIDTH[i])
    assert np.array_equal(choice.capped, (expected < UCB - 1e-12)[i])
    assert np.isclose(choice.value, expected.sum())


def test_every_cap_binds_somewhere_here():
    for cap in (0.8, 0.5 * NORMS, 1.0 + UCB.min(), np.linspace(-1.0, 1.5, 9)):
        assert (cap < UCB).any()


def test_caps_of_single_arms_suffice():
    policy = capped()
    assert policy.choose(X, TopK(1), caps=np.arange(9.0) - 9).indices.tolist() == [8]
    with pytest.raises(ValueError) as refusal:
        policy.choose(X, TopK(1))
    assert str(refusal.value) == (
        "CappedC2UCB needs a cap, a number that no mean reward exceeds: CappedC2UCB(..., cap=1.0), or "
        "choose(X, constraint, caps=...) with one for each arm; C2UCB needs none"
    )
    assert "It needs a cap" in CappedC2UCB.__doc__.splitlines()[0]


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        (np.ones(8), "caps must have shape (9,), one for each arm, got (8,)"),
        (1.0, "caps must have shape (9,), one for each arm, got the single number 1.0"),
        ([1.0] * 8 + [np.nan], "caps must be numbers, infinity for no cap, got nan in row 8"),
        ([np.inf] * 8 + [-np.inf], "caps must be numbers, infinity for no cap, got -inf in row 8"),
    ],
)
def test_caps_that_are_not_one_for_each_arm_are_refused(caps, message):
    with pytest.raises(ValueError) as refusal:
        capped(cap=1.0).choose(X, TopK(1), caps=caps)
    assert str(refusal.value) == message


def test_where_an_arm_has_no_cap_it_is_infinite():
    caps = np.where(np.arange(9) % 2 == 0, np.inf, 0.1)
    np.testing.assert_allclose(capped().scores(X, k=3, caps=caps), at_most(caps))
    np.testing.assert_allclose(capped(cap=0.5).scores(X, k=3, caps=caps), at_most(np.minimum(caps, 0.5)))


def test_a_policy_that_knows_no_caps_refuses_them():
    with pytest.raises(ValueError, match=r"^C2UCB takes no caps; CappedC2UCB does$"):
        C2UCB(n_features=D).choose(X, TopK(1), caps=np.ones(9))
    with pytest.raises(ValueError, match=r"^rule='paper' takes no caps of single arms; rule='clip' does$"):
        capped(cap=1.0, rule="paper").choose(X, TopK(1), caps=np.ones(9))


def test_plain_c2ucb_explains_itself():
    choice = learned(C2UCB(n_features=D, ridge=RIDGE, radius=1.5, seed=0)).choose(X, TopK(4))
    i = choice.indices
    assert i.tolist() == np.argsort(-UCB)[:4].tolist()
    assert np.allclose(choice.mean, MEAN[i])
    assert np.allclose(choice.bonus, 1.5 * WIDTH[i])
    assert not choice.capped.any()


# -- defaults and radii ------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_specification():
    policy = CappedC2UCB(n_features=D, cap=1.0)
    assert policy.options == {
        "n_features": D,
        "cap": 1.0,
        "rule": "clip",
        "spread": None,
        "ridge": 1.0,
        "radius": "pointwise",
        "noise": "auto",
        "norm": None,
        "delta": 0.1,
        "length": None,
    }


@pytest.mark.parametrize(
    ("cap", "guess", "norm"), [(1.0, 0.5, 1.0), (4.0, 2.0, 4.0), (0.0, 0.5, 1.0), (None, 0.5, 1.0)]
)
def test_the_default_score_is_its_formula(cap, guess, norm):
    policy = learned(CappedC2UCB(n_features=D, cap=cap))
    V = np.eye(D) + SEEN.T @ SEEN
    b = SEEN.T @ REWARDS
    theta = np.linalg.solve(V, b)
    noise = (20 * guess**2 + REWARDS @ REWARDS - b @ theta) / (20 + 20)
    alpha = math.sqrt(noise * 2 * math.log(10) + norm**2)
    mean, width = X @ theta, np.sqrt(np.einsum("ni,ij,nj->n", X, np.linalg.inv(V), X))
    caps = np.linspace(-1.0, 1.5, 9)
    lowest = caps if cap is None else np.minimum(cap, caps)
    expected = Scores.clipped(mean, alpha * width, lowest).value
    assert np.allclose(policy.scores(X, k=3, caps=caps), expected, rtol=1e-10)


def test_two_standard_errors_fewer_the_more_arms_are_chosen():
    policy = learned(C2UCB(n_features=D, ridge=RIDGE, radius="noise", noise=0.7))
    assert np.allclose(policy.scores(X, k=12), MEAN + 2 * 0.7 / 2 * WIDTH)


def test_a_norm_that_is_not_given_is_no_cap():
    far = np.array([[0.1, 0.0, 0.0, 0.0]])
    assert CappedC2UCB(n_features=D, cap=1.0).scores(far, k=1) > 0.1
    assert np.isclose(CappedC2UCB(n_features=D, cap=1.0, norm=1.0).scores(far, k=1), 0.1)


def test_the_theorys_ridge_is_its_formula():
    policy = C2UCB(n_features=D, ridge="theory", noise=0.7, norm=1.3)
    assert np.isclose(policy.ridge, 0.7**2 / 1.3**2 * D)
    assert np.isclose(C2UCB(n_features=D, ridge="theory", noise=0.7).ridge, 0.7**2 * D)


@pytest.mark.parametrize("length", [None, 2.5])
def test_the_theorys_radius_is_its_formula(length):
    policy = learned(C2UCB(n_features=D, ridge=RIDGE, radius="theory", noise=0.7, norm=1.3, delta=0.05, length=length))
    squares = (SEEN**2).sum() if length is None else length**2 * (20 + 6)
    alpha = 0.7 * math.sqrt(D * math.log((1 + squares / RIDGE) / 0.05)) + 1.3 * math.sqrt(RIDGE)
    assert np.allclose(policy.scores(X, k=6), MEAN + alpha * WIDTH)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cap": -1.0}, "cap must not be negative, got -1.0"),
        ({"cap": np.nan}, "cap must be a finite number, got nan"),
        ({"cap": 1.0, "rule": "papers"}, "rule must be one of 'clip', 'paper', got 'papers'"),
        ({"rule": "paper"}, "rule='paper' needs cap, the largest mean reward B"),
        ({"rule": "paper", "cap": 1.0, "spread": 1.0}, "rule='paper' takes no spread; rule='clip' does"),
        ({"spread": -1.0}, "spread must not be negative, got -1.0"),
        (
            {"cap": 1.0, "radius": "big"},
            "radius must be a number or one of 'pointwise', 'noise', 'sampling', 'logdet', 'theory', got 'big'",
        ),
        ({"cap": 1.0, "radius": -1.0}, "radius must not be negative, got -1.0"),
        ({"cap": 1.0, "noise": "loud"}, "noise must be a number or 'auto', got 'loud'"),
        ({"cap": 1.0, "noise": -1.0}, "noise must not be negative, got -1.0"),
        ({"cap": 1.0, "norm": 0.0}, "norm must be positive, got 0.0; 1.0 is a usual start"),
        ({"cap": 1.0, "length": -1.0}, "length must be positive, got -1.0; 1.0 is a usual start"),
        ({"cap": 1.0, "delta": 0.0}, "delta must be between 0 and 1, got 0.0"),
        ({"cap": 1.0, "delta": 1.0}, "delta must be between 0 and 1, got 1.0"),
        ({"cap": 1.0, "ridge": 0.0}, "ridge must be positive, got 0.0; 1.0 is a usual start"),
        ({"cap": 1.0, "ridge": "big"}, "ridge must be a number or 'theory', got 'big'"),
        (
            {"cap": 1.0, "ridge": "theory"},
            "ridge='theory' is R^2 S^-2 d and needs noise (R) as a number, got noise='auto'",
        ),
        ({"cap": 1.0, "n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        (
            {"cap": 1.0, "n_features": 0, "noise": 1.0, "ridge": "theory"},
            "n_features must be a whole number of at least 1, got 0",
        ),
    ],
)
def test_every_wrong_option_gets_one_sentence(options, message):
    with pytest.raises(ValueError) as refusal:
        CappedC2UCB(**{"n_features": 2} | options)
    assert str(refusal.value) == message


@pytest.mark.parametrize("kind", [C2UCB, CappedC2UCB, CombLinUCB])
def test_an_option_nobody_knows_is_named(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__} has no option .alpha.; it takes by name n_features"):
        kind(n_features=2, alpha=1.0)
    with pytest.raises(TypeError, match=rf"^{kind.__name__} takes by name .* got 1 argument by position"):
        kind(2)


@pytest.mark.parametrize(("option", "value"), [("radius", -1.0), ("radius", "theory"), ("noise", 0.0), ("ridge", 0.0)])
def test_comb_lin_ucb_refuses_wrong_options(option, value):
    with pytest.raises(ValueError, match=rf"^{option} must .*, got "):
        CombLinUCB(n_features=2, **{option: value})
