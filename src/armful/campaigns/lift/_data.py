"""The observations behind a lift as plain arrays, and how the rounds of a campaign become them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._records import RoundRecord
from armful.campaigns.holdout import hashes
from armful.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LiftData:
    """One row for each person and round.

    Parameters
    ----------
    rounds : array_like of int, shape (n,)
        The round. Shares are compared within rounds only.
    people : array_like of int, shape (n,)
        A number for each person, the same in all rounds.
    treated : array_like of bool, shape (n,)
        Whether the person is in the chosen share; if not, in the one it is compared with.
    rewards : array_like, shape (n,)
        NaN where the outcome is not known.
    controls : array_like, shape (n,), optional
        For those who are not treated: the reward that was predicted before the round, minus its mean among all people
        who could have been drawn instead. It says who happened to be drawn, and is 0 on average.
    control_variances : array_like, shape (n,), optional
        The variance of that mean: of the prediction among those people, divided by their number.

    ranks : array_like, shape (n,), optional
        For those who were picked by a score: the rank among those of their share and round as a fraction, from just
        above 0 for the best to 1 for the last. NaN for those who were drawn at random.

    Raises
    ------
    ValueError
        If the arrays have different lengths.
    """

    rounds: IntArray
    people: IntArray
    treated: NDArray[np.bool_]
    rewards: FloatArray
    controls: FloatArray | None = None
    control_variances: FloatArray | None = None
    ranks: FloatArray | None = None

    def __post_init__(self) -> None:
        kinds: dict[str, type] = {"rounds": np.int64, "people": np.int64, "treated": np.bool_}
        n = np.size(self.rounds)
        for name, value in vars(self).items():
            if value is None:
                continue
            array: NDArray[Any] = np.asarray(value, dtype=kinds.get(name, np.float64))
            if array.shape != (n,):
                raise ValueError(f"{name} must have shape ({n},) like rounds, got {array.shape}")
            object.__setattr__(self, name, array)


def lift_data(records: Iterable[RoundRecord], *, against: str = "holdout") -> LiftData:
    """Return the observations of all closed rounds: the chosen share against another.

    An open round is left out, because its first outcomes are not like those to come.

    Parameters
    ----------
    records : iterable of RoundRecord
        The rounds of a campaign.
    against : {"holdout", "no-contact"}, default "holdout"
        The share to compare with.

    Returns
    -------
    LiftData
    """
    parts = [_rows_of(record, against) for record in records if record.closed]
    names = ("rounds", "people", "treated", "rewards", "controls", "control_variances", "ranks")
    columns = zip(*parts, strict=True) if parts else [[np.empty(0)]] * len(names)
    return LiftData(**{name: np.concatenate(list(column)) for name, column in zip(names, columns, strict=True)})


def describe_pool(predicted: FloatArray, groups: Mapping[str, NDArray[np.str_]]) -> dict[str, Any]:
    """Return what is kept of the people from whom the holdout of a round is drawn at random.

    It belongs into the details of the round as `details["holdout_pool"]`. Leave it out if the house rule is not random.

    Parameters
    ----------
    predicted : ndarray, shape (n,)
        The predicted rewards of all held-out people who may be drawn in this round; without those who must be.
    groups : mapping of str to ndarray of str, each of shape (n,)
        Their groups by quota.

    Returns
    -------
    dict
        For each combination of groups: the number of people, mean and variance of their predicted rewards.

    Examples
    --------
    >>> describe_pool(np.array([1.0, 3.0, 5.0]), {"region": np.array(["north", "north", "south"])})
    {'north': [2, 2.0, 1.0], 'south': [1, 5.0, 0.0]}
    """
    labels, cells = np.unique(_cells(groups, predicted.size), return_inverse=True)
    sizes = np.bincount(cells)
    mean = np.bincount(cells, weights=predicted) / sizes
    variance = np.bincount(cells, weights=(predicted - mean[cells]) ** 2) / sizes
    rows = zip(labels.tolist(), sizes.tolist(), mean.tolist(), variance.tolist(), strict=True)
    return {label: [size, mean, variance] for label, size, mean, variance in rows}


def _rows_of(record: RoundRecord, against: str) -> tuple[NDArray[Any], ...]:
    """Return the columns of `LiftData` for one round."""
    chosen, others = record.is_share("chosen"), record.is_share(against)
    ranks = np.full(record.ids.size, np.nan)
    drawn_at_random = against == "holdout" and "holdout_pool" in record.details
    for share in [chosen] if drawn_at_random else [chosen, others]:
        ranks[share] = np.arange(1, share.sum() + 1) / max(share.sum(), 1)  # a round is in the order of its list
    controls, variances = _controls(record, others) if drawn_at_random else np.zeros((2, record.ids.size))
    here = chosen | others
    people = hashes(record.ids[here], "people").view(np.int64)
    rounds = np.full(people.size, record.number)
    return rounds, people, chosen[here], record.rewards[here], controls[here], variances[here], ranks[here]


def _controls(record: RoundRecord, holdout: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the controls of a round and the variance of their mean, both `(n,)`; 0 for the chosen share."""
    controls, variances = np.zeros(record.ids.size), np.zeros(record.ids.size)
    known = holdout & np.isfinite(record.rewards)
    drawn = np.flatnonzero(known & (record.probabilities != 1))  # who had to be contacted was not drawn
    cells_of = _cells({name: groups[drawn] for name, groups in record.groups.items()}, drawn.size)
    pool = record.details["holdout_pool"]
    labels, cells = np.unique(cells_of, return_inverse=True)
    sizes, mean, variance = np.array([pool.get(label, [1, np.nan, 0.0]) for label in labels.tolist()]).reshape(-1, 3).T
    controls[drawn] = np.nan_to_num(record.predicted[drawn] - mean[cells])
    fractions = np.bincount(cells, minlength=labels.size) / max(known.sum(), 1)
    variances[holdout] = np.sum(fractions**2 * variance / sizes)
    return controls, variances


def _cells(groups: Mapping[str, NDArray[np.str_]], n: int) -> NDArray[np.str_]:
    """Return the combination of groups of each person, as text."""
    cells = np.full(n, "", dtype=np.str_)
    for i, column in enumerate(groups.values()):
        cells = np.char.add(np.char.add(cells, " / "), column) if i else np.asarray(column, dtype=np.str_)
    return cells
