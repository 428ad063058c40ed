import math
import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import FileFormatError, PrecisionError, RidgeState
from armful.model import _provenance as sources
from armful.model._observations import FEW, ROWS_PER_QR
from armful.testing._expectations import expect_close


def literal(X, r, ridge, W=None):
    """Every quantity of the state by its formula, in plain numpy."""
    X, r = np.asarray(X, dtype=float), np.asarray(r, dtype=float)
    W = np.eye(len(r)) if W is None else W
    V = ridge * np.eye(X.shape[1]) + X.T @ W @ X
    b = X.T @ W @ r
    theta = np.linalg.solve(V, b)
    return {"V": V, "b": b, "theta": theta, "log_det": np.linalg.slogdet(V)[1], "residual": r @ W @ r - b @ theta}


def literal_width(X, V):
    return np.sqrt(np.einsum("ni,ij,nj->n", X, np.linalg.inv(V), X))


def assert_alike(one, other, tolerance=1e-9):
    for name in ("V", "b", "theta", "log_det", "residual", "squared_rewards", "squared_norms", "n"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance), name


observations = st.integers(1, 6).flatmap(
    lambda d: st.tuples(st.just(d), st.integers(0, 12), st.sampled_from([0.1, 1.0, 7.0]), st.integers(0, 2**32 - 1))
)


# -- formulas ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(observations)
def test_every_quantity_is_its_formula(case):
    d, n, ridge, seed = case
    rng = np.random.default_rng(seed)
    X, r, probes = rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal((5, d))
    state = RidgeState(n_features=d, ridge=ridge).learn(X, r)
    truth = literal(X, r, ridge)
    for name, value in truth.items():
        assert np.allclose(getattr(state, name), value, rtol=1e-9, atol=1e-9), name
    assert state.n == n
    assert isinstance(state.n, float)
    assert np.isclose(state.log_det_gain, truth["log_det"] - d * math.log(ridge), atol=1e-9)
    assert np.isclose(state.squared_rewards, r @ r)
    assert np.isclose(state.squared_norms, (X**2).sum())
    assert np.allclose(state.mean(probes), probes @ truth["theta"])
    assert np.allclose(state.width(probes), literal_width(probes, truth["V"]))
    mean, width = state.mean_and_width(probes)
    assert np.allclose(mean, state.mean(probes), rtol=1e-13)
    assert np.array_equal(width, state.width(probes))


def test_a_new_state_knows_the_ridge_alone():
    state = RidgeState(n_features=3, ridge=4.0)
    assert np.array_equal(state.V, 4 * np.eye(3))
    assert np.array_equal(state.theta, np.zeros(3))
    assert np.allclose(state.width([[2.0, 0.0, 0.0]]), [1.0])
    assert (state.log_det_gain, state.n, state.residual) == (0.0, 0.0, 0.0)


def test_a_sample_has_the_covariance_of_the_inverse():
    """`sample` is linear in the normals, so its covariance follows exactly from the unit vectors."""
    rng = np.random.default_rng(0)
    state = RidgeState(n_features=4, ridge=0.5).learn(rng.standard_normal((9, 4)), rng.standard_normal(9))
    columns = np.stack([state.sample(e) - state.theta for e in np.eye(4)], axis=-1)
    assert np.allclose(columns @ columns.T, np.linalg.inv(state.V))
    assert np.array_equal(state.sample(np.zeros(4)), state.theta)


def test_the_same_normals_give_the_same_sample_however_the_state_was_learned():
    rng = np.random.default_rng(0)
    X, r, normals = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    at_once = RidgeState(n_features=4).learn(X, r)
    one_by_one = many = RidgeState(n_features=4)
    for i in range(9):
        one_by_one = one_by_one.learn(X[i : i + 1], r[i : i + 1])
        many = RidgeState(n_features=4).learn(X[i : i + 1], r[i : i + 1]) + many
        batched = RidgeState(n_features=4).learn(X[: i + 1], r[: i + 1])
        assert np.allclose(one_by_one.sample(normals), batched.sample(normals))
    assert np.allclose(many.sample(normals), at_once.sample(normals))
    assert np.allclose(at_once.repeat(2).sample(np.stack([normals, -normals]))[0], at_once.sample(normals))


