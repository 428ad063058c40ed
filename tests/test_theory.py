"""Bounds against formulas written anew, inequalities against dense algebra, guarantees against simulation.

Statistical tests state their false-alarm rate, and hold for any seed at that rate.
"""

import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import armful
from armful import theory
from armful.model.radius import log_det_radius, theory_radius
from armful.model.ridge import RidgeState

FALSE_ALARM = 1e-9
on_any_machine = settings(max_examples=40, deadline=None)
SETTINGS = [
    {"k": 1, "rounds": 1, "n_features": 1, "length": 1.0, "ridge": 1.0},
    {"k": 10, "rounds": 7, "n_features": 4, "length": 2.0, "ridge": 3.0},
    {"k": 500, "rounds": 20, "n_features": 20, "length": 0.3, "ridge": 0.01},
]


def literal_G(k, rounds, n_features, length, ridge):
    return n_features * math.log1p(length**2 * k * rounds / (n_features * ridge))


# -- bounds equal their formulas ---------------------------------------------------------------------


@pytest.mark.parametrize("s", SETTINGS)
def test_every_bound_is_the_formula_written_out(s):
    a, B, C, D = 2.5, 0.7, 3.0, 4
    G, k, T, L, lam = literal_G(**s), s["k"], s["rounds"], s["length"], s["ridge"]
    root = 2 * a * math.sqrt(2 * k * T * G)
    wide = min(4 * a * L * k / math.sqrt(lam), 4 * B * k**2)
    assert theory.log_det_bound(**s) == pytest.approx(G)
    assert theory.c2ucb_bound(radius=a, bound=B, **s) == pytest.approx(root + wide * G)
    assert theory.c2ucb_bound(radius=a, **s) == pytest.approx(root + 4 * a * L * k / math.sqrt(lam) * G)
    assert theory.c2ucb_matroid_bound(radius=a, bound=B, **s) == pytest.approx(root + 4 * B * k * G)
    assert theory.capped_bound(radius=a, bound=B, lipschitz=C, **s) == pytest.approx(C * (root + 4 * B * k * G))
    by_round = 2 * a * math.sqrt(k * T * G / math.log(2))
    learning = 2 * B * k * G / math.log(2)
    assert theory.c2ucb_round_counting_bound(radius=a, bound=B, **s) == pytest.approx(by_round + learning)
    assert theory.delay_term(delay=D, bound=B, **s) == pytest.approx((D + 1) * learning)
    late = theory.c2ucb_round_counting_bound(radius=a, bound=B, delay=D, **s)
    assert late == pytest.approx(math.sqrt(2) * by_round + (D + 1) * learning)


def test_both_ways_to_bound_the_cost_of_wide_arms_are_used():
    s = {"k": 10, "rounds": 7, "n_features": 4, "ridge": 3.0}
    short, long = (theory.c2ucb_bound(radius=2.0, bound=1.0, length=L, **s) for L in (0.01, 1e9))
    assert short == theory.c2ucb_bound(radius=2.0, length=0.01, **s)
    assert long < theory.c2ucb_bound(radius=2.0, length=1e9, **s)


@pytest.mark.parametrize("s", SETTINGS)
def test_beta_is_the_theory_radius_of_the_policies(s):
    constants = {"noise": 0.6, "norm": 1.5, "ridge": s["ridge"], "n_features": s["n_features"], "delta": 0.05}
    ours = theory.beta(t=s["rounds"], k=s["k"], length=s["length"], **constants)
    literal = 0.6 * math.sqrt(
        s["n_features"] * math.log((1 + s["length"] ** 2 * s["k"] * s["rounds"] / s["ridge"]) / 0.05)
    ) + 1.5 * math.sqrt(s["ridge"])
    assert ours == pytest.approx(literal, rel=1e-12)


def test_a_policy_with_the_theory_radius_uses_beta_of_its_round():
    policy = armful.C2UCB(n_features=2, ridge=2.0, radius="theory", noise=0.5, norm=1.0, delta=0.2, length=3.0, seed=0)
    X = np.array([[1.0, 2.0], [0.5, 0.0], [2.0, -1.0]])
    for t in (1, 2, 3):
        choice = policy.choose(X, armful.TopK(2))
        b = theory.beta(t=t, k=2, n_features=2, noise=0.5, norm=1.0, length=3.0, ridge=2.0, delta=0.2)
        assert choice.bonus == pytest.approx(b * policy.state.width(choice.features))
        policy.learn(choice.features, [0.1, 0.2])


