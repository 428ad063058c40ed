"""One file for each finished cell, loaded only if it is unchanged and belongs to that cell."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from armful.experiments.plan import Cell
from armful.experiments.results import Result
from armful.files._atomic_file import kind_of, write_bytes


def save(result: Result, cell: Cell, path: Path) -> None:
    """Write the result of `cell` with a checksum, replacing an older one atomically."""
    content = {"cell": cell.key(), "result": asdict(result)}
    write_bytes(path, json.dumps({**content, "sha256": _checksum(content)}).encode())


def load(cell: Cell, path: Path) -> Result | None:
    """Return the saved result of `cell`, under its present names; None if it must run again.

    That is if there is no file, or one that is damaged, was edited, or belongs to another cell. Raises FileExistsError
    if there is something else than a file.
    """
    if path.exists() and not path.is_file():  # reading a pipe or a device might never end
        kind = kind_of(path.stat().st_mode)
        raise FileExistsError(f"{path} is a {kind} where a file of results belongs: remove it")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("sha256") != _checksum(content) or content["cell"] != cell.key():
            return None
        result = Result(**content["result"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return replace(result, environment=cell.environment, policy=cell.policy)


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
