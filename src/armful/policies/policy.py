"""The base class of all policies: choose, learn, merge, save."""

import os
from dataclasses import replace
from typing import Any, ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful._signatures import parameters_of
from armful.arms import Arms
from armful.checks import FloatArray
from armful.cluster._arms import learn_on_cluster
from armful.cluster._chunks import is_dask
from armful.constraints.base import Constraint, refuse_no_constraint
from armful.constraints.ranked import goes_by_rank
from armful.model import Model, RidgeState
from armful.objectives import Objective
from armful.policies._choosing import arms_for, choose_from_array, choose_from_many, choose_on_cluster, name_in_round
from armful.policies._columns import read_features
from armful.policies._locks import Locks, RewindOnError
from armful.policies._saving import save
from armful.policies._warnings import WarningsOnce
from armful.policies.choice import Choice
from armful.policies.scores import Scores
from armful.randomness import Seed, Streams, as_generator
from armful.scan._dispatch import many_arms
from armful.tables import Table
from armful.tables._frames import Names, refuse_other_columns


class Policy:
    """A way to score arms, with everything else that a learner needs: the base class of all policies.

    A subclass writes `score` and keeps each of its options as an attribute of the same name, so that `save` finds it.
    Threads may share a policy: no observation is lost, and each choice is by one state. A subclass that changes
    other attributes protects them itself.

    Parameters
    ----------
    n_features : int
        The length of a feature vector.
    ridge : float, optional
        lambda, the pull of the estimate to zero. The default of 1 suits features of about unit length.
    seed : int, SeedSequence or Generator, optional
        For random scores and for ties.

    Attributes
    ----------
    batched : bool
        Whether `score` works on arrays with leading axes; set it to False to simulate one repetition at a time.
    takes_caps : bool
        Whether `choose` may be called with `caps`.
    armwise : bool
        Whether an arm's score depends on no other arm, so that arms may be scored a block at a time.
    is_thompson : bool
        Whether scores are sampled from a posterior; the guarantees then need an exact choice.
    randomised : bool
        Whether scores are drawn at random; set it to False where they are not; `choose_with_inclusion` uses it.
    model_class : type
        The class of the model that is learned, see `armful.model.Model`.
    rng : Generator
        The policy's random numbers.

    Examples
    --------
    >>> from armful.constraints import TopK
    >>> class Greedy(Policy):
    ...     def score(self, arms, k):
    ...         return arms.mean
    >>> policy = Greedy(n_features=2, seed=0)
    >>> policy.learn([[1.0, 0.0], [0.0, 1.0]], [0.2, 0.8])
    >>> policy.choose([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], TopK(1)).indices
    array([2])
    """

    batched: ClassVar[bool] = True
    takes_caps: ClassVar[bool] = False
    armwise: bool = False
    is_thompson: ClassVar[bool] = False
    randomised: bool = True
    model_class: ClassVar[type[Model]] = RidgeState
    _columns: Names | None = None
    _thread_locks = Locks()  # each policy has its own; this is for one that was unpickled without

    def __init_subclass__(cls) -> None:
        if "score" in vars(cls):  # what must agree with `score` goes back to its default
            for name in {"armwise", "randomised", "lowest_score", "highest_score"} - vars(cls).keys():
                setattr(cls, name, vars(Policy)[name])

    def __init__(self, *, n_features: int, ridge: float | None = None, seed: Seed = None) -> None:
        self._state: Model = self.model_class(n_features=n_features, ridge=1.0 if ridge is None else ridge)
        self._warnings_once = WarningsOnce(ridge_is_default=ridge is None)
        self.rng: Generator | Streams = as_generator(seed, "seed")
        self._thread_locks = Locks()

    def score(self, arms: Arms, k: int) -> Scores | FloatArray:
        """Return the score of every arm, `(..., n_arms)`: the one method that a policy must write.

        Parameters
        ----------
        arms : Arms
            The arms of the round, with `mean`, `mean_and_width`, `norm`, `caps` and more.
        k : int
            The size of the largest set that may be chosen.
        """
        raise NotImplementedError(f"{type(self).__name__} must define score(self, arms, k)")

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the lowest scores of arms whose means and widths lie between those of `low` and of `high`."""
        raise NotImplementedError(f"{type(self).__name__} does not define lowest_score")

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the highest scores of arms whose means and widths lie between those of `low` and of `high`."""
        raise NotImplementedError(f"{type(self).__name__} does not define highest_score")

    @property
    def bounds_scores(self) -> bool:
        """Whether `lowest_score` and `highest_score` are defined, so that most of many arms need not be scored."""
        kind = type(self)
        return kind.lowest_score is not Policy.lowest_score and kind.highest_score is not Policy.highest_score

    def choose(
        self,
        X: ArrayLike | Table,
        constraint: Constraint,
        *,
        caps: ArrayLike | None = None,
        objective: Objective | None = None,
        client: Any = None,
    ) -> Choice:
        """Return the allowed set of arms with the best scores.

        Parameters
        ----------
        X : array_like of shape (n_arms, n_features), DataFrame, Arrow table, dask array or Table
            The arms. The first names of columns are kept, and others are refused from then on.
        constraint : Constraint
            Which sets are allowed.
        caps : array_like of shape (n_arms,), optional
            For policies that take them: a number that the arm's mean reward does not exceed, infinity where unknown.
        objective : Objective, optional
            The value of a set, if not the sum of its scores: `Diverse`, `Coverage` or your own.
        client : dask.distributed.Client, optional
            For arms that its workers read: then X is a dask array or a table on disk.

        Returns
        -------
        Choice

        Raises
        ------
        ValueError
            If the arms do not fit, or no set is allowed (`InfeasibleError`); the policy is then as before.
        """
        refuse_no_constraint(constraint)
        try:
            X, names = read_features(X, self._columns)
            if client is not None or is_dask(X):
                choice = choose_on_cluster(self, X, constraint, caps, objective, client)
            elif goes_by_rank(constraint) and (rows := many_arms(self, X, objective)) is not None:
                choice = choose_from_many(self, rows, constraint, caps)
            else:
                choice = choose_from_array(self, X, constraint, caps, objective)
        except checks.NotFiniteError as error:
            raise error.named(name_in_round(X, constraint, error.row)) from None
        if names is None:
            return choice
        self._keep_columns(names)
        return replace(choice, columns=names)

    def scores(self, X: ArrayLike | Table, k: int, *, caps: ArrayLike | None = None) -> FloatArray:
        """Return the score of every arm, `(n_arms,)`, as `choose` would use it.

        `policy.score(armful.Arms(X, policy.state, caps), k)` returns `Scores`, with the estimates and bonuses too.

        Parameters
        ----------
        X : array_like of shape (n_arms, n_features), DataFrame, Arrow table or Table
            The arms, as for `choose`; dask arrays are refused.
        k : int
            The size of the largest set that may be chosen.
        caps : array_like of shape (n_arms,), optional
            As for `choose`.
        """
        X, _ = read_features(X, self._columns)
        with RewindOnError(self._thread_locks, self._generator), self._thread_locks.state:
            return self._score_arms(arms_for(self, X, caps), checks.count("k", k)).value

    def learn(
        self,
        features: ArrayLike | Choice,
        rewards: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        shock: float = 0.0,
        client: Any = None,
    ) -> None:
        """Learn the rewards of arms; a set may be learned in parts, late and in any order, with the same result.

        Parameters
        ----------
        features : Choice, or array_like of shape (k, n_features)
            The arms whose rewards are known.
        rewards : array_like of shape (k,)
            One for each arm.
        weights : array_like of shape (k,), optional
            An arm of weight w counts as w observations.
        shock : float, default 0.0
            The variance of a noise that all arms of this call share, relative to the variance of each arm's own
            noise. One call must then hold one round, and the policy's `noise` is the arm's own.
        client : dask.distributed.Client, optional
            For dask arrays: its workers learn their partitions, and only states travel.
        """
        of_costs = None
        if isinstance(features, Choice):
            rows, names, of_costs = features.features, features.columns, features.of_costs
            refuse_other_columns(self._columns, names)
        else:
            rows, names = read_features(features, self._columns)
        if client is not None or is_dask(rows):
            self.merge(learn_on_cluster(client, rows, rewards, weights, shock, like=self.state))
            return
        with self._thread_locks.learning:
            before = self._state
            try:
                new = before.learn(rows, rewards, weights=weights, shock=shock)
            except checks.NotFiniteError as error:
                raise error.named(features.name_of(error.row) if isinstance(features, Choice) else None) from None
            self._keep_columns(names)
            with self._thread_locks.state:
                self._state = new
            self._warnings_once.learned(checks.floats("rewards", rewards), before, of_costs=of_costs)

    def discount(self, factor: float) -> None:
        """Let everything learned so far count `factor` (0 to 1) times as much, for environments that drift."""
        with self._thread_locks.learning:
            self.state = self._state.discount(factor)

    def merge(self, state: Model) -> None:
        """Add what another learner knows; docs/howto/several-workers.md shows how to exchange what is new.

        Parameters
        ----------
        state : Model
            Another policy's `.state`; refused if it is known to hold observations of this one, which would count twice.
            A state has no names of columns: see to it that its features were the same, in the same order.
        """
        if not isinstance(state, self.model_class):
            kind = self.model_class.__name__
            raise ValueError(f"merge takes a {kind}, like another policy's .state, got {type(state).__name__}")
        with self._thread_locks.learning:
            if self._state.overlaps(state):
                raise ValueError(
                    "this policy holds observations of that state already (it is its own, or was merged before), and "
                    "they would count twice: merge what is new alone, see docs/howto/several-workers.md"
                )
            self.state = self._state + state

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options, state and random generator in an open format; `armful.load` reads it."""
        save(self, path)

    @property
    def state(self) -> Model:
        """What was learned so far; may be set to another state of the same features and ridge."""
        return self._state

    @state.setter
    def state(self, state: Model) -> None:
        if not isinstance(state, self.model_class):
            raise ValueError(f"state must be a {self.model_class.__name__}, got {type(state).__name__}")
        self._state.refuse_unlike(state)
        with self._thread_locks.learning, self._thread_locks.state:
            self._state = state

    @property
    def n_features(self) -> int:
        """The length of a feature vector."""
        return self._state.n_features

    @property
    def ridge(self) -> float:
        """lambda, the pull of the estimate to zero."""
        return self._state.ridge

    @property
    def columns(self) -> list[str] | None:
        """The names of the features, if a DataFrame or a table that names them was chosen or learned from."""
        return None if self._columns is None else list(self._columns)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that the policy was made with, except the seed."""
        return {name: getattr(self, name) for name in parameters_of(type(self)) if name != "seed"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"

    def _keep_columns(self, names: Names | None) -> None:
        """Keep the first names; refuse others, which another thread may have learned meanwhile."""
        if names is not None:
            with self._thread_locks.state:
                refuse_other_columns(self._columns, names)
                self._columns = names

    def _score_arms(self, arms: Arms, k: int) -> Scores:
        """Return what `score` returns, as `Scores`; an array is checked first."""
        scores = self.score(arms, k)
        if isinstance(scores, Scores):
            return scores
        value, expected = checks.floats("scores", scores), (*self.state.batch, arms.n_arms)
        if value.shape != expected:
            raise ValueError(f"{type(self).__name__}.score must give scores of shape {expected}, got {value.shape}")
        return Scores.uncapped(arms.mean, value - arms.mean, value)

    @property
    def _generator(self) -> Generator:
        if isinstance(self.rng, Streams):
            raise TypeError("this policy is a batch of repetitions; choose and save are for a single one")
        return self.rng
