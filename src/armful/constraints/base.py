"""What a constraint answers, and what a constraint is."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Selection:
    """A set of arms: what `best` found.

    indices: `(k,)`, the arms. value: what they are worth together. ratio: `a` in (0, 1], such that no allowed set
    is worth more than `value / a`; 1 where the answer is exact, NaN where nothing is known.
    """

    indices: IntArray
    value: float
    ratio: float = 1.0

    def __iter__(self) -> Iterator[Any]:
        """So that one can write `indices, value, ratio = constraint.best(scores)`."""
        return iter((self.indices, self.value, self.ratio))

    def __contains__(self, arm: object) -> bool:
        """Whether an arm was chosen."""
        return arm in self.indices.tolist()


class Constraint(Protocol):
    """Which sets of arms are allowed.

    These three are all that a constraint needs. It may also have, and is then faster or says more:
    `best_each(scores, rngs)`, many rows of scores at once (see `best_each` below);
    `best_values(scores)`, only what the best sets are worth;
    `best_given(scores, rng, required=..., excluded=...)`, the best set with and without certain arms;
    `limits(indices)`, the parts that bind a set, as `Limit`s;
    `arm_names(indices)`, what arms are called, as a list of strings;
    `only_costs`, True where rewards are minus a cost (see `only_costs` below);
    `with_(...)`, a copy with a change (see `Changeable`).
    """

    @property
    def k(self) -> int:
        """The size of the largest allowed set."""
        ...

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """The allowed set with the largest sum of `scores` `(n_arms,)`; ties at random."""
        ...

    def violation(self, indices: ArrayLike) -> float:
        """How far a set is from being allowed: 0.0 when it is."""
        ...


class Limit(NamedTuple):
    """A part of a constraint that binds a set: what it says, and the constraint with this part loosened by one."""

    name: str
    loosened: Constraint


class Changeable:
    """A constraint that remembers what it was made with, and so can be copied with a change.

    A class that inherits it sets `options` in `__init__`: its arguments by name.
    """

    options: dict[str, Any]

    def with_(self, **changes: Any) -> Self:
        """The same constraint with some options changed: `quotas.with_(total=1200)`."""
        for name in changes:
            if name not in self.options:
                raise ValueError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(self.options)}")
        return type(self)(**{**self.options, **changes})


def best(constraint: Constraint, scores: FloatArray, X: FloatArray | None, rng: Generator | None = None) -> Selection:
    """What a constraint answers, which may be a user's own."""
    answer = constraint.best(scores, X, rng)
    if not isinstance(answer, Selection):
        raise ValueError(f"{constraint!r} must answer with a Selection, got {type(answer).__name__}")
    return answer


def best_each(
    constraint: Constraint, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
) -> tuple[list[IntArray] | IntArray, FloatArray]:
    """The best set and its value for each row of `scores` `(repetitions, n_arms)`.

    A constraint that can answer for all rows at once has a method `best_each` of its own; the rest is asked row by row.
    """
    if promised(type(constraint), "best", ("best_each",)):
        indices, values = cast(Any, constraint).best_each(scores, rngs)
        return indices, values
    features = X if X is not None else [None] * len(scores)
    selections = [best(constraint, *each) for each in zip(scores, features, rngs, strict=True)]
    return [selection.indices for selection in selections], np.array([s.value for s in selections])


def best_values(constraint: Constraint, scores: FloatArray, X: Sequence[FloatArray] | None = None) -> FloatArray:
    """What the best set of each row of `scores` is worth; which of several best ones it is does not matter."""
    if promised(type(constraint), "best", ("best_values",)):
        values: FloatArray = cast(Any, constraint).best_values(scores)
        return values
    return best_each(constraint, scores, [np.random.default_rng()] * len(scores), X)[1]


def only_costs(constraint: Constraint) -> bool:
    """Return whether scores are minus a cost, so that those above 0 count as 0, as with `Path(costs=True)`.

    Such a constraint says so by an attribute `only_costs`.
    """
    return bool(getattr(constraint, "only_costs", False))


def promised(kind: type, method: str, promises: tuple[str, ...]) -> bool:
    """Whether what is promised of a method was promised where it was written, not of one that it replaced."""
    order = list(kind.__mro__)
    written = next((i for i, each in enumerate(order) if method in vars(each)), len(order))
    made = [next((i for i, each in enumerate(order) if promise in vars(each)), None) for promise in promises]
    return all(i is None or i <= written for i in made) and made[0] is not None


NO_ARMS: IntArray = np.zeros(0, dtype=np.int64)


def check_scores(scores: ArrayLike) -> FloatArray:
    """Scores as `(n_arms,)` finite numbers."""
    array = checks.floats("scores", scores)
    if array.ndim != 1:
        raise ValueError(f"scores must have shape (n_arms,), got {array.shape}")
    checks.refuse_not_finite("scores", array)
    return array


def check_indices(indices: ArrayLike | Set[int], n_arms: int | None = None) -> IntArray:
    """Chosen arms as `(k,)` whole numbers, below `n_arms` if that is known."""
    try:
        array = np.asarray(list(indices) if isinstance(indices, Set) else indices)
    except ValueError:
        raise ValueError("indices must be whole numbers of shape (k,), got lists within a list") from None
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"indices must be whole numbers of shape (k,), got {array.dtype} of shape {array.shape}")
    if n_arms is not None and (array.min() < 0 or array.max() >= n_arms):
        raise ValueError(f"indices must be from 0 to {n_arms - 1}, got {array}")
    return array.astype(np.int64)


def plain(label: object) -> str:
    """Return a label as it is written in a name: a string as it is, anything else as Python writes it."""
    return label if isinstance(label, str) else repr(label)


def with_others(first: IntArray, second: IntArray) -> NDArray[np.bool_]:
    """Return which arms, each of two numbers of at least 0, are not the only ones with these numbers, `(n_arms,)`."""
    _, which, counts = np.unique(first * (second.max() + 1) + second, return_inverse=True, return_counts=True)
    several: NDArray[np.bool_] = counts[which] > 1
    return several


def arm_names(constraint: Constraint, indices: IntArray) -> list[str] | None:
    """Return what a constraint calls these arms (edges, pairs); None if it has no names for them."""
    named: Any = getattr(constraint, "arm_names", None)
    return None if named is None else named(indices)


def called(constraint: Constraint, arm: int) -> str:
    """Return what an arm is called in an error: by its name, else by its number."""
    names = arm_names(constraint, np.array([arm], dtype=np.int64))
    return f"arm {arm}" if names is None else names[0]


def repeated(indices: IntArray) -> int:
    """How many indices are there once too often."""
    return indices.size - np.unique(indices).size
