"""What a constraint is: a base class with a default for everything that is optional."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful.checks import FloatArray, IntArray, NotFiniteError
from armful.constraints._checks import NO_ARMS, check_indices, check_scores
from armful.constraints._incremental import Growth
from armful.constraints._ranks import Ranks
from armful.constraints._value import Value
from armful.constraints.selection import Selection
from armful.errors import InfeasibleError
from armful.randomness import as_generator


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


DEPEND_ON_BEST = {"best_given", "_solve", "best_each", "best_values", "ranks", "always_exact", "uses_features"}
"""What a subclass that overrides `best` gets back the default of, unless it overrides that as well."""


class Constraint(Value):
    """Which sets of arms are allowed: the base class of all constraints.

    A subclass sets `k` and writes `best` and `violation`; that is enough for every policy and every simulation. All
    else has a default here, which a subclass that can do better overrides. A subclass that overrides `best` gets the
    defaults of everything that must agree with it (`best_given`, `best_each`, `best_values`, `ranks`), even where its
    own base class had better ones. If `options` holds the arguments by name, `with_`, `==`, `hash` and `repr` work.

    Attributes
    ----------
    k : int
        The size of the largest allowed set.
    only_costs : bool
        Whether scores are negated costs, so that positive ones count as 0, as with `Path(costs=True)`.
    always_exact : bool
        Whether the ratio of every answer is 1.
    uses_features : bool
        Whether `best` uses `X`; if not, the features of millions of arms need not be in memory.
    must_have : ndarray of shape (n,)
        The arms that are in every allowed set.
    ranks : Ranks or None
        For a choice from millions of arms, see `RankedConstraint`.

    Examples
    --------
    >>> class Neighbours(Constraint):
    ...     '''Two arms with consecutive indices.'''
    ...     k = 2
    ...     def best(self, scores, X=None, rng=None):
    ...         sums = np.asarray(scores)[:-1] + np.asarray(scores)[1:]
    ...         first = int(sums.argmax())
    ...         return Selection(np.array([first, first + 1]), float(sums[first]))
    ...     def violation(self, indices):
    ...         return 0.0 if len(indices) == 2 and abs(indices[0] - indices[1]) == 1 else 1.0
    >>> Neighbours().best([1.0, 5.0, 4.0, 9.0]).indices
    array([2, 3])
    """

    only_costs: bool = False
    always_exact: bool = False
    uses_features: bool = True

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
            for name in DEPEND_ON_BEST - vars(cls).keys():
                setattr(cls, name, vars(Constraint)[name])

    def best(self, scores: ArrayLike, X: FloatArray | None = None, rng: Generator | None = None) -> Selection:
        """Return the allowed set with the largest sum of scores; ties are broken at random.

        Parameters
        ----------
        scores : array_like of shape (n_arms,)
            Finite numbers.
        X : ndarray of shape (n_arms, n_features), optional
            The features of the arms, for constraints that use them.
        rng : Generator or int, optional
            Breaks ties; a number is taken as a seed.

        Returns
        -------
        Selection

        Raises
        ------
        ValueError
            If the scores are not finite numbers, or not as many as there are arms.
        InfeasibleError
            If no set is allowed.
        """
        raise NotImplementedError(f"{type(self).__name__} must define best(self, scores, X=None, rng=None)")

    def violation(self, indices: ArrayLike) -> float:
        """Return how far a set is from being allowed: 0.0 when it is.

        Parameters
        ----------
        indices : array_like of shape (k,)
            The arms; a repeated one is a violation.
        """
        raise NotImplementedError(f"{type(self).__name__} must define violation(self, indices)")

    def check_n_arms(self, n_arms: int) -> None:
        """Raise if there is no allowed set of this number of arms; by default nothing is checked."""

    def best_given(
        self,
        scores: ArrayLike,
        rng: Generator | None = None,
        *,
        required: ArrayLike = (),
        excluded: ArrayLike = (),
        X: FloatArray | None = None,
    ) -> Selection:
        """Return the best allowed set with all the required arms and none of the excluded.

        By default `best` is asked, with a score for required arms that outweighs all others together and its negative
        for excluded ones; scores smaller than the largest by more than 1e15 are then lost.

        Parameters
        ----------
        scores : array_like of shape (n_arms,)
            As in `best`.
        rng : Generator or int, optional
            As in `best`.
        required, excluded : array_like of shape (n,), default ()
            The indices of arms.
        X : ndarray of shape (n_arms, n_features), optional
            As in `best`.

        Raises
        ------
        InfeasibleError
            If no allowed set has all of the one and none of the other.
        """
        try:
            values = check_scores(scores)
        except NotFiniteError as error:
            raise error.named(name_if_any(self, error.row)) from None
        self.check_n_arms(values.size)
        return self._solve(values, as_generator(rng), *self._restrictions(required, excluded, values.size), X)

    def _solve(
        self, scores: FloatArray, rng: Generator, required: IntArray, excluded: IntArray, X: FloatArray | None
    ) -> Selection:
        outweighs = 2 * float(np.abs(scores).sum()) or 1.0
        changed = scores.copy()
        changed[required], changed[excluded] = outweighs, -outweighs
        picked = self.best(changed, X, rng)
        missing, unwanted = np.setdiff1d(required, picked.indices), np.intersect1d(excluded, picked.indices)
        which = "no allowed set" if picked.ratio == 1 else "no set that was found"
        if missing.size:
            raise UnmetRestriction(self, f"{which} has all {required.size} required arms;", missing, "does not fit")
        if unwanted.size:
            raise UnmetRestriction(self, f"{which} does without the excluded arms;", unwanted, "is needed")
        ratio = picked.ratio if picked.ratio == 1 or not required.size else float("nan")
        return Selection(picked.indices, float(scores[picked.indices].sum()), ratio)

    def _restrictions(self, required: ArrayLike, excluded: ArrayLike, n_arms: int) -> tuple[IntArray, IntArray]:
        """Return required and excluded arms as distinct indices, of which none is in both."""
        if not (np.size(required) or np.size(excluded)):
            return NO_ARMS, NO_ARMS
        must, must_not = np.unique(check_indices(required)), np.unique(check_indices(excluded))
        for name, arms in (("required", must), ("excluded", must_not)):
            if arms.size and (arms[0] < 0 or arms[-1] >= n_arms):
                raise ValueError(f"{name} arms must be from 0 to {n_arms - 1}, got {arms}")
        both = np.intersect1d(must, must_not, assume_unique=True)
        if both.size:
            raise UnmetRestriction(self, "", both, "is both required and excluded")
        return must, must_not

    def best_each(
        self, scores: FloatArray, rngs: Sequence[Generator], X: Sequence[FloatArray] | None = None
    ) -> tuple[Sequence[IntArray] | IntArray, FloatArray]:
        """Return the best set of each row of `scores` and their values, for simulations of many repetitions.

        Parameters
        ----------
        scores : ndarray of shape (repetitions, n_arms)
            Finite numbers.
        rngs : sequence of Generator
            One for each repetition.
        X : sequence of ndarray of shape (n_arms, n_features), optional
            The features in each repetition.

        Returns
        -------
        indices : sequence of ndarray
            The arms of each set.
        values : ndarray of shape (repetitions,)
            The sums of their scores.
        """
        features = X if X is not None else [None] * len(scores)
        answers = [checked_best(self, *each) for each in zip(scores, features, rngs, strict=True)]
        return [answer.indices for answer in answers], np.array([answer.value for answer in answers])

    def best_values(self, scores: FloatArray, X: Sequence[FloatArray] | None = None) -> FloatArray:
        """Return the values of `best_each` alone, `(repetitions,)`."""
        return self.best_each(scores, [np.random.default_rng()] * len(scores), X)[1]

    def limits(self, indices: ArrayLike) -> Iterable[Limit]:
        """Return the parts of the constraint that bind a set, for `choice.explain()`; none by default.

        Parameters
        ----------
        indices : array_like of shape (k,)
            The arms of an allowed set.
        """
        return ()

    def growth(self, n_arms: int) -> Growth:
        """Return an empty set that can grow arm by arm, for objectives; raise `ValueError` by default.

        Parameters
        ----------
        n_arms : int
            The number of arms that may be added.
        """
        raise ValueError(f"objectives work with TopK, AtMost, Quotas and NestedQuotas, restricted or not, got {self!r}")

    def arm_names(self, indices: ArrayLike) -> list[str] | None:
        """Return the names of arms, for explanations and errors; None (the default) if they have none.

        Parameters
        ----------
        indices : array_like of shape (k,)
            The arms.
        """
        return None


class UnmetRestriction(InfeasibleError):
    """No allowed set meets a restriction because of one arm, which a caller may know by another name."""

    def __init__(self, constraint: Constraint, before: str, arms: IntArray, after: str) -> None:
        super().__init__(f"{before} {arm_name(constraint, int(arms[0]))} {after}".lstrip())
        self._parts = before, arms, after

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the sentence cross processes, where nobody knows another name."""
        return InfeasibleError, self.args

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


def name_if_any(constraint: Constraint, arm: int) -> str | None:
    """Return the name of an arm, or None if it has none, or the constraint is for fewer arms."""
    try:
        names = constraint.arm_names(np.array([arm], dtype=np.int64))
    except ValueError:
        return None
    return None if names is None else names[0]
