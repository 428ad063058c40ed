"""Values and keys as TOML writes them."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PASSWORD = re.compile(r"(://[^:/]*):.*@")
_LONGEST_SHOWN = 60


def toml_string(text: str) -> str:
    r"""Return a text in quotes; whatever cannot be printed is escaped.

    Examples
    --------
    >>> print(toml_string('say "hi"'), toml_string("two\nlines"))
    "say \"hi\"" "two\u000Alines"
    """
    return '"' + "".join(map(_escaped, text)) + '"'


def toml_key(name: str) -> str:
    """Return a key, in quotes where it needs them.

    Examples
    --------
    >>> print(toml_key("age"), toml_key("e.mail"))
    age "e.mail"
    """
    return name if _BARE_KEY.fullmatch(name) else toml_string(name)


def toml_list(texts: Iterable[str]) -> str:
    """Return a list of texts on one line.

    Examples
    --------
    >>> print(toml_list(["a", "b"]))
    ["a", "b"]
    """
    return f"[{', '.join(map(toml_string, texts))}]"


def shown(value: Any) -> str:
    """Return a value for an error message: shortened where it is long, and without the password of a URL.

    Examples
    --------
    >>> shown(True), shown("x"), shown(0.5), shown([1, 2]), shown({"a": 1})
    ('true', '"x"', '0.5', 'a list', 'a table')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        value = without_password(value)
        return toml_string(value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}...")
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of very many digits"
    if isinstance(value, int | float | date | time):
        return str(value)
    return "a table" if isinstance(value, Mapping) else "a list"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def without_password(text: str) -> str:
    """Return a text in which the password of a URL is not shown.

    Examples
    --------
    >>> without_password("postgresql://ann:secret@host/database")
    'postgresql://ann:***@host/database'
    """
    return _PASSWORD.sub(r"\1:***@", text)
