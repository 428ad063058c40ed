"""Handlers of rewards: of one decision, and of many."""

import msgspec

from armful.errors import LedgerError, NotChosenError, UnknownRoundError
from armful.ledger import NewRewards, RewardCounts
from armful.service._decisions import number_of
from armful.service._http import Answer, Call, decoded
from armful.service._messages import (
    ManyRewardsAnswer,
    ManyRewardsRequest,
    RewardsAnswer,
    RewardsRequest,
    Unmatched,
    encode,
)
from armful.service._problems import ProblemError, store_failed
from armful.service._worker import Worker, with_ledger

_OF_ONE = msgspec.json.Decoder(RewardsRequest)
_OF_MANY = msgspec.json.Decoder(ManyRewardsRequest)


async def reward(call: Call) -> Answer:
    """`POST /v1/decisions/{id}/rewards`: all of them are recorded, or none."""
    worker, number = call.worker, number_of(call.params["id"])
    given = decoded(_OF_ONE, await call.body()).rewards
    pairs = given.items() if isinstance(given, dict) else ((each.id, each.reward) for each in given)
    rewards = NewRewards(rewards=[(number, arm, value) for arm, value in pairs], received_at=worker.now(), strict=True)
    try:
        if not given:
            await worker.read(worker.ledger.round, number)  # is unknown like one that is rewarded
        added = await worker.store_rewards(rewards)
    except UnknownRoundError:
        raise ProblemError(404, f"there is no decision {number}: nothing was recorded") from None
    except NotChosenError as error:
        raise ProblemError(422, str(error)) from None
    except LedgerError as error:
        raise store_failed(error) from None
    counts = added.counts
    _count(worker, counts)
    return Answer(encode(RewardsAnswer(counts.new, counts.repeated, counts.corrected)))


async def many_rewards(call: Call) -> Answer:
    """`POST /v1/rewards`: those that belong to a decision are recorded, and the others are listed."""
    worker = call.worker
    given = decoded(_OF_MANY, await call.body()).rewards
    rewards, places, unmatched = [], [], []
    for index, each in enumerate(given):
        try:
            rewards.append((number_of(each.decision_id), each.id, each.reward))
            places.append(index)
        except ProblemError as problem:
            unmatched.append(Unmatched(index, each.decision_id, each.id, problem.detail))
    added = await with_ledger(worker.store_rewards(NewRewards(rewards=rewards, received_at=worker.now(), strict=False)))
    for place, why in added.unmatched:
        each = given[places[place]]
        unmatched.append(Unmatched(places[place], each.decision_id, each.id, why))
    unmatched.sort(key=lambda each: each.index)
    counts = added.counts
    _count(worker, counts)
    return Answer(encode(ManyRewardsAnswer(counts.new, counts.repeated, counts.corrected, unmatched)))


def _count(worker: Worker, counts: RewardCounts) -> None:
    for kind in ("new", "repeated", "corrected"):
        if n := getattr(counts, kind):
            worker.metrics.rewards.labels(kind).inc(n)
