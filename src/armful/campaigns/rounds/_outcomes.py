"""Outcomes from a file, and the rounds that they belong to."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armful.campaigns.reading._column_values import is_number
from armful.campaigns.reading._delimiter import delimiter_of, is_csv
from armful.campaigns.reading._person_ids import as_ids, as_texts
from armful.campaigns.reading._row_progress import with_progress
from armful.campaigns.reading._rows import RowReader, open_rows
from armful.campaigns.settings import OutcomeSettings
from armful.checks import LARGEST, FloatArray, IntArray
from armful.ledger import Ledger, RoundInfo
from armful.tables._columns import MissingColumnError, import_pyarrow
from armful.tables._files import is_files

DAY = 24 * 3600.0
LIST_ID = "id"
"""The column of ids in the lists of rounds: a list with outcomes added can be learned."""
"""The length of a date without a time, in seconds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcomes:
    """The rows of a file that have a reward, m of them.

    Attributes
    ----------
    ids : pyarrow.ChunkedArray of str, length m
    rewards : ndarray, shape (m,)
    rounds : ndarray of int, shape (m,), or None
        The round that each row names.
    times : ndarray, shape (m, 2), or None
        When the outcome happened, its first and its last possible moment, in seconds since 1970.
    n_rows, empty : int
        The rows of the file, and those without a reward.
    """

    ids: Any
    rewards: FloatArray
    rounds: IntArray | None
    times: FloatArray | None
    n_rows: int
    empty: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """One outcome for each person and round, and what became of the other rows of the file."""

    rounds: IntArray
    ids: NDArray[np.str_]
    rewards: FloatArray
    never_chosen: int
    outside_window: int
    duplicates: int


def read_outcomes(source: Any, settings: OutcomeSettings, delimiter: str, *, progress: bool = False) -> Outcomes:
    """Return the outcomes in a file.

    Raises
    ------
    ValueError
        If a column is missing, an id is empty, or a reward, round or time cannot be read; the message names the row.
    """
    try:
        reader = _open(source, settings, delimiter)
    except MissingColumnError as error:
        try:
            settings = replace(settings, id=LIST_ID)
            reader = _open(source, settings, delimiter)
        except MissingColumnError:
            raise MissingColumnError(
                f"{error}; say which to use in [outcomes], or by --id, --reward, --round, --time"
            ) from None
    ids, rewards, rounds, times, n = [], [], [], [], 0
    for batch in with_progress(reader, "reading outcomes", show=progress):
        ids.append(as_ids(batch.column(settings.id), settings.id, n))
        rewards.append(_rewards(batch.column(settings.reward), settings.reward, n))
        if settings.round is not None:
            rounds.append(_whole_numbers(batch.column(settings.round), settings.round, n))
        if settings.time is not None:
            times.append(_times(batch.column(settings.time), settings, n))
        n += batch.num_rows
    if not n:
        raise ValueError("the file of outcomes holds no rows")
    has_reward = ~np.isnan(np.concatenate(rewards))
    pa = import_pyarrow()
    return Outcomes(
        ids=pa.chunked_array(ids).filter(pa.array(has_reward)),
        rewards=np.concatenate(rewards)[has_reward],
        rounds=np.concatenate(rounds)[has_reward] if rounds else None,
        times=np.concatenate(times)[has_reward] if times else None,
        n_rows=n,
        empty=int(n - has_reward.sum()),
    )


def _open(source: Any, settings: OutcomeSettings, delimiter: str) -> RowReader:
    """Return the columns of outcomes; what separates those of a CSV file is found out if need be."""
    names = [settings.id, settings.reward, settings.round, settings.time]
    columns = [name for name in names if name is not None]
    if is_files(source) and is_csv(source):
        delimiter = delimiter_of(source, settings.id, delimiter)
    return open_rows(source, columns=columns, text=columns, delimiter=delimiter)