def test_a_state_is_a_value():
    before = RidgeState(n_features=2)
    after = before.learn(np.eye(2), [1.0, 2.0])
    after.discount(0.5)
    after + after
    assert before.n == 0.0
    assert np.array_equal(before.V, np.eye(2))
    assert np.allclose(after.V, 2 * np.eye(2))


def test_the_arrays_of_a_batch_are_read_only():
    state = RidgeState(n_features=2, batch=(3,)).learn(np.ones((3, 1, 2)), np.ones((3, 1)))
    for known in (state, state + state, state.discount(0.5), state[:2], state[0].repeat(2)):
        for array in (known.n, known.theta, known.root, known.inverse_root):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 99.0


def test_learning_nothing_changes_nothing():
    state = RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0])
    assert_alike(state.learn(np.zeros((0, 2)), []), state)


@pytest.mark.parametrize("n", [FEW + 1, ROWS_PER_QR + 1, 2 * ROWS_PER_QR + 3])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_many_rows_every_one_is_learned_once(n, batch, weighted):
    rng = np.random.default_rng(n)
    X, r, w = rng.standard_normal((*batch, n, 3)), rng.standard_normal((*batch, n)), rng.random((*batch, n))
    state = RidgeState(n_features=3, batch=batch).learn(X, r, weights=w if weighted else None)
    for i in np.ndindex(*batch):
        for name, value in literal(X[i], r[i], 1.0, np.diag(w[i]) if weighted else None).items():
            assert np.allclose(getattr(state, name)[i], value, rtol=1e-9), name


# -- grouping, merging, batches ----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(observations, st.data())
def test_parts_of_a_set_may_come_late_in_any_order_and_grouping(case, data):
    d, n, ridge, seed = case
    rng = np.random.default_rng(seed)
    X, r = rng.standard_normal((n, d)), rng.standard_normal(n)
    at_once = RidgeState(n_features=d, ridge=ridge).learn(X, r)
    order = np.array(data.draw(st.permutations(range(n))), dtype=int)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    parts = np.split(order, cuts)
    late = RidgeState(n_features=d, ridge=ridge)
    shards = RidgeState(n_features=d, ridge=ridge)
    for part in parts:
        late = late.learn(X[part], r[part])
        shards = RidgeState(n_features=d, ridge=ridge).learn(X[part], r[part]) + shards
    assert_alike(late, at_once)
    assert_alike(shards, at_once)


def test_merging_is_commutative_and_associative():
    rng = np.random.default_rng(0)
    a, b, c = (RidgeState(n_features=3).learn(rng.standard_normal((4, 3)), rng.standard_normal(4)) for _ in range(3))
    assert_alike((a + b) + c, c + (b + a))
    assert_alike(a + RidgeState(n_features=3), a)


def test_states_are_summed_up():
    rng = np.random.default_rng(3)
    X, r = rng.standard_normal((12, 2)), rng.standard_normal(12)
    states = [RidgeState(n_features=2, ridge=2.0).learn(X[i::3], r[i::3]) for i in range(3)]
    np.testing.assert_allclose(sum(states).V, RidgeState(n_features=2, ridge=2.0).learn(X, r).V, rtol=1e-13)
    with pytest.raises(TypeError):
        1 + states[0]


def test_the_axes_of_a_batch_may_be_a_number_or_a_list():
    assert RidgeState(n_features=2, batch=5).batch == (5,)
    assert RidgeState(n_features=2, batch=[2, np.int64(3)]).batch == (2, 3)


def test_empty_lists_are_nothing_to_learn():
    state = RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0])
    for nothing in ([], np.zeros((0, 2))):
        assert state.learn(nothing, []) is state
    with pytest.raises(ValueError, match="shock must not be negative"):
        state.learn([], [], shock=-1.0)


