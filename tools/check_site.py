"""Check the built documentation site; any finding is printed, and makes `make docs` fail.

    python tools/check_site.py site

- every link to a page, a file or an anchor of the site leads somewhere, and so do links to files of the repository;
- every page is in the navigation;
- nothing is loaded from another host: no script, style, font, image or frame;
- every reference to a name of armful is resolved, and doctests are in Examples sections, where they are shown as code;
- everything public is in the reference.
"""

import importlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
REPOSITORY = re.compile(r"https://github\.com/armful/armful/(?:blob|tree)/main/([^#?]*)")
PUBLIC = [
    "armful",
    "armful.campaigns",
    "armful.environments",
    "armful.experiments",
    "armful.ledger",
    "armful.testing",
    "armful.theory",
]
# What the theme's script would load for a feature, and the class of elements that have it: fine while no page does.
DORMANT = {
    "https://unpkg.com/mermaid": "mermaid",
    "https://unpkg.com/glightbox": "glightbox",
    "https://unpkg.com/pyodide": "pyodide",
    "https://cdn.jsdelivr.net/pyodide": "pyodide",
    "https://unpkg.com/ace-builds": "pyodide",
    "https://unpkg.com/resize-observer-polyfill": None,  # for browsers older than 2020
}
LOADED = {"script", "img", "iframe", "source", "video", "audio", "embed"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}


class Page(HTMLParser):
    """What a built page links to, loads, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.in_nav: list[str] = []
        self.unresolved: list[str] = []
        self.bare_doctests = 0
        self._quotes = 0
        self.classes: set[str] = set()
        self._nav_depth = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors.update(value for name, value in attributes.items() if name in ("id", "name"))
        self.classes.update(attributes.get("class", "").split())
        if attributes.get("data-md-component") == "source":
            self.loaded.append("https://api.github.com")  # the theme's script asks for the number of stars
        if tag == "nav":
            self._nav_depth += 1
        elif tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
            if self._nav_depth:
                self.in_nav.append(attributes["href"])
        elif tag == "autoref":
            self.unresolved.append(attributes.get("identifier", "?"))
        if tag == "blockquote":  # ">>>" outside an Examples section of a docstring is Markdown for three of them
            self._quotes += 1
            self.bare_doctests += self._quotes == 3
        if tag in LOADED and "src" in attributes:
            self.loaded.append(attributes["src"])
        if tag == "link" and LOADING_LINKS & set(attributes.get("rel", "").split()):
            self.loaded.append(attributes.get("href", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "nav":
            self._nav_depth -= 1
        elif tag == "blockquote":
            self._quotes -= 1


def elsewhere(address: str) -> bool:
    return address.startswith(("http://", "https://", "//"))


def foreign_resources(path: Path, text: str) -> list[str]:
    """Return what a style sheet or script would load from another host."""
    if path.suffix == ".css":
        found = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", text)
    else:
        calls = r"(?:importScripts|import|fetch|\.src\s*=|new Worker|new SharedWorker)"
        found = re.findall(calls + r"\s*\(?\s*[\"'`]((?:https?:)?//[^\"'`\s]+)", text)
        found += re.findall(r"https?://(?:unpkg\.com|cdn\.[\w.-]+|fonts\.[\w.-]+|cdnjs\.[\w.-]+)[^\"'`\s]*", text)
    return found


class Site:
    """A built site as a table of pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        files = sorted(path for path in self.folder.rglob("*.html") if path.name != "404.html")
        self.pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}

    def name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def target(self, path: Path, address: str) -> Path:
        """Return the file that a link on a page leads to."""
        local = unquote(urlsplit(address).path)
        found = (path.parent / local).resolve() if local else path
        return found / "index.html" if found.is_dir() else found

    def dead_links(self) -> list[str]:
        problems = []
        for path, page in self.pages.items():
            for address in sorted(set(page.links + page.loaded)):
                if match := REPOSITORY.match(address):
                    if not (ROOT / unquote(match[1])).exists():
                        problems.append(f"{self.name(path)}: no such file in the repository: {address}")
                elif not urlsplit(address).scheme and not address.startswith("//"):
                    target, anchor = self.target(path, address), unquote(urlsplit(address).fragment)
                    if not target.is_relative_to(self.folder) or not target.exists():
                        problems.append(f"{self.name(path)}: dead link {address}")
                    elif anchor and target in self.pages and anchor not in self.pages[target].anchors:
                        problems.append(f"{self.name(path)}: no anchor {address}")
        return problems

    def outside_nav(self) -> list[str]:
        home = self.folder / "index.html"
        named = {self.target(home, address) for address in self.pages[home].in_nav if not elsewhere(address)}
        return [f"{self.name(path)}: not in the nav of mkdocs.yml" for path in self.pages if path not in named | {home}]

    def loaded_from_elsewhere(self) -> list[str]:
        problems = [
            f"{self.name(path)}: loads {address}"
            for path, page in self.pages.items()
            for address in page.loaded
            if elsewhere(address)
        ]
        used = {name for page in self.pages.values() for name in page.classes}
        for path in sorted([*self.folder.rglob("*.css"), *self.folder.rglob("*.js")]):
            for address in foreign_resources(path, path.read_text(encoding="utf-8")):
                dormant = [name for start, name in DORMANT.items() if address.startswith(start)]
                if not dormant or dormant[0] in used:
                    problems.append(f"{self.name(path)}: loads {address}")
        return problems

    def unresolved(self) -> list[str]:
        return [
            f"{self.name(path)}: unresolved reference to {name}"
            for path, page in self.pages.items()
            for name in page.unresolved
            if name.startswith("armful")
        ]

    def bare_doctests(self) -> list[str]:
        return [
            f"{self.name(path)}: {page.bare_doctests} doctests outside an Examples section of their docstrings"
            for path, page in self.pages.items()
            if page.bare_doctests
        ]

    def missing_reference(self, names: list[str]) -> list[str]:
        there = {anchor for page in self.pages.values() for anchor in page.anchors}
        return [f"{name} is public and on no page of the reference" for name in names if name not in there]


def public_names() -> list[str]:
    """Return the full name of everything that armful and its public modules export, but for modules."""
    modules = {name: importlib.import_module(name) for name in PUBLIC}
    return [
        f"{module}.{name}"
        for module, content in modules.items()
        for name in content.__all__
        if f"{module}.{name}" not in modules
    ]


def problems_of(folder: Path, names: list[str]) -> list[str]:
    """Return everything that is wrong with the site in a folder."""
    site = Site(folder)
    return [
        *site.dead_links(),
        *site.outside_nav(),
        *site.loaded_from_elsewhere(),
        *site.unresolved(),
        *site.bare_doctests(),
        *site.missing_reference(names),
    ]


if __name__ == "__main__":
    found = problems_of(Path(sys.argv[1]), public_names())
    for problem in found:
        print(problem)
    sys.exit(f"{len(found)} problems" if found else None)
