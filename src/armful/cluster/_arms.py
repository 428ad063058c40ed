"""Choosing and learning on a dask cluster: workers prune their partitions, and only the survivors are sent."""

import errno
import pickle
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from armful import checks
from armful.checks import FloatArray, IntArray
from armful.cluster._chunks import chunk_offsets, chunk_tasks, is_dask, row_chunks, values_per_row
from armful.cluster._dask_runner import DaskRunner, imported
from armful.cluster._partitions import Partition, RoundInfo, Survivors
from armful.constraints.ranked import RankedConstraint
from armful.constraints.selection import Selection
from armful.model.base import Model
from armful.scan._scoring import Scoring
from armful.tables._array_store import ArrayRows
from armful.tables.parquet import ParquetTable
from armful.tables.rows import Rows
from armful.tables.table import Table

MIN_PARTITIONS, MAX_BLOCKS = 64, 16
"""A table on disk has at least so many partitions, if it has as many blocks, of at most so many blocks each."""

ON_A_CLUSTER = "a dask array, a table on disk or a ParquetTable"


class ClusterArms:
    """Arms in partitions that the workers of a cluster read.

    offsets: `(n_partitions + 1,)`, the index of the first arm of each partition, and the number of arms. sources: what
    each partition is read from: a task whose result is the rows of a dask array, or a pickled table and the index of
    its first arm. name: equal for equal arms; None if they might change between rounds.
    """

    def __init__(
        self, runner: DaskRunner, offsets: IntArray, n_features: int, sources: Sequence[Any], name: Hashable | None
    ) -> None:
        self.n_arms, self.n_features = int(offsets[-1]), n_features
        self._runner, self._offsets, self._sources, self._name = runner, offsets, sources, name

    @classmethod
    def of(cls, X: Any, client: Any, n_features: int) -> "ClusterArms":
        """Return the arms of `policy.choose(X, ..., client=client)`."""
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
            rows = row_chunks("features", X, n_features)
            # Unless the workers hold it, it is computed again every time, from files that may have changed.
            held = len(X.dask) == len(client.futures_of(X)) == X.npartitions
            offsets, name = chunk_offsets(rows.chunks[0]), rows.name if held else None
            return cls(runner, offsets, n_features, chunk_tasks(rows), name)
        if X.n_features != n_features:
            raise ValueError(f"the policy is for {n_features} features, the table has {X.n_features}")
        if isinstance(X, ParquetTable):
            offsets = np.array([0, *(block.stop for block in X.blocks)])
            sources = [(pickle.dumps(X.part(block.start, block.stop)), block.start) for block in X.blocks]
            return cls(runner, offsets, n_features, sources, ref(X))
        if X.path is None:
            raise ValueError(
                f"client= is for {ON_A_CLUSTER}, got a table in memory: leave client out, or write the table to a disk "
                "that all workers see with Table.build"
            )
        n_blocks = -(-X.n_arms // X.block_rows)
        step = X.block_rows * max(1, min(MAX_BLOCKS, n_blocks // MIN_PARTITIONS))
        offsets = np.append(np.arange(0, X.n_arms, step), X.n_arms)
        X.refuse_changed()
        return cls(runner, offsets, n_features, [(pickle.dumps(X), 0)] * (offsets.size - 1), ref(X))

    def choose(
        self, scoring: Scoring, constraint: RankedConstraint, policy: object
    ) -> tuple[Selection, FloatArray, NDArray[Any] | None]:
        """Return the best set of all arms, the same as on one machine, and the features and ids of its arms.

        scoring: with the key for ties. policy: whose choice it is; its last choice from the same arms gives thresholds
        below which arms are pruned at once.
        """
        hashable = type(policy).__hash__ is not None
        last = _last_choice.get(policy) if hashable else None
        known = None if last is None or self._name is None or last[0] != self._name else last[1:]
        picked = self._best(RoundInfo.of(scoring, constraint.ranks, scoring.key, known), constraint, scoring.caps)
        features, ids = self.take(picked.indices)
        if hashable:
            _last_choice[policy] = self._name, picked.indices, features
        return picked, features, ids

    def _best(self, this_round: RoundInfo, constraint: RankedConstraint, caps: FloatArray | None) -> Selection:
        (pickled,) = self._runner.keep([_pickled(this_round)])
        groups, caps_parts = self._groups(constraint), [None] * len(self._ranges)
        if caps is not None:
            caps_parts = self._runner.keep([caps[begin:end] for begin, end in self._ranges])
        tasks = [
            self._runner.task(_prune, pickled, source, *arm_range, of_arm, own_caps)
            for source, arm_range, of_arm, own_caps in zip(self._sources, self._ranges, groups, caps_parts, strict=True)
            if arm_range[0] < arm_range[1]
        ]
        (survivors,) = self._runner.results([self._runner.merged(tasks, _merge, pickled)], "choosing")
        return constraint.best_among(survivors.scores, this_round.key, survivors.indices)

    def take(self, indices: IntArray) -> tuple[FloatArray, NDArray[Any] | None]:
        """Return the features of these arms, `(k, n_features)`, and their ids, `(k,)`, if they have any."""
        partition_of = np.searchsorted(self._offsets, indices, side="right") - 1
        partitions = np.unique(partition_of).tolist()
        order = [np.flatnonzero(partition_of == i) for i in partitions]
        tasks = [
            self._runner.task(_take, self._sources[i], *self._ranges[i], indices[here])
            for i, here in zip(partitions, order, strict=True)
        ]
        taken = self._runner.results(tasks, "reading the chosen arms")
        if not taken:
            return np.empty((0, self.n_features)), None
        rows, ids = zip(*taken, strict=True)
        back = np.argsort(np.concatenate(order))
        return np.concatenate(rows)[back], None if ids[0] is None else np.concatenate(ids)[back]

    @property
    def _ranges(self) -> list[tuple[int, int]]:
        return list(pairwise(self._offsets.tolist()))

    def _groups(self, constraint: RankedConstraint) -> Sequence[Any]:
        """Return the groups of the arms of each partition, sent to the workers once for each constraint."""
        of_arm = constraint.ranks.of_arm
        if of_arm is None:
            return [None] * len(self._sources)
        sent_to, kept = _sent_groups.get(constraint, (None, []))
        here = self._runner.client.id, self._offsets.tobytes()
        if sent_to != here or any(future.status not in ("pending", "finished") for future in kept):
            small = np.min_scalar_type(int(of_arm.max()))
            kept = self._runner.keep([of_arm[begin:end].astype(small) for begin, end in self._ranges])
            _sent_groups[constraint] = here, kept
        return kept


_sent_groups: "WeakKeyDictionary[Any, tuple[Any, list[Any]]]" = WeakKeyDictionary()
"""By constraint: the client and partitions that its groups were sent to, and their futures."""

_last_choice: "WeakKeyDictionary[object, tuple[Hashable, IntArray, FloatArray]]" = WeakKeyDictionary()
"""By policy: the name of the arms, the indices of those chosen last, and their features."""


def learn_on_cluster(client: Any, features: Any, rewards: Any, weights: Any, shock: float, *, like: Model) -> Model:
    """Return the state that dask arrays of `features` `(k, n_features)`, `rewards` and `weights` `(k,)` give alone.

    like: a state of the same features and ridge.
    """
    n_features = like.n_features
    if shock != 0:
        raise ValueError("a shock is shared by all arms of one call, so they are learned on one machine: compute them")
    if not is_dask(features):
        raise ValueError(
            f"client= is for features in a dask array, got {type(features).__name__}: leave it out for what is in "
            "memory, or spread it with dask.array.from_array(features)"
        )
    if client is None:
        ClusterArms.of(features, client, n_features)
    runner = DaskRunner(client)
    X = row_chunks("features", features, n_features)
    rows = X.chunks[0]
    numbers = [values_per_row(name, v, rows, runner) for name, v in (("rewards", rewards), ("weights", weights))]
    tasks = [
        runner.task(_learn, block, begin, r, w, type(like), n_features, like.ridge)
        for block, begin, r, w in zip(chunk_tasks(X), chunk_offsets(rows).tolist(), *numbers, strict=False)
    ]
    state: Model = runner.results([runner.merged(tasks, _add)], "learning")[0]
    return state.as_one_source()


# -- tasks of the workers ---------------------------------------------------------------------------------


def _prune(
    pickled_round: bytes, source: Any, begin: int, end: int, groups: NDArray[Any] | None, caps: FloatArray | None
) -> Survivors:
    """Return the arms from `begin` to `end` that could be in the best set."""
    this_round: RoundInfo = pickle.loads(pickled_round)
    with _missing_files_explained():
        rows, first = _open_rows(source, begin, end)
        return this_round.prune(Partition(rows, begin, end, first), groups, caps)


def _merge(pickled_round: bytes, survivors: list[Survivors]) -> Survivors:
    this_round: RoundInfo = pickle.loads(pickled_round)
    return this_round.merge(survivors)


def _take(source: Any, begin: int, end: int, indices: IntArray) -> tuple[FloatArray, NDArray[Any] | None]:
    with _missing_files_explained():
        rows, first = _open_rows(source, begin, end)
        return rows.take(indices - first), rows.ids_of(indices - first) if isinstance(rows, Table) else None


def _learn(
    X: NDArray[Any],
    begin: int,
    rewards: NDArray[Any],
    weights: NDArray[Any] | None,
    kind: type[Model],
    n_features: int,
    ridge: float,
) -> Model:
    """Return the state of some rows; a row that is refused is named by its index among all."""
    for name, values in (("features", X), ("rewards", rewards), ("weights", weights)):
        if values is not None:
            checks.refuse_not_finite(name, checks.floats(name, values), first_row=begin)
    return kind(n_features=n_features, ridge=ridge).learn(X, rewards, weights=weights).folded()


def _add(states: list[Model]) -> Model:
    return sum(states[1:], states[0])


def _open_rows(source: Any, begin: int, end: int) -> tuple[Rows, int]:
    """Return rows that hold the arms from `begin` to `end`, and the index of the first row among all arms."""
    if isinstance(source, tuple):
        table: Table = _open_table(source[0])
        table.refuse_changed()
        return table, source[1]
    if np.ndim(source) != 2 or len(source) != end - begin:
        raise ValueError(
            f"the chunk of rows {begin} to {end} has shape {np.shape(source)}, its dask array says otherwise: "
            "whatever made the array gives another number of rows than it promised"
        )
    return ArrayRows(np.asarray(source)), begin


_open_table = lru_cache(maxsize=8)(pickle.loads)


@contextmanager
def _missing_files_explained() -> Iterator[None]:
    """Name the worker that does not see a file."""
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
    """Pickle a value, with the class of a policy that was defined in a notebook."""
    pickled: bytes = imported("cloudpickle").dumps(value)
    return pickled
