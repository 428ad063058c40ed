"""The list of a round: `rounds/007/chosen.csv`."""

import io
from pathlib import Path

import numpy as np

from armful.campaigns.holdout import SHARES
from armful.files._atomic_file import write_bytes
from armful.ledger import ChosenArms
from armful.tables._columns import import_pyarrow


def list_path(folder: Path, number: int) -> Path:
    """Return where the list of a round is."""
    return folder / "rounds" / f"{number:03d}" / "chosen.csv"


def write_list(path: Path, arms: ChosenArms) -> None:
    """Write those on the list of a round: the chosen, then the holdout, each by rank. Replaces the file atomically."""
    from pyarrow import csv  # noqa: PLC0415 - an extra

    pa = import_pyarrow()
    order = np.lexsort((arms.positions, [SHARES.index(share) for share in arms.shares.tolist()]))
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


def remove_from_list(path: Path, arms: ChosenArms) -> None:
    """Write a list anew, if it is there, with those who are still in the ledger."""
    if path.exists():
        write_list(path, arms)
