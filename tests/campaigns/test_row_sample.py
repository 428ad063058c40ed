from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from armful.campaigns.features._row_sample import RowSample
from armful.randomness import tie_keys


def sample_of(n, size, cuts=()):
    sample = RowSample(size)
    edges = [0, *sorted(cuts), n]
    for begin, end in pairwise(edges):
        rows = begin + sample.select(end - begin)
        sample.add(pa.RecordBatch.from_pydict({"row": rows}))
    assert sample.n_rows == n
    return sample.rows().column("row").to_numpy().tolist()


@pytest.mark.parametrize(("n", "size"), [(0, 5), (3, 5), (5, 5), (40, 5), (1000, 30)])
def test_it_is_the_rows_with_the_smallest_hashes_however_they_are_divided(n, size):
    hashes = tie_keys(0, np.arange(n)).tolist()
    expected = sorted(sorted(range(n), key=lambda row: hashes[row])[:size])
    rng = np.random.default_rng(n)
    for n_cuts in (0, 1, 7, 300):
        assert sample_of(n, size, rng.integers(0, n + 1, n_cuts).tolist()) == expected


def test_it_is_uniform():
    """Each tenth of 200,000 rows gives a tenth of 20,000: a chi-squared test at 1e-6, and the hash has no seed."""
    rows = np.array(sample_of(200_000, 20_000))
    counts = np.bincount(rows // 20_000, minlength=10)
    assert ((counts - 2000) ** 2 / 2000).sum() < 45.1  # 9 degrees of freedom
