"""What a check returns, and how its numbers are written."""

from dataclasses import dataclass
from typing import Literal

from armful.campaigns._results import Result

Level = Literal["fine", "look", "problem"]


@dataclass(frozen=True, kw_only=True)
class Finding(Result):
    """What one check of an audit found.

    Attributes
    ----------
    name : str
        What was checked: `cap`, `shocks`, `drift`, `shape`, `radius`, `delays` or `leakage`; `silence` for a service to
        which no reward has come.
    level : {"fine", "look", "problem"}
        Whether there is nothing to do, something to look at, or something to repair.
    sentence : str
        What was checked, and the numbers.
    consequence : str
        What it means for the campaign; empty if there is nothing to do.
    repair : str
        The setting of `campaign.toml` that repairs it; empty if there is nothing to do.
    checked : bool
        Whether there were enough outcomes to check. If not, the level is `fine` and the sentence says what is missing.
    """

    name: str
    level: Level
    sentence: str
    consequence: str = ""
    repair: str = ""
    checked: bool = True


def fine(name: str, sentence: str) -> Finding:
    """Return a finding that nothing needs to be done."""
    return Finding(name=name, level="fine", sentence=sentence)


def not_checked(name: str, sentence: str) -> Finding:
    """Return a finding that there is not enough to look at."""
    return Finding(name=name, level="fine", sentence=sentence, checked=False)


def quoted(name: str) -> str:
    """Return a name of the user's, marked as code; backquotes in it would end the mark.

    Examples
    --------
    >>> quoted("job: clerk")
    '`job: clerk`'
    """
    return "`" + name.replace("`", "'") + "`"


def number(value: float) -> str:
    """Return a number to three digits, without an exponent where it can be read without.

    Examples
    --------
    >>> number(0.012345), number(1234567.0), number(-3.0), number(2.5e-9)
    ('0.0123', '1,230,000', '-3', '2.5e-09')
    """
    rounded = float(f"{value:.3g}")
    if rounded != 0 and not 1e-5 <= abs(rounded) < 1e15:
        return f"{rounded:g}"
    text = f"{rounded:,.8f}".rstrip("0").rstrip(".")
    return text if text not in ("-0", "") else "0"


def signed(value: float) -> str:
    """Return a number to three digits with its sign.

    Examples
    --------
    >>> signed(0.5), signed(-0.25)
    ('+0.5', '-0.25')
    """
    return ("+" if value >= 0 else "") + number(value)


def percent(share: float) -> str:
    """Return a share in per cent, to two digits.

    Examples
    --------
    >>> percent(0.123), percent(0.004), percent(1.0), percent(0.00004)
    ('12 %', '0.4 %', '100 %', '0.004 %')
    """
    return f"{number(float(f'{100 * share:.2g}'))} %"
