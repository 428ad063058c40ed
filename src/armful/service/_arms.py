"""Handler of registered arms."""

import asyncio

import msgspec

from armful.service._http import Answer, Call, decoded
from armful.service._messages import ArmsAnswer, ArmsRequest, encode
from armful.service._problems import ProblemError
from armful.service._worker import with_ledger

_REQUEST = msgspec.json.Decoder(ArmsRequest)


async def put_arms(call: Call) -> Answer:
    """`PUT /v1/arms`: all of it is kept, or nothing."""
    worker = call.worker
    request = decoded(_REQUEST, await call.body())
    await with_ledger(worker.read(worker.candidates.refresh))  # what other workers have registered can be withdrawn
    try:
        contents = await asyncio.to_thread(worker.candidates.contents, request)
    except ValueError as error:
        raise ProblemError(422, str(error)) from None
    await with_ledger(worker.read(worker.ledger.put_arms, contents))
    await with_ledger(worker.read(worker.candidates.refresh))
    withdrawn = sum(content is None for _, content in contents)
    return Answer(encode(ArmsAnswer(len(request.arms), withdrawn, worker.candidates.n_registered)))