def match(outcomes: Outcomes, ledger: Ledger, settings: OutcomeSettings, now: datetime) -> Matched:
    """Return the round of each outcome: the one that it names, else the last within whose window it lies.

    An outcome lies within the window of a round if it happened (without a column of times: if it is learned) between
    the moment of choosing and the end of the window. Without a column of times, one that was learned in time and comes
    again later belongs to the round that it was learned in.

    Raises
    ------
    ValueError
        If a round is named that does not exist, or a person has two different rewards in a round and
        `repeats = "refuse"`.
    """
    n = outcomes.rewards.size
    found, ever = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    times = np.full((n, 2), now.timestamp()) if outcomes.times is None else outcomes.times
    begin, end = times.T
    infos = ledger.rounds()
    _refuse_unknown_rounds(outcomes.rounds, infos)
    for info in reversed(infos):
        if outcomes.rounds is not None:
            may = asks = outcomes.rounds == info.number
        else:
            may = (found == 0) & (info.chosen_at.timestamp() <= end) & (begin <= info.closes_at.timestamp())
            asks = may | ~ever
        if not asks.any():
            continue
        on_list = asks & _is_in(outcomes.ids, ledger.chosen_ids(info.number))
        ever |= on_list
        found[may & on_list] = info.number
    if outcomes.rounds is None and outcomes.times is None:
        _find_repeated(outcomes, found, ever & (found == 0), infos, ledger, settings.repeats)
    matched = found > 0
    ids = np.asarray(outcomes.ids.filter(import_pyarrow().array(matched)).to_numpy(), dtype=np.str_)
    rounds, people, rewards, duplicates = _one_each(
        found[matched], ids, outcomes.rewards[matched], begin[matched], settings.repeats
    )
    return Matched(
        rounds=rounds,
        ids=people,
        rewards=rewards,
        never_chosen=int((~ever).sum()),
        outside_window=int((ever & ~matched).sum()),
        duplicates=duplicates,
    )


def _find_repeated(
    outcomes: Outcomes, found: IntArray, late: NDArray[np.bool_], infos: list[RoundInfo], ledger: Ledger, repeats: str
) -> None:
    """Write the round of late outcomes into `found` if the same reward of the same person is recorded in it."""
    kept = "last" if repeats == "refuse" else repeats
    for info in reversed(infos):
        rows = np.flatnonzero(late & (found == 0))
        if not rows.size:
            return
        ids = np.asarray(outcomes.ids.take(import_pyarrow().array(rows)).to_numpy(), dtype=np.str_)
        zeros = np.zeros(rows.size)
        _, people, rewards, _ = _one_each(zeros.astype(np.int64), ids, outcomes.rewards[rows], zeros, kept)
        known = ledger.outcomes(info.number)
        order = np.argsort(known.ids)
        at = order[np.minimum(np.searchsorted(known.ids[order], people), order.size - 1)]
        same = (known.ids[at] == people) & (known.rewards[at] == rewards)
        found[rows[np.isin(ids, people[same])]] = info.number


def _one_each(
    rounds: IntArray, ids: NDArray[np.str_], rewards: FloatArray, times: FloatArray, repeats: str
) -> tuple[IntArray, NDArray[np.str_], FloatArray, int]:
    """Return one reward for each round and id, and how many rows were more than that."""
    _, people = np.unique(ids, return_inverse=True)
    order = np.lexsort((times, people, rounds))  # stable: rows of one time stay in the order of the file
    rounds, people, ids, rewards = rounds[order], people[order], ids[order], rewards[order]
    first = np.ones(rounds.size, dtype=bool)
    first[1:] = (rounds[1:] != rounds[:-1]) | (people[1:] != people[:-1])
    starts = np.flatnonzero(first)
    if starts.size == rounds.size:
        return rounds, ids, rewards, 0
    low, high = np.minimum.reduceat(rewards, starts), np.maximum.reduceat(rewards, starts)
    differ = np.flatnonzero(low != high)
    if repeats == "refuse" and differ.size:
        i, first, second = starts[differ[0]], low[differ[0]], high[differ[0]]
        raise ValueError(
            f"{str(ids[i])!r} has the rewards {first:g} and {second:g} in round {rounds[i]}: keep one, or say in "
            'campaign.toml which counts, repeats = "last", "sum" or "max"'
        )
    last = np.append(starts[1:], rounds.size) - 1
    kept = {"last": rewards[last], "sum": np.add.reduceat(rewards, starts), "max": high}.get(repeats, rewards[last])
    return rounds[starts], ids[starts], kept, int(rounds.size - starts.size)


