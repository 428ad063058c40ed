"""`DecisionFold`: the model of a service's decisions, kept up to date segment by segment."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Self

import numpy as np

from armful.campaigns.audit import Finding
from armful.campaigns.decisions._counts import sum_of_places
from armful.campaigns.decisions._groups import Segments, group_of, members
from armful.campaigns.decisions._rows import microseconds
from armful.campaigns.decisions._segments import SIZE, Learning, Segment, index_of, summed, weights_of
from armful.campaigns.decisions.positions import estimated_weights
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.settings import ServiceSettings, Settings
from armful.checks import FloatArray, IntArray
from armful.errors import LedgerError
from armful.ledger import Ledger
from armful.model import RidgeState
from armful.model._qr import stacked_root
from armful.scan._threads import blas_at_one_thread

MOST_UNSAVED = 64
"""Segments that are made before they are saved, in one transaction."""

MOST_DEFERRED = 16
"""Segments that are read in one update only because rewards of open decisions came, which change counts alone."""

ESTIMATE_AGAIN, SMALLEST_CHANGE = 1.25, 0.02
"""Examination weights are estimated again when explored rewards have grown by this factor, and used if one differs by
this much: with other weights, all segments are made anew."""


class DecisionFold:
    """The sum over all decisions of a campaign, by the rules of `campaign.toml`: window, missing, discount, shock.

    Decisions are summed in segments of 512. An update reads those segments in which something has changed, and saves
    them; a new object resumes from what was saved. Segments in which all windows have closed are merged in groups of
    64, and loaded again when one of them changes. The result is that of folding all decisions from nothing, to
    rounding.

    Parameters
    ----------
    ledger : Ledger
    settings : Settings
    n_features : int
    names : sequence of str, optional
        The names of the features.

    Attributes
    ----------
    names : tuple of str
    position : int
        The position of the ledger that the fold shows: all rewards and erasures up to it are in it.
    last_round : int
        The last decision in it.
    closed_until : datetime
        The windows that closed until then are closed in it.
    weights : ndarray of shape (n_places,)
        The examination weight of each place; empty where all places count the same.
    segments : Segments
    unpublished : bool
        Whether something has changed since a model of it was published; who publishes sets it to False.
    findings : list of Finding
        Of the last audit.
    audited : float
        How many rewards were known at that audit.
    """

    def __init__(self, ledger: Ledger, settings: Settings, n_features: int, names: Sequence[str] | None = None) -> None:
        self.ledger, self.settings = ledger, settings
        self.names = tuple(f"x{i + 1}" for i in range(n_features)) if names is None else tuple(names)
        # The policies that settings can name all learn a RidgeState.
        empty: RidgeState = settings.policy.make(n_features, 0).state.empty()  # type: ignore[assignment]
        self.position, self.last_round = 0, 0
        self.closed_until = datetime.fromtimestamp(0, UTC)
        self.segments = Segments(ledger)
        self._state: RidgeState | None = None
        self._positions = (settings.service or ServiceSettings()).positions
        given = () if self._positions is None or self._positions == "estimate" else self._positions
        self._learning = Learning(settings=settings, empty=empty, weights=np.array(given, dtype=np.float64))
        self._estimated_from = 0.0
        self._deferred: set[int] = set()
        self._resumed = False
        self.unpublished = False
        self.findings: list[Finding] = []
        self.audited = 0.0

    @classmethod
    def of(cls, ledger: Ledger, settings: Settings) -> Self:
        """Return the fold of a campaign, with the features that were frozen, or that come ready.

        Raises
        ------
        ValueError
            If the features are not frozen yet.
        """
        recipe = frozen_recipe(ledger, settings)
        if recipe is None:
            raise ValueError(f"campaign {settings.name!r} has no features yet: serve it, or choose a round, first")
        return cls(ledger, settings, recipe.n_features, recipe.names)

    @property
    def weights(self) -> FloatArray:
        return self._learning.weights

    def weights_at(self, places: IntArray) -> FloatArray:
        """Return the examination weight of each place, counted from 0, `(n,)`."""
        return self._learning.weights_at(places)

    @property
    def n_features(self) -> int:
        """The length of a feature vector."""
        return self._learning.empty.n_features

    @blas_at_one_thread()
    def update(self, now: datetime) -> bool:
        """Bring the fold up to date with the ledger, and return whether anything has changed.

        Parameters
        ----------
        now : datetime
            The windows that closed until then are closed. It may be earlier than before.
        """
        at = int(microseconds(now.timestamp()))
        position, last = self.ledger.position(), self.ledger.last_number()
        if not self._resumed:
            self._resume(position, last)
        changed = self._changed(position, last, at)
        self._fold(changed, last, at, position)
        if self._reestimate():
            changed = set(range(index_of(last) + 1))
            self._fold(changed, last, at, position)
        self.position, self.last_round, self.closed_until = position, last, now
        self.unpublished |= bool(changed)
        return bool(changed)

    @property
    def state(self) -> RidgeState:
        """What has been learned."""
        if self._state is None:
            empty = self._learning.empty
            root, n = summed(empty._sum.root, self.in_order(), self._learning)
            self._state = empty._with_root(root, np.asarray(n), empty._sources)
        return self._state

    @property
    def pending(self) -> FloatArray:
        """At most n_features rows with the Gram matrix of all arms whose reward is outstanding, `(m, n_features)`."""
        root = np.zeros((self.n_features, self.n_features))
        for segment in self.in_order():
            if segment.pending.size:
                root = stacked_root(root, segment.pending, triangle=True)
        return root if root.any() else root[:0]

    def in_order(self) -> list[Segment]:
        """Return the sums of consecutive decisions, the first decisions first."""
        return self.segments.in_order()

    def _fold(self, indices: set[int], last: int, at: int, position: int) -> None:
        """Make some segments anew, save them, and merge those that do not change any more."""
        if indices:
            self._state = None
        saved: dict[tuple[int, int], bytes] = {}
        for group, some in groupby(sorted(indices), key=group_of):
            anew = set(some)
            if group in self.segments.groups:
                anew |= self.segments.open(group, self._learning)
            for index in sorted(anew):
                block = self.ledger.block(index * SIZE + 1, min((index + 1) * SIZE, last))
                segment = Segment.of(block, self._learning, at)
                saved[segment.first, segment.last] = data = segment.to_bytes(self._learning)
                self.segments.put(index, segment, data)
            self.segments.merge(group, last, self._learning)
            if len(saved) >= MOST_UNSAVED:
                self._save(saved, position)
                saved = {}
        self._save(saved, position)
        for group in sorted({group_of(index) for index in self.segments.single}):
            self.segments.merge(group, last, self._learning)

    def _save(self, saved: dict[tuple[int, int], bytes], position: int) -> None:
        if saved:
            with suppress(LedgerError):  # it only saves time: the sums hold also where they cannot be written
                self.ledger.write_segments(saved, position)

    def _changed(self, position: int, last: int, at: int) -> set[int]:
        """Return the segments that must be read: new decisions, rewards, erasures, windows that closed or reopened."""
        needed: set[int] = set()
        for group in range(group_of(index_of(last)) + 1):
            merged = self.segments.groups.get(group)
            if merged is None or not merged.sums.is_as_of(at):
                needed |= set() if merged is None else self.segments.open(group, self._learning)
                needed |= {i for i in members(group) if i <= index_of(last) and not self._holds(i, last, at)}
        if position > self.position:
            numbers = self.ledger.changed_rounds(self.position)
            at_once = self.settings.outcomes.learn_at_once or self.ledger.last_erasure() > self.position
            counts_alone = set() if at_once else self._all_open(numbers[numbers <= last])
            needed |= {index_of(number) for number in numbers[numbers <= last].tolist()} - counts_alone
            self._deferred |= counts_alone
        self._deferred -= needed
        some = sorted(self._deferred)[-MOST_DEFERRED:]
        self._deferred -= set(some)
        return needed | set(some)

    def _holds(self, index: int, last: int, at: int) -> bool:
        """Return whether a segment has all decisions up to `last`, with the windows closed that are closed now."""
        segment = self.segments.single.get(index)
        return segment is not None and segment.last == min((index + 1) * SIZE, last) and segment.is_as_of(at)

    def _all_open(self, numbers: IntArray) -> set[int]:
        """Return the segments of these decisions in which all of them are open: nothing of them is learned yet."""
        found: dict[int, bool] = {}
        for number in numbers.tolist():
            index = index_of(number)
            segment = self.segments.single.get(index)
            is_open = segment is not None and number <= segment.last and segment.is_open(number)
            found[index] = found.get(index, True) and is_open
        return {index for index, all_open in found.items() if all_open}

    def _resume(self, position: int, last: int) -> None:
        """Take over segments that were saved and still hold."""
        newest = self.ledger.last_changes(SIZE)
        if self._positions == "estimate":
            self._resume_weights(last)
        for group in range(group_of(index_of(last)) + 1):
            for (first, end), (at_position, data) in sorted(self.segments.saved(group).items()):
                index = index_of(first)
                if first != index * SIZE + 1 or newest.get(index, 0) > at_position:
                    continue
                segment = Segment.from_bytes(data, self._learning)
                if segment is not None and (segment.first, segment.last) == (first, end):
                    self.segments.put(index, segment, data)
            self.segments.merge(group, last, self._learning)
        self.position, self._resumed = position, True

    def _resume_weights(self, last: int) -> None:
        """Take over the examination weights with which the last segment that is saved was made."""
        for group in range(group_of(index_of(last)), -1, -1):
            for _, (_, data) in sorted(self.segments.saved(group).items(), reverse=True):
                weights = weights_of(data)
                if weights is not None:
                    self._learning = replace(self._learning, weights=weights)
                    return

    def _reestimate(self) -> bool:
        """Estimate the examination weights again if there is much more to go by; return whether they are others."""
        if self._positions != "estimate":
            return False
        places = self.places
        explored = float(places[:, 2].sum())
        if explored < ESTIMATE_AGAIN * max(self._estimated_from, 1.0):
            return False
        self._estimated_from = explored
        weights = estimated_weights(places[:, 2], places[:, 3], places[:, 4])
        old = self.weights
        known = min(old.size, weights.size)
        beyond = old[-1] if old.size else 1.0
        padded = np.concatenate([old[:known], np.full(weights.size - known, beyond)])
        if not weights.size or np.abs(weights / padded - 1).max() < SMALLEST_CHANGE:
            return False
        self._learning = replace(self._learning, weights=weights)
        return True

    @property
    def places(self) -> FloatArray:
        """For each place, as in `Counts.places`, over all segments."""
        return sum_of_places([segment.counts.places for segment in self.in_order()])


def frozen_recipe(ledger: Ledger, settings: Settings) -> FeatureRecipe | None:
    """Return how the features of a campaign are made; None if that is not frozen yet and they do not come ready."""
    if ledger.recipe is not None:
        return FeatureRecipe.from_json(ledger.recipe)
    return FeatureRecipe.fit(settings.features, ()) if settings.features.ready else None
