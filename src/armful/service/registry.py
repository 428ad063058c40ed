"""`Registry`: arms that were registered before, kept in memory with their features and read from the ledger."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from armful.ledger import Ledger
from armful.service._logging import LOGGER
from armful.service._values import RawArm
from armful.service.encoding import Encoder

Features = NDArray[np.float32]


class StoredArm(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
    """A registered arm: what the ledger keeps of it, besides its id."""

    id: str
    columns: dict[str, Any] | None = None
    features: list[float] | None = None


class Content(msgspec.Struct, omit_defaults=True):
    """What the ledger keeps of an arm; ready features as float32, little-endian."""

    columns: dict[str, Any] | None = None
    features: bytes | None = None


class NotRegisteredError(ValueError):
    """A candidate is neither registered, as far as this process knows, nor described."""


_DECODER = msgspec.msgpack.Decoder(Content)


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidates:
    """The candidates of a request.

    Attributes
    ----------
    ids : sequence of str
        All different.
    X : ndarray of float32, shape (n, n_features)
        Not to be changed: it may be what the registry keeps.
    """

    ids: Sequence[str]
    X: Features
    arms: Sequence[RawArm] = field(repr=False)
    encoder: Encoder = field(repr=False)

    def groups(self, column: str) -> list[str]:
        """Return the group of each candidate in the column of a quota."""
        return self.encoder.groups(column, self.arms)

    def costs(self, column: str) -> list[float]:
        """Return the cost of each candidate in the column of a budget."""
        return self.encoder.costs(column, self.arms)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Known:
    """The arms that are registered after some change: replaced as a whole, never changed.

    rows: what `Encoder.arm_rows` made of each. unusable: why arms of the ledger cannot be used, by id.
    """

    change: int = 0
    erasure: int = -1
    arms: Sequence[StoredArm] = ()
    ids: Sequence[str] = ()
    place: Mapping[str, int] = field(default_factory=dict)
    rows: Features
    unusable: Mapping[str, str] = field(default_factory=dict)

    def sentence(self) -> str | None:
        """Return a sentence on the arms that cannot be used; None without any."""
        if not self.unusable:
            return None
        id, why = next(iter(self.unusable.items()))
        n = len(self.unusable)
        return f"{n:,} registered arm{'s' * (n > 1)} cannot be chosen; arm {id!r} {why}"


class Registry:
    """The registered arms of a campaign, as one process knows them.

    Parameters
    ----------
    ledger : Ledger
        Where they are kept.
    encoder : Encoder
        How they become features.
    most : int, optional
        How many arms may be registered.
    """

    def __init__(self, ledger: Ledger, encoder: Encoder, *, most: int = 10_000) -> None:
        self._ledger, self._encoder, self._most = ledger, encoder, most
        self._known, self._lock = _Known(rows=encoder.arm_rows([])), Lock()
        self.refresh()

    @property
    def n_registered(self) -> int:
        """How many arms can be candidates."""
        return len(self._known.ids)

    @property
    def unusable(self) -> str | None:
        """A sentence on arms of the ledger that cannot be used, as after a change of the settings; None without any."""
        return self._known.sentence()

    def refresh(self) -> bool:
        """Read what changed in the ledger since the last time; return whether anything did."""
        with self._lock:
            known, erasure = self._known, self._ledger.last_erasure()
            if erasure != known.erasure:  # somebody was forgotten: all of them are read anew
                known = _Known(erasure=erasure, rows=self._encoder.arm_rows([]))
            change, changed = self._ledger.arms_since(known.change)
            if known is self._known and not changed:
                return False
            self._known = self._changed(known, change, changed)
            sentence = self._known.sentence()
            if sentence is not None and sentence != known.sentence():
                LOGGER.warning("%s", sentence)
            return True

    def contents(self, arms: Sequence[RawArm], withdraw: Sequence[str] = ()) -> list[tuple[str, bytes | None]]:
        """Return what to put into the ledger, by `Ledger.put_arms`; `refresh` then reads it.

        Parameters
        ----------
        arms : sequence of RawArm
            Arms to register, in place of those of the same id.
        withdraw : sequence of str
            Ids to withdraw; those that are not registered are ignored.

        Returns
        -------
        list of (str, bytes or None)

        Raises
        ------
        ValueError
            If an arm cannot be used, an id occurs twice, or too many would be registered. The sentence names the arm.
        """
        ids = [*(arm.id for arm in arms), *withdraw]
        refuse_repeated(ids, "arm")
        known = self._known
        total = len(known.place.keys() | {arm.id for arm in arms}) - len(known.place.keys() & set(withdraw))
        if arms and total > self._most:
            raise ValueError(
                f"{total:,} arms would be registered, and service.most_arms is {self._most:,}: withdraw some"
            )
        try:
            rows = self._encoder.arm_rows(arms) if arms else ()
        except ValueError as error:  # which speaks of it as a candidate
            sentence = str(error).removesuffix(", and is not registered")
            raise ValueError(re.sub("^candidate ", "arm ", sentence)) from None
        contents: list[tuple[str, bytes | None]] = [
            (arm.id, _content(arm, row)) for arm, row in zip(arms, rows, strict=True)
        ]
        return contents + [(id, None) for id in withdraw if id in known.place or id in known.unusable]

    def candidates(
        self, wanted: Sequence[RawArm | str] | None = None, context: Mapping[str, Any] | None = None
    ) -> Candidates:
        """Return the candidates of a request with their features.

        Parameters
        ----------
        wanted : sequence of RawArm or str, optional
            Candidates; an id, or a candidate with neither columns nor features, is a registered arm. All registered
            arms if it is left out.
        context : mapping of str to value, optional
            The columns that all candidates share.

        Returns
        -------
        Candidates

        Raises
        ------
        ValueError
            One sentence that names the candidate, and the column if it is about one.
        """
        known, encoder = self._known, self._encoder
        if wanted is None:
            if not known.ids:
                why = known.sentence() or "no arm is registered"
                raise NotRegisteredError(f"there are no candidates: the request has none, and {why}")
            X = encoder.with_context(known.rows, context)
            return Candidates(ids=known.ids, X=X, arms=known.arms, encoder=encoder)
        ids, found, rows = self._found(known, wanted)
        return Candidates(ids=ids, X=encoder.with_context(rows, context), arms=found, encoder=encoder)

    def _found(self, known: _Known, wanted: Sequence[RawArm | str]) -> tuple[list[str], list[RawArm], Features]:
        """Return the ids, the arms and the rows of candidates."""
        rows = self._encoder.quick_rows(wanted)
        if rows is not None or _all_raw(wanted):
            ids = [arm.id for arm in wanted]  # type: ignore[union-attr]
            refuse_repeated(ids, "candidate")
            return ids, wanted, self._encoder.arm_rows(wanted) if rows is None else rows  # type: ignore[arg-type, return-value]
        arms: list[RawArm] = []
        places, raw = [], []
        for i, each in enumerate(wanted):
            if isinstance(each, str):
                id = each
            elif each.columns is None and each.features is None:
                id = each.id
            else:
                raw.append(i)
                arms.append(each)
                continue
            place = known.place.get(id)
            if place is None:
                why = known.unusable.get(id, "is not registered: register it first, or send its columns or features")
                raise NotRegisteredError(f"arm {id!r} {why}")
            places.append(place)
            arms.append(known.arms[place])
        ids = [arm.id for arm in arms]
        refuse_repeated(ids, "candidate")
        if not raw:
            return ids, arms, known.rows[places]
        of_raw = self._encoder.arm_rows([arms[i] for i in raw] if places else arms)
        if not places:
            return ids, arms, of_raw
        rows = np.empty((len(arms), of_raw.shape[1]), dtype=np.float32)
        is_raw = np.zeros(len(arms), dtype=bool)
        is_raw[raw] = True
        rows[is_raw], rows[~is_raw] = of_raw, known.rows[places]
        return ids, arms, rows

    def _changed(self, known: _Known, change: int, changed: Sequence[tuple[str, bytes | None]]) -> _Known:
        """Return what is known after some changes."""
        unusable = {**known.unusable}
        new, gone = [], set()
        for id, content in changed:
            unusable.pop(id, None)
            gone.add(id)
            if content is not None:
                try:
                    new.append(_stored(id, content))
                except (msgspec.MsgspecError, ValueError):
                    unusable[id] = "cannot be read: another version of armful registered it"
        usable, rows_of_new = self._usable(new, unusable)
        kept = [i for i, id in enumerate(known.ids) if id not in gone]
        arms = [*(known.arms[i] for i in kept), *usable]
        ids = [arm.id for arm in arms]
        rows = np.concatenate([known.rows[kept], rows_of_new])
        rows.flags.writeable = False
        place = {id: i for i, id in enumerate(ids)}
        return _Known(
            change=change, erasure=known.erasure, arms=arms, ids=ids, place=place, rows=rows, unusable=unusable
        )

    def _usable(self, arms: list[StoredArm], unusable: dict[str, str]) -> tuple[list[StoredArm], Features]:
        """Return the arms that the settings of now can use, with their rows; the others are noted."""
        try:
            return arms, self._encoder.arm_rows(arms)
        except ValueError:
            usable, rows = [], [self._encoder.arm_rows([])]
            for arm in arms:
                try:
                    rows.append(self._encoder.arm_rows([arm]))
                    usable.append(arm)
                except ValueError as error:
                    unusable[arm.id] = f"is registered, and cannot be used any more: {error}"
            return usable, np.concatenate(rows)


def _all_raw(wanted: Sequence[RawArm | str]) -> bool:
    """Return whether all candidates have features, or all have columns: the usual request, which is to be quick."""
    try:
        return None not in [arm.features for arm in wanted] or None not in [arm.columns for arm in wanted]  # type: ignore[union-attr]
    except AttributeError:  # of an id
        return False


def refuse_repeated(ids: Sequence[str], what: str) -> None:
    """Raise ValueError if an id occurs twice."""
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise ValueError(f"{what} {twice!r} is there twice: give every one once")


def _content(arm: RawArm, row: Features) -> bytes:
    features = None if arm.features is None else row.astype("<f4").tobytes()
    columns = None if arm.columns is None else dict(arm.columns)
    return msgspec.msgpack.encode(Content(columns=columns, features=features))


def _stored(id: str, content: bytes) -> StoredArm:
    read = _DECODER.decode(content)
    features = None if read.features is None else np.frombuffer(read.features, dtype="<f4").tolist()
    return StoredArm(id=id, columns=read.columns, features=features)