@pytest.mark.parametrize("batch", [(1,), (3,), (2, 3)])
def test_a_batch_is_its_learners_one_by_one(batch):
    rng = np.random.default_rng(0)
    X, r, w = rng.standard_normal((*batch, 5, 4)), rng.standard_normal((*batch, 5)), rng.random((*batch, 5))
    more_X, more_r = rng.standard_normal((*batch, 2, 4)), rng.standard_normal((*batch, 2))
    batched = RidgeState(n_features=4, ridge=2.0, batch=batch).learn(X, r, weights=w, shock=0.3)
    batched = (batched.discount(0.9) + RidgeState(n_features=4, ridge=2.0, batch=batch)).learn(more_X, more_r)
    common = rng.standard_normal((6, 4))
    own = rng.standard_normal((*batch, 6, 4))
    assert batched.batch == batch
    for i in np.ndindex(*batch):
        alone = RidgeState(n_features=4, ridge=2.0).learn(X[i], r[i], weights=w[i], shock=0.3)
        alone = alone.discount(0.9).learn(more_X[i], more_r[i])
        for name in ("V", "b", "theta", "log_det", "log_det_gain", "residual", "squared_norms", "n"):
            assert np.allclose(np.asarray(getattr(batched, name))[i], getattr(alone, name), atol=1e-11), name
        for probes in (common, own):
            mine = probes if probes is common else probes[i]
            assert np.allclose(batched.mean(probes)[i], alone.mean(mine), atol=1e-11)
            assert np.allclose(batched.width(probes)[i], alone.width(mine), atol=1e-11)
    if len(batch) == 1:
        assert_alike(batched[0], batched[:1][0])


def test_repeated_learners_all_know_the_same():
    state = RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0])
    many = state.repeat(3)
    assert many.batch == (3,)
    for i in range(3):
        assert_alike(many[i], state)


# -- discount, weights, shocks -----------------------------------------------------------------------


def test_a_discount_is_its_formula():
    rng = np.random.default_rng(0)
    state = RidgeState(n_features=3, ridge=2.0).learn(rng.standard_normal((8, 3)), rng.standard_normal(8))
    for g in (0.0, 0.3, 1.0):
        old = state.discount(g)
        assert np.allclose(old.V, g * state.V + (1 - g) * 2.0 * np.eye(3))
        assert np.allclose(old.b, g * state.b)
        assert np.isclose(old.n, g * 8)
        assert np.isclose(old.squared_rewards, g * state.squared_rewards)


def test_an_arm_of_weight_w_is_w_copies():
    rng = np.random.default_rng(0)
    X, r, w = rng.standard_normal((5, 3)), rng.standard_normal(5), np.array([1, 2, 0, 4, 3])
    weighted = RidgeState(n_features=3).learn(X, r, weights=w)
    assert_alike(weighted, RidgeState(n_features=3).learn(np.repeat(X, w, axis=0), np.repeat(r, w)))


@pytest.mark.parametrize("shock", [1e-9, 0.25, 1.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_shock_is_learned_by_the_inverse_covariance(shock, weighted):
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((6, 3)), rng.standard_normal(6)
    w = rng.random(6) + 0.2 if weighted else np.ones(6)
    W = np.linalg.inv(np.diag(1 / w) + shock * np.ones((6, 6)))
    state = RidgeState(n_features=3).learn(X, r, weights=w if weighted else None, shock=shock)
    for name, value in literal(X, r, 1.0, W).items():
        assert np.allclose(getattr(state, name), value, rtol=1e-8), name
    assert np.isclose(state.n, w.sum())


def test_under_a_shock_an_arm_of_weight_zero_is_not_there():
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((4, 2)), rng.standard_normal(4)
    without = RidgeState(n_features=2).learn(X[:3], r[:3], shock=0.7)
    assert_alike(RidgeState(n_features=2).learn(X, r, weights=[1, 1, 1, 0], shock=0.7), without)
    nobody = RidgeState(n_features=2).learn(X, r, weights=np.zeros(4), shock=0.7)
    assert_alike(nobody, RidgeState(n_features=2))


def test_no_shock_is_plain_learning_and_a_lone_arm_loses_its_share():
    state = RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0], shock=0.0)
    assert_alike(state, RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0]))
    shaken = RidgeState(n_features=2).learn([[1.0, 2.0]], [3.0], shock=1.0)
    assert np.allclose(shaken.V, np.eye(2) + np.outer([1, 2], [1, 2]) / 2)


# -- accuracy ----------------------------------------------------------------------------------------


def oblique_plane(seed, d=5):
    """Two directions that no axis is near, and one that stands on the plane."""
    rng = np.random.default_rng(seed)
    a, b, c = (v / np.linalg.norm(v) for v in rng.standard_normal((3, d)) + 0.3)
    return a, b, c


