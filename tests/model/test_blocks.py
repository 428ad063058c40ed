import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

import armful
from armful.arms import Arms
from armful.model import _blocks as blocks
from armful.model._blocks import (
    BLOCK,
    HALVED,
    LARGEST_SINGLE,
    block_size,
    lengths_and_last,
    multiply,
    product_of,
    row_norms,
)


def two_columns(columns, rows):
    product = columns @ rows
    return product[..., 0, :], product[..., 1, :]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([(), (1,), (3,)]), st.sampled_from([(), (3,)]), st.integers(1, 40), st.integers(1, 9))
def test_blocks_multiply_as_the_whole(rows_batch, matrix_batch, n, d):
    rng = np.random.default_rng(n)
    X, matrix = rng.standard_normal((*rows_batch, n, d)), rng.standard_normal((*matrix_batch, d, 2))
    for part, column in zip(multiply(X, matrix, two_columns), (0, 1), strict=True):
        assert part.shape == (X @ matrix)[..., column].shape
        assert np.allclose(part, (X @ matrix)[..., column])


@pytest.mark.parametrize(
    "n", [BLOCK, BLOCK + 1, LARGEST_SINGLE, LARGEST_SINGLE + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1, 5000]
)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_every_row_of_many_blocks_is_there(n, batch):
    rng = np.random.default_rng(n)
    X, matrix = rng.standard_normal((*batch, n, 3)), rng.standard_normal((*batch, 3, 4))
    first, second = multiply(X, matrix, two_columns)
    assert np.allclose(first, (X @ matrix)[..., 0])
    assert np.allclose(second, (X @ matrix)[..., 1])


@pytest.mark.parametrize("d", [1, 2, 7, HALVED - 1, HALVED, HALVED + 1, 50, 63, 64, 100, 255, 257, 700])
@pytest.mark.parametrize("rows_batch", [(), (3,)])
@pytest.mark.parametrize("matrix_batch", [(), (3,)])
def test_lengths_and_last_are_those_of_the_whole_product(d, rows_batch, matrix_batch):
    rng = np.random.default_rng(d)
    X, matrix = rng.standard_normal((*rows_batch, 21, d)), np.triu(rng.standard_normal((*matrix_batch, d, d + 1)))
    last, lengths = multiply(X, matrix, lengths_and_last)
    assert np.allclose(last, (X @ matrix)[..., -1])
    assert np.allclose(lengths, np.linalg.norm((X @ matrix)[..., :-1], axis=-1))


def test_a_common_table_of_arms_meets_a_batch_of_matrices():
    rng = np.random.default_rng(0)
    X, matrices = rng.standard_normal((1300, 3)), rng.standard_normal((4, 3, 2))
    first, _ = multiply(X, matrices, two_columns)
    assert np.allclose(first, np.stack([X @ matrix[:, 0] for matrix in matrices]))


def test_the_rows_are_left_as_they_were():
    X = np.ones((13, 2))
    X.flags.writeable = False
    multiply(X, np.ones((2, 2)), two_columns)


def test_what_is_not_finite_shows_without_a_warning():
    X = np.ones((600, 2))
    X[5, 0] = np.inf
    X[550, 1] = np.nan
    first, _ = multiply(X, np.array([[0.0, 1.0], [1.0, 1.0]]), two_columns)
    assert np.flatnonzero(~np.isfinite(first)).tolist() == [5, 550]


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (1, 1), (0, 3)])
def test_row_norms_are_euclidean(shape):
    rows = np.random.default_rng(0).standard_normal(shape)
    assert np.allclose(row_norms(rows), np.linalg.norm(rows, axis=-1))


