"""Self-contained HTML pages: one file, nothing fetched from anywhere."""

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from armful.experiments._pairs import Difference

STYLE = "\n" + Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def heading(text: str) -> str:
    """Return the title of a section."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text, or a "note" or "warning"; what stands between backquotes is code."""
    return f"<p{kind and f' class={kind}'}>{_inline(text)}</p>"


def lead(words: str, text: str) -> str:
    """Return a paragraph that begins with a few words in bold."""
    return f"<p><strong>{escape(words)}</strong> {_inline(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """Return a list of sentences."""
    return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; all but the first column are numbers. A wide one scrolls within the page."""
    head = "".join(f"<th>{_inline(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    content = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{content}</table></div>'


def image(path: Path, caption: str) -> str:
    """Return an SVG file with its caption, embedded."""
    data = base64.b64encode(path.read_bytes()).decode()
    picture = f'<img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{picture}<figcaption>{_inline(caption)}</figcaption></figure>"


def plus_minus(mean: float, stderr: float) -> str:
    """Return a mean with its standard error, to the digits that the error leaves."""
    if math.isnan(stderr):
        return f"{mean:,.1f}"
    digits = 1 if stderr < 9.95 else 0
    return f"{mean:,.{digits}f} ± {stderr:,.{digits}f}"


def interval(difference: Difference) -> str:
    """Return a difference with the ends of its interval, to the digits that its width leaves."""
    if not math.isfinite(difference.half_width):
        return f"{difference.mean:+,.1f}"
    digits = 1 if difference.half_width < 9.95 else 0
    mean, low, high = (f"{value:+,.{digits}f}" for value in (difference.mean, difference.low, difference.high))
    return f"{mean} ({low} to {high})"


def joined(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> joined(["one"]), joined(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def code(name: str) -> str:
    """Return a name marked as code, whatever is in it."""
    return f"`{plain(name)}`"


def plain(text: str) -> str:
    """Return text in which a backquote is no mark-up."""
    return text.replace("`", _BACKQUOTE)


_BACKQUOTE = "\0"
"""Stands for a backquote that is no mark-up."""


def _inline(text: str) -> str:
    parts = escape(text).split("`")
    html = "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
    return html.replace(_BACKQUOTE, "`")