@pytest.mark.parametrize("exponent", [255, 500, 1000])
def test_nothing_overflows_when_the_square_of_the_length_does(exponent):
    s = {"k": 256, "rounds": 5120, "n_features": 7, "length": 2.0**exponent, "ridge": 0.5}
    with mpmath.workdps(50):
        ratio = mpmath.mpf(2) ** (2 * exponent) * 256 * 5120
        G = float(7 * mpmath.log(1 + ratio / mpmath.mpf("3.5")))
        b = float(
            2 * mpmath.sqrt(7 * mpmath.log((1 + ratio / mpmath.mpf("0.5")) / mpmath.mpf("1e-3"))) + mpmath.sqrt(0.5)
        )
    assert theory.log_det_bound(**s) == pytest.approx(G, rel=1e-13)
    ours = theory.beta(t=5120, k=256, n_features=7, noise=2.0, norm=1.0, length=s["length"], ridge=0.5, delta=1e-3)
    assert ours == pytest.approx(b, rel=1e-13)
    bounds = [
        theory.c2ucb_bound(radius=ours, bound=1.0, **s),
        theory.capped_bound(radius=ours, bound=1.0, **s),
        theory.c2ucb_round_counting_bound(radius=ours, bound=1.0, delay=2, **s),
    ]
    assert all(math.isfinite(bound) and bound > 0 for bound in bounds)


def test_round_counting_is_below_the_general_theorem_and_not_quadratic_in_k():
    def both(k):
        s = {"k": k, "rounds": 100, "n_features": 5, "length": 1.0, "ridge": 5.0}
        counted = theory.c2ucb_round_counting_bound(radius=0.0, bound=1.0, **s)
        return counted, theory.c2ucb_bound(radius=0.0, bound=1.0, **s), theory.log_det_bound(**s)

    (small, _, G_small), (large, _, G_large) = both(10), both(1000)
    assert large / small == pytest.approx(100 * G_large / G_small)
    s = {"k": 50, "rounds": 100, "n_features": 5, "length": 1e6, "ridge": 5.0}
    counted = theory.c2ucb_round_counting_bound(radius=3.0, bound=1.0, **s)
    assert (
        counted
        < theory.c2ucb_matroid_bound(radius=3.0, bound=1.0, **s)
        < theory.c2ucb_bound(radius=3.0, bound=1.0, **s)
    )


def test_the_lower_bound_order_is_the_smaller_of_learning_and_losing_everything():
    assert theory.lower_bound_order(k=4, rounds=25, n_features=3, noise=2.0, bound=5.0) == 2 * 3 * 10 + 5 * 3 * 4
    assert theory.lower_bound_order(k=4, rounds=2, n_features=30, noise=2.0, bound=5.0) == 5 * 4 * 2


@on_any_machine
@given(st.integers(1, 10**12), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_at_the_cadence_learning_costs_as_much_as_noise(decisions, noise, bound):
    k, d = theory.cadence(decisions=decisions, noise=noise, bound=bound), 7
    assert bound * d * k == pytest.approx(noise * d * math.sqrt(decisions))


# -- inequalities of every trajectory ----------------------------------------------------------------


def dense_widths(features, ridge):
    """Widths before each round by inverting V, and log det(V / ridge) after the last."""
    d = features[0].shape[1]
    V, widths = ridge * np.eye(d), []
    for X in features:
        widths.append(np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(V), X)))
        V = V + X.T @ X
    return widths, np.linalg.slogdet(V / ridge)[1]


def random_trajectory(rng, *, d, k, T, scale=1.0):
    return [scale * rng.standard_normal((int(rng.integers(0 if t else 1, k + 1)), d)) for t in range(T)]


