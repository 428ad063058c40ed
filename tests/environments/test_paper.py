from fractions import Fraction

import numpy as np
import pytest

from armful import C2UCB, CappedC2UCB, OneOf, RidgeState, TopK, simulate
from armful.environments import PaperInstance
from armful.testing import EnvironmentContract


class TestGrouped(EnvironmentContract):
    def environment(self):
        return PaperInstance(k=3, kind="grouped")


class TestUniform(EnvironmentContract):
    def environment(self):
        return PaperInstance(k=4, kind="uniform", signs=(1, -1, 1, -1))


@pytest.mark.parametrize("kind", ["grouped", "uniform"])
def test_the_instance_is_the_papers(kind):
    k, T = 3, 60
    rounds = list(PaperInstance(k=k, kind=kind).rounds(T, np.random.default_rng(0)))
    assert len(rounds) == T
    theta = np.array([1 / np.sqrt(k * T / 2)] * 4 + [0, 0.1, 0.9])
    for t, shown in enumerate(rounds, start=1):
        np.testing.assert_allclose(shown.mean, shown.features @ theta, atol=1e-15)
        assert shown.noise == 1.0
        if t <= T / 2:
            assert shown.features.shape == (16 * k, 7)
            assert (np.abs(shown.features[:, :4]) == 1).all()
            assert (shown.features[:, 4:] == 0).all()
            assert shown.constraint == TopK(k)
        else:
            literal = np.zeros((2 * k, 7))
            literal[0, 4] = 2.0 ** (t - k * (t // k))
            literal[1:k, 5] = 1
            literal[k:, 6] = 1
            np.testing.assert_array_equal(shown.features, literal)
            if kind == "uniform":
                assert shown.constraint == TopK(k)
            else:
                assert isinstance(shown.constraint, OneOf)
                assert [members.tolist() for members in shown.constraint.sets] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("k", [256, 500])
def test_widths_stay_exact_where_arm_norms_reach_two_to_the_k(k):
    """Against exact integers: along one axis V is 7 + the sum of squares, and the other axes must not notice."""
    environment = PaperInstance(k=k)
    shown = [r for r in environment.rounds(4 * k, np.random.default_rng(0)) if r.features.shape[0] == 2 * k]
    state = RidgeState(n_features=7, ridge=7.0)
    squares, ordinary = 7, 7
    rng = np.random.default_rng(1)
    for t, seen in enumerate(shown):
        exponent = int(np.log2(seen.features[0, 4]))
        if t % 50 == 0 or exponent == k - 1:
            width = state.width(seen.features)
            exact = float(Fraction(4**exponent, squares)) ** 0.5
            np.testing.assert_allclose(width[0], exact, rtol=1e-13)
            np.testing.assert_allclose(width[1:k], ordinary**-0.5, rtol=1e-13)
            np.testing.assert_allclose(width[k:], 7**-0.5, rtol=1e-13)
        if t % 2 == 0:
            state = state.learn(seen.features[:k], rng.standard_normal(k))
            squares, ordinary = squares + 4**exponent, ordinary + k - 1


@pytest.mark.slow
def test_every_policy_runs_the_instance_at_k_256(make_policy):
    result = simulate(make_policy(7), PaperInstance(k=256), rounds=520, repetitions=1, seed=0)
    assert np.isfinite(result.regret).all()
    assert (result.regret >= -1e-9).all()


def test_sizes_beyond_float64_are_refused():
    with pytest.raises(ValueError, match="at most 500"):
        PaperInstance(k=501)


@pytest.mark.slow
def test_on_the_grouped_type_capping_beats_not_capping_with_common_noise():
    """In pairs on the same noise at k = 16 the difference is some 15 standard errors; 4 are asked for."""
    options = {"n_features": 7, "ridge": 7.0, "radius": 7**0.5}
    environment = PaperInstance(k=16)
    runs = {"rounds": 320, "repetitions": 50, "seed": 11}
    plain = simulate(C2UCB(**options), environment, **runs).total_regret
    for rule in ("clip", "paper"):
        capped = simulate(CappedC2UCB(cap=0.9, rule=rule, **options), environment, **runs).total_regret
        saved = plain - capped
        assert saved.mean() > 4 * saved.std(ddof=1) / np.sqrt(50)