def growing(seed, t_max):
    """Features `2^t (a cos + b sin)` for t = 0 .. t_max in a fixed plane; and probes in it, off it and between."""
    a, b, c = oblique_plane(seed)
    angles = np.random.default_rng([seed, 1]).random(t_max + 1) * 2 * np.pi
    X = np.stack([2.0**t * (math.cos(angle) * a + math.sin(angle) * b) for t, angle in enumerate(angles)])
    probes = np.stack([a, b, a - b, c, c - (c @ a) * a, a + c, 1e-3 * c + b, 1e6 * a + c, *np.eye(5)])
    return X, probes


def exact_widths(X, probes, ridge):
    with mpmath.workprec(600):
        rows = mpmath.matrix(X.tolist())
        V = rows.T * rows + ridge * mpmath.eye(X.shape[1])
        widths = []
        for probe in probes.tolist():
            x = mpmath.matrix(probe)
            widths.append(float(mpmath.sqrt((x.T * mpmath.lu_solve(V, x))[0])))
        return np.array(widths)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ridge", [0.5, 5.0])
@pytest.mark.parametrize("order", ["growing", "shrinking", "at once", "merged"])
def test_widths_keep_their_digits_while_features_grow_to_2_to_the_30(seed, ridge, order):
    X, probes = growing(seed, 30)
    empty = state = RidgeState(n_features=5, ridge=ridge)
    rows = [X] if order == "at once" else [x[None] for x in (X[::-1] if order == "shrinking" else X)]
    for x in rows:
        state = state + empty.learn(x, np.zeros(len(x))) if order == "merged" else state.learn(x, np.zeros(len(x)))
    truth = exact_widths(X, probes, ridge)
    assert np.abs(state.width(probes) / truth - 1).max() <= 1e-8


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(4))
def test_at_every_step_the_widths_are_right_or_refused(seed):
    X, probes = growing(seed, 60)
    state = RidgeState(n_features=5)
    for t, x in enumerate(X):
        try:
            state = state.learn(x[None], [0.0])
        except PrecisionError:
            assert t > 30
            break
        error = np.abs(state.width(probes) / exact_widths(X[: t + 1], probes, 1.0) - 1).max()
        assert error <= (1e-8 if t <= 30 else 1e-5)
    else:
        pytest.fail("features of 2^60 in an oblique plane were not refused")
    assert state.n == t


@pytest.mark.parametrize("size", [2.0**60, 1e155, 1e200, 1e308])
def test_where_the_ridge_is_lost_learning_is_refused_and_the_state_stays(size):
    a, b, _ = oblique_plane(0)
    state = RidgeState(n_features=5).learn(np.stack([a, b]), [1.0, 2.0])
    before = state.V
    with pytest.raises(PrecisionError, match=r"float64"):
        state.learn(size * (a + b)[None], [0.0])
    assert np.array_equal(state.V, before)


def test_one_learner_of_a_batch_that_loses_its_ridge_is_enough():
    a, b, _ = oblique_plane(0)
    state = RidgeState(n_features=5, batch=(2,)).learn(np.stack([[a, b], [a, b]]), np.ones((2, 2)))
    with pytest.raises(PrecisionError, match=r"^the ridge 1.0 is lost"):
        state.learn(np.stack([a + b, 2.0**60 * (a + b)])[:, None], np.zeros((2, 1)))


def test_a_ridge_too_small_for_the_features_is_refused():
    with pytest.raises(PrecisionError, match=r"^the ridge 1e-40 is lost"):
        RidgeState(n_features=3, ridge=1e-40).learn([[1.0, 2.0, 3.0]], [0.0])


@pytest.mark.parametrize("rewards", [1e155, 1e300])
def test_rewards_whose_squares_leave_float64_are_refused(rewards):
    with pytest.raises(PrecisionError, match=r"float64"):
        RidgeState(n_features=2).learn([[1.0, 0.0]], [rewards])