def _refuse_unknown_rounds(rounds: IntArray | None, infos: list[RoundInfo]) -> None:
    known = [info.number for info in infos]
    unknown = [] if rounds is None else sorted(set(np.unique(rounds).tolist()) - set(known))
    if unknown:
        there = f"there are rounds 1 to {known[-1]}" if known else "no round has been chosen yet"
        raise ValueError(f"the outcomes name round {unknown[0]}, and {there}")


def _is_in(ids: Any, wanted: NDArray[np.str_]) -> NDArray[np.bool_]:
    from pyarrow import compute  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    found = compute.is_in(ids, value_set=pa.array(wanted.tolist(), type=pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def _rewards(column: Any, name: str, begin: int) -> FloatArray:
    """Return numbers, NaN where there is none; `true` and `false` are 1 and 0."""
    from pyarrow import compute  # noqa: PLC0415

    pa = import_pyarrow()
    if is_number(column.type):
        values = column.cast(pa.float64(), safe=False)
    else:
        texts = compute.utf8_trim_whitespace(as_texts(column, name))
        lower = compute.utf8_lower(texts)
        texts = compute.if_else(compute.equal(lower, "true"), "1", texts)
        texts = compute.if_else(compute.equal(lower, "false"), "0", texts)
        texts = compute.if_else(compute.equal(texts, ""), None, texts)
        values = _cast(texts, pa.float64(), name, begin, "a number")
    numbers: FloatArray = values.to_numpy(zero_copy_only=False)
    usable = np.abs(numbers) <= LARGEST
    bad = np.flatnonzero(~usable & compute.is_valid(values).to_numpy(zero_copy_only=False))
    if bad.size:
        value = numbers[bad[0]]
        expected = f"at most {LARGEST:g} in size" if np.isfinite(value) else "finite numbers"
        raise ValueError(f"rewards must be {expected}, row {begin + bad[0] + 1} of {name!r} has {value:g}")
    return numbers


def _whole_numbers(column: Any, name: str, begin: int) -> IntArray:
    from pyarrow import compute  # noqa: PLC0415

    pa = import_pyarrow()
    texts = compute.utf8_trim_whitespace(as_texts(column, name))
    texts = compute.if_else(compute.equal(texts, ""), None, texts)
    values = _cast(texts, pa.int64(), name, begin, "the number of a round")
    if values.null_count:
        row = compute.index(compute.is_null(values), True).as_py()
        raise ValueError(f"every outcome needs a round, and {name!r} is empty in row {begin + row + 1}")
    return np.asarray(values.to_numpy(), dtype=np.int64)


def _times(column: Any, settings: OutcomeSettings, begin: int) -> FloatArray:
    """Return the first and the last moment of each date or time, `(m, 2)`, in seconds since 1970.

    Those that do not name a time zone are in that of the settings.
    """
    texts = as_texts(column, settings.time or "").to_pylist()
    result = np.empty((len(texts), 2))
    for row, text in enumerate(texts):
        try:
            moment = datetime.fromisoformat((text or "").strip())
        except ValueError:
            raise ValueError(
                f"{settings.time!r} must hold dates or times like 2026-03-31 or 2026-03-31 18:00, "
                f"row {begin + row + 1} has {text!r}"
            ) from None
        begin_of = (moment if moment.tzinfo else moment.replace(tzinfo=settings.zone)).timestamp()
        result[row] = begin_of, begin_of + (DAY if len(text.strip()) == len("2026-03-31") else 0)
    return result


def _cast(texts: Any, dtype: Any, name: str, begin: int, what: str) -> Any:
    pa = import_pyarrow()
    try:
        return texts.cast(dtype)
    except pa.ArrowInvalid:
        for row, text in enumerate(texts.to_pylist()):
            try:
                pa.scalar(text, pa.string()).cast(dtype)
            except pa.ArrowInvalid:
                raise ValueError(
                    f"{name!r} must hold {what}, row {begin + row + 1} has {text!r}{_hint(text)}"
                ) from None
        raise


def _hint(text: str) -> str:
    """Return how to write what is meant, where that is evident."""
    if text.lower() in {"yes", "no", "y", "n", "ja", "nein"}:
        return ": write 1 for yes and 0 for no"
    return ": write decimals with a point" if re.fullmatch(r"[+-]?[\d.]*,\d+", text) else ""
