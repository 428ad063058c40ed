"""What all policies share: choose, learn, forget, merge, save."""

import copy
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray
from armful.cluster._arms import learned_on
from armful.cluster._chunks import is_dask
from armful.constraints import Constraint
from armful.constraints.base import refuse_no_constraint
from armful.constraints.ranked import goes_by_rank
from armful.model.ridge import RidgeState
from armful.objectives import Objective
from armful.policies._choosing import arms_for, choose_from_array, choose_from_many, choose_on_cluster
from armful.policies._locks import Locks, RewindOnError
from armful.policies._saving import option_names, save
from armful.policies._warnings import WarningsOnce
from armful.policies.choice import Choice
from armful.policies.scores import Scores
from armful.randomness import Seed, Streams, as_generator
from armful.scan._dispatch import many_arms, ranked
from armful.tables import Table
from armful.tables._frames import Names, features_and_names, refuse_other_columns


class Policy:
    """A way to score the arms; a subclass writes `score`, everything else is here.

    n_features: the length of a feature vector. ridge: lambda, the pull of the estimate to zero; 1 if not given, for
    features of about unit length, and a warning if the first arms are far from it. seed: for draws and ties.

    A subclass keeps each of its options as an attribute of the same name, so that `save` finds it. Its `score` is
    written for arrays with leading axes (`(..., n_arms)`), so that it also runs many repetitions at once; one that
    cannot sets `batched = False` and is simulated one repetition at a time.

    Threads may share a policy: no observation is lost, and each choice sees one state. What a subclass changes beside
    that in methods of its own is for it to protect.

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
    """Whether an arm's score depends on no other arm, so that arms may be scored a part at a time."""
    is_thompson: ClassVar[bool] = False
    """Whether it draws from a posterior: then its guarantees need an exact choice."""

    def __init_subclass__(cls) -> None:
        """Give a subclass with a `score` of its own back the defaults of what must agree with it."""
        if "score" in vars(cls):
            for name in ("armwise", "lowest_score", "highest_score"):
                if name not in vars(cls):
                    setattr(cls, name, vars(Policy)[name])

    _thread_locks = Locks()
    """Each policy has its own; this is for one that was restored without."""
    _columns: Names | None = None

    def __init__(self, *, n_features: int, ridge: float | None = None, seed: Seed = None) -> None:
        self._state = RidgeState(n_features=n_features, ridge=1.0 if ridge is None else ridge)
        self._warnings_once = WarningsOnce(ridge_is_default=ridge is None)
        self.rng: Generator | Streams = as_generator(seed, "seed")
        self._thread_locks = Locks()

    def score(self, arms: Arms, k: int) -> Scores | FloatArray:
        """The score of every arm, `(..., n_arms)`, when at most `k` are to be chosen: the one method to write."""
        raise NotImplementedError(f"{type(self).__name__} must define score(self, arms, k)")

    def lowest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the lowest scores of arms whose means and widths lie between those of `low` and of `high`."""
        raise NotImplementedError(f"{type(self).__name__} knows no bounds on its scores")

    def highest_score(self, low: Arms, high: Arms, k: int) -> FloatArray:
        """Return the highest scores of arms whose means and widths lie between those of `low` and of `high`."""
        raise NotImplementedError(f"{type(self).__name__} knows no bounds on its scores")

    @property
    def bounds_scores(self) -> bool:
        """Whether bounds on means and widths bound the scores: then most arms need not be scored exactly."""
        kind = type(self)
        return kind.lowest_score is not Policy.lowest_score and kind.highest_score is not Policy.highest_score

    # -- the loop ------------------------------------------------------------------------------------

    def choose(
        self,
        X: ArrayLike | Table,
        constraint: Constraint,
        *,
        caps: ArrayLike | None = None,
        objective: Objective | None = None,
        client: Any = None,
    ) -> Choice:
        """The best allowed set of the rows of `X` `(n_arms, n_features)`, by this policy's scores.

        X: an array, a memory-mapped matrix, a DataFrame, an Arrow table, or a `Table` of arms that stay the same
        between rounds. From many arms the same set is chosen without a close look at each
        (docs/howto/millions-of-arms.md). The first names of columns that are chosen or learned from are kept, and
        others are refused from then on.
        caps: `(n_arms,)`, for policies that take them: what each arm's mean reward is known not to exceed; infinity
        where nothing is known.
        objective: what a set is worth, if not the sum of its scores: `Diverse`, `Coverage` or your own.
        client: a `dask.distributed.Client`, for arms that its workers read: then X is a dask array or a table on disk.
        """
        refuse_no_constraint(constraint)
        X, names = self._named(X)
        if client is not None or is_dask(X):
            choice = choose_on_cluster(self, X, ranked(self, constraint, objective), caps, client)
        elif goes_by_rank(constraint) and (rows := many_arms(self, X, objective)) is not None:
            choice = choose_from_many(self, rows, constraint, caps)
        else:
            choice = choose_from_array(self, X, constraint, caps, objective)
        self._keep(names)
        return choice

    def scores(self, X: ArrayLike | Table, k: int, *, caps: ArrayLike | None = None) -> FloatArray:
        """The score of every row of `X`, `(n_arms,)`, when at most `k` are to be chosen."""
        X, _ = self._named(X)
        locks = self._thread_locks
        with locks.drawing, RewindOnError(locks, self._generator), locks.state:
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
        """Learn the `rewards` `(k,)` of a choice, or of arms with `features` `(k, n_features)`, whenever they come.

        A set may be learned in parts, late, in any order: the result is the same. weights: an arm of weight w counts
        as w observations. shock: the variance of a noise that all arms of this call share, relative to the
        variance of each arm's own noise; then one call must hold one round, and a policy's `noise` is the arm's own.
        client: a `dask.distributed.Client`, for dask arrays: its workers learn their parts, and only states travel.
        """
        rows, names = self._named(features.features if isinstance(features, Choice) else features)
        if client is not None or is_dask(rows):
            self.merge(learned_on(client, rows, rewards, weights, shock, like=self.state))
            return
        locks = self._thread_locks
        with locks.learning:
            before = self._state
            new = before.learn(rows, rewards, weights=weights, shock=shock)
            with locks.state:
                self._state = new
            self._keep(names)
            self._warnings_once.learned(checks.floats("rewards", rewards), before)

    def discount(self, factor: float) -> None:
        """Let what was learned count `factor` (0 to 1) as much, for a world that drifts."""
        with self._thread_locks.learning:
            self.state = self._state.discount(factor)

    def merge(self, state: RidgeState) -> None:
        """Also know what another learner's state knows; each observation must be in only one of the two.

        A state that is known to hold what this policy has already, its own or one that was merged before, is refused:
        it would count twice. docs/howto/several-workers.md says how to exchange what is new.
        """
        if not isinstance(state, RidgeState):
            raise ValueError(f"merge takes a RidgeState, like another policy's .state, got {type(state).__name__}")
        with self._thread_locks.learning:
            if self._state.overlaps(state):
                raise ValueError(
                    "this policy holds observations of that state already (it is its own, or was merged before), and "
                    "they would count twice: merge what is new alone, see docs/howto/several-workers.md"
                )
            self.state = self._state + state

    # -- what is known -------------------------------------------------------------------------------

    @property
    def state(self) -> RidgeState:
        """What was learned so far."""
        return self._state

    @state.setter
    def state(self, state: RidgeState) -> None:
        if not isinstance(state, RidgeState):
            raise ValueError(f"state must be a RidgeState, got {type(state).__name__}")
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
        """What the policy was made with, but for the seed."""
        return {name: getattr(self, name) for name in option_names(type(self)) if name != "seed"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"

    # -- many repetitions ----------------------------------------------------------------------------

    @property
    def _can_batch(self) -> bool:
        """Whether many repetitions can be simulated at once: `batched`, and does no more in a round than to score."""
        kind = type(self)
        for step in ("choose", "learn"):
            if step in vars(self):
                raise ValueError(f"{step} was replaced in one {kind.__name__} alone; a subclass can be copied")
        return self.batched and kind.choose is Policy.choose and kind.learn is Policy.learn

    def _repeated(self, generators: Sequence[Generator]) -> Self:
        """This policy as a batch of learners, one for each generator, that all know what this one knows."""
        twin = copy.copy(self)
        twin._state = self._state.repeat(len(generators))
        twin.rng = Streams(generators)
        return twin

    def _repetition(self, i: int) -> Self:
        """One learner of a batch, drawing from the same generator."""
        if not isinstance(self.rng, Streams):
            raise TypeError("this policy is a single learner, not a batch of repetitions")
        twin = copy.copy(self)
        twin._state = self._state[i]
        twin.rng = self.rng.generators[i]
        return twin

    # -- files ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write options, state and random generator to an open format; `armful.load` goes on from there."""
        save(self, path)

    # -- inside --------------------------------------------------------------------------------------

    def _score_arms(self, arms: Arms, k: int) -> Scores:
        """What `score` says, with the reasons."""
        scores = self.score(arms, k)
        if isinstance(scores, Scores):
            return scores
        value, expected = checks.floats("scores", scores), (*self.state.batch, arms.n_arms)
        if value.shape != expected:
            raise ValueError(f"{type(self).__name__}.score must give scores of shape {expected}, got {value.shape}")
        return Scores.uncapped(arms.mean, value - arms.mean, value)

    def _score_for(self, arms: Arms, constraint: Constraint) -> Scores:
        """What `_score_arms` says for a choice under this constraint; one that counts costs sees no gains."""
        arms.only_costs = constraint.only_costs
        scores = self._score_arms(arms, constraint.k)
        return scores.of_costs() if arms.only_costs else scores

    def _named(self, X: Any) -> tuple[Any, Names | None]:
        """Features as an array or a table, and the names of their columns, if they have any and none are known yet."""
        if type(X) is np.ndarray or is_dask(X):  # mostly
            return X, None
        names: Names | None
        if isinstance(X, Table):
            names = None if X.columns is None else tuple(X.columns)
        else:
            X, names = features_and_names(X)
        refuse_other_columns(self._columns, names)
        return X, names

    def _keep(self, names: Names | None) -> None:
        """Know the columns from now on, once they were used."""
        if names is not None and self._columns is None:
            self._columns = names

    def _restore_columns(self, columns: object) -> None:
        """Take over the names of columns from a file."""
        if columns is None:
            return
        names = columns if isinstance(columns, list) else []
        if len(names) != self.n_features or not all(isinstance(name, str) for name in names):
            raise ValueError(f"columns must be a list of {self.n_features} names")
        self._columns = tuple(names)

    def _check_caps(self, caps: ArrayLike | None, n_arms: int) -> FloatArray | None:
        """One cap for each arm, for a policy that takes them."""
        if caps is None:
            return None
        if not self.takes_caps:
            raise ValueError(f"{type(self).__name__} takes no caps; CappedC2UCB does")
        return checks.caps(caps, n_arms)

    @property
    def _generator(self) -> Generator:
        """Where a single learner draws from."""
        if isinstance(self.rng, Streams):
            raise TypeError("this policy is a batch of repetitions; choose and save are for a single one")
        return self.rng