def test_features_along_the_axes_may_be_as_large_as_2_to_the_255():
    state = RidgeState(n_features=3)
    for t in range(256):
        state = state.learn([[2.0**t, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 1.0])
    truth = 1 + sum(4**t for t in range(256))
    assert np.allclose(state.width(np.eye(3)) ** -2, [float(truth), 257.0, 1.0], rtol=1e-12)
    assert np.isclose(state.theta[0] * float(truth), float(2**256 - 1), rtol=1e-12)


def test_a_mean_beyond_float64_is_refused():
    state = RidgeState(n_features=2).learn(np.eye(2), [1.0, 1.0])
    with pytest.raises(PrecisionError, match=r"^a mean or a width is beyond the range of float64"):
        state.mean_and_width([[1.7e308, 1.7e308]])


def test_a_mean_and_a_width_are_given_though_their_product_is_beyond_float64():
    state = RidgeState(n_features=1, ridge=1.0).learn([[1.0]], [2e10])
    mean, width = state.mean_and_width([[1e150]])
    assert np.allclose((mean / 1e160, width / 1e150), [[1.0], [math.sqrt(0.5)]])
    assert np.allclose(state.mean([[1e150]]) / 1e160, 1.0)


# -- ties --------------------------------------------------------------------------------------------

SIZES = (*range(1, 71), *range(511, 531), 1003, 2000)


@pytest.mark.parametrize("d", [2, 5, 7, 33, 50, 64])
def test_equal_rows_are_bitwise_equal_wherever_they_stand(d):
    rng = np.random.default_rng(d)
    single = RidgeState(n_features=d).learn(rng.standard_normal((d + 9, d)), rng.standard_normal(d + 9))
    several = RidgeState(n_features=d, batch=(3,)).learn(rng.standard_normal((3, d, d)), rng.standard_normal((3, d)))
    x = rng.standard_normal(d)
    for n in SIZES:
        X = np.tile(x, (n, 1))
        batched = np.broadcast_to(X, (3, n, d)).copy()
        for state, rows in ((single, X), (single, np.asfortranarray(X)), (several, X), (several, batched)):
            mean, width = state.mean_and_width(rows)
            for values in (mean, width, state.mean(rows), state.project(rows, state.theta)):
                assert (values == values[..., :1]).all(), f"{n} rows"


@pytest.mark.parametrize("d", [2, 7, 50])
def test_an_equal_row_among_others_is_bitwise_equal(d):
    rng = np.random.default_rng(d)
    state = RidgeState(n_features=d).learn(rng.standard_normal((d + 9, d)), rng.standard_normal(d + 9))
    x = rng.standard_normal(d)
    for n in (2, 3, 8, 13, 512, 513, 700, 1024, 1025, 1537, 2000):
        X = rng.standard_normal((n, d))
        equal = rng.random(n) < 0.4
        X[equal] = x
        X[-1] = x
        equal[-1] = True
        for rows in (X, np.asfortranarray(X)):
            for values in (*state.mean_and_width(rows), state.mean(rows)):
                assert (values[equal] == values[-1]).all(), f"{n} rows"


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "rewards", "options", "message"),
    [
        ([[1.0, np.nan]], [1.0], {}, "features must be finite, got nan in row 0"),
        ([[1.0, 0.0], [np.inf, 0.0]], [1.0, 1.0], {}, "features must be finite, got inf in row 1"),
        ([[1.0, 0.0]], [-np.inf], {}, "rewards must be finite, got -inf in row 0"),
        ([[1.0, 0.0]], [1.0, 2.0], {}, "rewards must have shape (1,), one for each row of features, got (2,)"),
        (
            [[1.0, 0.0]],
            1.0,
            {},
            "rewards must have shape (1,), one for each row of features, got the single number 1.0",
        ),
        ([[1.0, 0.0, 0.0]], [1.0], {}, "features must have shape (n_arms, 2), got (1, 3)"),
        ([1.0, 0.0], [1.0], {}, "features must have shape (n_arms, 2), got (2,)"),
        ([[[1.0, 0.0]]], [[1.0]], {}, "features must have the leading axes () of the state, got (1,)"),
        ([[1.0, 0.0]], None, {}, "rewards must be an array of real numbers, got None"),
        (0.5, [1.0], {}, "features must have shape (n_arms, 2), got the single number 0.5"),
        ([["a", "b"]], [1.0], {}, "features must be an array of real numbers, got words like 'a'"),
        ([[1.0, "b"]], [1.0], {}, "features must be an array of real numbers, got words like 'b'"),
        ([[1.0, 0.0]], ["good"], {}, "rewards must be an array of real numbers, got words like 'good'"),
        ([[1.0, 0.0]], np.array(["good"]), {}, "rewards must be an array of real numbers, got words like 'good'"),
        (
            [[1.0, 0.0]],
            np.array(["good"], dtype=object),
            {},
            "rewards must be an array of real numbers, got words like 'good'",
        ),
        ([[1.0, 0.0]], "good", {}, "rewards must be an array of real numbers, got words like 'good'"),
        (
            [[1.0, 0.0]],
            ["word" * 100],
            {},
            f"rewards must be an array of real numbers, got words like {'word' * 10!r}...",
        ),
        (
            [[1.0, 0.0]],
            [b"1.0"],
            {},
            "rewards must be an array of real numbers, got ragged lists, or lists of something else",
        ),
        (
            [[1.0, 0.0]],
            [1.0],
            {"weights": 2.0},
            "weights must have shape (1,), one for each row of features, got the single number 2.0",
        ),
        (
            [[1.0], [1.0, 2.0]],
            [1.0],
            {},
            "features must be an array of real numbers, got ragged lists, or lists of something else",
        ),
        (
            [[1.0, 1j]],
            [1.0],
            {},
            "features must be an array of real numbers, got ragged lists, or lists of something else",
        ),
        (
            [[1.0, 0.0]],
            [object()],
            {},
            "rewards must be an array of real numbers, got ragged lists, or lists of something else",
        ),
        ([[1.0, 0.0]], [1.0], {"weights": [-1.0]}, "weights must not be negative, got -1.0"),
        ([[1.0, 0.0]], [1.0], {"weights": [np.nan]}, "weights must be finite, got nan in row 0"),
        (
            [[1.0, 0.0]],
            [1.0],
            {"weights": [1.0, 1.0]},
            "weights must have shape (1,), one for each row of features, got (2,)",
        ),
        ([[1.0, 0.0]], [1.0], {"shock": -0.1}, "shock must not be negative, got -0.1"),
        ([[1.0, 0.0]], [1.0], {"shock": np.nan}, "shock must be a finite number, got nan"),
    ],
)
def test_what_cannot_be_learned_gets_one_sentence(X, rewards, options, message):
    with pytest.raises(ValueError) as refusal:
        RidgeState(n_features=2).learn(X, rewards, **options)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"n_features": 2.0}, "n_features must be a whole number of at least 1, got 2.0"),
        ({"n_features": 2, "ridge": 0.0}, "ridge must be positive, got 0.0; 1.0 is a usual start"),
        ({"n_features": 2, "ridge": -1}, "ridge must be positive, got -1; 1.0 is a usual start"),
        ({"n_features": 2, "ridge": np.inf}, "ridge must be a finite number, got inf"),
        ({"n_features": 2, "ridge": "big"}, "ridge must be a number, got 'big'"),
        ({"n_features": 2, "ridge": True}, "ridge must be a finite number, got True"),
        ({"n_features": 2, "batch": (2.0,)}, "batch must be a whole number of at least 0, got 2.0"),
        ({"n_features": 2, "batch": "a"}, "batch must be a whole number of at least 0, got 'a'"),
        ({"n_features": 2, "batch": -1}, "batch must be a whole number of at least 0, got -1"),
    ],
)
def test_a_state_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError) as refusal:
        RidgeState(**options)
    assert str(refusal.value) == message


