"""A file that stays open: whether it is still the one at its path."""

import os
from pathlib import Path

from armful.errors import LedgerError


class OpenedFile:
    """The file of a ledger, as it was when it was opened.

    A removed file takes what is written until the last program that has it open ends, and then all of it is gone.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        What messages call it.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._opened: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise LedgerError if the file was removed or replaced since the first check."""
        found = self._at_path()
        if self._opened is None:
            self._opened = found
        elif found != self._opened:
            raise LedgerError(
                f"{self._name} was removed or replaced while it was open: nothing was changed; put it back, or end "
                "all programs that use it and start them again"
            )

    def forget(self) -> None:
        """Take the file that is there at the next check for the one that is opened."""
        self._opened = None

    def _at_path(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        except OSError:  # as of a folder that may not be searched any more, which says nothing of the file
            return self._opened
        return found.st_dev, found.st_ino
