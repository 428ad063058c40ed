"""Where a campaign is: its settings, its store and its folder."""

import os
from pathlib import Path

from armful.campaigns.settings import Settings, parse_settings, read_settings
from armful.ledger import Ledger


def open_store(where: str | os.PathLike[str], name: str | None) -> tuple[Settings, Ledger, Path | None]:
    """Return the settings, the ledger and the folder of a campaign; arguments as for `Campaign.open`."""
    if "://" in str(where):
        ledger = Ledger.open(str(where), name or _only_campaign(str(where)))
        return parse_settings(ledger.settings, None, where=f"the settings of {ledger.name}"), ledger, None
    folder = Path(where)
    settings = read_settings(folder / "campaign.toml")
    return settings, Ledger.open(store_url(settings), settings.name, create=True, settings=settings.text), folder


def store_url(settings: Settings) -> str:
    """Return the URL of the store; a relative SQLite file is in the campaign's folder."""
    prefix = "sqlite:///"
    if settings.store.startswith(prefix):
        return prefix + str((settings.folder / settings.store.removeprefix(prefix)).resolve())
    return settings.store


def _only_campaign(url: str) -> str:
    names = Ledger.campaigns(url)
    if len(names) != 1:
        there = ", ".join(map(repr, names)) or "none"
        raise ValueError(f"give the name of the campaign, by name=...: the store has {there}")
    return names[0]