@pytest.mark.parametrize("factor", [-0.1, 1.1, np.nan, "half", None])
def test_a_discount_that_is_no_share_is_refused(factor):
    with pytest.raises(ValueError, match=r"^discount factor must be "):
        RidgeState(n_features=2).discount(factor)


def test_unlike_states_do_not_merge():
    state = RidgeState(n_features=2)
    for other, what in (
        (RidgeState(n_features=3), "features"),
        (RidgeState(n_features=2, ridge=2.0), "ridge"),
        (RidgeState(n_features=2, batch=(4,)), "leading axes"),
    ):
        with pytest.raises(ValueError, match=rf"^expected a state .*{what}"):
            state + other
    with pytest.raises(TypeError):
        state + 1


def test_a_single_learner_cannot_be_indexed():
    with pytest.raises(TypeError, match=r"^this state is of one learner"):
        RidgeState(n_features=2)[0]


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_saved_state_is_loaded_bit_by_bit(tmp_path, batch):
    rng = np.random.default_rng(0)
    state = RidgeState(n_features=3, ridge=0.7, batch=batch)
    state = state.learn(rng.standard_normal((*batch, 5, 3)), rng.standard_normal((*batch, 5)))
    state.save(tmp_path / "state")
    loaded = RidgeState.load(tmp_path / "state")
    assert (loaded.n_features, loaded.ridge, loaded.batch) == (3, 0.7, batch)
    for name in ("V", "b", "theta", "n", "residual", "log_det"):
        assert np.array_equal(getattr(loaded, name), getattr(state, name)), name
    assert repr(loaded) == repr(state)


