"""The list of a round: `rounds/007/chosen.csv`."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from armful.campaigns._results import Round
from armful.campaigns.holdout import SHARES
from armful.campaigns.rounds._standing import round_result
from armful.errors import with_message
from armful.files._atomic_file import real_target, remove_abandoned_parts, write_bytes
from armful.ledger import ChosenArms, RoundInfo
from armful.tables._columns import import_pyarrow

ROUNDS, LIST = "rounds", "chosen.csv"


def list_path(folder: Path, number: int) -> Path:
    """Return where the list of a round is."""
    return folder / ROUNDS / f"{number:03d}" / LIST


def listed_rounds(folder: Path | None) -> list[int]:
    """Return the rounds that have a list in a campaign's folder; single decisions have none."""
    paths = [] if folder is None else sorted((folder / ROUNDS).glob(f"*/{LIST}"))
    return [int(path.parent.name) for path in paths if path.parent.name.isdecimal()]


def list_bytes(arms: ChosenArms) -> bytes:
    """Return the list of a round as CSV: the chosen, then the holdout, each by rank."""
    from pyarrow import csv  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    share_order = np.select([arms.shares == share for share in SHARES], range(len(SHARES)))
    order = np.lexsort((arms.positions, share_order))
    columns = {
        "id": arms.ids[order],
        "rank": arms.positions[order] + 1,
        "predicted": arms.predicted[order],
        "bonus": arms.bonus[order],
        "capped": arms.capped[order],
        "share": arms.shares[order],
    }
    values = [*columns.values(), *(labels[order] for labels in arms.groups.values())]
    table = pa.Table.from_arrays([pa.array(each) for each in values], names=[*columns, *arms.groups])
    buffer = io.BytesIO()
    csv.write_csv(table, buffer)
    return buffer.getvalue()


def refuse_target(path: Path) -> None:
    """Raise OSError if no list can be written there, before anything is recorded."""
    folder = real_target(path).parent
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"no permission to write in {folder}: give another folder")


def refuse_folder(folder: Path) -> None:
    """Raise OSError if no lists can be written below a campaign's folder, before anything is recorded."""
    there = next(each for each in (folder / ROUNDS, folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file, and a folder is needed there for the lists: remove it")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"no permission to write in {there}, where the lists of rounds are")


def publish(
    info: RoundInfo,
    arms: ChosenArms,
    folder: Path | None,
    out: str | os.PathLike[str] | None,
    written: bytes,
    *,
    repeated: bool = False,
    notes: Sequence[str] = (),
) -> Round:
    """Write the list of a round, from `list_bytes`, into the campaign's folder, if one is given, and to `out`.

    Both files are replaced atomically. Return the round.
    """
    path = Path(out) if folder is None and out is not None else None
    if folder is not None:
        path = list_path(folder, info.number)
        if repeated and not path.exists():
            notes = [*notes, "this round had been recorded when an earlier command was stopped; here is its list"]
        with _explained(f"round {info.number} is recorded, but not its list: ", "; run this again for the list"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, written)
    if out is not None:
        recorded = f"round {info.number} is recorded, and its list is in {path}, but "
        with _explained(recorded if folder is not None else ""):
            write_bytes(Path(out), written)
    return round_result(info, arms, path, list(notes), repeated=repeated)


@contextmanager
def _explained(before: str, after: str = "") -> Iterator[None]:
    """Say in an error of writing a list what is recorded already, before and after the reason."""
    try:
        yield
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename is not None else str(error)
        raise with_message(error, f"{before}{reason}{after}") from error


def remove_from_list(path: Path, arms: ChosenArms, ids: NDArray[np.str_]) -> None:
    """Write a list anew, if it is there, without some people."""
    if path.exists():
        keep = ~np.isin(arms.ids, ids)
        arrays = {name: value[keep] for name, value in vars(arms).items() if name != "groups"}
        groups = {column: labels[keep] for column, labels in arms.groups.items()}
        write_bytes(path, list_bytes(ChosenArms(**arrays, groups=groups)))


def remove_parts(folder: Path) -> None:
    """Remove what commands left behind that were killed while they wrote a list or the report of a campaign."""
    for path in [*(each / LIST for each in folder.glob(f"{ROUNDS}/*")), folder / "report.html"]:
        remove_abandoned_parts(path)
