"""Choosing and learning on a dask cluster: every worker looks at its part, and only what it found travels."""

import errno
import pickle
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.cluster._chunks import beside, chunks_of, ends_of, is_dask, whole_rows
from armful.cluster._dask_runner import DaskRunner, imported
from armful.cluster._partitions import Part, Round, Survivors
from armful.constraints.base import Selection
from armful.constraints.ranked import RankedConstraint
from armful.model.base import Model
from armful.scan._scoring import Scoring
from armful.tables._array_store import ArrayRows
from armful.tables.parquet import ParquetTable
from armful.tables.rows import Rows
from armful.tables.table import Table

PARTS, LARGEST_PART = 64, 16
"""A table on disk is divided into so many parts at least, if it has so many blocks, of so many blocks at most."""

ON_A_CLUSTER = "a dask array, a table on disk or a ParquetTable"


class ClusterArms:
    """Arms in parts that the workers of a cluster read.

    ends: `(n_parts + 1,)`, the places where parts begin, and the number of arms. pieces: for each part what its arms
    are read from: a task that gives the rows of a dask array, or a pickled table and the place of its first arm.
    name: equal for equal arms; None if they might change between rounds.
    """

    def __init__(
        self, runner: DaskRunner, ends: IntArray, n_features: int, pieces: Sequence[Any], name: Hashable | None
    ) -> None:
        self.n_arms, self.n_features = int(ends[-1]), n_features
        self._runner, self._ends, self._pieces, self._name = runner, ends, pieces, name

    @classmethod
    def of(cls, X: Any, client: Any, n_features: int) -> "ClusterArms":
        """Arms that are chosen from with `client=`."""
        if client is None:
            raise ValueError(
                f"a dask {type(X).__name__} is chosen from and learned from on its cluster: pass client=, "
                "a dask.distributed.Client; Client() starts a cluster on this machine"
            )
        if not isinstance(X, Table) and not is_dask(X):
            raise ValueError(
                f"client= is for {ON_A_CLUSTER}, got {type(X).__name__}: leave it out for what is in memory, or spread "
                "it with dask.array.from_array(X)"
            )
        runner = DaskRunner(client)
        if is_dask(X):
            whole = whole_rows("features", X)
            if X.shape[1] != n_features:
                raise ValueError(f"features must have shape (n_arms, {n_features}), got {X.shape}")
            # If the workers do not hold it, it is worked out anew every time, from files that may have changed.
            held = len(X.dask) == len(client.futures_of(X)) == X.npartitions
            return cls(runner, ends_of(whole.chunks[0]), n_features, chunks_of(whole), whole.name if held else None)
        if X.n_features != n_features:
            raise ValueError(f"the policy is for {n_features} features, the table has {X.n_features}")
        if isinstance(X, ParquetTable):
            ends = np.array([0, *(block.stop for block in X.blocks)])
            parts = [(pickle.dumps(X.part(block.start, block.stop)), block.start) for block in X.blocks]
            return cls(runner, ends, n_features, parts, _table_name(X))
        if X.path is None:
            raise ValueError(
                f"client= is for {ON_A_CLUSTER}, got a table in memory: leave client out, or write the table to a disk "
                "that all workers see with Table.build"
            )
        n_blocks = -(-X.n_arms // X.block_rows)
        step = X.block_rows * max(1, min(LARGEST_PART, n_blocks // PARTS))
        ends = np.append(np.arange(0, X.n_arms, step), X.n_arms)
        X.refuse_changed()
        return cls(runner, ends, n_features, [(pickle.dumps(X), 0)] * (ends.size - 1), _table_name(X))

    def choose(
        self, scoring: Scoring, constraint: RankedConstraint, policy: object
    ) -> tuple[Selection, FloatArray, NDArray[Any] | None]:
        """The best set of all arms, exactly as scoring each of them in one place gives it; their features and ids.

        scoring: with the key for ties. policy: whose choice it is. What it chose last from the same arms tells at once
        which arms are not worth a look.
        """
        hashable = type(policy).__hash__ is not None  # else it cannot be told from others
        last = _last.get(policy) if hashable else None
        known = None if last is None or self._name is None or last[0] != self._name else last[1:]
        picked = self._best(Round.of(scoring, constraint.ranks, scoring.key, known), constraint, scoring.caps)
        features, ids = self.take(picked.indices)
        if hashable:
            _last[policy] = self._name, picked.indices, features
        return picked, features, ids

    def _best(self, this_round: Round, constraint: RankedConstraint, caps: FloatArray | None) -> Selection:
        (told,) = self._runner.keep([_pickled(this_round)])
        groups, own = self._groups(constraint), [None] * len(self._parts)
        if caps is not None:
            own = self._runner.keep([caps[begin:end] for begin, end in self._parts])
        tasks = [
            self._runner.task(_look, told, piece, begin, end, of_arm, its_caps)
            for piece, (begin, end), of_arm, its_caps in zip(self._pieces, self._parts, groups, own, strict=True)
            if begin < end
        ]
        (found,) = self._runner.results([self._runner.merged(tasks, _merge, told)], "choosing")
        return constraint.best_among(found.scores, this_round.key, found.places)

    def take(self, places: IntArray) -> tuple[FloatArray, NDArray[Any] | None]:
        """The features of the arms at these places, `(k, n_features)`, and their ids, `(k,)`, if they have any."""
        of_place = np.searchsorted(self._ends, places, side="right") - 1
        order = [np.flatnonzero(of_place == part) for part in np.unique(of_place)]
        tasks = [
            self._runner.task(_take, self._pieces[part], *self._parts[part], places[here])
            for part, here in zip(np.unique(of_place).tolist(), order, strict=True)
        ]
        taken = self._runner.results(tasks, "reading the chosen arms")
        features = np.empty((places.size, self.n_features))
        for here, (rows, _) in zip(order, taken, strict=True):
            features[here] = rows
        if not taken or taken[0][1] is None:
            return features, None
        ids = np.concatenate([names for _, names in taken])
        ids[np.concatenate(order)] = ids.copy()
        return features, ids

    @property
    def _parts(self) -> list[tuple[int, int]]:
        return list(pairwise(self._ends.tolist()))

    def _groups(self, constraint: RankedConstraint) -> Sequence[Any]:
        """The group of every arm, sent to the workers once for each constraint."""
        of_arm = constraint.ranks.of_arm
        if of_arm is None:
            return [None] * len(self._pieces)
        where, kept = _sent.get(constraint, (None, []))
        here = self._runner.client.id, self._ends.tobytes()
        if where != here or any(future.status not in ("pending", "finished") for future in kept):
            small = np.min_scalar_type(int(of_arm.max()))
            kept = self._runner.keep([of_arm[begin:end].astype(small) for begin, end in self._parts])
            _sent[constraint] = here, kept
        return kept


_sent: "WeakKeyDictionary[Any, tuple[Any, list[Any]]]" = WeakKeyDictionary()
"""By constraint: to which client and parts, and the groups there."""

_last: "WeakKeyDictionary[object, tuple[Hashable, IntArray, FloatArray]]" = WeakKeyDictionary()
"""By policy: the name of the arms, the places of those chosen last, and their features."""

_names: "WeakKeyDictionary[Table, object]" = WeakKeyDictionary()


def _table_name(table: Table) -> Hashable:
    """As long as it is the same object."""
    return _names.setdefault(table, object())


def learned_on(client: Any, features: Any, rewards: Any, weights: Any, shock: float, *, like: Model) -> Model:
    """What dask arrays of `features` `(k, n_features)`, `rewards` `(k,)` and `weights` `(k,)` tell, to be merged.

    like: a state of the same features and ridge.
    """
    n_features = like.n_features
    if shock != 0:
        raise ValueError("a shock is shared by all arms of one call, so they are learned in one place: compute them")
    if not is_dask(features):
        raise ValueError(
            f"client= is for features in a dask array, got {type(features).__name__}: leave it out for what is in "
            "memory, or spread it with dask.array.from_array(features)"
        )
    if client is None:
        ClusterArms.of(features, client, n_features)
    runner = DaskRunner(client)
    X = whole_rows("features", features)
    if X.shape[1] != n_features:
        raise ValueError(f"features must have shape (n_arms, {n_features}), got {X.shape}")
    rows = X.chunks[0]
    numbers = [beside("rewards", rewards, rows, runner), beside("weights", weights, rows, runner)]
    tasks = [
        runner.task(_learn, block, begin, r, w, type(like), n_features, like.ridge)
        for block, begin, r, w in zip(chunks_of(X), ends_of(rows).tolist(), *numbers, strict=False)
    ]
    (state,) = runner.results([runner.merged(tasks, _add)], "learning")
    known: Model = state
    return known.as_one_source()


# -- what workers do ---------------------------------------------------------------------------------


def _look(
    told: bytes, piece: Any, begin: int, end: int, groups: NDArray[Any] | None, caps: FloatArray | None
) -> Survivors:
    """What the arms from `begin` to `end` could give to the best set."""
    this_round: Round = pickle.loads(told)
    with _seen_from_here():
        rows, first = _opened_piece(piece, begin, end)
        return this_round.look_through(Part(rows, begin, end, first), groups, caps)


def _merge(told: bytes, found: list[Survivors]) -> Survivors:
    this_round: Round = pickle.loads(told)
    return this_round.merge(found)


def _take(piece: Any, begin: int, end: int, places: IntArray) -> tuple[FloatArray, NDArray[Any] | None]:
    with _seen_from_here():
        rows, first = _opened_piece(piece, begin, end)
        return rows.take(places - first), rows.ids_of(places - first) if isinstance(rows, Table) else None


def _learn(
    X: NDArray[Any],
    begin: int,
    rewards: NDArray[Any],
    weights: NDArray[Any] | None,
    kind: type[Model],
    n_features: int,
    ridge: float,
) -> Model:
    """What some rows tell; those that cannot be learned from are named by their place among all."""
    for name, values in (("features", X), ("rewards", rewards), ("weights", weights)):
        if values is not None:
            checks.refuse_not_finite(name, checks.floats(name, values), first_row=begin)
    return kind(n_features=n_features, ridge=ridge).learn(X, rewards, weights=weights).folded()


def _add(states: list[Model]) -> Model:
    return sum(states[1:], states[0])


def _opened_piece(piece: Any, begin: int, end: int) -> tuple[Rows, int]:
    """Rows that hold the arms from `begin` to `end`, and the place of the first of them."""
    if isinstance(piece, tuple):
        table = _opened(piece[0])
        table.refuse_changed()
        return table, piece[1]
    if np.ndim(piece) != 2 or len(piece) != end - begin:
        raise ValueError(
            f"the chunk of rows {begin} to {end} has shape {np.shape(piece)}, its dask array says otherwise: "
            "whatever made the array gives another number of rows than it promised"
        )
    return ArrayRows(np.asarray(piece)), begin


@lru_cache(maxsize=8)
def _opened(pickled: bytes) -> Table:
    table: Table = pickle.loads(pickled)
    return table


@contextmanager
def _seen_from_here() -> Iterator[None]:
    """Say which worker it is that does not see a file."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOENT and not isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"the worker at {imported('distributed').get_worker().address} does not see a file, which must be where "
            f"all workers see it by the same path: {error}"
        ) from None


def _pickled(value: Any) -> bytes:
    """Also for a policy that was written in a notebook, whose class is sent along."""
    pickled: bytes = imported("cloudpickle").dumps(value)
    return pickled
