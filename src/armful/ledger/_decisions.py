"""Adding decisions and requests of rewards, many at a time, by statements of the driver itself."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from armful.errors import LedgerError, NotChosenError, UnknownRoundError
from armful.ledger._decision_records import Decided, NewDecision, NewRewards, RewardsAdded
from armful.ledger._engine import Store
from armful.ledger._records import SHARES, RewardCounts
from armful.ledger._schema import chosen, rewards
from armful.ledger._writing import aware, check_lengths, check_texts

ROUND_COLUMNS = (
    "campaign_id",
    "number",
    "key",
    "chosen_at",
    "closes_at",
    "n_features",
    "details",
    "unit",
    "model_version",
)
CHOSEN_COLUMNS = (
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
)
LARGEST = 2**63 - 1
SHARE_SET = frozenset(SHARES)
NUMBERS = frozenset({float, type(None)})


def write_decisions(
    store: Store,
    cursor: Any,
    campaign_id: int,
    last: int,
    decisions: Sequence[NewDecision],
    settings: str | None = None,
) -> list[Decided | LedgerError]:
    """Add those of the decisions that are good and whose key is new; return what became of each.

    The transaction must hold the campaign, whose last number `Store.lock_campaign` returned.
    """
    rows = _prepared(store, decisions)
    if settings is not None:
        check_texts([settings])
        query = "UPDATE campaigns SET settings = ? WHERE id = ? AND settings <> ?"
        cursor.execute(store.sql(query), (settings, campaign_id, settings))
    number_of = _numbers_of_keys(store, cursor, campaign_id, [row[0] for row in rows if type(row) is tuple and row[0]])
    answers: list[Decided | LedgerError] = []
    new: list[tuple[int, NewDecision, tuple[Any, ...]]] = []
    for decision, row in zip(decisions, rows, strict=True):
        if isinstance(row, LedgerError):
            answers.append(row)
            continue
        number, key = last + 1, decision.key
        if key is not None and number_of.setdefault(key, number) != number:
            answers.append(Decided(number_of[key], True))
            continue
        last = number
        answers.append(Decided(number, False))
        new.append((number, decision, row))
    if new:
        ids = store.insert_rounds(cursor, ROUND_COLUMNS, [(campaign_id, number, *row) for number, _, row in new])
        rows_of = [(i, decision.rows) for i, (_, decision, _) in zip(ids, new, strict=True)]
        store.insert_few(cursor, chosen, *_of_arms(store, rows_of))
    return answers


def _of_arms(
    store: Store, rows_of: Sequence[tuple[int, Sequence[tuple[Any, ...]]]]
) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """Return columns of `chosen`, and the arms of each round as rows; the groups only if there are any."""
    flag, blob = store.flag, store.blob
    of_arms = [
        (i, arm, position, share, predicted, bonus, flag(capped), probability, blob(features))
        for i, rows in rows_of
        for arm, position, share, predicted, bonus, capped, probability, features, _ in rows
    ]
    groups = [row[-1] for _, rows in rows_of for row in rows]
    if groups.count(None) == len(groups):
        return CHOSEN_COLUMNS[:-1], of_arms
    return CHOSEN_COLUMNS, [(*row, group) for row, group in zip(of_arms, groups, strict=True)]


def _numbers_of_keys(store: Store, cursor: Any, campaign_id: int, keys: Sequence[str]) -> dict[str, int]:
    if not keys:
        return {}
    query = f"SELECT key, number FROM rounds WHERE campaign_id = ? AND {store.one_of('key')}"
    cursor.execute(store.sql(query), (campaign_id, store.list_value(keys)))
    return dict(cursor.fetchall())


def _prepared(store: Store, decisions: Sequence[NewDecision]) -> list[tuple[Any, ...] | LedgerError]:
    """Return the columns of each round after its number, or what is wrong with the decision."""
    if not decisions:
        return []
    try:
        _check_decisions(decisions)
        return [
            (
                decision.key,
                store.moment(aware("chosen_at", decision.chosen_at)),
                store.moment(aware("closes_at", decision.closes_at)),
                decision.n_features,
                decision.details,
                decision.unit,
                decision.model_version,
            )
            for decision in decisions
        ]
    except (LedgerError, TypeError, ValueError, AttributeError) as error:
        if len(decisions) > 1:  # of one of them, it is not known which
            return [each for decision in decisions for each in _prepared(store, [decision])]
        if isinstance(error, LedgerError):
            return [error]
        return [LedgerError(f"a decision has values of other types than it should: {error}")]


def _check_decisions(decisions: Sequence[NewDecision]) -> None:
    """Raise an error if the store could not hold all decisions, or would not give them back as they are."""
    names = [name for decision in decisions for name in (decision.key, decision.unit) if name is not None]
    texts = [decision.details for decision in decisions]
    whole = [decision.model_version or 0 for decision in decisions]
    rows = [row for decision in decisions for row in decision.rows]
    if rows:
        arms, positions, shares, predicted, bonus, capped, probabilities, data, groups = zip(*rows, strict=True)
        if "" in arms:
            raise LedgerError("an id must not be empty")
        if not SHARE_SET.issuperset(shares):
            raise LedgerError(f"a share must be one of {', '.join(SHARES)}, got {(set(shares) - SHARE_SET).pop()!r}")
        if not (
            NUMBERS.issuperset(map(type, predicted + bonus + probabilities)) and {bool}.issuperset(map(type, capped))
        ):
            raise LedgerError("predicted, bonus and probability of an arm must be float or None, and capped a bool")
        for decision in decisions:
            _check_arms(decision)
        if not np.isfinite(np.frombuffer(b"".join(data), dtype="<f4")).all():
            raise LedgerError("features must be finite, and within the range of float32")
        names += arms
        texts += [text for text in groups if text is not None]
        whole += positions
    check_texts([*names, *texts])
    check_lengths(names)
    sizes = [decision.n_features for decision in decisions]
    whole += sizes
    if not {int}.issuperset(map(type, whole)) or max(map(abs, whole)) > LARGEST or max(sizes) >= 2**31:
        raise LedgerError("positions and model_version must be int of at most 64 bits, and n_features of 32")


def _check_arms(decision: NewDecision) -> None:
    """Raise an error if an arm is there twice, or its features are not as many as those of the decision."""
    ids, data = [row[0] for row in decision.rows], [row[7] for row in decision.rows]
    if len(set(ids)) < len(ids):
        raise LedgerError(f"an arm can be chosen once in a decision, and {_twice(ids)!r} is there twice")
    if not ({bytes}.issuperset(map(type, data)) and {4 * decision.n_features}.issuperset(map(len, data))):
        raise LedgerError(f"the features of an arm must be the bytes of {decision.n_features} numbers of float32")


def _twice(arms: Sequence[str]) -> str:
    return next(arm for i, arm in enumerate(arms) if arm in arms[:i])


# -- rewards -----------------------------------------------------------------------------------------


def write_reward_requests(
    store: Store, cursor: Any, campaign_id: int, position: int, requests: Sequence[NewRewards]
) -> list[RewardsAdded | LedgerError]:
    """Add the rewards of each request in turn; return what became of each request.

    The transaction must hold the campaign, whose position `Store.lock_campaign` returned.
    """
    pairs = list({(n, str(arm)) for request in requests for n, arm, _ in request.rewards if _can_be_asked_for(n, arm)})
    known = dict(zip(pairs, store.known_rewards(cursor, campaign_id, pairs), strict=True))
    batch = _Batch(store, position, known)
    answers = [batch.answer(request) for request in requests]
    if batch.rows:
        store.insert_few(cursor, rewards, ("round_id", "arm", "seq", "reward", "received_at"), batch.rows)
        last = [(seq, round_id) for round_id, seq in batch.last.items()]
        cursor.executemany(store.sql("UPDATE rounds SET last_reward = ? WHERE id = ?"), last)
        query = store.sql("UPDATE campaigns SET position = ? WHERE id = ?")
        cursor.execute(query, (batch.position, campaign_id))
    return answers


def _can_be_asked_for(number: Any, arm: Any) -> bool:
    if type(number) is not int or not 0 < number <= LARGEST or not isinstance(arm, str):
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
        if "\0" in arm:  # no store looks up such an id
            return NotChosenError, f"{arm!r} was not chosen in decision {number}"
        round_id, is_chosen, _ = self.known.get((number, arm), (None, False, None))
        if round_id is None:
            return UnknownRoundError, f"there is no decision {number}"
        if not is_chosen:
            return NotChosenError, f"{arm!r} was not chosen in decision {number}"
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
        self.rows.append((round_id, str(arm), self.position, reward, moment))
        self.last[round_id] = self.position
        return "new" if before is None else "corrected"
