"""Handlers that only read: status, model, health, metrics, the OpenAPI document."""

import asyncio
import json
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from armful.errors import LedgerError
from armful.service._access import is_local
from armful.service._http import Answer, Call
from armful.service._logging import LOGGER
from armful.service._messages import Coefficient, Health, ModelAge, ModelAnswer, StatusAnswer, encode
from armful.service._problems import RETRY, ProblemError
from armful.service._worker import Worker, with_ledger

SHORTEST_SILENCE_SECONDS = 60.0
"""Of the updater, before `/v1/status` speaks of it: it may be restarting."""
CHECKED_SECONDS = 1.0
"""For which `/metrics` waits for the store."""
_OK = encode(Health("ok"))


async def status(call: Call) -> Answer:
    """`GET /v1/status`."""
    worker = call.worker
    decisions = await with_ledger(worker.read(worker.ledger.last_number))
    age, summary = await _newest(worker)
    return Answer(
        encode(
            StatusAnswer(
                campaign=worker.settings.name,
                decisions=decisions,
                rewards=summary.get("rewards", 0),
                outstanding=summary.get("outstanding", 0),
                registered_arms=worker.candidates.n_registered,
                model=age,
                notes=[*summary.get("notes", []), *_not_updated(worker, age), *_unusable(worker)],
            )
        )
    )


async def model(call: Call) -> Answer:
    """`GET /v1/model`."""
    worker = call.worker
    age, summary = await _newest(worker)
    return Answer(
        encode(
            ModelAnswer(
                campaign=worker.settings.name,
                policy=worker.settings.policy.kind,
                n_features=worker.models.current.policy.n_features,
                model=age,
                coefficients=msgspec.convert(summary.get("coefficients", []), list[Coefficient]),
            )
        )
    )


async def _newest(worker: Worker) -> tuple[ModelAge, dict[str, Any]]:
    """Return the newest published model and its summary; of a new campaign the empty model."""
    every = (worker.options.update_every or worker.limits.update_every).total_seconds()
    newest = await with_ledger(worker.read(lambda: worker.ledger.newest_model(state=False)))
    if newest is None:
        return ModelAge(worker.models.current.version, None, None, 0.0, every), {}
    info, _, text = newest
    summary = json.loads(text)
    age = ModelAge(
        info.version,
        _iso(info.made_at),
        _iso(info.checked_at),
        info.n_observations,
        every,
        (summary.get("model") or {}).get("suggested_seconds"),
    )
    return age, summary


def _not_updated(worker: Worker, age: ModelAge) -> list[str]:
    """Return a sentence if nobody has looked for new rewards for much longer than between two updates."""
    if age.checked_at is None:
        return []
    seconds = (worker.now() - datetime.fromisoformat(age.checked_at)).total_seconds()
    if seconds <= max(SHORTEST_SILENCE_SECONDS, 5 * age.update_every_seconds):
        return []
    return [
        f"the model was not brought up to date for {seconds:,.0f} seconds, and should be every "
        f"{age.update_every_seconds:g}: the log of the updater says why"
    ]


def _unusable(worker: Worker) -> list[str]:
    sentence = worker.candidates.unusable
    return [] if sentence is None else [sentence]


def _iso(moment: datetime) -> str:
    return moment.isoformat()


async def healthz(_: Call) -> Answer:
    """`GET /healthz`: the process answers."""
    return Answer(_OK)


async def readyz(call: Call) -> Answer:
    """`GET /readyz`: the store answers, and a model is loaded."""
    worker = call.worker

    async def answers() -> bool:
        try:
            await worker.read(worker.ledger.model_version)
        except LedgerError as error:  # which may name the user, host and database: not for anybody
            LOGGER.error("the store does not answer: %s", error)
            return False
        return True

    if not await worker.readiness.get("store", answers):
        raise ProblemError(503, "the store does not answer: try again later", RETRY)
    return Answer(_OK)


async def metrics(call: Call) -> Answer:
    """`GET /metrics`."""
    worker = call.worker
    worker.refresh_metrics()
    await _note_checked(worker)
    return Answer(worker.metrics.text(), content_type=worker.metrics.content_type.encode())


async def _note_checked(worker: Worker) -> None:
    """Note when the model was last found to be up to date; where the store does not say so soon, go on without."""

    async def checked_at() -> float | None:
        newest = await worker.read(lambda: worker.ledger.newest_model(state=False))
        return None if newest is None else newest[0].checked_at.timestamp()

    with suppress(LedgerError, ProblemError, TimeoutError):
        async with asyncio.timeout(CHECKED_SECONDS):
            moment = await worker.checked.get("model", checked_at)
        if moment is not None:
            worker.metrics.model_checked.set(moment)


async def openapi(call: Call) -> Answer:
    """`GET /openapi.json`: with the campaign's own example for those who may read."""
    worker = call.worker
    if b"authorization" in call.headers or is_local(call.scope, call.headers):  # else it would count as refused
        with suppress(ProblemError):
            await worker.access.caller(call.scope, call.headers, "read", local=True)
            return Answer(worker.openapi)
    return Answer(worker.public_openapi)
