"""Quotas of columns whose groups cross: how many contacts each combination of groups may have."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from armful.checks import FloatArray, IntArray


def contacts_by_cell(
    k: int, low: IntArray, sizes: IntArray, quotas: Sequence[tuple[IntArray, IntArray, IntArray]]
) -> NDArray[np.int64] | None:
    """Return contacts of each cell, `(n_cells,)`, that keep all quotas and are nearest to the ratio of the sizes.

    A cell is a combination of groups. Nearest is by the sum of absolute differences, an integer program.

    Parameters
    ----------
    k : int
        The contacts in all.
    low, sizes : ndarray of int, shape (n_cells,)
        The people in each cell who must be contacted, and all people in it.
    quotas : sequence of (groups, at_least, at_most)
        For each column the group of each cell, `(n_cells,)`, and the bounds of each group, `(n_groups,)`.

    Returns
    -------
    ndarray of int, shape (n_cells,), or None
        None if no contacts keep all quotas.

    Examples
    --------
    >>> region, age = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> none, two = np.array([0, 0]), np.array([2, 2])
    >>> people = np.array([9, 9, 9, 9])
    >>> contacts_by_cell(4, 0 * people, people, [(region, none, two), (age, np.array([2, 2]), two)])
    array([1, 1, 1, 1])
    """
    n = sizes.size
    rows, lower, upper = [csr_array(np.ones((1, n)))], [np.array([k])], [np.array([k])]
    for groups, at_least, at_most in quotas:
        rows.append(csr_array((np.ones(n), (groups, np.arange(n))), shape=(at_least.size, n)))
        lower.append(at_least)
        upper.append(at_most)
    constraints = vstack(rows)
    # Beside the contacts x there are variables d >= |x - target|, whose sum is made small.
    target: FloatArray = k * sizes / max(sizes.sum(), 1)
    one = eye_array(n)
    found = milp(
        np.concatenate([np.zeros(n), np.ones(n)]),
        integrality=np.concatenate([np.ones(n), np.zeros(n)]),
        bounds=Bounds(np.concatenate([low, np.zeros(n)]), np.concatenate([sizes, np.full(n, np.inf)])),
        constraints=[
            LinearConstraint(
                hstack([constraints, csr_array(constraints.shape)]).tocsr(),
                np.concatenate(lower),
                np.concatenate(upper),
            ),
            LinearConstraint(hstack([one, one]).tocsr(), lb=target),
            LinearConstraint(hstack([one, -one]).tocsr(), ub=target),
        ],
        options={"mip_rel_gap": 0.05},  # any contacts that keep the quotas will do
    )
    return None if found.x is None else np.round(found.x[:n]).astype(np.int64)
