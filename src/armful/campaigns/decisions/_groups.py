"""Which segments are in memory: those that may still change one by one, and the others merged in groups."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from armful.campaigns.decisions._counts import BUCKET
from armful.campaigns.decisions._segments import SIZE, Learning, Segment, index_of
from armful.campaigns.decisions._series import buckets_of_a_point
from armful.ledger import Ledger

GROUP = 64
"""Segments in a group: a late reward loads so many again, and so few sums are in memory for many decisions."""

MOST_RECENT = 3
"""Segments at the end that stay by themselves: the rate of decisions comes from their buckets."""

DIGEST_BYTES = 8

Saved = dict[tuple[int, int], tuple[int, bytes]]


def group_of(index: int) -> int:
    """Return the group that a segment is in."""
    return index // GROUP


def members(group: int) -> range:
    """Return the indices of the segments of a group."""
    return range(group * GROUP, (group + 1) * GROUP)


def digest(data: bytes) -> bytes:
    """Return a few bytes that tell whether a segment was saved as it was merged."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """The sum over consecutive segments, and what each of them was saved as.

    Attributes
    ----------
    sums : Segment
        All of them as one.
    digests : bytes
        `DIGEST_BYTES` for each segment.
    """

    sums: Segment
    digests: bytes

    @classmethod
    def of(cls, segments: Sequence[Segment], digests: Sequence[bytes], learning: Learning) -> Self:
        """Return the group of consecutive segments."""
        return cls(sums=Segment.merged(segments, learning), digests=b"".join(digests))

    def coarse(self, per_row: int) -> Self:
        """Return the group with coarser counts, as `Counts.coarse`."""
        return replace(self, sums=replace(self.sums, counts=self.sums.counts.coarse(per_row)))

    def members(
        self, saved: Mapping[tuple[int, int], tuple[int, bytes]], spans: Sequence[tuple[int, int]], learning: Learning
    ) -> Iterator[Segment | None]:
        """Yield each segment from what the ledger has; None for one that is not there as it was merged.

        Parameters
        ----------
        saved : mapping
            As `Ledger.segments` returns it.
        spans : sequence of (int, int)
            The first and the last decision of each.
        learning : Learning
            With which they were made.
        """
        for i, span in enumerate(spans):
            data = saved.get(span, (0, b""))[1]
            expected = self.digests[DIGEST_BYTES * i : DIGEST_BYTES * (i + 1)]
            yield Segment.from_bytes(data, learning) if digest(data) == expected else None


class Segments:
    """The segments of a campaign; those that do not change any more are merged, and loaded again when they do.

    Parameters
    ----------
    ledger : Ledger
        Has what segments were saved as.

    Attributes
    ----------
    single : dict of int to Segment
        Those that are in no group.
    groups : dict of int to Group
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.single: dict[int, Segment] = {}
        self.groups: dict[int, Group] = {}
        self._digests: dict[int, bytes] = {}
        self._per_row = 1

    def put(self, index: int, segment: Segment, data: bytes) -> None:
        """Keep a segment, in place of the one before; `data` is what it is saved as."""
        self.single[index], self._digests[index] = segment, digest(data)

    def in_order(self) -> list[Segment]:
        """Return the groups and the segments that are in none, the first decisions first."""
        each = [*(group.sums for group in self.groups.values()), *self.single.values()]
        return sorted(each, key=lambda segment: segment.first)

    def indices(self) -> list[int]:
        """Return the indices of all segments, also of those in groups, increasing."""
        return sorted([*self.single, *(index for group in self.groups for index in members(group))])

    def closed_indices(self) -> list[int]:
        """Return the indices of the segments in which a window has closed, increasing."""
        return [index for index in self.indices() if index not in self.single or self.single[index].last_close > 0]

    def saved(self, group: int) -> Saved:
        """Return what the ledger has of the segments of a group."""
        indices = members(group)
        return self._ledger.segments(indices[0] * SIZE + 1, (indices[-1] + 1) * SIZE)

    def merge(self, group: int, last: int, learning: Learning) -> None:
        """Keep only the sum of a group, if its segments are complete and closed, and not the most recent up to last."""
        indices = members(group)
        if indices[-1] > index_of(last) - MOST_RECENT or not all(index in self.single for index in indices):
            return
        each = [self.single[index] for index in indices]
        if any(segment.last - segment.first + 1 < SIZE or segment.closes.size for segment in each):
            return
        merged = Group.of(each, [self._digests[index] for index in indices], learning)
        for index in indices:
            del self.single[index], self._digests[index]
        per_row = buckets_of_a_point(index_of(last) * -(-SIZE // BUCKET))
        if per_row > self._per_row:
            self.groups = {index: older.coarse(per_row) for index, older in self.groups.items()}
        self._per_row = per_row
        self.groups[group] = merged.coarse(per_row)

    def open(self, group: int, learning: Learning) -> set[int]:
        """Load the segments of a group again; return those that must be made anew, as they are not there any more."""
        saved, indices = self.saved(group), members(group)
        spans = [(index * SIZE + 1, (index + 1) * SIZE) for index in indices]
        missing = set()
        for index, span, segment in zip(
            indices, spans, self.groups.pop(group).members(saved, spans, learning), strict=True
        ):
            if segment is None:
                missing.add(index)
            else:
                self.put(index, segment, saved[span][1])
        return missing
