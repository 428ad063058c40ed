import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import RidgeState
from armful.model._blocks import row_norms
from armful.model._factor import Factor
from armful.model._qr import BUFFERED_ROWS, SumOfSquares, ridge_root, stacked_root

D, RIDGE = 6, 0.5


def rows_of(rng, n, scale=1.0, batch=()):
    return scale * rng.standard_normal((*batch, n, D + 1))


def empty_sum(batch=()):
    return SumOfSquares(np.zeros((*batch, D + 1, D + 1)))


def gram(root):
    return np.swapaxes(root, -1, -2) @ root


@given(st.lists(st.integers(0, 90), max_size=12), st.sampled_from([(), (2,)]))
@settings(max_examples=60, deadline=None)
def test_a_sum_is_the_sum_of_its_rows_whichever_of_them_are_buffered(sizes, batch):
    rng = np.random.default_rng(len(sizes))
    total, everything = empty_sum(batch), np.zeros((*batch, D + 1, D + 1))
    for size in sizes:
        rows = rows_of(rng, size, batch=batch)
        total, everything = total.add(rows), everything + gram(rows)
        assert total.buffered.shape[-2] <= BUFFERED_ROWS
        assert np.allclose(gram(total.folded) + gram(total.buffered), everything)
        assert np.allclose(gram(total.root), everything)
        assert (total.n_buffered > 0) == (total.buffered.shape[-2] > 0)


def test_the_inverse_holds_the_inverse_root_and_the_estimate():
    rows = rows_of(np.random.default_rng(0), 40)
    solved = Factor.of(empty_sum().add(rows), RIDGE)
    V = gram(rows[:, :-1]) + RIDGE * np.eye(D)
    assert np.allclose(gram(solved.root), V)
    assert np.allclose(solved.inverse[:, :-1] @ solved.root, np.eye(D))
    assert np.allclose(solved.inverse[:, -1], np.linalg.solve(V, rows[:, :-1].T @ rows[:, -1]))


@given(st.floats(-6, 6), st.integers(0, 50), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_condition_number_is_never_larger_than_said(scale, n, seed):
    solved = Factor.of(empty_sum().add(rows_of(np.random.default_rng(seed), n, 10.0**scale)), RIDGE)
    scaled = solved.root / np.linalg.norm(solved.root, axis=0)
    assert np.linalg.cond(scaled) ** 2 <= solved.squared_condition * (1 + 1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e5])
@pytest.mark.parametrize(("scale", "one_by_one"), [(1.0, True), (0.01, True), (1e4, False), (1e6, False)])
def test_rows_are_added_to_the_triangle_where_that_is_exact_enough(scale, one_by_one, unit):
    """By the sizes of the features beside one another, whatever the unit of the rewards."""
    rng = np.random.default_rng(3)
    seen, solved = empty_sum(), Factor(ridge_root(D + 1, RIDGE, ()))
    added, probes = 0, np.concatenate([np.eye(D), rng.standard_normal((20, D))])
    for _ in range(3 * BUFFERED_ROWS // 5):
        rows = rows_of(rng, 5)
        rows[:, 0] *= scale
        rows[:, -1] *= unit
        before, seen = solved, seen.add(rows)
        solved, exact = before.after(rows, seen, RIDGE), Factor.of(seen, RIDGE)
        quick = stacked_root(before.triangle, rows)
        added += np.array_equal(solved.triangle, quick) and not np.array_equal(quick, exact.triangle)
        assert seen.n_buffered or np.array_equal(solved.triangle, exact.triangle)
        widths, exactly = (row_norms(probes @ each.inverse[:, :-1]) for each in (solved, exact))
        assert np.abs(widths / exactly - 1).max() <= 1e-9
    assert (added > 100) == one_by_one


@pytest.mark.parametrize(
    ("ridge", "seen"),
    [
        (RIDGE, {(True, False, True), (True, False, False)}),
        (1e-8, {(False,) * 3, (True, False, True), (True, False, False)}),
    ],
)
def test_learners_of_a_batch_that_differ_in_size_are_as_if_alone(ridge, seen):
    """One adds rows to its triangle throughout (or once it knows enough), one never can, one only at first."""
    rng = np.random.default_rng(5)
    batch = RidgeState(n_features=D, ridge=ridge, batch=(3,))
    alone = [RidgeState(n_features=D, ridge=ridge) for _ in range(3)]
    steady = set()
    for t in range(60):
        X, r = rng.standard_normal((3, 4, D)), rng.standard_normal((3, 4))
        X[..., 0] *= np.array([1.0, 1e6, 1e6 if t > 30 else 1.0])[:, None]
        X[2] *= t != 1  # so that it learns nothing while the first does
        batch = batch.learn(X, r)
        alone = [state.learn(x, y) for state, x, y in zip(alone, X, r, strict=True)]
        steady.add(tuple(state._factor.steady for state in alone))
        for i, state in enumerate(alone):
            assert np.array_equal(batch[i].inverse_root, state.inverse_root)
            assert np.array_equal(batch[i].theta, state.theta)
    assert steady == seen


@pytest.mark.parametrize("batch", [(), (2,)])
def test_saving_and_asking_in_between_changes_no_bit_later(tmp_path, batch):
    rng = np.random.default_rng(7)
    quiet = asked = saved = RidgeState(n_features=D, ridge=RIDGE, batch=batch)
    for t in range(2 * BUFFERED_ROWS):
        X, r = rng.standard_normal((*batch, 3, D)), rng.standard_normal((*batch, 3))
        quiet, asked, saved = (state.learn(X, r) for state in (quiet, asked, saved))
        asked.V, asked.b, asked.squared_rewards  # noqa: B018
        if t % 7 == 0:
            saved.save(tmp_path / "state")
            saved = RidgeState.load(tmp_path / "state")
        if t % 50 == 49:
            quiet, asked, saved = (state.discount(0.9) for state in (quiet, asked, saved))
        for state in (asked, saved):
            assert np.array_equal(state.inverse_root, quiet.inverse_root)
            assert np.array_equal(state.theta, quiet.theta)
    assert np.array_equal(asked.V, quiet.V)
    assert np.array_equal(saved.V, quiet.V)


def test_a_state_folded_for_sending_knows_the_same():
    rng = np.random.default_rng(9)
    state = RidgeState(n_features=D, ridge=RIDGE)
    for _ in range(30):
        state = state.learn(rng.standard_normal((2, D)), rng.standard_normal(2))
    folded = state.folded()
    assert folded.to_arrays()["rows"].shape == (0, D + 1)
    for name in ("V", "b", "n", "theta", "inverse_root", "squared_norms", "squared_rewards", "residual"):
        assert np.array_equal(getattr(folded, name), getattr(state, name)), name


def test_an_empty_batch_is_a_batch():
    state = RidgeState(n_features=D, batch=(2,)).learn(np.ones((2, 3, D)), np.ones((2, 3)))
    for empty in (RidgeState(n_features=D, batch=(0,)), state[0:0], RidgeState(n_features=D).repeat(0)):
        assert empty.batch == (0,)
        assert empty.learn(np.ones((0, 3, D)), np.ones((0, 3))).theta.shape == (0, D)


def test_a_learner_is_as_steady_in_a_batch_as_alone():
    rng = np.random.default_rng(1)
    rows = rows_of(rng, 9, batch=(500,))
    batch = Factor.of(empty_sum((500,)).add(rows), RIDGE)
    alone = [Factor.of(empty_sum().add(each), RIDGE).squared_condition for each in rows]
    assert np.array_equal(batch.squared_condition, alone)