@on_any_machine
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from([1e-9, 0.01, 1, 1e3]),
)
def test_the_four_inequalities_hold_and_are_those_of_dense_algebra(seed, d, k, T, scale):
    features = random_trajectory(np.random.default_rng(seed), d=d, k=k, T=T, scale=scale)
    report = theory.check_trajectory(features, ridge=0.5, k=k)
    by_round, gain = dense_widths(features, 0.5)
    w = np.concatenate(by_round)
    G = literal_G(k, T, d, max(np.linalg.norm(np.concatenate(features), axis=1)), 0.5)
    close = {"rel": 1e-6, "abs": 1e-12}
    assert report.holds, str(report)
    assert report.squares.left == pytest.approx(sum(min(1 / k, each**2) for each in w), **close)
    assert report.squares.middle == pytest.approx(2 * gain, **close)
    assert report.squares.right == pytest.approx(2 * G, **close)
    assert report.widths.left == pytest.approx(sum(min(1 / math.sqrt(k), each) for each in w), **close)
    assert report.widths.right == pytest.approx(math.sqrt(2 * k * T * G), **close)
    assert report.wide_arms.left == sum(each > 1 / math.sqrt(k) for each in w)
    assert report.wide_arms.right == pytest.approx(2 * k * G, **close)
    assert report.by_round.left == pytest.approx(sum(math.log1p(sum(each**2)) for each in by_round), **close)
    assert report.by_round.right == pytest.approx(gain, **close)


def adversarial() -> Iterator[tuple[str, list[np.ndarray]]]:
    axis = np.eye(5)
    yield "doubling along an axis", [2.0**t * axis[:1] for t in range(250)]
    yield "doubling beside still arms", [np.vstack([2.0 ** (t % 64) * axis[0], axis[1], axis[1]]) for t in range(128)]
    yield "one arm repeated", [np.repeat(axis[2:3], 40, axis=0) for _ in range(30)]
    yield "the paper's tight case", [np.repeat(1e3 * axis[t : t + 1], 20, axis=0) for t in range(5)]
    yield "a rare arm each round", [np.eye(60)[t : t + 1] for t in range(60)]
    yield "rare arms beside a common one", [np.eye(60)[[0, t]] for t in range(1, 60)]
    yield "shrinking", [2.0**-t * axis[:2] for t in range(60)]
    yield "nothing but zeros", [np.zeros((3, 2))] * 4
    yield "empty rounds", [np.ones((1, 2)), np.zeros((0, 2)), np.ones((4, 2)), np.zeros((0, 2))]
    yield "as long as is asked for", [2.0**500 * axis[:1], axis[1:3]]


@pytest.mark.parametrize(("features", "ridge"), [(f, ridge) for _, f in adversarial() for ridge in (1e-3, 1.0, 50.0)])
def test_the_four_inequalities_hold_on_adversarial_trajectories(features, ridge):
    report = theory.check_trajectory(features, ridge=ridge)
    assert report.holds, str(report)


def test_with_one_arm_a_round_the_sum_of_logs_is_the_log_determinant():
    report = theory.check_trajectory([2.0**t * np.eye(3)[[t % 3]] for t in range(90)], ridge=2.0)
    assert report.by_round.left == pytest.approx(report.by_round.right, rel=1e-12)


def test_a_false_inequality_is_reported_beyond_rounding_only():
    assert theory.Inequality("s", left=1.0 + 1e-10, right=1.0).holds
    assert not theory.Inequality("s", left=1.0 + 1e-8, right=1.0).holds
    assert not theory.Inequality("s", left=1.0, middle=3.0, right=2.0).holds
    assert not theory.Inequality("s", left=math.nan, right=2.0).holds
    good, bad = theory.Inequality("good", 1.0, 2.0), theory.Inequality("bad", 2.0, 1.0)
    for place in range(4):
        four = [bad if i == place else good for i in range(4)]
        report = theory.TrajectoryReport(*four)
        assert not report.holds
        assert str(report).splitlines()[place] == "FAILS  bad: 2 <= 1"
    assert theory.TrajectoryReport(good, good, good, good).holds


