import numpy as np
import pytest
from scipy.stats import chi2, norm

from armful import ArmwiseThompson, CombLinTS
from armful.model.radius import estimated_noise
from armful.randomness import arm_normals, draw_key
from armful.testing import PolicyContract


class TestArmwiseThompsonContract(PolicyContract):
    def policy(self, n_features, seed):
        return ArmwiseThompson(n_features=n_features, ridge=n_features, radius=n_features**0.5, seed=seed)


class TestArmwiseThompsonDefaultsContract(PolicyContract):
    def policy(self, n_features, seed):
        return ArmwiseThompson(n_features=n_features, seed=seed)


class TestCombLinTSContract(PolicyContract):
    def policy(self, n_features, seed):
        return CombLinTS(n_features=n_features, noise=0.5, ridge=2.0, seed=seed)


D = 4
RNG = np.random.default_rng(0)
SEEN, REWARDS = RNG.standard_normal((20, D)), RNG.standard_normal(20)
X = RNG.standard_normal((7, D))


def kalman(lam, sigma):
    """Wen et al. (2015), Algorithm 3: from N(0, lam^2 I), one observation at a time."""
    theta, Sigma = np.zeros(D), lam**2 * np.eye(D)
    for x, r in zip(SEEN, REWARDS, strict=True):
        gain = Sigma @ x / (x @ Sigma @ x + sigma**2)
        theta = (np.eye(D) - np.outer(gain, x)) @ theta + gain * r
        Sigma = Sigma - np.outer(gain, x @ Sigma)
    return theta, Sigma


def assert_normal(draws, mean, covariance):
    """`draws` `(n, m)` are independent N(mean, covariance), covariance possibly singular; one test, false alarms 1e-6.

    Whitened, the squares sum to a chi-square; and each entry of the empirical second-moment matrix, and of the mean,
    is within what a normal exceeds in 1e-6 of seeds when shared among all entries (Bonferroni).
    """
    n = len(draws)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values.max()
    centred = (draws - mean) @ vectors
    assert np.abs(centred[:, ~kept]).max(initial=0.0) < 1e-6 * np.sqrt(values.max())
    white = centred[:, kept] / np.sqrt(values[kept])
    m = white.shape[1]
    alpha = 1e-6 / 3
    assert chi2.ppf(alpha / 2, n * m) < (white**2).sum() < chi2.isf(alpha / 2, n * m)
    limit = norm.isf(alpha / (2 * m))
    assert (np.abs(white.sum(axis=0)) / np.sqrt(n) < limit).all()
    for i in range(m):
        assert chi2.ppf(alpha / (m * (m + 1)), n) < (white[:, i] ** 2).sum()
        assert (white[:, i] ** 2).sum() < chi2.isf(alpha / (m * (m + 1)), n)
        for j in range(i):  # ((a+b)^2 and (a-b)^2) / 2 are chi-square too, and their difference is twice the product
            for sign in (1, -1):
                square = ((white[:, i] + sign * white[:, j]) ** 2).sum() / 2
                assert chi2.ppf(alpha / (4 * m * m), n) < square < chi2.isf(alpha / (4 * m * m), n)


@pytest.mark.slow
def test_armwise_samples_are_independent_normals_of_the_stated_variance():
    """Statistical; false alarms 1e-6."""
    policy = ArmwiseThompson(n_features=D, ridge=2.0, radius=1.7, seed=0)
    policy.learn(SEEN, REWARDS)
    draws = np.stack([policy.scores(X, k=1) for _ in range(20_000)])
    mean, width = policy.state.mean_and_width(X)
    assert_normal(draws, mean, np.diag((1.7 * width) ** 2))


@pytest.mark.slow
def test_comb_lin_ts_samples_are_joint_normals_of_the_stated_covariance():
    """Statistical; false alarms 1e-6."""
    policy = CombLinTS(n_features=D, noise=0.6, ridge=2.0, seed=0)
    policy.learn(SEEN, REWARDS)
    draws = np.stack([policy.scores(X, k=1) for _ in range(20_000)])
    V = 2.0 * np.eye(D) + SEEN.T @ SEEN
    assert_normal(draws, X @ np.linalg.solve(V, SEEN.T @ REWARDS), 0.6**2 * X @ np.linalg.inv(V) @ X.T)


class FedGenerator:
    """A generator that returns the given normals."""

    bit_generator = np.random.PCG64(0)

    def __init__(self, normals):
        self.normals = np.asarray(normals, dtype=float)

    def standard_normal(self, size):
        assert self.normals.shape == (size,)
        return self.normals


@pytest.mark.parametrize(("lam", "sigma"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.4)])
def test_comb_lin_ts_is_wens_kalman_recursion(lam, sigma):
    """Scores are linear in the normals that are drawn: mean and covariance follow exactly, without statistics."""
    policy = CombLinTS(n_features=D, noise=sigma, ridge=sigma**2 / lam**2)
    for x, r in zip(SEEN, REWARDS, strict=True):
        policy.learn(x[None], [r])
    theta, Sigma = kalman(lam, sigma)

    def drawn(normals):
        policy.rng = FedGenerator(normals)
        return policy.scores(np.eye(D), k=1)

    assert np.allclose(drawn(np.zeros(D)), theta)
    root = np.stack([drawn(e) - theta for e in np.eye(D)], axis=-1)
    assert np.allclose(root @ root.T, Sigma)
    normals = np.array([0.3, -1.2, 2.0, 0.1])
    assert np.allclose(drawn(normals), theta + root @ normals)


def test_armwise_scores_are_the_mean_plus_radius_width_and_the_drawn_normal():
    policy = ArmwiseThompson(n_features=D, ridge=2.0, radius=1.7)
    policy.learn(SEEN, REWARDS)
    V = 2.0 * np.eye(D) + SEEN.T @ SEEN
    width = np.sqrt(np.einsum("ni,ij,nj->n", X, np.linalg.inv(V), X))
    policy.rng = np.random.default_rng(5)
    normals = arm_normals(draw_key(np.random.default_rng(5)), np.arange(7))
    assert np.allclose(policy.scores(X, k=1), X @ np.linalg.solve(V, SEEN.T @ REWARDS) + 1.7 * width * normals)


def test_by_default_samplers_draw_with_half_of_the_estimated_noise():
    """The same draws as with half of the noise that the residuals show."""
    assert CombLinTS(n_features=3).options == {"n_features": 3, "noise": "auto", "ridge": 1.0}
    for kind, option in ((CombLinTS, "noise"), (ArmwiseThompson, "radius")):
        policy = kind(n_features=D, seed=5)
        policy.learn(SEEN, REWARDS)
        known = kind(n_features=D, seed=5, **{option: float(estimated_noise(policy.state)) / 2})
        known.learn(SEEN, REWARDS)
        assert np.allclose(policy.scores(X, k=2), known.scores(X, k=2))


@pytest.mark.parametrize("noise", [0.0, -1.0, np.inf, "loud"])
def test_comb_lin_ts_needs_a_positive_noise(noise):
    with pytest.raises(ValueError, match=r"^noise must be .*, got "):
        CombLinTS(n_features=2, noise=noise)
