"""The pictures of the tutorials are those that their pages draw."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))

spec = importlib.util.spec_from_file_location("draw_tutorials", DOCS.parent / "tools" / "draw_tutorials.py")
draw_tutorials = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw_tutorials)


def pictures_of(page: Path) -> list[Path]:
    return [page.parent / name for name in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_pictures_drawn_by_the_code_that_it_has_now(page):
    assert pictures_of(page), f"{page.name} shows no picture"
    for picture in pictures_of(page):
        assert draw_tutorials.digest_of_picture(picture) == draw_tutorials.digest(page), (
            f"{picture.name} was drawn by other code than {page.name} has now: run `make tutorials`"
        )


def test_no_picture_is_left_over():
    shown = {picture.name for page in PAGES for picture in pictures_of(page)}
    assert {path.name for path in (DOCS / "tutorials" / "images").iterdir()} == shown


def test_the_digest_goes_by_code_and_not_by_text(tmp_path):
    one, other, third = (tmp_path / name for name in ("one.md", "other.md", "third.md"))
    one.write_text("Two.\n\n>>> 1 + 1\n2\n")
    other.write_text("Twice one.\n\n>>> 1 + 1\n2\n")
    third.write_text("Two.\n\n>>> 2 + 0\n2\n")
    assert draw_tutorials.digest(one) == draw_tutorials.digest(other) != draw_tutorials.digest(third)