def test_a_larger_size_and_length_than_seen_may_be_given_and_smaller_ones_are_refused():
    features = [np.eye(2), np.eye(2)]
    wider = theory.check_trajectory(features, ridge=1.0, k=8, length=3.0)
    assert wider.holds
    assert wider.wide_arms.right == pytest.approx(16 * literal_G(8, 2, 2, 3.0, 1.0))
    with pytest.raises(ValueError, match="k must be at least 2"):
        theory.check_trajectory(features, ridge=1.0, k=1)
    with pytest.raises(ValueError, match=r"length must be at least 1\.0"):
        theory.check_trajectory(features, ridge=1.0, length=0.5)
    with pytest.raises(ValueError, match="at least one round"):
        theory.check_trajectory([], ridge=1.0)
    with pytest.raises(ValueError, match="n_features"):
        theory.check_trajectory([[1.0, 2.0]], ridge=1.0)


@on_any_machine
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 8), st.floats(1e-3, 1e3))
def test_the_determinant_of_a_round_is_at_least_one_plus_its_squared_widths(seed, d, k, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((k, d))
    state = RidgeState(n_features=d, ridge=0.7).learn(rng.standard_normal((5, d)), np.zeros(5))
    gram = X @ np.linalg.inv(state.V) @ X.T
    squared_widths = float(np.sum(state.width(X) ** 2))
    assert np.trace(gram) == pytest.approx(squared_widths, rel=1e-6)
    assert np.linalg.slogdet(np.eye(k) + gram)[1] >= math.log1p(squared_widths) * (1 - 1e-9) - 1e-12


@on_any_machine
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 10))
def test_a_stale_width_is_at_most_the_fresh_one_times_the_root_of_the_determinants_ratio(seed, d, missing):
    rng = np.random.default_rng(seed)
    stale = RidgeState(n_features=d, ridge=1.0).learn(rng.standard_normal((3, d)), np.zeros(3))
    fresh = stale.learn(rng.standard_normal((missing, d)), np.zeros(missing))
    X = rng.standard_normal((20, d))
    ratio = math.exp(0.5 * (fresh.log_det - stale.log_det))
    assert np.all(stale.width(X) <= ratio * fresh.width(X) * (1 + 1e-9))


# -- regret stays below the bounds -------------------------------------------------------------------

DELTA = 1e-9
"""Each play may exceed its bound with this probability at most: the false-alarm rate of a play."""


class Plays:
    """Rounds of a small environment: arms, constraint, and constants that are true of it."""

    def __init__(self, name, seed):
        self.rng = np.random.default_rng(seed)
        self.noise, self.norm = 1.0, 1.0
        if name == "grouped":  # the second half of the paper's experiment
            self.k, self.T, self.theta, self.B = 6, 60, np.array([0.0, 0.1, 0.9]), 0.9
            self.L = 2.0 ** (self.k - 1)
            self.constraint = armful.OneOf([range(self.k), range(self.k, 2 * self.k)])
        else:
            self.k, self.T, self.L = 5, 50, 1.0
            theta = self.rng.standard_normal(4)
            self.theta = theta / np.linalg.norm(theta)
            self.B = 1.0
            self.constraint = {
                "top": armful.TopK(self.k),
                "quotas": armful.Quotas([0] * 10 + [1] * 20, exactly={0: 2, 1: 3}),
                "listed": armful.OneOf([self.rng.choice(30, self.k, replace=False) for _ in range(12)]),
            }[name]
        self.name, self.d = name, self.theta.size
        self.ridge = self.noise**2 / self.norm**2 * self.d

    def arms(self, t):
        if self.name == "grouped":
            X = np.zeros((2 * self.k, 3))
            X[0, 0], X[1 : self.k, 1], X[self.k :, 2] = 2.0 ** (t % self.k), 1.0, 1.0
            return X
        X = self.rng.standard_normal((30, self.d))
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    def policy(self, kind, **options):
        return kind(
            n_features=self.d,
            ridge=self.ridge,
            radius="theory",
            noise=self.noise,
            norm=self.norm,
            delta=DELTA,
            length=self.L,
            seed=self.rng,
            **options,
        )

    def play(self, policy, delay=0):
        """Regret after each round `(T,)` and the features chosen in each."""
        lost, chosen, waiting = [], [], []
        for t in range(1, self.T + 1):
            X = self.arms(t)
            means = X @ self.theta
            choice = policy.choose(X, self.constraint)
            lost.append(self.constraint.best(means, rng=self.rng).value - means[choice.indices].sum())
            chosen.append(choice.features)
            waiting.append((choice.features, means[choice.indices] + self.noise * self.rng.standard_normal(self.k)))
            if t > delay:
                policy.learn(*waiting.pop(0))
        return np.cumsum(lost), chosen

    @property
    def betas(self):
        constants = {"noise": self.noise, "norm": self.norm, "length": self.L, "ridge": self.ridge, "delta": DELTA}
        return [theory.beta(t=t, k=self.k, n_features=self.d, **constants) for t in range(1, self.T + 1)]

    def at_the_end(self, bound, **more):
        setting = {"k": self.k, "rounds": self.T, "n_features": self.d, "length": self.L, "ridge": self.ridge}
        return bound(radius=self.betas[-1], bound=self.B, **setting, **more)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["top", "quotas", "listed", "grouped"])
