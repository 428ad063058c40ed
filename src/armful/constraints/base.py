"""What a constraint is: a base class with a default for everything that is optional."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from reprlib import Repr
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import sparray

from armful.checks import FloatArray, IntArray
from armful.constraints._checks import NO_ARMS
from armful.constraints._incremental import Growth
from armful.constraints._ranks import Ranks
from armful.errors import InfeasibleError
from armful.randomness import Keys


@dataclass(frozen=True, eq=False)
class Selection:
    """A set of arms, as `Constraint.best` returns it; unpacks into `indices, value, ratio`.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The arms.
    value : float
        The sum of their scores.
    ratio : float
        `a` in (0, 1], such that no allowed set is worth more than `value / a`: 1 where the answer is exact, NaN where
        nothing is known.
    """

    indices: IntArray
    value: float
    ratio: float = 1.0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.indices, self.value, self.ratio))

    def __contains__(self, arm: object) -> bool:
        return arm in self.indices.tolist()


class Limit(NamedTuple):
    """A part of a constraint that binds a set.

    Attributes
    ----------
    name : str
        What the part says, like `at most 2 from 'north'`.
    loosened : Constraint
        The constraint with this part loosened by one.
    """

    name: str
    loosened: "Constraint"


AGREE_WITH_BEST = ("best_given", "best_each", "best_values", "ranks", "always_exact", "looks_at_features")
"""What goes back to its default in a subclass that writes `best` anew."""


class Constraint:
    """Which sets of arms are allowed: the base class of all constraints.

    A subclass sets `k`, the size of the largest allowed set, and writes `best` and `violation`. That is enough for
    every policy and every simulation. The other methods have defaults here; a subclass that can do better replaces
    them. A subclass that writes `best` anew gets back the defaults of everything that must agree with it
    (`best_given`, `best_each`, `best_values`, `ranks`), unless it replaces these too.

    A constraint keeps its arguments by name in `options`: then `with_`, equality, `hash` and `repr` work.

    Attributes
    ----------
    k : int
        The size of the largest allowed set.
    options : dict
        The arguments it was made with, by name.
    only_costs : bool
        Whether scores are minus a cost, so that those above 0 count as 0, as with `Path(costs=True)`.
    always_exact : bool
        Whether the ratio of every answer is 1.
    looks_at_features : bool
        Whether `best` uses `X`; where it does not, features of millions of arms need not be read.
    must_have : ndarray
        The arms that are in every allowed set.
    ranks : Ranks or None
        For constraints under which arms are in or out by their rank alone: what the choice from millions of arms needs
        (docs/architecture.md, "a constraint that scales"); see `RankedConstraint`.

    Examples
    --------
    >>> class Neighbours(Constraint):
    ...     '''Two arms that stand side by side.'''
    ...     k = 2
    ...
    ...     def best(self, scores, X=None, rng=None):
    ...         sums = np.asarray(scores)[:-1] + np.asarray(scores)[1:]
    ...         first = int(sums.argmax())
    ...         return Selection(np.array([first, first + 1]), float(sums[first]))
    ...
    ...     def violation(self, indices):
    ...         return 0.0 if len(indices) == 2 and abs(indices[0] - indices[1]) == 1 else 1.0
    >>> Neighbours().best([1.0, 5.0, 4.0, 9.0]).indices
    array([2, 3])
    """

    options: Mapping[str, Any] = MappingProxyType({})
    only_costs: bool = False
    always_exact: bool = False
    looks_at_features: bool = True

    if TYPE_CHECKING:  # attributes or properties, as suits the subclass

        @property
        def k(self) -> int: ...

        @property
        def ranks(self) -> Ranks | None: ...

        @property
        def must_have(self) -> IntArray: ...

    else:
        ranks = None
        must_have = NO_ARMS

    def __init_subclass__(cls) -> None:
        if "best" in vars(cls):
            for name in AGREE_WITH_BEST:
                if name not in vars(cls):
                    setattr(cls, name, vars(Constraint)[name])

    # -- to be written -------------------------------------------------------------------------------

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """Return the allowed set with the largest sum of scores; ties are broken at random.

        Parameters
        ----------
        scores : array_like of shape (n_arms,)
            Finite numbers.
        X : ndarray of shape (n_arms, n_features), optional
            The features of the arms, for constraints that look at them.
        rng : Generator, optional
            Breaks ties.

        Returns
        -------
        Selection

        Raises
        ------
        InfeasibleError
            If no set is allowed.
        """
        raise NotImplementedError(f"{type(self).__name__} must define best(self, scores, X=None, rng=None)")

    def violation(self, indices: ArrayLike) -> float:
        """Return how far a set is from being allowed: 0.0 when it is.

        Parameters
        ----------
        indices : array_like of shape (k,)
            The arms; one that is repeated counts as a violation.
        """
        raise NotImplementedError(f"{type(self).__name__} must define violation(self, indices)")

    # -- with a default ------------------------------------------------------------------------------

    def best_given(
        self,
        scores: ArrayLike,
        rng: Generator,
        *,
        required: IntArray,
        excluded: IntArray,
        X: FloatArray | None = None,
    ) -> Selection:
        """Return the best allowed set with all the required arms and none of the excluded.

        By default required arms get a score that outweighs all others together and excluded arms its negative; scores
        smaller than the largest by more than 1e15 are then lost.

        Raises
        ------
        InfeasibleError
            If no allowed set has all of the one and none of the other.
        """
        values = np.asarray(scores, dtype=np.float64)
        outweighs = 2 * float(np.abs(values).sum()) or 1.0
        changed = values.copy()
        changed[required], changed[excluded] = outweighs, -outweighs
        picked = self.best(changed, X, rng)
        missing, unwanted = np.setdiff1d(required, picked.indices), np.intersect1d(excluded, picked.indices)
        which = "no allowed set" if picked.ratio == 1 else "no set that was found"
        if missing.size:
            raise UnmetRestriction(self, f"{which} has all {required.size} required arms;", missing, "does not fit")
        if unwanted.size:
            raise UnmetRestriction(self, f"{which} does without the excluded arms;", unwanted, "is needed")
        ratio = picked.ratio if picked.ratio == 1 or not required.size else float("nan")
        return Selection(picked.indices, float(values[picked.indices].sum()), ratio)

    def best_each(
        self, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
    ) -> tuple[Sequence[IntArray] | IntArray, FloatArray]:
        """Return the best set of each row of `scores` `(repetitions, n_arms)`, and what these sets are worth."""
        features = X if X is not None else [None] * len(scores)
        answers = [checked_best(self, *each) for each in zip(scores, features, rngs, strict=True)]
        return [answer.indices for answer in answers], np.array([answer.value for answer in answers])

    def best_values(self, scores: FloatArray, X: Sequence[FloatArray] | None = None) -> FloatArray:
        """Return what the best set of each row of `scores` `(repetitions, n_arms)` is worth."""
        return self.best_each(scores, [np.random.default_rng()] * len(scores), X)[1]

    def limits(self, indices: ArrayLike) -> Iterable[Limit]:
        """Return the parts of the constraint that bind a set; none by default."""
        return ()

    def growth(self, n_arms: int) -> Growth:
        """Return an empty set that grows arm by arm and can always be completed, for objectives."""
        raise ValueError(f"objectives work with TopK, AtMost, Quotas and NestedQuotas, restricted or not, got {self!r}")

    def arm_names(self, indices: ArrayLike) -> list[str] | None:
        """Return what arms are called (edges, pairs); None if there are no names for them."""
        return None

    # -- a value that can be changed, compared and printed -------------------------------------------

    def with_(self, **changes: Any) -> Self:
        """Return the same constraint with some options changed: `quotas.with_(total=1200)`."""
        for name in changes:
            if name not in self.options:
                raise ValueError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(self.options)}")
        return type(self)(**{**self.options, **changes})

    @cached_property
    def _identity(self) -> Hashable:
        return hashable(self.options) if self.options else id(self)  # one that keeps no options equals itself alone

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity))

    def __repr__(self) -> str:
        given = {name: value for name, value in self.options.items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={SHORT.repr(given[name])}' for name in given)})"


class RankedConstraint(Constraint):
    """A constraint under which arms are in or out by their rank alone, so that it scales to millions of arms.

    A subclass has `ranks` and writes `best_among` and `refuse_misfit`, beside what every constraint has.
    """

    if TYPE_CHECKING:

        @property
        def ranks(self) -> Ranks: ...

    def best_among(self, scores: FloatArray, key: Keys, arm_indices: IntArray | None = None) -> Selection:
        """Return the best set of some of many arms.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite numbers.
        key : int
            Breaks ties, by `randomness.tie_keys`.
        arm_indices : ndarray of shape (n,), optional
            Which arms the scores are of; all, if it is not given.
        """
        raise NotImplementedError(f"{type(self).__name__} must define best_among(self, scores, key, arm_indices=None)")

    def refuse_misfit(self, n_arms: int) -> None:
        """Raise if there is no allowed set of this number of arms."""
        raise NotImplementedError(f"{type(self).__name__} must define refuse_misfit(self, n_arms)")


def goes_by_rank(constraint: Constraint) -> TypeGuard[RankedConstraint]:
    """Return whether arms are in or out by their rank alone."""
    return constraint.ranks is not None


class UnmetRestriction(InfeasibleError):
    """No allowed set meets a restriction because of one arm, which a caller may know by another name."""

    def __init__(self, constraint: Constraint, before: str, arms: IntArray, after: str) -> None:
        super().__init__(f"{before} {arm_name(constraint, int(arms[0]))} {after}")
        self._parts = before, arms, after

    def named_by(self, constraint: Constraint) -> "UnmetRestriction":
        """Return the same error with the name that another constraint has for the arm."""
        return UnmetRestriction(constraint, *self._parts)


def checked_best(
    constraint: Constraint, scores: FloatArray, X: FloatArray | None, rng: Generator | None = None
) -> Selection:
    """Return the answer of a constraint that may be a user's own, checked to be a `Selection`."""
    answer = constraint.best(scores, X, rng)
    if not isinstance(answer, Selection):
        raise ValueError(f"{constraint!r} must answer with a Selection, got {type(answer).__name__}")
    return answer


