"""Logs: one line of JSON each on standard error, without bodies and without keys."""

import asyncio
import logging
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

SECONDS = 0.1
"""So long the line of a request may wait for others, to be written with them."""

LOGGER = logging.getLogger("armful.service")


class JsonFormatter(logging.Formatter):
    """Write a record as one line of JSON: time, level, logger, message, and what `extra={"fields": ...}` holds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def log_request(fields: Mapping[str, Any]) -> None:
    """Log a request; where `configure_logging` was called, without the detours of the logging module."""
    if _own_handler is None or not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("request", extra={"fields": fields})
        return
    line = {"time": _moment(time.time()), "level": "info", "logger": LOGGER.name, "message": "request", **fields}
    _own_handler.write(msgspec.json.encode(line).decode())


class _Handler(logging.StreamHandler[TextIO]):
    """Writes at once, but lines of requests a few at a time: each write costs as much as making several lines."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def write(self, line: str) -> None:
        """Write one line, with others that come soon; called in a loop."""
        if not self._lines:
            asyncio.get_running_loop().call_later(SECONDS, self.flush)
        self._lines.append(line)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record after the lines that came before it."""
        self.flush()
        super().emit(record)

    def flush(self) -> None:
        """Write what is waiting; nobody may read standard error any more, which is no reason to fail."""
        lines, self._lines = self._lines, []
        with suppress(OSError, ValueError), self.lock or nullcontext():
            if lines:
                self.stream.write("\n".join([*lines, ""]))
            super().flush()


_own_handler: _Handler | None = None


def configure_logging(level: int = logging.INFO) -> None:
    """Write what the service and uvicorn log as JSON on standard error; for each process of a service."""
    global _own_handler  # noqa: PLW0603 - logging is configured once for a process
    handler = _own_handler = _Handler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.captureWarnings(True)
    for name in ("armful", "uvicorn", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True  # the service logs requests itself, with their ids
