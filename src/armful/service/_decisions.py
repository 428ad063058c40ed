"""Handlers of decisions: make one, read one."""

import re
from typing import Any

import msgspec

from armful.errors import LedgerError, UnknownRoundError
from armful.ledger import ChosenArms, RoundInfo, RoundOutcomes
from armful.service._deciding import Prepared, fingerprint_of
from armful.service._http import Answer, Call, decoded
from armful.service._messages import (
    ChosenArm,
    DecisionAnswer,
    DecisionRequest,
    RunnerUp,
    StoredArm,
    StoredDecision,
    decision_decoder,
    encode,
)
from armful.service._problems import ProblemError, store_failed
from armful.service._snapshot import Snapshot
from armful.service._worker import Worker, with_ledger
from armful.service.registry import NotRegisteredError

HEADER_KEY = re.compile(rb"[!-~]{1,200}")
_REQUEST = decision_decoder()


async def decide(call: Call) -> Answer:
    """`POST /v1/decisions`."""
    worker = call.worker
    body = await call.body()
    request = _request(worker, body)
    key = _key_of(call, request)
    fingerprint = None if key is None else fingerprint_of(request)
    try:
        prepared = await _prepared(worker, request, key, fingerprint)
    except (ValueError, ProblemError) as error:
        known = None if key is None else await with_ledger(worker.read(worker.ledger.round_by_key, key))
        if known is not None:  # decided before, when this could be decided
            return await _repeated(worker, known.number, fingerprint)
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(422, str(error)) from None
    del body, request  # while this one waits for the store, the next ones use their memory, which is in the cache
    decided = await with_ledger(worker.store_decision(prepared.decision))
    if decided.repeated:
        return await _repeated(worker, decided.number, fingerprint)
    worker.metrics.decided(prepared.share)
    version = prepared.decision.model_version
    answer = DecisionAnswer(str(decided.number), prepared.chosen, version, prepared.share, False, list(prepared.notes))
    return Answer(encode(answer))


def _request(worker: Worker, body: bytes) -> DecisionRequest:
    """Return what a body says: by the decoder of the requests that the campaign usually gets, else by that of any."""
    try:
        return worker.candidates.usual_requests.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decoded(_REQUEST, body)


async def _prepared(worker: Worker, request: DecisionRequest, key: str | None, fingerprint: str | None) -> Prepared:
    """Return a decision; registered arms that are not known here may have come to another worker a moment ago."""
    try:
        return await _chosen(worker, request, key, fingerprint)
    except NotRegisteredError:
        await with_ledger(worker.read(worker.candidates.refresh))  # or another request has just done it
    return await _chosen(worker, request, key, fingerprint)


async def _chosen(worker: Worker, request: DecisionRequest, key: str | None, fingerprint: str | None) -> Prepared:
    def choose(model: Snapshot) -> Prepared:
        candidates = worker.candidates.read(request)
        return worker.decider.decide(candidates, model, key=key, unit=request.unit, fingerprint=fingerprint)

    if worker.candidates.is_quick(request):
        return choose(worker.models.current)
    return await worker.compute(choose, worker.models.for_a_thread())


def _key_of(call: Call, request: DecisionRequest) -> str | None:
    """Return the idempotency key, from the header or the body."""
    header = call.headers.get(b"idempotency-key")
    if header is None:
        return request.key
    if not HEADER_KEY.fullmatch(header):
        raise ProblemError(422, "the header Idempotency-Key must have 1 to 200 characters, all ASCII and no spaces")
    key = header.decode()
    if request.key not in (None, key):
        raise ProblemError(422, "the header Idempotency-Key and key in the body must be the same")
    return key


async def _repeated(worker: Worker, number: int, fingerprint: str | None) -> Answer:
    """Return the answer of a decision that was made before under the same key."""
    info, arms, _ = await with_ledger(worker.read(_stored, worker, number))
    if info.details.get("fingerprint") not in (None, fingerprint):
        raise ProblemError(
            409, f"the key is that of decision {number}, which another request asked for: give another key"
        )
    worker.metrics.repeated.inc()
    chosen = [
        ChosenArm(
            str(arms.ids[i]),
            int(arms.positions[i]) + 1,
            _number(arms.predicted[i]),
            _number(arms.bonus[i]),
            bool(arms.capped[i]),
            _number(arms.probabilities[i]),
        )
        for i in arms.positions.argsort(kind="stable")
    ]
    notes = info.details.get("notes", [])
    return Answer(encode(DecisionAnswer(str(number), chosen, info.model_version, _share(info), True, notes)))


def _stored(worker: Worker, number: int) -> tuple[RoundInfo, ChosenArms, RoundOutcomes]:
    info = worker.ledger.round(number)
    return info, *worker.ledger.chosen_and_outcomes(number)


def _share(info: RoundInfo) -> Any:
    return info.details.get("share", "chosen")


def _number(value: float) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124 - only NaN differs from itself


def number_of(decision_id: str) -> int:
    """Return the number of a decision; raise a problem of status 404 if it cannot be one."""
    if decision_id.isascii() and decision_id.isdigit() and len(decision_id) <= 18 and not decision_id.startswith("0"):
        return int(decision_id)
    raise ProblemError(404, f"there is no decision {decision_id[:40]!r}")


async def decision(call: Call) -> Answer:
    """`GET /v1/decisions/{id}`."""
    worker, number = call.worker, number_of(call.params["id"])
    try:
        info, arms, outcomes = await worker.read(_stored, worker, number)
    except UnknownRoundError:
        raise ProblemError(404, f"there is no decision {number}") from None
    except LedgerError as error:
        raise store_failed(error) from None
    details = info.details
    stored = StoredDecision(
        decision_id=str(number),
        key=info.key,
        unit=info.unit,
        share=_share(info),
        decided_at=info.chosen_at.isoformat(),
        closes_at=info.closes_at.isoformat(),
        model_version=info.model_version,
        n_candidates=details.get("n_candidates"),
        constraint=details.get("constraint"),
        draws=details.get("draws", 0),
        chosen=stored_arms(arms, outcomes, details.get("cap")),
        runner_up=msgspec.convert(details.get("runner_up"), RunnerUp | None),
        notes=details.get("notes", []),
    )
    return Answer(encode(stored))


def stored_arms(arms: ChosenArms, outcomes: RoundOutcomes, cap: float | list[float] | None) -> list[StoredArm]:
    """Return the arms of a decision in the order of the slate; cap: one for all, or one for each place."""
    stored = []
    for i in arms.positions.argsort(kind="stable"):
        place = int(arms.positions[i])
        predicted, bonus, capped = _number(arms.predicted[i]), _number(arms.bonus[i]), bool(arms.capped[i])
        limit = (cap[place] if place < len(cap) else None) if isinstance(cap, list) else cap
        plain = None if predicted is None or bonus is None else predicted + bonus
        stored.append(
            StoredArm(
                id=str(arms.ids[i]),
                position=place + 1,
                share=str(arms.shares[i]),
                predicted=predicted,
                bonus=bonus,
                cap=limit,
                capped=capped,
                score=limit if capped else plain,
                probability=_number(arms.probabilities[i]),
                reward=_number(outcomes.rewards[i]),
                corrected=bool(outcomes.corrected[i]),
            )
        )
    return stored