def test_the_regret_of_c2ucb_is_below_its_certificate_and_that_below_the_bounds(name, seed):
    plays = Plays(name, seed)
    regret, chosen = plays.play(plays.policy(armful.C2UCB))
    certificate = theory.regret_certificate(chosen, ridge=plays.ridge, radius=plays.betas, k=plays.k, bound=plays.B)
    assert np.all(regret <= certificate)
    assert certificate[-1] <= plays.at_the_end(theory.c2ucb_bound)
    assert certificate[-1] <= plays.at_the_end(theory.c2ucb_round_counting_bound)
    if name in ("top", "quotas"):
        assert regret[-1] <= plays.at_the_end(theory.c2ucb_matroid_bound)
    assert theory.check_trajectory(chosen, ridge=plays.ridge, k=plays.k, length=plays.L).holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["clip", "paper"])
@pytest.mark.parametrize("name", ["top", "listed", "grouped"])
def test_the_regret_of_both_capped_rules_is_below_the_bound_of_algorithm_2(name, rule, seed):
    plays = Plays(name, seed)
    regret, chosen = plays.play(plays.policy(armful.CappedC2UCB, cap=plays.B, rule=rule))
    assert regret[-1] <= plays.at_the_end(theory.capped_bound)
    assert theory.check_trajectory(chosen, ridge=plays.ridge, k=plays.k, length=plays.L).holds
    if rule == "clip":
        options = {"ridge": plays.ridge, "radius": plays.betas, "k": plays.k, "bound": plays.B}
        certificate = theory.regret_certificate(chosen, **options, clip=True)
        assert np.all(regret <= certificate)
        assert np.all(certificate <= theory.regret_certificate(chosen, **options) * (1 + 1e-12))
        assert certificate[-1] <= min(map(plays.at_the_end, (theory.capped_bound, theory.c2ucb_round_counting_bound)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["listed", "grouped"])
def test_with_late_rewards_the_regret_is_below_the_bound_with_that_delay(name, seed):
    plays = Plays(name, seed)
    regret, _ = plays.play(plays.policy(armful.C2UCB), delay=4)
    assert regret[-1] <= plays.at_the_end(theory.c2ucb_round_counting_bound, delay=4)


def test_a_certificate_holds_for_clip_and_proves_nothing_for_the_papers_rule():
    """One good arm and ten that pay nothing, short ones, that the paper's rule scores 1 as long as they are wide."""
    arms, mean, regret, certificate = np.diag([1.0] + [0.2] * 10), 0.9 * np.eye(11)[0], {}, {}
    for rule in ("clip", "paper"):
        policy = armful.CappedC2UCB(n_features=11, cap=1.0, rule=rule, ridge=0.01, radius=0.1, seed=0)
        chosen = []
        for _ in range(12):
            choice = policy.choose(arms, armful.TopK(1))
            policy.learn(choice, mean[choice.indices])
            chosen.append(choice)
        regret[rule] = sum(0.9 - float(mean[choice.indices].sum()) for choice in chosen)
        features = [choice.features for choice in chosen]
        certificate[rule] = theory.regret_certificate(features, ridge=0.01, radius=0.1, k=1, bound=1.0, clip=True)[-1]
    assert regret["clip"] <= certificate["clip"]
    assert regret["paper"] > certificate["paper"]
    assert 'rule="paper"' in theory.regret_certificate.__doc__


def test_a_certificate_is_the_sum_over_rounds_written_out():
    rng = np.random.default_rng(0)
    features = [3 * rng.standard_normal((4, 3)) for _ in range(6)]
    radii, (widths, _) = rng.uniform(1, 2, 6), dense_widths(features, 2.0)
    plain = np.cumsum([min(2 * a * sum(w), 2 * 0.9 * 5) for a, w in zip(radii, widths, strict=True)])
    clipped = np.cumsum([sum(min(2 * a * each, 2 * 0.9) for each in w) for a, w in zip(radii, widths, strict=True)])
    free = np.cumsum([2 * a * sum(w) for a, w in zip(radii, widths, strict=True)])
    assert theory.regret_certificate(features, ridge=2.0, radius=radii, k=5, bound=0.9) == pytest.approx(plain)
    assert theory.regret_certificate(features, ridge=2.0, radius=radii, k=4, bound=0.9, clip=True) == pytest.approx(
        clipped
    )
    assert theory.regret_certificate(features, ridge=2.0, radius=radii, k=4) == pytest.approx(free)
    with pytest.raises(ValueError, match="k must be at least 4"):
        theory.regret_certificate(features, ridge=2.0, radius=1.0, k=3)


# -- coverage ----------------------------------------------------------------------------------------


def distance(state, theta):
    """`|theta - theta_hat|_V` of each learner of a batch."""
    error = theta - state.theta
    return np.sqrt(np.einsum("...i,...ij,...j->...", error, state.V, error))


def most_misses(repetitions, delta):
    """More misses than this have probability below `FALSE_ALARM` if each repetition misses with `delta` at most."""
    return stats.binom.isf(FALSE_ALARM, repetitions, delta)


def hard_case(*, n_features, repetitions, seed, factor=1.0):
    """How many of the repetitions ever miss, by log det and by theory radius, where the radius is nearly tight.

    theta* = 0, so that the ridge costs nothing, and features that grow, so that V passes through many scales.
    """
    rng = np.random.default_rng(seed)
    state = RidgeState(n_features=n_features, batch=(repetitions,))
    missed = np.zeros((2, repetitions), dtype=bool)
    common = {"noise": 1.0, "norm": 1e-6, "ridge": 1.0, "delta": 0.1}
    for t in range(200):
        x = rng.standard_normal((repetitions, 1, n_features))
        x *= math.sqrt(0.06 * 1.06**t * n_features) / np.linalg.norm(x, axis=-1, keepdims=True)
        state = state.learn(x, rng.standard_normal((repetitions, 1)))
        far = distance(state, np.zeros(n_features)) / factor
        missed[0] |= far > log_det_radius(log_det_gain=state.log_det_gain, **common)
        missed[1] |= far > theory_radius(
            n_features=n_features, log_growth=np.log1p(state.squared_norms / state.ridge), **common
        )
    return missed.sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 3])
