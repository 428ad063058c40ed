"""The folder and the file of a new campaign: made whole, or not at all."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from armful.campaigns._results import Result
from armful.campaigns.settings import FILE_NAME
from armful.errors import with_message
from armful.files._atomic_file import write_bytes


@dataclass(frozen=True, kw_only=True)
class InitResult(Result):
    """A new campaign.

    Attributes
    ----------
    path : Path
        The settings that were written.
    explanations : list of str
        What was guessed and why, a line each.
    questions : list of str
        What the user should decide, a line each.
    """

    path: Path
    explanations: list[str]
    questions: list[str]


def new_folder(folder: Path | str) -> Path:
    """Return the folder of a new campaign; raise ValueError for an empty name, which would be the current folder."""
    if not str(folder).strip():
        raise ValueError('the folder of a campaign needs a name, got an empty one; "." is the current folder')
    return Path(folder)


def new_settings(folder: Path) -> Path:
    """Return where the settings of a new campaign go; raise FileExistsError if something is there already."""
    path = folder / FILE_NAME
    if os.path.lexists(path):
        raise FileExistsError(f"{path} is there already, and it is not overwritten: edit it, or give another folder")
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and a campaign needs a folder: give another name")
    return path


def name_of(folder: Path) -> str:
    name = Path(os.path.abspath(folder)).name
    return name if name.strip() and name.isprintable() and len(name) <= 200 else "campaign"


def relative(source: Path, folder: Path) -> str:
    """Return the file as seen from the folder; as it is if it is absolute."""
    if source.is_absolute():
        return source.as_posix()
    there = Path(os.path.realpath(source.parent)) / source.name
    try:
        return Path(os.path.relpath(there, os.path.realpath(folder))).as_posix()
    except ValueError:  # on another drive of Windows
        return there.as_posix()


def write_settings(folder: Path, path: Path, text: str) -> None:
    """Make the folder and write the file; on failure nothing is left."""
    is_new = not folder.is_dir()
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise with_message(error, f"there is no folder {folder.parent} to make {folder.name} in") from None
    except PermissionError as error:
        raise with_message(error, f"no permission to make {folder}: give another folder") from None
    created = False
    try:
        with suppress(PermissionError):  # write_bytes says it in a sentence
            path.open("xb").close()  # so that of two commands at once only one goes on
            created = True
        write_bytes(path, text.encode())
    except BaseException as error:
        if created:
            with suppress(OSError):
                path.unlink()
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, FileExistsError):
            raise FileExistsError(f"{path} is there already, and it is not overwritten") from None
        raise
