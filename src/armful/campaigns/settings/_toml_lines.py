"""The line of every key of a TOML file, which `tomllib` does not tell."""

import re
import tomllib
from bisect import bisect_left

KeyPath = tuple[str | int, ...]
"""Where a value is: keys of tables, and positions in arrays."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[\w-]+')
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_ATOM = re.compile(r"[^,\]}#\r\n]+")
"""A number, a boolean or a date, with the blanks behind it."""


def key_lines(text: str) -> dict[KeyPath, int]:
    r"""Return the line of every table, key and array element of a valid TOML text, counted from 1.

    A table that is not declared itself has the line of the first key or table in it.

    Parameters
    ----------
    text : str
        It must be valid: `tomllib` parsed it.

    Returns
    -------
    dict of tuple to int

    Examples
    --------
    >>> key_lines("name = 'autumn'\n[choose]\nk = 5\nexclude = [\n  'a.csv',\n]")
    {('name',): 1, ('choose',): 2, ('choose', 'k'): 3, ('choose', 'exclude'): 4, ('choose', 'exclude', 0): 5}
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    """Walks through the text once; it trusts that the text is valid."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[KeyPath, int] = {}
        self.array_sizes: dict[KeyPath, int] = {}  # of [[arrays of tables]]
        self.line_ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        table: KeyPath = ()
        while self.skip_blanks() < len(self.text):
            line = self.line
            if self.eat("[["):
                *parents, last = self.key()
                array = (*self.last_elements(parents, line), last)
                self.lines.setdefault(array, line)
                table = (*array, self.array_sizes.get(array, 0))
                self.array_sizes[array] = self.array_sizes.get(array, 0) + 1
                self.lines[table] = line
                self.eat("]]")
            elif self.eat("["):
                table = self.last_elements(self.key(), line)
                self.lines[table] = line
                self.eat("]")
            else:
                self.pair(table)

    def last_elements(self, keys: list[str], line: int) -> KeyPath:
        """Return the path that a header names: an array of tables stands for its last element."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self.array_sizes:
                path = (*path, self.array_sizes[path] - 1)
        return path

    def pair(self, table: KeyPath) -> None:
        line, path = self.line, table
        for key in self.key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.eat("=")
        self.value(path)

    def key(self) -> list[str]:
        """Read a key with its dots."""
        keys = [self.simple_key()]
        while self.eat("."):
            keys.append(self.simple_key())
        return keys

    def simple_key(self) -> str:
        self.skip_blanks()
        word = self.read(_KEY)
        return tomllib.loads(f"key = {word}")["key"] if word[0] in "\"'" else word

    def value(self, path: KeyPath) -> None:
        self.skip_blanks()
        if self.eat("["):
            position = 0
            while not self.eat("]"):
                self.lines[(*path, position)] = self.line
                self.value((*path, position))
                self.eat(",")
                position += 1
        elif self.eat("{"):
            while not self.eat("}"):
                self.pair(path)
                self.eat(",")
        elif self.text[self.at] in "\"'":
            self.read(_STRING)
        else:
            self.read(_ATOM)

    @property
    def line(self) -> int:
        return bisect_left(self.line_ends, self.at) + 1

    def skip_blanks(self) -> int:
        """Go on behind blanks, ends of lines and comments, and return the new position."""
        self.read(_BLANK)
        return self.at

    def eat(self, mark: str) -> bool:
        """Return whether the mark comes next, and go on behind it and the blanks after it."""
        self.skip_blanks()
        found = self.text.startswith(mark, self.at)
        if found:
            self.at += len(mark)
            self.skip_blanks()
        return found

    def read(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"expected valid TOML, got {self.text[self.at : self.at + 20]!r} in line {self.line}")
        self.at = match.end()
        return match[0]