def test_both_radii_cover_the_truth_at_all_times_as_often_as_they_promise(n_features):
    """False alarm: 1e-9 for each radius."""
    by_log_det, by_theory = hard_case(n_features=n_features, repetitions=2000, seed=n_features)
    assert max(by_log_det, by_theory) <= most_misses(2000, 0.1)
    assert by_theory <= by_log_det, "the theory radius is the larger of the two from two features on"


@pytest.mark.slow
def test_with_one_feature_the_log_det_radius_covers_and_the_papers_does_not():
    """False alarm: 1e-9. The paper's radius misses with about sqrt(delta) = 0.3 here; derived in docs/theory.md."""
    by_log_det, by_theory = hard_case(n_features=1, repetitions=2000, seed=1)
    assert by_log_det <= most_misses(2000, 0.1)
    assert by_theory > most_misses(2000, 0.1)


@pytest.mark.slow
def test_a_log_det_radius_a_quarter_smaller_would_not_cover():
    """The coverage test has teeth: measured 40 % misses at 0.75 of the radius, against 10 % allowed."""
    assert hard_case(n_features=2, repetitions=2000, seed=2, factor=0.75)[0] > most_misses(2000, 0.1)


def misses_with_shocks(*, shock, noise, repetitions, seed, k=50, n_features=3, rounds=20):
    """How many repetitions ever miss when half of the noise variance 1 is shared by the k arms of a round."""
    rng = np.random.default_rng(seed)
    theta = np.full(n_features, n_features**-0.5)
    state = RidgeState(n_features=n_features, batch=(repetitions,))
    missed = np.zeros(repetitions, dtype=bool)
    for _ in range(rounds):
        X = rng.standard_normal((repetitions, k, n_features)) * n_features**-0.5
        X[..., 0] = n_features**-0.5  # a constant, as in any model with an intercept
        shared, own = rng.standard_normal((repetitions, 1)), rng.standard_normal((repetitions, k))
        state = state.learn(X, X @ theta + math.sqrt(0.5) * (shared + own), shock=shock)
        radius = log_det_radius(noise=noise, norm=1.0, ridge=1.0, log_det_gain=state.log_det_gain, delta=0.1)
        missed |= distance(state, theta) > radius
    return missed.sum()


