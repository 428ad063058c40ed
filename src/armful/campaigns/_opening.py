"""Where a campaign is: its settings, its store and its folder."""

import os
from pathlib import Path

from armful.campaigns.rounds._lists import ROUNDS, remove_parts
from armful.campaigns.rounds._workspace import remove_abandoned
from armful.campaigns.settings import FILE_NAME, Settings, parse_settings, read_settings
from armful.errors import LedgerError
from armful.ledger import Ledger

SQLITE = "sqlite:///"


def open_store(
    where: str | os.PathLike[str], name: str | None, settings: Settings | None
) -> tuple[Settings, Ledger, Path | None]:
    """Return the settings, the ledger and the folder of a campaign; arguments as for `Campaign.open`."""
    if "://" in str(where):
        ledger = Ledger.open(str(where), name or _only_campaign(str(where)))
        settings = settings or parse_settings(ledger.settings, None, where=f"the settings of {ledger.name}")
        return settings, ledger, None
    folder = Path(where)
    if folder.name == FILE_NAME and folder.is_file():
        folder = folder.parent
    settings = settings or read_settings(folder / FILE_NAME)
    refuse_other_name(folder, settings, name)
    remove_abandoned(folder)
    remove_parts(folder)
    return settings, _open_ledger(settings, folder), folder


def refuse_other_name(folder: Path, settings: Settings, name: str | None) -> None:
    """Raise an error if a name is given and is not that of the folder's campaign."""
    if name not in (None, settings.name):
        raise ValueError(f"{folder} holds the campaign {settings.name!r}, not {name!r}: leave the name out")


def _open_ledger(settings: Settings, folder: Path) -> Ledger:
    """Open the ledger; begin it if the folder holds no lists yet: they belong to a campaign that has been begun."""
    url, lists = store_url(settings), folder / ROUNDS
    if not lists.exists():
        return Ledger.open(url, settings.name, create=True, settings=settings.text)
    try:
        return Ledger.open(url, settings.name)
    except LedgerError:
        names = _names(url)
        if settings.name in names:
            raise
        there = f"has the campaign {', '.join(map(repr, names))}" if names else "has no campaign"
        raise LedgerError(
            f"{lists} holds the lists of a campaign, and the store of campaign.toml {there}, not {settings.name!r}: "
            "set name and store back to what they were (the holdout depends on the name), or move the lists away to "
            "begin anew"
        ) from None


def _names(url: str) -> list[str]:
    """Return the campaigns in a store; none if it is a file that does not exist."""
    file = url.removeprefix(SQLITE)
    return [] if file != url and not Path(file).exists() else Ledger.campaigns(url)


def store_url(settings: Settings) -> str:
    """Return the URL of the store; a relative SQLite file is in the campaign's folder."""
    if settings.store.startswith(SQLITE):
        return SQLITE + str((settings.folder / settings.store.removeprefix(SQLITE)).resolve())
    return settings.store


def _only_campaign(url: str) -> str:
    names = Ledger.campaigns(url)
    if len(names) != 1:
        there = ", ".join(map(repr, names)) or "none"
        raise ValueError(f"give the name of the campaign (name=..., or --campaign in a command): the store has {there}")
    return names[0]
