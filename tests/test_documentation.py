"""The checker of the documentation site finds what it is for, and the navigation names what is there."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("check_site", ROOT / "tools" / "check_site.py")
check_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_site)

HOME = '<nav><a href="page.html">page</a></nav>'


def problems(folder, *, home="", page='<h2 id="there">x</h2>', extra=(), names=()):
    (folder / "index.html").write_text(HOME + home)
    (folder / "page.html").write_text(page)
    for name, text in dict(extra).items():
        (folder / name).write_text(text)
    return check_site.problems_of(folder, list(names))


def test_a_site_in_order_has_no_problems(tmp_path):
    home = (
        '<a href="page.html#there">a</a><a href="https://example.org">b</a>'
        '<a href="https://github.com/armful/armful/blob/main/README.md">c</a><img src="data:image/png;base64,">'
    )
    assert problems(tmp_path, home=home, names=["there"]) == []


@pytest.mark.parametrize(
    ("home", "said"),
    [
        ('<a href="gone.html">x</a>', "dead link gone.html"),
        ('<a href="../outside.html">x</a>', "dead link ../outside.html"),
        ('<img src="gone.png">', "dead link gone.png"),
        ('<a href="page.html#gone">x</a>', "no anchor page.html#gone"),
        ('<a href="#gone">x</a>', "no anchor #gone"),
        ('<a href="https://github.com/armful/armful/blob/main/gone.py">x</a>', "no such file in the repository"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
        ('<a data-md-component="source" href="https://example.org">x</a>', "loads https://api.github.com"),
        ('<autoref identifier="armful.Gone">x</autoref>', "unresolved reference to armful.Gone"),
        ("<blockquote><blockquote><blockquote>x</blockquote></blockquote></blockquote>", "1 doctests outside"),
    ],
)
def test_what_is_wrong_on_a_page_is_found(tmp_path, home, said):
    (problem,) = problems(tmp_path, home=home)
    assert said in problem


def test_a_page_outside_the_navigation_is_found(tmp_path):
    assert problems(tmp_path, extra={"lost.html": ""}) == ["lost.html: not in the nav of mkdocs.yml"]


def test_a_style_or_a_script_that_loads_from_elsewhere_is_found(tmp_path):
    extra = {"a.css": "@import 'https://example.org/x.css'; b{background:url(//example.org/y.png)}"}
    extra["b.js"] = 'import("https://example.org/z.js"); // https://example.org/comment'
    assert [problem.split()[-1] for problem in problems(tmp_path, extra=extra)] == [
        "https://example.org/x.css",
        "//example.org/y.png",
        "https://example.org/z.js",
    ]


def test_a_dormant_feature_of_the_theme_counts_once_a_page_has_it(tmp_path):
    extra = {"bundle.js": 'load("https://unpkg.com/mermaid@1/x.js")'}
    assert problems(tmp_path, extra=extra) == []
    (problem,) = problems(tmp_path, home='<pre class="mermaid">x</pre>', extra=extra)
    assert "mermaid" in problem


def test_a_public_name_without_a_reference_is_found(tmp_path):
    assert problems(tmp_path, names=["armful.Gone"]) == ["armful.Gone is public and on no page of the reference"]


def test_the_navigation_names_every_page_and_every_example():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    examples = [f"gallery/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")]
    assert [page for page in [*pages, *examples] if f" {page}\n" not in nav] == []


def test_the_index_of_decisions_names_every_decision():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert [path.name for path in folder.glob("[0-9]*.md") if f"({path.name})" not in index] == []
