"""The settings of a campaign, as `campaign.toml` states them."""

import re
import tomllib
from pathlib import Path

from armful.campaigns.settings._amounts import duration
from armful.campaigns.settings._checking import Mistakes, Section, nearest
from armful.campaigns.settings._parsing import SECTIONS, parse_root
from armful.campaigns.settings._parsing_service import unservable
from armful.campaigns.settings._quotas import QuotaSettings
from armful.campaigns.settings._sections import (
    BudgetSettings,
    ChooseSettings,
    ColumnSettings,
    FeatureSettings,
    HoldoutSettings,
    LearningSettings,
    OutcomeSettings,
    PolicySettings,
    ServiceSettings,
    Settings,
)
from armful.campaigns.settings._toml_lines import key_lines
from armful.errors import SettingsError

__all__ = [
    "BudgetSettings",
    "ChooseSettings",
    "ColumnSettings",
    "FeatureSettings",
    "HoldoutSettings",
    "LearningSettings",
    "OutcomeSettings",
    "PolicySettings",
    "QuotaSettings",
    "ServiceSettings",
    "Settings",
    "duration",
    "parse_settings",
    "read_settings",
    "unservable",
]

FILE_NAME = "campaign.toml"


def read_settings(path: Path | str) -> Settings:
    """Return the settings in a file.

    Parameters
    ----------
    path : Path or str
        `campaign.toml`, or the folder that it is in.

    Returns
    -------
    Settings

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    SettingsError
        If it has mistakes; all of them are listed with their lines.
    """
    path = Path(path)
    if path.is_dir():
        path = path / FILE_NAME
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):  # the second where a file stands for the folder, but on Windows
        if path.parent.is_file():
            raise NotADirectoryError(f"{path.parent} is a file, expected the folder of a campaign") from None
        others = [file.parent.name for file in path.parent.parent.glob(f"*/{FILE_NAME}")]
        meant = nearest(path.parent.name, others)
        hint = "" if meant is None else f"did you mean {path.parent.with_name(meant)}? "
        raise FileNotFoundError(
            f"{path} does not exist; {hint}`armful init {path.parent} --from customers.csv` writes one (with --kind "
            "service, one to serve)"
        ) from None
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"  # Windows' PowerShell writes UTF-16
    try:
        return parse_settings(data.decode(encoding), path.parent, where=str(path))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SettingsError(str(path), [f"line {line}: this is not UTF-8; save the file as UTF-8"]) from None


def parse_settings(text: str, folder: Path | str | None, *, where: str = FILE_NAME) -> Settings:
    r"""Return the settings in the text of a `campaign.toml`.

    Parameters
    ----------
    text : str
        TOML; a byte order mark is ignored.
    folder : Path, str or None
        The folder that files in the settings are relative to. None if it is not known, as for settings kept in a
        store; then files need not exist.
    where : str, default "campaign.toml"
        What the text is called in errors.

    Returns
    -------
    Settings

    Raises
    ------
    SettingsError
        If it has mistakes; all of them are listed with their lines.

    Examples
    --------
    >>> parse_settings("name = 'autumn'\nchoose.k = 0\npolicy.cap = 1", ".")
    Traceback (most recent call last):
    armful.errors.SettingsError: campaign.toml has 4 mistakes:
      line 1: id is missing: it must be the name of a column, in quotes
      line 1: outcomes.reward is missing: it must be the name of a column, in quotes
      line 1: features.columns is missing: it must be a table with a line for each column, like age = ...
      line 2: choose.k must be a whole number of at least 1, got 0
    """
    folder, text = None if folder is None else Path(folder), text.removeprefix("\ufeff")
    try:
        tables = tomllib.loads(text)
        mistakes = Mistakes(key_lines(text), SECTIONS)
    except RecursionError:
        raise SettingsError(where, ["line 1: tables and lists are nested too deeply"]) from None
    except ValueError as error:  # not TOML, or a number of too many digits
        raise SettingsError(where, [_syntax_mistake(text, str(error))]) from None
    settings = parse_root(Section(mistakes, tables, known=SECTIONS[""]), folder, text)
    if mistakes.problems:
        raise SettingsError(where, mistakes.problems)
    return settings


def _syntax_mistake(text: str, message: str) -> str:
    """Return what `tomllib` says, with the line in front and a hint where the usual reason is known."""
    lines = text.split("\n")
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    reason, line = (found[1], int(found[2])) if found else (message.removesuffix(" (at end of document)"), len(lines))
    hint = ""
    if "\\" in lines[line - 1]:
        hint = "; write / instead of \\, or put the text in single quotes"
    elif reason == "Invalid value":
        hint = "; texts need quotes"
    elif re.search(r"=\s*[+-]?\d+,\d", lines[line - 1]):
        hint = "; write decimals with a point"
    elif re.search(r"=\s*[\d.]+\s*%", lines[line - 1]):
        hint = "; write 20 % as 0.2"
    elif reason.startswith("Cannot"):
        hint = "; it is already there in a line above"
    return f"line {line}: this is not TOML: {reason[0].lower()}{reason[1:]}{hint}"
