"""The list of a round: `rounds/007/chosen.csv`."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armful.campaigns._results import Round
from armful.campaigns._standing import round_result
from armful.campaigns.holdout import SHARES
from armful.files._atomic_file import write_bytes
from armful.ledger import ChosenArms, RoundInfo
from armful.tables._columns import import_pyarrow


def list_path(folder: Path, number: int) -> Path:
    """Return where the list of a round is."""
    return folder / "rounds" / f"{number:03d}" / "chosen.csv"


def write_list(path: Path, arms: ChosenArms) -> None:
    """Write those on the list of a round: the chosen, then the holdout, each by rank. Replaces the file atomically."""
    from pyarrow import csv  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    share_order = np.array([SHARES.index(share) for share in arms.shares.tolist()], dtype=np.int64)
    order = np.lexsort((arms.positions, share_order))
    columns = {
        "id": arms.ids[order].tolist(),
        "rank": arms.positions[order] + 1,
        "predicted": arms.predicted[order],
        "bonus": arms.bonus[order],
        "capped": arms.capped[order],
        "share": arms.shares[order].tolist(),
    }
    names = [*columns, *arms.groups]
    values = [*columns.values(), *(labels[order].tolist() for labels in arms.groups.values())]
    buffer = io.BytesIO()
    csv.write_csv(pa.Table.from_arrays([pa.array(each) for each in values], names=names), buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, buffer.getvalue())


def publish(
    info: RoundInfo,
    arms: ChosenArms,
    folder: Path | None,
    out: str | os.PathLike[str] | None = None,
    *,
    repeated: bool = False,
    notes: Sequence[str] = (),
) -> Round:
    """Write the list of a round into the campaign's folder, if one is given, and to `out`; return the round."""
    path = Path(out) if folder is None and out is not None else None
    if folder is not None:
        path = list_path(folder, info.number)
        if repeated and not path.exists():
            notes = [*notes, "this round had been recorded when an earlier command was stopped; here is its list"]
        write_list(path, arms)
    if out is not None:
        write_list(Path(out), arms)
    return round_result(info, arms, path, list(notes), repeated=repeated)


def remove_from_list(path: Path, arms: ChosenArms) -> None:
    """Write a list anew, if it is there, with those who are still in the ledger."""
    if path.exists():
        write_list(path, arms)
