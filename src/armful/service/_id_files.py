"""The campaign's files of ids: those who are never chosen, and those who always are; read again when they change."""

from collections.abc import Sequence

from armful.campaigns.rounds._eligible import read_id_files
from armful.campaigns.settings import Settings
from armful.service._logging import LOGGER

Stamp = tuple[tuple[int, int, int] | None, ...]


class IdFiles:
    """The ids in the files of `choose.exclude` and `choose.require`.

    Parameters
    ----------
    settings : Settings
        Names the files, relative to the campaign's folder.

    Attributes
    ----------
    exclude, require : sequence of str

    Raises
    ------
    ValueError, OSError
        If a file cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = [*settings.choose.exclude, *settings.choose.require]
        self._stamp = self._stamp_now()
        self._logged: Stamp | None = None
        self.exclude, self.require = self._read()

    def refresh(self) -> bool:
        """Read the files again if one has changed, and return whether the ids are others; for a thread.

        A file that cannot be read is logged once, and the ids stay as they were until it can be.
        """
        stamp = self._stamp_now()
        if stamp == self._stamp:
            self._logged = None
            return False
        try:
            ids = self._read()
        except (ValueError, OSError) as error:
            if stamp != self._logged:
                LOGGER.error("%s; the service goes on with the ids that it read before", error)
            self._logged = stamp
            if isinstance(error, ValueError):  # what the system refuses it may allow later, to the same file
                self._stamp = stamp
            return False
        if stamp != self._stamp_now():  # somebody is writing: at the next look it is complete
            return False
        self._stamp, self._logged = stamp, None
        is_new = ids != (self.exclude, self.require)
        self.exclude, self.require = ids
        fields = {"excluded": len(self.exclude), "required": len(self.require)}
        LOGGER.info("files of ids read again", extra={"fields": fields})
        return is_new

    def _read(self) -> tuple[Sequence[str], Sequence[str]]:
        choose = self._settings.choose
        return self._ids_in(choose.exclude), self._ids_in(choose.require)

    def _ids_in(self, files: Sequence[str]) -> list[str]:
        return [id for ids in read_id_files(files, self._settings) for id in ids.tolist()]

    def _stamp_now(self) -> Stamp:
        """Return what changes when a file is written or replaced."""
        stamps: list[tuple[int, int, int] | None] = []
        for name in self._names:
            try:
                found = (self._settings.folder / name).stat()
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except OSError:
                stamps.append(None)
        return tuple(stamps)
