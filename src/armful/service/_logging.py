"""Logs: one line of JSON each on standard error, without bodies and without keys."""

import logging
import sys
from datetime import UTC, datetime

import msgspec

LOGGER = logging.getLogger("armful.service")


class JsonFormatter(logging.Formatter):
    """Write a record as one line of JSON: time, level, logger, message, and what `extra={"fields": ...}` holds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def configure_logging(level: int = logging.INFO) -> None:
    """Write what the service and uvicorn log as JSON on standard error; for each process of a service."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("armful", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True  # the service logs requests itself, with their ids
