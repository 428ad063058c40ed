"""Cover inequalities: cuts for sets that break a row of integers."""

import math

import numpy as np

from armful.checks import FloatArray, IntArray


def cover(row: FloatArray, lower: float, upper: float, chosen: IntArray) -> tuple[FloatArray, float]:
    """Return a row, with a lower bound, that all sets within the bounds keep and the chosen set does not.

    Write the row as `costs @ y <= capacity` with costs above 0, where y is x, or 1 - x if the coefficient is negative.
    The fewest of the chosen arms that cost more than the capacity cannot all be in. Nor can as many arms that each cost
    at least what the dearest of these does (Balas 1975), nor as many of the dearer arms from the first on for which the
    cheapest so many cost more than the capacity; the latter is taken if the chosen set breaks it.

    Parameters
    ----------
    row
        `(n_arms,)`, integers.
    lower, upper
        Integers or infinite; the chosen set is beyond one of them.
    chosen
        `(k,)`, distinct arms.

    Examples
    --------
    Of three arms that cost 5, 6 and 9, no two may be chosen where 10 may be spent:

    >>> cover(np.array([5.0, 6.0, 9.0]), -math.inf, 10.0, np.array([1, 2]))
    (array([-1., -1., -1.]), -1.0)
    """
    inside = np.zeros(row.size, dtype=bool)
    inside[chosen] = True
    if not math.isfinite(upper) or math.fsum([upper, *(-row[chosen]).tolist()]) >= 0:
        row, upper = -row, -lower
    cost = [abs(int(a)) for a in row.tolist()]
    capacity = int(upper) + sum(c for c, a in zip(cost, row.tolist(), strict=True) if a < 0)
    rising = np.argsort(np.abs(row), kind="stable")
    rising = rising[row[rising] != 0]
    paid = rising[(row[rising] > 0) == inside[rising]][::-1].tolist()  # dearest first
    spent, n_cover = 0, 0
    while spent <= capacity:
        spent += cost[paid[n_cover]]
        n_cover += 1
    ranks = rising.tolist()
    together, rank = sum(cost[j] for j in ranks[:n_cover]), 0
    while together <= capacity:
        together += cost[ranks[rank + n_cover]] - cost[ranks[rank]]
        rank += 1
    if np.isin(paid, ranks[rank:]).sum() >= n_cover:
        members = rising[rank:]
    else:
        members = np.union1d(paid[:n_cover], np.flatnonzero(np.abs(row) >= abs(row[paid[0]]))).astype(np.int64)
    signs = np.zeros(row.size)
    signs[members] = -np.sign(row[members])
    return signs, 1.0 - n_cover + float((row[members] < 0).sum())
