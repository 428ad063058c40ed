"""The OpenAPI document, composed from the messages."""

from collections.abc import Mapping
from typing import Any

import msgspec

from armful import __version__
from armful.service import _messages as messages

_DECISION = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
    "description": "The same key again gives the same decision.",
}
_ERRORS = {
    400: "The body is not JSON",
    401: "No key, or one that is unknown, expired or revoked",
    403: "The key does not have the role",
    404: "There is no such decision",
    408: "The body came too slowly",
    409: "The key belongs to another request",
    413: "The body is too large",
    415: "The body is not announced as JSON",
    422: "The request cannot be used; nothing was recorded",
    429: "Too many requests",
    503: "The service cannot answer now; try again",
}
_READ, _BODY = (401, 403, 429, 503), (400, 401, 403, 408, 413, 415, 422, 429, 503)

PLAIN_EXAMPLE = {
    "candidates": [{"id": "a1", "features": [0.2, 0.1]}, {"id": "a2", "features": [0.4, 0.3]}],
    "constraint": {"k": 1},
    "unit": "user-17",
    "key": "request-4711",
}
"""A request that says nothing of the campaign."""


def _operations(decision: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "path": "/v1/decisions",
            "method": "post",
            "id": "decide",
            "summary": "Choose a set of arms, and store the decision",
            "body": messages.DecisionRequest,
            "example": decision,
            "answer": messages.DecisionAnswer,
            "errors": (*_BODY, 409),
            "parameters": [_KEY],
        },
        {
            "path": "/v1/decisions/{id}",
            "method": "get",
            "id": "decision",
            "summary": "A stored decision, with why each arm was chosen",
            "answer": messages.StoredDecision,
            "errors": (*_READ, 404),
            "parameters": [_DECISION],
        },
        {
            "path": "/v1/decisions/{id}/rewards",
            "method": "post",
            "id": "reward",
            "summary": "Record rewards of one decision: all of them, or none",
            "body": messages.RewardsRequest,
            "example": {"rewards": {"a1": 1.0}},
            "answer": messages.RewardsAnswer,
            "errors": (*_BODY, 404),
            "parameters": [_DECISION],
        },
        {
            "path": "/v1/rewards",
            "method": "post",
            "id": "many_rewards",
            "summary": "Record rewards of many decisions",
            "body": messages.ManyRewardsRequest,
            "example": {"rewards": [{"decision_id": "17", "id": "a1", "reward": 1.0}]},
            "answer": messages.ManyRewardsAnswer,
            "errors": _BODY,
        },
        {
            "path": "/v1/arms",
            "method": "put",
            "id": "put_arms",
            "summary": "Register arms that decisions can name by their ids, or withdraw them",
            "body": messages.ArmsRequest,
            "example": {"arms": decision["candidates"][:1], "withdraw": ["a0"]},
            "answer": messages.ArmsAnswer,
            "errors": _BODY,
        },
        {
            "path": "/v1/status",
            "method": "get",
            "id": "status",
            "summary": "Where the campaign stands",
            "answer": messages.StatusAnswer,
            "errors": _READ,
        },
        {
            "path": "/v1/model",
            "method": "get",
            "id": "model",
            "summary": "The model that decides at present",
            "answer": messages.ModelAnswer,
            "errors": _READ,
        },
        {"path": "/healthz", "method": "get", "id": "healthz", "summary": "Alive", "answer": messages.Health},
        {
            "path": "/readyz",
            "method": "get",
            "id": "readyz",
            "summary": "Ready to decide",
            "answer": messages.Health,
            "errors": (503,),
        },
        {"path": "/metrics", "method": "get", "id": "metrics", "summary": "Metrics for Prometheus", "errors": _READ},
    ]


def document(campaign: str, decision: Mapping[str, Any] = PLAIN_EXAMPLE) -> bytes:
    """Return the OpenAPI 3.1 document of a campaign's service, as JSON; decision: an example of a request."""
    operations = _operations(decision)
    types = [t for each in operations for t in (each.get("body"), each.get("answer")) if t is not None]
    schemas, components = msgspec.json.schema_components(
        [*types, messages.Problem], ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip([*types, messages.Problem], schemas, strict=True))
    problem = {"content": {"application/problem+json": {"schema": schema_of[messages.Problem]}}}
    paths: dict[str, Any] = {}
    for each in operations:
        if "answer" in each:
            content = {"application/json": {"schema": schema_of[each["answer"]]}}
        else:
            content = {"text/plain": {"schema": {"type": "string"}}}
        responses: dict[str, Any] = {"200": {"description": "Done", "content": content}}
        for status in sorted(each.get("errors", ())):
            responses[str(status)] = {"description": _ERRORS[status], **problem}
        operation: dict[str, Any] = {"operationId": each["id"], "summary": each["summary"], "responses": responses}
        if "body" in each:
            content = {"application/json": {"schema": schema_of[each["body"]], "example": each["example"]}}
            operation["requestBody"] = {"required": True, "content": content}
        if "parameters" in each:
            operation["parameters"] = each["parameters"]
        if "errors" in each and 401 in each["errors"]:
            operation["security"] = [{"key": []}, {}]
        paths.setdefault(each["path"], {})[each["method"]] = operation
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": f"armful: {campaign}",
                "version": __version__,
                "description": "Decisions of a campaign, and their rewards.",
            },
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "armful_<id>_<secret>"}},
            },
        }
    )