FITTING = RidgeState(n_features=2).learn([[1.0, 2.0], [0.5, 1.0]], [1.0, 3.0]).to_arrays()


def test_arrays_that_fit_together_are_a_state():
    arrays = {name: array.copy() for name, array in FITTING.items()}
    state = RidgeState.from_arrays(1.0, arrays, "here.npz")
    assert state.n_features == 2
    for array in (*(array for name, array in arrays.items() if name != "sources"), state.to_arrays()["root"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 99.0


@pytest.mark.parametrize("missing", ["root", "rows", "solved", "n"])
def test_a_file_without_an_array_is_refused(missing):
    with pytest.raises(FileFormatError, match=r"^here.npz does not hold a consistent ridge state$"):
        RidgeState.from_arrays(1.0, {name: FITTING[name] for name in FITTING if name != missing}, "here.npz")


@pytest.mark.parametrize(
    ("ridge", "arrays"),
    [
        (None, {}),
        (-1.0, {}),
        (np.inf, {}),
        (1.0, {"root": np.zeros((3, 4))}),
        (1.0, {"root": np.zeros(3)}),
        (1.0, {"root": np.zeros((1, 1)), "rows": np.zeros((2, 1)), "solved": np.zeros((1, 1))}),
        (1.0, {"rows": np.zeros((2, 4))}),
        (1.0, {"rows": np.zeros(3)}),
        (1.0, {"rows": np.zeros(())}),
        (1.0, {"rows": np.zeros((1, 2, 3))}),
        (1.0, {"solved": np.zeros((4, 4))}),
        (1.0, {"solved": np.zeros((3, 3))}),
        (1.0, {"solved": 7 * np.eye(3)}),
        (1.0, {"solved": (1 + 1e-5) * FITTING["solved"]}),
        (1.0, {"solved": FITTING["solved"] * np.where(np.arange(9).reshape(3, 3) == 1, -1.0, 1.0)}),
        (1.0, {"n": -FITTING["n"]}),
        (1.0, {"sources": np.zeros(3)}),
        (1.0, {"sources": np.zeros((1, 1), dtype=np.int64)}),
        (1.0, {"rows": 2 * FITTING["rows"]}),
        (1.5, {}),
        (1.0, {"n": np.zeros(2)}),
        (1.0, {"root": np.eye(3, dtype=np.float32)}),
        (1.0, {"solved": np.eye(3, dtype=int)}),
        (1.0, {"root": np.full((3, 3), np.nan)}),
        (1.0, {"rows": np.full((2, 3), np.inf)}),
        (1.0, {"solved": np.full((3, 3), np.nan)}),
        (1.0, {"n": np.array(np.inf)}),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(ridge, arrays):
    with pytest.raises(FileFormatError, match=r"^here.npz does not hold a consistent ridge state$"):
        RidgeState.from_arrays(ridge, {**FITTING, **arrays}, "here.npz")


@pytest.mark.parametrize("column", range(3))
def test_what_does_not_fit_is_refused_however_large_the_other_columns_are(column):
    sizes = np.where(np.arange(3) == column, 1.0, 1e6)
    rows = np.random.default_rng(0).standard_normal((9, 3)) * sizes
    arrays = RidgeState(n_features=2).learn(rows[:, :-1], rows[:, -1]).to_arrays()
    RidgeState.from_arrays(1.0, arrays, "here.npz")
    wrong = arrays["solved"].copy()
    wrong[:, column] *= 1.001
    with pytest.raises(FileFormatError, match=r"^here.npz does not hold"):
        RidgeState.from_arrays(1.0, {**arrays, "solved": wrong}, "here.npz")


@pytest.mark.parametrize(
    ("X", "options"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], {"weights": [1.7e308, 1.7e308]}),
        ([[1e300, 0.0], [0.0, 1.0]], {"weights": [1e300, 1.0]}),
        ([[1e300, 0.0], [0.0, 1.0]], {"weights": [1e300, 1.0], "shock": 1e300}),
        ([[1.7e308, 0.0], [1.7e308, 1.0]], {"shock": 2.0}),
    ],
)
def test_weights_and_shocks_beyond_float64_are_refused_without_a_warning(X, options):
    state = RidgeState(n_features=2)
    with pytest.raises(PrecisionError, match="beyond the range of float64"):
        state.learn(X, [1.0, 2.0], **options)


def test_a_total_weight_beyond_float64_is_refused():
    state = RidgeState(n_features=1).learn([[0.0]], [0.0], weights=[1.7e308])
    with pytest.raises(PrecisionError, match=r"^the sum of the weights"):
        state + state


# -- the same observations twice ---------------------------------------------------------------------


def seen(*rewards):
    return RidgeState(n_features=1).learn(np.ones((len(rewards), 1)), rewards)


def test_states_that_hold_the_same_observations_are_known_to_overlap(tmp_path):
    state = seen(1.0)
    later, other = state.learn([[1.0]], [2.0]), seen(1.0)
    state.save(tmp_path / "state")
    copies = [state, later, state.folded(), state.discount(0.5), pickle.loads(pickle.dumps(state)), later + other]
    for held in (*copies, RidgeState.load(tmp_path / "state"), sum([other, seen(3.0), state])):
        assert state.overlaps(held)
        assert held.overlaps(later)
    assert (later + other).overlaps(other)


def test_states_that_hold_different_observations_do_not_overlap():
    nothing = RidgeState(n_features=1)
    first, second = nothing.learn([[1.0]], [1.0]), nothing.learn([[1.0]], [1.0])
    for one, other in ((first, second), (nothing, nothing), (first, nothing), (first, first.empty())):
        assert not one.overlaps(other)
    assert not first.overlaps(first.discount(0.0))
    assert not first.overlaps(nothing.learn(np.zeros((0, 1)), []))
    assert not first.overlaps(first.empty().learn([[1.0]], [1.0]))
    batch = RidgeState(n_features=1, batch=2).learn(np.ones((2, 1, 1)), np.ones((2, 1)))
    assert not batch[0].overlaps(batch[1])


def test_a_sum_of_very_many_sources_remembers_its_own(monkeypatch):
    monkeypatch.setattr(sources, "MOST_SOURCES", 5)
    first = seen(0.0)
    total = sum((seen(1.0) for _ in range(20)), first)
    assert total.n == 21
    assert total.overlaps(first)
    assert len(total.to_arrays()["sources"]) == 5


def test_an_empty_state_is_like_the_one_it_was_made_from():
    state = RidgeState(n_features=3, ridge=0.5, batch=2).learn(np.ones((2, 1, 3)), np.ones((2, 1)))
    empty = state.empty()
    assert (empty.n_features, empty.ridge, empty.batch) == (3, 0.5, (2,))
    assert not empty.n.any()
    expect_close((state + empty).V, state.V, "V")


@pytest.mark.parametrize("how", [{}, {"weights": 0.0}, {"shock": 0.5}])
@pytest.mark.parametrize("k", [1, 10, 3000])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named_however_many_rows_are_learned_and_whatever_they_weigh(bad, k, how):
    how = {name: np.full(k, value) if name == "weights" else value for name, value in how.items()}
    X, r = np.zeros((k, 3)), np.zeros(k)
    X[-1, 1] = bad
    with pytest.raises(ValueError, match=f"features must be finite, got {bad} in row {k - 1}"):
        RidgeState(n_features=3).learn(X, r, **how)
    X[-1, 1], r[-1] = 0.0, bad
    with pytest.raises(ValueError, match=f"rewards must be finite, got {bad} in row {k - 1}"):
        RidgeState(n_features=3).learn(X, r, **how)