def refuse_no_constraint(constraint: object, what: str = "constraint must be") -> None:
    """Raise unless this is a constraint."""
    if not isinstance(constraint, Constraint):
        raise ValueError(
            f"{what} one of armful's or your own subclass of Constraint, like TopK(10), got {constraint!r}"
        )


def arm_name(constraint: Constraint, arm: int) -> str:
    """Return what an arm is called in an error: by its name, else by its number."""
    names = constraint.arm_names(np.array([arm], dtype=np.int64))
    return f"arm {arm}" if names is None else names[0]


@singledispatch
def hashable(value: Any) -> Hashable:
    """Return an option of a constraint as something that can be compared and hashed; further types register theirs."""
    return value  # type: ignore[no-any-return]


@hashable.register(np.ndarray)
def _(array: NDArray[Any]) -> Hashable:
    return (array.shape, array.dtype.str, array.tobytes()) if array.dtype != object else hashable(array.tolist())


@hashable.register(sparray)
def _(matrix: Any) -> Hashable:
    rows = matrix.tocsr().sorted_indices()
    return (rows.shape, *(part.tobytes() for part in (rows.indptr, rows.indices, rows.data)))


@hashable.register(list | tuple)
def _(values: Sequence[Any]) -> Hashable:
    return tuple(hashable(value) for value in values)


@hashable.register(Mapping)
def _(values: Mapping[Any, Any]) -> Hashable:
    return frozenset((key, hashable(value)) for key, value in values.items())


class _Short(Repr):
    """Options as a repr shows them: the first few entries of what is long."""

    def repr_ndarray(self, array: NDArray[Any], level: int) -> str:
        return self.repr1(array[: self.maxlist + 1].tolist(), level)

    def repr_csr_array(self, matrix: Any, level: int) -> str:
        return f"<{matrix.shape[0]} x {matrix.shape[1]} matrix>"

    def repr_Groups(self, groups: Any, level: int) -> str:
        return self.repr1([groups.labels[i] for i in groups.of_arm[: self.maxlist + 1].tolist()], level)

    def repr_KeyedEdges(self, edges: Any, level: int) -> str:
        return self.repr_list(list(edges), level)


SHORT = _Short()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 6
SHORT.maxother = SHORT.maxstring = 60
