"""What all policies share: choose, learn, forget, merge, save."""

import copy
import os
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self, cast

from numpy.random import Generator
from numpy.typing import ArrayLike

from armful import checks
from armful.arms import Arms
from armful.checks import FloatArray
from armful.constraints import Constraint
from armful.constraints.combined import on_table
from armful.constraints.selection import only_costs
from armful.objectives import Objective
from armful.policies.choice import Choice
from armful.policies.explanation import Problem
from armful.policies.from_many import choose_from_many, choose_on_cluster
from armful.policies.remarks import Remarks
from armful.policies.saving import option_names, save
from armful.policies.scores import Scores
from armful.policies.sharing import Locks, Turn
from armful.randomness import Seed, Streams, as_generator
from armful.ridge import RidgeState
from armful.scan import Table
from armful.scan.choosing import RankedConstraint
from armful.scan.chunks import is_dask
from armful.scan.cluster import learned_on
from armful.scan.many import many_arms, refuse_too_many, refuse_undivided, refuse_unfit
from armful.scan.rows import WholeTable


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
    samples: ClassVar[bool] = False
    """Whether it is a Thompson sampler, whose guarantees need an exact choice."""

    thread_locks = Locks()
    """Each policy has its own; this is for one that was restored without."""

    def __init__(self, *, n_features: int, ridge: float | None = None, seed: Seed = None) -> None:
        self._state = RidgeState(n_features=n_features, ridge=1.0 if ridge is None else ridge)
        self.remarks = Remarks(ridge_is_default=ridge is None)
        self.rng: Generator | Streams = as_generator(seed, "seed")
        self.thread_locks = Locks()

    def score(self, arms: Arms, k: int) -> Scores | FloatArray:
        """The score of every arm, `(..., n_arms)`, when at most `k` are to be chosen: the one method to write."""
        raise NotImplementedError(f"{type(self).__name__} must define score(self, arms, k)")

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

        X: an array, a memory-mapped matrix, or a `Table` of arms that stay the same between rounds. From many arms the
        same set is chosen without a close look at each (docs/howto/millions-of-arms.md).
        caps: `(n_arms,)`, for policies that take them: what each arm's mean reward is known not to exceed; infinity
        where nothing is known.
        objective: what a set is worth, if not the sum of its scores: `Diverse`, `Coverage` or your own.
        client: a `dask.distributed.Client`, for arms that its workers read: then X is a dask array or a table on disk.
        """
        if not callable(getattr(constraint, "best", None)) or isinstance(constraint, type):
            raise ValueError(f"constraint must be one of armful's or your own, like TopK(10), got {constraint!r}")
        if client is not None or is_dask(X):
            refuse_undivided(self, constraint, objective)
            return choose_on_cluster(self, X, cast(RankedConstraint, constraint), caps, client)
        if objective is None and (rows := many_arms(X, self.n_features, constraint, self)) is not None:
            return choose_from_many(self, rows, cast(RankedConstraint, constraint), caps)
        if isinstance(X, Table):
            refuse_too_many(X, constraint, objective)
            constraint = on_table(constraint, X)
        locks = self.thread_locks
        with locks.drawing, Turn(locks, self.generator):
            with locks.state:  # others may learn again while the best set is looked for
                arms = self._arms(X, caps)
                scores = self.score_under(arms, constraint)
            problem = Problem(arms, scores, constraint, objective)
            picked = problem.solve(constraint, self.generator)
        if self.samples and picked.ratio != 1:
            warnings.warn(
                f"{type(self).__name__} with an approximate choice (ratio {picked.ratio:.3g}) may lose linearly in the "
                "number of rounds; an optimistic policy such as CappedC2UCB does not",
                stacklevel=2,
            )
        i = picked.indices
        self.remarks.chosen_from(arms.n_arms, arms.rows, under_costs=arms.only_costs)
        return Choice(
            indices=i,
            features=arms.rows(i),
            value=picked.value,
            ratio=picked.ratio,
            mean=scores.mean[i],
            bonus=scores.bonus[i],
            scores=scores.value[i],
            capped=scores.capped[i],
            chosen_from=partial(_given, problem),
            ids=X.ids_of(i) if isinstance(X, Table) else None,
        )

    def scores(self, X: ArrayLike | Table, k: int, *, caps: ArrayLike | None = None) -> FloatArray:
        """The score of every row of `X`, `(n_arms,)`, when at most `k` are to be chosen."""
        locks = self.thread_locks
        with locks.drawing, Turn(locks, self.generator), locks.state:
            return self.score_all(self._arms(X, caps), checks.count("k", k)).value

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
        if isinstance(features, Choice):
            features = features.features
        if client is not None or is_dask(features):
            self.merge(learned_on(client, features, rewards, weights, shock, like=self.state))
            return
        locks = self.thread_locks
        with locks.learning:
            before = self._state
            new = before.learn(features, rewards, weights=weights, shock=shock)
            with locks.state:
                self._state = new
        self.remarks.learned(checks.floats("rewards", rewards), before)

    def discount(self, factor: float) -> None:
        """Let what was learned count `factor` (0 to 1) as much, for a world that drifts."""
        with self.thread_locks.learning:
            self.state = self._state.discount(factor)

    def merge(self, state: RidgeState) -> None:
        """Also know what another learner's state knows; nothing that both saw may be in both."""
        if not isinstance(state, RidgeState):
            raise ValueError(f"merge takes a RidgeState, like another policy's .state, got {type(state).__name__}")
        with self.thread_locks.learning:
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
        with self.thread_locks.learning, self.thread_locks.state:
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
    def options(self) -> dict[str, Any]:
        """What the policy was made with, but for the seed."""
        return {name: getattr(self, name) for name in option_names(type(self)) if name != "seed"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"

    # -- many repetitions ----------------------------------------------------------------------------

    @property
    def runs_together(self) -> bool:
        """Whether many repetitions can be simulated at once: `batched`, and does no more in a round than to score."""
        kind = type(self)
        for step in ("choose", "learn"):
            if step in vars(self):
                raise ValueError(f"{step} was replaced in one {kind.__name__} alone; a subclass can be copied")
        return self.batched and kind.choose is Policy.choose and kind.learn is Policy.learn

    def repeated(self, generators: Sequence[Generator]) -> Self:
        """This policy as a batch of learners, one for each generator, that all know what this one knows."""
        twin = copy.copy(self)
        twin._state = self._state.repeat(len(generators))
        twin.rng = Streams(generators)
        return twin

    def repetition(self, i: int) -> Self:
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

    def score_all(self, arms: Arms, k: int) -> Scores:
        """What `score` says, with the reasons."""
        scores = self.score(arms, k)
        if isinstance(scores, Scores):
            return scores
        value, expected = checks.floats("scores", scores), (*self.state.batch, arms.n_arms)
        if value.shape != expected:
            raise ValueError(f"{type(self).__name__}.score must give scores of shape {expected}, got {value.shape}")
        return Scores.uncapped(arms.mean, value - arms.mean, value)

    def score_under(self, arms: Arms, constraint: Constraint) -> Scores:
        """What `score_all` says for a choice under this constraint; one that counts costs sees no gains."""
        arms.only_costs = only_costs(constraint)
        scores = self.score_all(arms, constraint.k)
        return scores.of_costs() if arms.only_costs else scores

    def _arms(self, X: ArrayLike | Table, caps: ArrayLike | None) -> Arms:
        if isinstance(X, Table):
            refuse_unfit(X, self.n_features)
            X.refuse_changed()
            return WholeTable(X, self.state, self.check_caps(caps, X.n_arms))
        arms = Arms(X, self.state)
        arms.caps = self.check_caps(caps, arms.n_arms)
        if arms.X.ndim != 2:
            raise ValueError(f"features must have shape (n_arms, {self.n_features}), got {arms.X.shape}")
        return arms

    def check_caps(self, caps: ArrayLike | None, n_arms: int) -> FloatArray | None:
        """One cap for each arm, for a policy that takes them."""
        if caps is None:
            return None
        if not self.takes_caps:
            raise ValueError(f"{type(self).__name__} takes no caps; CappedC2UCB does")
        return checks.caps(caps, n_arms)

    @property
    def generator(self) -> Generator:
        """Where a single learner draws from."""
        if isinstance(self.rng, Streams):
            raise TypeError("this policy is a batch of repetitions; choose and save are for a single one")
        return self.rng


def _given(problem: Problem) -> Problem:
    return problem
