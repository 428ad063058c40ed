"""Settings checked key by key: a mistake is noted with its line, and checking goes on with the next key."""

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from armful import checks
from armful.campaigns.settings._toml_lines import KeyPath
from armful.campaigns.settings._toml_text import shown, toml_key, toml_string

T = TypeVar("T")
S = TypeVar("S")
LARGEST_WHOLE = 2**31 - 1


@dataclass(frozen=True)
class Check(Generic[T]):
    """What a value must be.

    expected: completes the sentence "k must be ...". convert: returns the value, or raises ValueError with a hint,
    which may be empty.
    """

    expected: str
    convert: Callable[[Any], T]


class Mistakes:
    """The mistakes found so far. sections: the keys of each table, to tell where a key belongs."""

    def __init__(self, lines: Mapping[KeyPath, int], sections: Mapping[str, Sequence[str]]) -> None:
        self._lines, self._sections = lines, sections
        self._found: list[tuple[int, str]] = []

    def add(self, path: KeyPath, sentence: str) -> None:
        """Note a mistake at the line of this path, or of the table that it would be in."""
        while path and path not in self._lines:
            path = path[:-1]
        self._found.append((self._lines.get(path, 1), sentence))

    def add_unknown(self, path: KeyPath, known: Sequence[str]) -> None:
        """Note a key that its table does not have, and say which one may be meant."""
        key = str(path[-1])
        owner = next((section for section, keys in self._sections.items() if key in keys), None)
        if meant := nearest(key, known):
            hint = f"did you mean {meant}?"
        elif owner is not None:
            hint = f"it belongs under [{owner}]" if owner else "it belongs above the first [table]"
        else:
            hint = f"known here: {', '.join(known)}"
        self.add(path, f"{dotted(path)} is not known; {hint}")

    @property
    def problems(self) -> list[str]:
        """A sentence for each mistake, in the order of the lines."""
        return [f"line {line}: {sentence}" for line, sentence in sorted(self._found, key=lambda each: each[0])]


class Section:
    """A table of the file. Values that are missing or wrong are noted, and a stand-in is returned for them."""

    def __init__(
        self, mistakes: Mistakes, table: Any, *, path: KeyPath = (), known: Sequence[str] | None = None
    ) -> None:
        self.mistakes, self.path, self.table = mistakes, path, _as_table(mistakes, table, path)
        for key in self.table:
            if known is not None and key not in known:
                mistakes.add_unknown((*path, key), known)

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def get(self, key: str, check: Check[T], default: T) -> T:
        """Return the checked value of a key that may be left out."""
        return self.checked((key,), self.table[key], check, default) if key in self.table else default

    def need(self, key: str, check: Check[T], stand_in: T) -> T:
        """Return the checked value of a key that must be there."""
        if key not in self.table:
            self.add((key,), f"is missing: it must be {check.expected}")
        return self.get(key, check, stand_in)

    def items(self, key: str, check: Check[T], like: str) -> list[tuple[int, T]]:
        """Return the elements of a list that pass the check, with their positions. like: an example of such a list."""
        values = self.table.get(key, [])
        if not isinstance(values, list):
            self.add((key,), f"must be a list like {like}, got {shown(values)}")
            return []
        found: list[tuple[int, T]] = []
        for i, value in enumerate(values):
            checked = self.checked((key, i), value, check, None)
            found += [] if checked is None else [(i, checked)]
        return found

    def section(self, key: str, known: Sequence[str] | None = None) -> "Section":
        """Return a table in this one; an empty one if it is not there."""
        return Section(self.mistakes, self.table.get(key, {}), path=(*self.path, key), known=known)

    def checked(self, path: KeyPath, value: Any, check: Check[T], stand_in: S) -> T | S:
        """Return a value below this table if it passes the check."""
        try:
            return check.convert(value)
        except ValueError as hint:
            more = f"; {hint}" if str(hint) else ""
            self.add(path, f"must be {check.expected}, got {shown(value)}{more}")
            return stand_in

    def add(self, path: KeyPath, sentence: str) -> None:
        """Note a mistake; the sentence goes on after the name of the key."""
        self.mistakes.add((*self.path, *path), f"{dotted((*self.path, *path))} {sentence}")


def _as_table(mistakes: Mistakes, table: Any, path: KeyPath) -> dict[str, Any]:
    if isinstance(table, dict):
        return table
    mistakes.add(path, f"{dotted(path)} must be a table, like [{dotted(path)}], got {shown(table)}")
    return {}


def dotted(path: KeyPath) -> str:
    """Return the name of a key with the tables that it is in; positions in lists are left out, since lines tell them.

    Examples
    --------
    >>> dotted(("choose", "quotas", 0, "at_least"))
    'choose.quotas.at_least'
    """
    return ".".join(toml_key(key) for key in path if isinstance(key, str))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like this one; None if none is like it.

    Examples
    --------
    >>> nearest("windw", ["reward", "window"])
    'window'
    """
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name, or nothing."""
    meant = nearest(name, known)
    return "" if meant is None else f"did you mean {toml_string(meant)}?"


def whole(minimum: int) -> Check[int]:
    """Return the check of a whole number."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError
        if value > LARGEST_WHOLE:
            raise ValueError(f"it must not exceed {LARGEST_WHOLE:,}")
        return value

    return Check(f"a whole number of at least {minimum}", convert)


def number(expected: str, allowed: Callable[[float], bool] | None = None) -> Check[float]:
    """Return the check of a finite number; whole ones are taken too."""

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > checks.LARGEST:
            raise ValueError
        if not math.isfinite(value) or (allowed is not None and not allowed(value)):
            raise ValueError
        return float(value)

    return Check(expected, convert)


def word(*allowed: str) -> Check[str]:
    """Return the check of a text that is one of a few."""

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        if value not in allowed:
            raise ValueError(did_you_mean(value, allowed))
        return value

    return Check(f"{'one of ' * (len(allowed) > 1)}{', '.join(map(toml_string, allowed))}", convert)


def text(expected: str = "a text in quotes") -> Check[str]:
    """Return the check of a text that is not empty."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise ValueError
        return value

    return Check(expected, convert)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


FLAG = Check("true or false", _flag)
COLUMN = text("the name of a column, in quotes")
SHARE = number("a share of at least 0 and below 1", lambda x: 0 <= x < 1)
