"""Errors of HTTP as problem details (RFC 9457)."""

from collections.abc import Mapping

from armful.errors import LedgerError
from armful.service._logging import LOGGER
from armful.service._messages import Problem, encode

PROBLEM_JSON = b"application/problem+json"
RETRY = {"retry-after": "1"}

TITLES = {
    400: "The request is malformed",
    401: "A key is needed",
    403: "The key does not allow this",
    404: "Not found",
    405: "The method is not allowed here",
    408: "The request took too long",
    409: "The key belongs to another request",
    413: "The request is too large",
    415: "The content type is not supported",
    422: "The request cannot be used",
    429: "Too many requests",
    431: "The header is too large",
    500: "The service made a mistake",
    503: "The service is not available",
}


class ProblemError(Exception):
    """An error with an HTTP status and one sentence for the caller.

    Parameters
    ----------
    status : int
        The HTTP status.
    detail : str
        What was expected, what came, what to do.
    headers : mapping of str to str
        Further headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def body(self, request_id: str) -> bytes:
        """Return the problem details."""
        return encode(
            Problem(
                type=f"urn:armful:problem:{self.status}",
                title=TITLES.get(self.status, "The request failed"),
                status=self.status,
                detail=self.detail,
                instance=f"urn:armful:request:{request_id}",
            )
        )


def store_failed(error: LedgerError) -> ProblemError:
    """Return the problem of a store that cannot be used; the log has the reason."""
    LOGGER.error("the store failed: %s", error)
    return ProblemError(503, "the store cannot be used at the moment: try again, with the same key", RETRY)