@pytest.mark.slow
def test_noise_shared_within_a_round_breaks_plain_learning_and_learning_with_the_shock_repairs_it():
    """False alarm: 1e-9 for the repaired one. Measured: 93 % misses without the shock, 1 % with it, 10 % allowed."""
    allowed = most_misses(500, 0.1)
    assert misses_with_shocks(shock=0.0, noise=1.0, repetitions=500, seed=0) > 3 * allowed
    assert misses_with_shocks(shock=1.0, noise=math.sqrt(0.5), repetitions=500, seed=1) <= allowed


# -- the size of a shock -----------------------------------------------------------------------------


@on_any_machine
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 6), min_size=2, max_size=8).filter(lambda n: max(n) > 1))
def test_the_shock_is_that_of_the_textbook_f_statistic_for_rounds_of_any_sizes(seed, sizes):
    rng = np.random.default_rng(seed)
    residuals = [rng.standard_normal() + rng.standard_normal(size) for size in sizes]
    F = stats.f_oneway(*residuals).statistic
    n, T = sum(sizes), len(sizes)
    n0 = (n - sum(size**2 for size in sizes) / n) / (T - 1)
    assert theory.estimate_shock(residuals) == pytest.approx(max(0.0, (F - 1) / n0), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("shock", [0.0, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("rounds", [50, 2000])
def test_the_estimated_shock_lies_within_the_exact_quantiles_of_its_distribution(shock, rounds):
    """False alarm: 2e-9. For rounds of equal size MSB / MSW is (1 + k shock) times an F variable."""
    k, rng = 20, np.random.default_rng(rounds)
    residuals = math.sqrt(shock) * rng.standard_normal((rounds, 1)) + rng.standard_normal((rounds, k))
    F = stats.f(rounds - 1, rounds * (k - 1))
    low, high = (max(0.0, ((1 + k * shock) * f - 1) / k) for f in (F.ppf(FALSE_ALARM), F.isf(FALSE_ALARM)))
    assert low <= theory.estimate_shock(list(residuals)) <= high
    if rounds == 2000:
        assert high - low < 0.45 * shock + 0.03, "the interval must be narrow for the test to say anything"


def test_a_shock_that_cannot_be_known_is_refused():
    with pytest.raises(ValueError, match="two rounds"):
        theory.estimate_shock([[1.0, 2.0]])
    with pytest.raises(ValueError, match="two rounds"):
        theory.estimate_shock([[1.0], [2.0]])
    with pytest.raises(ValueError, match="same residual"):
        theory.estimate_shock([[1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(ValueError, match="finite"):
        theory.estimate_shock([[1.0, math.nan], [2.0, 3.0]])
    assert theory.estimate_shock([[1.0, 1.0], [1.0, 1.0], []]) == 0.0


def test_whole_numbers_of_numpy_do_not_overflow():
    plain = {"k": 50_000, "rounds": 100_000, "n_features": 3, "length": 1.0, "ridge": 1.0}
    small = plain | {name: np.int32(plain[name]) for name in ("k", "rounds", "n_features")}
    for bound in (theory.c2ucb_bound, theory.capped_bound, theory.c2ucb_matroid_bound):
        assert bound(radius=1.0, bound=0.1, **small) == bound(radius=1.0, bound=0.1, **plain)
    late = {"bound": 0.1, "delay": np.int8(100)}
    assert theory.delay_term(**late, **small) == theory.delay_term(**late, **plain)
    counted = theory.c2ucb_round_counting_bound
    assert counted(radius=1.0, **late, **small) == counted(radius=1.0, **late, **plain)
    order = {"noise": 1.0, "bound": 1.0}
    for each in (small, plain):
        order |= {name: each[name] for name in ("k", "rounds", "n_features")}
        assert theory.lower_bound_order(**order) == 3 * math.sqrt(5e9) + 150_000


def test_what_is_missing_is_named():
    for bound in (theory.c2ucb_bound, theory.capped_bound, theory.c2ucb_round_counting_bound, theory.delay_term):
        with pytest.raises(TypeError, match="missing"):
            bound(**({"delay": 1} if bound is theory.delay_term else {"radius": 1.0}), bound=1.0, k=1)


def test_the_log_det_radius_is_the_one_that_policies_use():
    X = np.random.default_rng(0).standard_normal((20, 3))
    policy = armful.C2UCB(n_features=3, ridge=2.0, radius="logdet", noise=0.3, norm=1.5, delta=0.05)
    policy.learn(X, X[:, 0])
    gain = float(policy.state.log_det_gain)
    alpha = theory.log_det_radius(log_det_gain=gain, noise=0.3, norm=1.5, ridge=2.0, delta=0.05)
    choice = policy.choose(X, armful.TopK(5))
    assert choice.bonus == pytest.approx(alpha * policy.state.width(choice.features))
    for name in ("log_det_gain", "noise", "norm", "ridge", "delta"):
        with pytest.raises(ValueError, match=name):
            theory.log_det_radius(**({"log_det_gain": 1, "noise": 1, "norm": 1, "ridge": 1, "delta": 0.1} | {name: -1}))


def test_impossible_settings_are_refused_by_name():
    s = dict(SETTINGS[1])
    for name, value in [("k", 0), ("rounds", 0), ("n_features", 0), ("length", -1.0), ("ridge", 0.0)]:
        with pytest.raises(ValueError, match=name):
            theory.capped_bound(radius=1.0, bound=1.0, **(s | {name: value}))
    with pytest.raises(ValueError, match="radius"):
        theory.c2ucb_bound(radius=-1.0, **s)
    with pytest.raises(ValueError, match="bound"):
        theory.c2ucb_bound(radius=1.0, bound=-1.0, **s)
    with pytest.raises(ValueError, match="lipschitz"):
        theory.capped_bound(radius=1.0, bound=1.0, lipschitz=0.0, **s)
    with pytest.raises(ValueError, match="delay"):
        theory.c2ucb_round_counting_bound(radius=1.0, bound=1.0, delay=-1, **s)
    with pytest.raises(ValueError, match="delta"):
        theory.beta(t=1, k=1, n_features=2, noise=1.0, norm=1.0, length=1.0, ridge=1.0, delta=0.0)


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf, [1.0, 2.0, 3.0], [[1.0, 2.0]], "one"])
def test_a_certificate_wants_a_radius_for_each_round(radius):
    with pytest.raises(ValueError, match="radius must be"):
        theory.regret_certificate([np.eye(2), np.eye(2)], ridge=1.0, radius=radius, k=2)


def test_a_certificate_of_clip_needs_the_cap_and_a_radius_its_time():
    with pytest.raises(ValueError, match="needs bound"):
        theory.regret_certificate([np.eye(2)], ridge=1.0, radius=1.0, k=2, clip=True)
    with pytest.raises(ValueError, match=r"^t must be a whole number"):
        theory.beta(t=0, k=1, n_features=2, noise=1, norm=1, length=1, ridge=1, delta=0.1)


def test_impossible_orders_are_refused_by_name():
    good = {"k": 2, "rounds": 3, "n_features": 4, "noise": 1.0, "bound": 1.0}
    for name, value in [("k", 0), ("rounds", 1.5), ("n_features", 0), ("noise", -1.0), ("bound", math.nan)]:
        with pytest.raises(ValueError, match=name):
            theory.lower_bound_order(**(good | {name: value}))