@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_equal_rows_have_bitwise_equal_norms(d):
    X = np.tile(np.random.default_rng(d).standard_normal(d), (1003, 1))
    for rows in (X, np.asfortranarray(X), X[1:], X[::3]):
        assert np.unique(row_norms(rows)).size == 1


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("d", [1, 7, 50, 64, 385])
def test_equal_rows_are_equal_with_every_number_of_blas_threads_and_these_differ_by_rounding_alone(d):
    """Products of d numbers err by (d + 4) / 2 eps of the sum of their sizes; here 100 times that is allowed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, d))
    state = armful.RidgeState(n_features=d).learn(X[:40], X[:40, 0])
    X[rng.permutation(1100)[:300]] = X[0]
    equal = (X[0] == X).all(axis=1)
    assert equal.sum() >= 300
    results = []
    for n_threads in (1, 2, 4):
        with threadpoolctl.threadpool_limits(n_threads, user_api="blas"):
            for n in (1100, 1000, 333, 13):
                for values in (*state.mean_and_width(X[:n]), state.mean(X[:n])):
                    assert np.unique(values[equal[:n]]).size <= 1
            results.append(np.stack(state.mean_and_width(X)))
    allowed = 50 * (d + 4) * np.finfo(float).eps * np.abs(results[0]).max()
    for other in results[1:]:
        assert np.allclose(results[0], other, rtol=0, atol=allowed)


class ByPlace(np.ndarray):
    """A matrix whose products are summed in another order from the `from_`-th column on, as some kernels of BLAS do."""

    from_ = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [each.view(np.ndarray) if isinstance(each, ByPlace) else each for each in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            columns, rows = plain
            parts = [columns[..., i::3] @ rows[..., i::3, self.from_ :] for i in range(3)]
            result[..., self.from_ :] = parts[0] + parts[1] + parts[2]
        return result


@pytest.fixture
def fresh():
    """Nothing is remembered of shapes that were tried out."""
    blocks._index_does_not_matter.cache_clear()
    yield
    blocks._index_does_not_matter.cache_clear()


@pytest.mark.parametrize("from_", [1, 7, 12])
@pytest.mark.parametrize("n", [1, 13, 200, 1024, 1025])
def test_equal_rows_get_equal_results_from_a_blas_that_depends_on_their_index(monkeypatch, fresh, n, from_):
    """From the 12th on: 8 at a time are alike; from the 1st or the 7th: only one at a time at the same index."""
    monkeypatch.setattr(ByPlace, "from_", from_)
    make = np.random.default_rng

    class Generator:
        def __init__(self, seed):
            self.rng = make(seed)

        def standard_normal(self, shape):
            return self.rng.standard_normal(shape).view(ByPlace)

    monkeypatch.setattr(np.random, "default_rng", Generator)  # for what is tried out
    rng = make(n)
    X, matrix = rng.standard_normal((n, 31)), np.triu(rng.standard_normal((31, 32)))
    equal = rng.random(n) < 0.5
    X[equal] = X[0]
    for rows, matrices in ((X, matrix), (X, np.stack([matrix] * 2)), (np.stack([X, X]), np.stack([matrix] * 2))):
        for some_of_many in (False, True):
            results = multiply(rows, matrices.view(ByPlace), lengths_and_last, some_of_many=some_of_many)
            product = X @ matrices
            for result, truth in zip(results, (product[..., -1], row_norms(product[..., :-1])), strict=True):
                assert (result[..., equal] == result[..., equal][..., :1]).all()
                assert np.allclose(result, truth)


@pytest.mark.parametrize("order", ["C", "F"])
def test_each_shape_is_tried_out_once_for_each_number_of_threads(fresh, order):
    X, matrix = np.ones((40, 3)), np.asarray(np.ones((3, 4)), order=order)
    for n_threads in (1, 2, 1, 2):
        with threadpoolctl.threadpool_limits(n_threads, user_api="blas"):
            multiply(X, matrix, lengths_and_last)
            multiply(X[:39], matrix, lengths_and_last)
    assert blocks._index_does_not_matter.cache_info().currsize == 2
    multiply(X, np.asarray(matrix, order="C" if order == "F" else "F"), lengths_and_last)
    assert blocks._index_does_not_matter.cache_info().currsize == 3


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.sampled_from([1, 7, 60]), st.sampled_from([5, 8, 200, 1000, 1030, 1700]))
def test_many_learners_get_what_each_gets_alone(n_learners, d, n):
    """Whether each has arms of its own or all have the same; to the last bit."""
    rng = np.random.default_rng(n_learners)
    X = rng.standard_normal((n_learners, n, d))
    matrices = np.triu(rng.standard_normal((n_learners, d, d + 1)))
    batched = multiply(X, matrices, lengths_and_last)
    common = multiply(X[0], matrices, lengths_and_last)
    for i in range(n_learners):
        alone = multiply(X[i], matrices[i], lengths_and_last)
        for result, of_batch in zip(alone, batched, strict=True):
            assert np.array_equal(result, of_batch[i])
        for result, shared in zip(multiply(X[0], matrices[i], lengths_and_last), common, strict=True):
            assert np.array_equal(result, shared[i])


@pytest.mark.parametrize("d", [20, 60])  # at 60 the learners go a few at a time
def test_leading_axes_that_are_not_the_learners_are_broadcast_as_numpy_does(d):
    rng = np.random.default_rng(0)
    state = armful.RidgeState(n_features=d, batch=(3,))
    many = rng.standard_normal((5, 3, 400, d))
    assert np.allclose(state.width(many), np.linalg.norm(many, axis=-1))
    one = rng.standard_normal((1, 5000, d))
    assert np.allclose(state.width(one), np.linalg.norm(np.repeat(one, 3, axis=0), axis=-1))
    with pytest.raises(ValueError, match=r"mismatch|broadcast"):
        state.width(rng.standard_normal((4, 5000, d)))
    assert state.width(np.zeros((3, 0, d))).shape == (3, 0)


@pytest.mark.parametrize("d", [3, 33, 48, 65])
@pytest.mark.parametrize("n", [8, 16, 40])
def test_how_rows_lie_in_memory_changes_no_bit(d, n):
    rng = np.random.default_rng(d)
    X, matrices = rng.standard_normal((4, n, d)), np.triu(rng.standard_normal((4, d, d + 1)))
    turned = np.ascontiguousarray(X.swapaxes(1, 2)).swapaxes(1, 2)
    for arms in (X, turned):
        for i in range(4):
            for part, alone in zip(
                multiply(arms, matrices, lengths_and_last), multiply(X[i], matrices[i], lengths_and_last), strict=True
            ):
                assert np.array_equal(part[i], alone)


@pytest.mark.parametrize("d", [3, HALVED, 64, 257])
def test_some_of_many_arms_are_multiplied_in_blocks_of_one_size_by_two_columns_or_more(monkeypatch, d):
    """What BLAS does with another size depends on the processor, so the sizes themselves are looked at."""
    columns_seen, rows_seen = set(), set()

    def seen(columns, rows, *n_threads):
        columns_seen.add(columns.shape[-2])
        rows_seen.add(rows.shape[-1])
        return product_of(columns, rows, *n_threads)

    monkeypatch.setattr("armful.model._blocks.product_of", seen)
    for n in (1, 8, 500, 600, BLOCK, BLOCK + 1):
        for ask in ("mean", "mean_and_width"):
            getattr(Arms(np.ones((n, d)), armful.RidgeState(n_features=d), arm_indices=np.arange(n)), ask)
    assert rows_seen == {block_size(d)}
    assert min(columns_seen) >= 2


@pytest.mark.parametrize("n", [8, 13, LARGEST_SINGLE, LARGEST_SINGLE + 1])
def test_a_kernel_gets_rows_that_lie_one_after_the_other_however_they_lay(n):
    """Whether BLAS gives other bits otherwise depends on the processor, so the memory itself is looked at."""
    X = np.ones((2, n, 6))
    turned = np.ascontiguousarray(X.swapaxes(1, 2)).swapaxes(1, 2)

    def kernel(columns, rows):
        assert rows.swapaxes(-1, -2).flags.c_contiguous
        return two_columns(columns, rows)

    for rows in (X, turned, X[..., ::-1], X[..., ::2].repeat(2, axis=-1)):
        multiply(rows, np.ones((2, 6, 2)), kernel)
    for rows in (turned[0], np.ones((n, 12))[:, ::2]):
        multiply(rows, np.ones((6, 2)), kernel)
