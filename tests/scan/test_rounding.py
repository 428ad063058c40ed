import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import RidgeState
from armful.scan._pruning import LARGEST_FLOAT32_ERROR, _in_float32
from armful.scan._rounding import Rounding, growth, interval
from armful.scan._table_cache import TableCache


def learned(rng, d, n, scale):
    X = rng.standard_normal((n, d)) * scale
    return RidgeState(n_features=d).learn(X, rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4))


@settings(max_examples=150, deadline=None)
@given(d=st.integers(1, 30), n=st.integers(0, 200), spread=st.floats(0, 3), seed=st.integers(0, 2**32 - 1))
def test_float32_never_errs_by_more_than_is_allowed_for(d, n, spread, seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-spread, spread, d)
    state = learned(rng, d, n, scale)
    single, plain = Rounding.of(state, np.float32), Rounding.of(state, np.float64)
    if single.width > LARGEST_FLOAT32_ERROR:
        return
    X = rng.standard_normal((700, d)) * scale * 10.0 ** rng.integers(-30, 10, (700, 1))
    X[:100] = rng.random((100, d)) < 0.1
    mean, width = state.mean_and_width(X)
    low_mean, high_mean, low_width, high_width = interval(*_in_float32(X, state), single, plain)
    assert (low_mean <= mean).all()
    assert (mean <= high_mean).all()
    assert (low_width <= width).all()
    assert (width <= high_width).all()


def test_float32_errors_are_small_enough_to_prune():
    rng = np.random.default_rng(0)
    state = learned(rng, 20, 1000, 1.0)
    assert Rounding.of(state, np.float32).width < 1e-3


@settings(max_examples=150, deadline=None)
@given(d=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_cached_widths_stay_bounds_under_any_change_of_the_state(d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, d)) * 10.0 ** rng.uniform(-2, 2, d)
    cache, state = TableCache(50), learned(rng, d, 5, 1.0)
    cache.update_to(state)
    cache.set_bounds(slice(0, 50), state.width(X))
    for step in rng.integers(0, 4, 6):
        if step == 0:
            state = state.learn(X[:3], np.ones(3))
        elif step == 1:
            state = state.discount(float(rng.uniform(0.3, 1)))
        elif step == 2:
            state = state + learned(rng, d, 4, 2.0)
        else:
            some = rng.choice(50, 7, replace=False)
            cache.set_bounds(some, state.width(X)[some])
        cache.update_to(state)
        assert (cache.width_bounds(0, 50) >= state.width(X)).all()


def test_cached_widths_are_dropped_when_the_state_is_another():
    cache, state = TableCache(4), RidgeState(n_features=2).learn(100 * np.eye(2), [1, 1])
    cache.update_to(state)
    cache.set_bounds(slice(0, 4), np.ones(4))
    assert cache.has_bounds(0, 4)
    cache.update_to(RidgeState(n_features=2))
    assert not cache.has_bounds(0, 4)


def test_growth_is_the_largest_ratio_of_widths():
    rng = np.random.default_rng(0)
    old, new = learned(rng, 3, 20, 1.0), learned(rng, 3, 5, 1.0)
    X = rng.standard_normal((100_000, 3))
    ratios = new.width(X) / old.width(X)
    assert ratios.max() <= growth(old.root, new) <= 1.01 * ratios.max()
    assert growth(old.root, old.learn(X[:50], np.ones(50))) < 1


def test_a_bound_too_small_for_float32_stays_a_bound():
    X, state = np.full((4, 1), 1e-40), RidgeState(n_features=1)
    cache = TableCache(4)
    cache.update_to(state)
    cache.set_bounds(slice(0, 4), state.width(X))
    later = state.learn([[1e10]], [1.0])
    cache.update_to(later)
    assert (cache.width_bounds(0, 4) >= later.width(X)).all()
