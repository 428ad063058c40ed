"""Adding decisions and requests of rewards, many at a time, by statements of the driver itself."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from armful.errors import LedgerError, NotChosenError, UnknownRoundError
from armful.ledger._decision_records import Decided, NewDecision, NewRewards, RewardsAdded
from armful.ledger._engine import Store
from armful.ledger._records import SHARES, RewardCounts
from armful.ledger._schema import chosen, rewards, rounds
from armful.ledger._writing import aware, check_texts

ROUND_COLUMNS = [
    "id",
    "campaign_id",
    "number",
    "key",
    "chosen_at",
    "closes_at",
    "n_features",
    "details",
    "unit",
    "model_version",
]
CHOSEN_COLUMNS = [
    "round_id",
    "arm",
    "position",
    "share",
    "predicted",
    "bonus",
    "capped",
    "probability",
    "features",
    "groups",
]
LARGEST = 2**63 - 1
ARM_OF = "(arm, position, share, predicted, bonus, capped, probability, features, groups)"


def write_decisions(
    store: Store,
    connection: Connection,
    campaign_id: int,
    decisions: Sequence[NewDecision],
    settings: str | None = None,
) -> list[Decided | LedgerError]:
    """Add those of the decisions that are good and whose key is new; return what became of each."""
    answers: list[Decided | LedgerError] = []
    good: list[tuple[int, NewDecision, tuple[Any, Any]]] = []
    for i, decision in enumerate(decisions):
        try:
            _check_decision(decision)
            times = (
                store.moment(aware("chosen_at", decision.chosen_at)),
                store.moment(aware("closes_at", decision.closes_at)),
            )
        except LedgerError as error:
            answers.append(error)
        else:
            good.append((i, decision, times))
            answers.append(Decided(0, False))
    store.check_durable(connection)
    cursor = store.cursor(connection)
    lock_position(store, cursor, campaign_id)
    last = _last_number(store, cursor, campaign_id)
    if settings is not None:
        check_texts([settings])
        query = "UPDATE campaigns SET settings = ? WHERE id = ? AND settings <> ?"
        cursor.execute(store.sql(query), (settings, campaign_id, settings))
    number_of = _numbers_of_keys(store, cursor, campaign_id, [d.key for _, d, _ in good if d.key is not None])
    new: list[tuple[int, NewDecision, tuple[Any, Any]]] = []
    for i, decision, times in good:
        known = None if decision.key is None else number_of.get(decision.key)
        if known is not None:
            answers[i] = Decided(known, True)
            continue
        last += 1
        answers[i] = Decided(last, False)
        new.append((last, decision, times))
        if decision.key is not None:
            number_of[decision.key] = last
    if new:
        ids = store.new_round_ids(cursor, len(new))
        store.insert(connection, rounds, ROUND_COLUMNS, _round_rows(campaign_id, ids, new))
        store.insert(connection, chosen, CHOSEN_COLUMNS, _arm_rows(ids, new))
    cursor.close()
    return answers


def _last_number(store: Store, cursor: Any, campaign_id: int) -> int:
    cursor.execute(store.sql("SELECT max(number) FROM rounds WHERE campaign_id = ?"), (campaign_id,))
    return cursor.fetchone()[0] or 0


def _numbers_of_keys(store: Store, cursor: Any, campaign_id: int, keys: Sequence[str]) -> dict[str, int]:
    if not keys:
        return {}
    query = f"SELECT key, number FROM rounds WHERE campaign_id = ? AND {store.one_of('key')}"
    cursor.execute(store.sql(query), (campaign_id, store.list_value(keys)))
    return dict(cursor.fetchall())


def _round_rows(campaign_id: int, ids: Sequence[int], new: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    for round_id, (number, d, (chosen_at, closes_at)) in zip(ids, new, strict=True):
        about = (d.n_features, d.details, d.unit, d.model_version)
        yield (round_id, campaign_id, number, d.key, chosen_at, closes_at, *about)


def _arm_rows(ids: Sequence[int], new: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    for round_id, (_, decision, _) in zip(ids, new, strict=True):
        for row in decision.rows:
            yield (round_id, *row)


def _check_decision(decision: NewDecision) -> None:
    """Raise LedgerError if the store could not hold the decision, or would not give it back as it is."""
    width = 4 * decision.n_features
    names, texts = set(), [decision.key or "", decision.unit or "", decision.details]
    features = []
    try:
        for row in decision.rows:
            arm, position, share, predicted, bonus, capped, probability, data, groups = row
            _check_row(arm, position, share, capped, data, width)
            if not (_is_number(predicted) and _is_number(bonus) and _is_number(probability)):
                raise LedgerError(f"numbers of an arm must be float, None where they are not known, got {row[3:7]}")
            names.add(arm)
            texts.append(arm)
            features.append(data)
            if groups is not None:
                texts.append(groups)
        check_texts(texts)
    except (TypeError, ValueError) as error:
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(f"an arm of a decision must be {ARM_OF}: {error}") from None
    if len(names) < len(decision.rows):
        raise LedgerError("an arm can be chosen once in a decision, and one is there twice")
    if not np.isfinite(np.frombuffer(b"".join(features), dtype="<f4")).all():
        raise LedgerError("features must be finite, and within the range of float32")
    version = decision.model_version
    if not (version is None or (type(version) is int and abs(version) <= LARGEST)):
        raise LedgerError(f"model_version must be a whole number or None, got {version!r}")


def _check_row(arm: str, position: int, share: str, capped: bool, data: bytes, width: int) -> None:
    if not arm:
        raise LedgerError("an id must not be empty")
    if share not in SHARES:
        raise LedgerError(f"a share must be one of {', '.join(SHARES)}, got {share!r}")
    if type(position) is not int or abs(position) > LARGEST or type(capped) is not bool:
        raise LedgerError(f"position must be int and capped bool, got {position!r} and {capped!r}")
    if type(data) is not bytes or len(data) != width:
        raise LedgerError(f"the features of an arm must be {width} bytes, those of {width // 4} numbers of float32")


def _is_number(value: float | None) -> bool:
    return value is None or (isinstance(value, float) and value == value)  # noqa: PLR0124 - only NaN differs from itself


# -- rewards -----------------------------------------------------------------------------------------


def write_reward_requests(
    store: Store, connection: Connection, campaign_id: int, requests: Sequence[NewRewards]
) -> list[RewardsAdded | LedgerError]:
    """Add the rewards of each request in turn; return what became of each request."""
    store.check_durable(connection)
    cursor = store.cursor(connection)
    position = lock_position(store, cursor, campaign_id)
    pairs = list({(n, arm) for request in requests for n, arm, _ in request.rewards if _can_be_asked_for(n, arm)})
    known = dict(zip(pairs, store.known_rewards(cursor, campaign_id, pairs), strict=True))
    batch = _Batch(store, position, known)
    answers = [batch.answer(request) for request in requests]
    if batch.rows:
        store.insert(connection, rewards, ("round_id", "arm", "seq", "reward", "received_at"), batch.rows)
        last = [(seq, round_id) for round_id, seq in batch.last.items()]
        cursor.executemany(store.sql("UPDATE rounds SET last_reward = ? WHERE id = ?"), last)
        query = store.sql("UPDATE campaigns SET position = ? WHERE id = ?")
        cursor.execute(query, (batch.position, campaign_id))
    cursor.close()
    return answers


def lock_position(store: Store, cursor: Any, campaign_id: int) -> int:
    """Return the position of the campaign; no other transaction writes to the campaign until this one ends."""
    cursor.execute(store.sql(f"SELECT position FROM campaigns WHERE id = ?{store.for_update}"), (campaign_id,))
    position: int = cursor.fetchone()[0]
    return position


def _can_be_asked_for(number: Any, arm: Any) -> bool:
    if type(number) is not int or not 0 < number <= LARGEST or type(arm) is not str:
        return False
    try:
        check_texts([arm])
    except LedgerError:
        return False
    return True


class _Batch:
    """The rewards of several requests, as rows that are to be inserted.

    `known` has for each (number of the round, arm) the id of the round, None if there is none, whether the arm was
    chosen in it, and its reward, None if none came.
    """

    def __init__(
        self, store: Store, position: int, known: dict[tuple[int, str], tuple[int | None, bool, float | None]]
    ) -> None:
        self.store, self.position, self.known = store, position, known
        self.rows: list[tuple[Any, ...]] = []
        self.last: dict[int, int] = {}

    def answer(self, request: NewRewards) -> RewardsAdded | LedgerError:
        """Take the rewards of a request, and return its answer; of a strict one all or none."""
        try:
            moment = self.store.moment(aware("received_at", request.received_at))
        except LedgerError as error:
            return error
        problems = [(i, p) for i, reward in enumerate(request.rewards) if (p := self._problem(*reward)) is not None]
        if problems and request.strict:
            kind, sentence = problems[0][1]
            return kind(f"{sentence}: nothing was changed")
        counts, skipped = {"new": 0, "repeated": 0, "corrected": 0}, {i for i, _ in problems}
        for i, (number, arm, reward) in enumerate(request.rewards):
            if i not in skipped:
                counts[self._take(number, arm, float(reward), moment)] += 1
        return RewardsAdded(RewardCounts(**counts), [(i, sentence) for i, (_, sentence) in problems])

    def _problem(self, number: int, arm: str, reward: float) -> tuple[type[LedgerError], str] | None:
        round_id, is_chosen, _ = self.known.get((number, arm), (None, False, None))
        if round_id is None:
            return UnknownRoundError, f"there is no round {number}"
        if not is_chosen:
            return NotChosenError, f"{arm!r} was not chosen in round {number}"
        if not isinstance(reward, float | int) or not math.isfinite(reward):
            return LedgerError, f"rewards must be finite, got {reward!r}"
        return None

    def _take(self, number: int, arm: str, reward: float, moment: Any) -> str:
        round_id, is_chosen, before = self.known[number, arm]
        assert round_id is not None  # for mypy: `_problem` saw to it
        if before == reward:
            return "repeated"
        self.position += 1
        self.known[number, arm] = (round_id, is_chosen, reward)
        self.rows.append((round_id, arm, self.position, reward, moment))
        self.last[round_id] = self.position
        return "new" if before is None else "corrected"
