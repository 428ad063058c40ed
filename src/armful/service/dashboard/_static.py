"""The files of the pages: our own, and plotly.js from its Python package."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from armful import __version__

FOLDER = Path(__file__).with_name("static")
PLOTLY = "plotly.min.js"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

# plotly.js brings a style sheet for maps and adds it unless an element with this id is there.
MAP_STYLE_ID = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent.

    Attributes
    ----------
    body : bytes
    content_type : str
    lasting : bool
        Whether its address changes with its content, so that a browser may keep it for ever.
    """

    body: bytes
    content_type: str
    lasting: bool = False

    @cached_property
    def compressed(self) -> bytes:
        """The body, compressed by gzip."""
        return gzip.compress(self.body, compresslevel=6, mtime=0)

    @cached_property
    def etag(self) -> str:
        """A name for this content."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


def plotly_path() -> Path:
    """Return where plotly.js is, without importing plotly."""
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("the dashboard needs plotly: pip install 'armful[serve]'")
    return Path(found.submodule_search_locations[0]) / "package_data" / PLOTLY


def static_file(name: str) -> StaticFile | None:
    """Return a file by its name; None if there is none of that name."""
    return _read(name) if name in _names() else None


@cache
def _names() -> frozenset[str]:
    """Return the names of all files that are sent: what else anybody asks for is neither looked up nor remembered."""
    own = (path for path in FOLDER.iterdir() if path.suffix in TYPES and path.suffix != ".html")
    return frozenset([PLOTLY, *(path.name for path in own)])


@cache
def _read(name: str) -> StaticFile:
    if name == PLOTLY:
        return StaticFile(plotly_path().read_bytes(), TYPES[".js"], lasting=True)
    path = FOLDER / name
    return StaticFile(path.read_bytes(), TYPES[path.suffix])


@cache
def page(name: str) -> StaticFile:
    """Return a page, with the versions of armful and plotly in it."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if "{plotly}" in text:
        ids = sorted(set(MAP_STYLE_ID.findall(plotly_path().read_bytes())))
        text = text.replace("{map-styles}", "".join(f'<meta id="{each.decode()}">' for each in ids))
        text = text.replace("{plotly}", version("plotly"))
    return StaticFile(text.replace("{version}", __version__).encode(), TYPES[".html"])
