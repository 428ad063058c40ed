"""Run the tutorials and keep the pictures that their code draws: `make tutorials`.

A page saves its picture as NAME.png into the folder where it runs. Here that is a temporary one, and the picture is
copied to docs/tutorials/images/ if every result of the page came out as written. The picture carries a digest of the
code that drew it, so that tests/test_tutorials.py notices when a page was changed and its picture was not drawn anew.
"""

import argparse
import contextlib
import doctest
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"
IMAGES = PAGES / "images"
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS  # those of pyproject.toml
DIGEST = "Code digest"


def digest(page: Path) -> str:
    """Return what identifies the code of a page, whatever the text around it says."""
    examples = doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8"))
    return hashlib.sha256("".join(example.source for example in examples).encode()).hexdigest()[:16]


def digest_of_picture(path: Path) -> str | None:
    """Return the digest of the code that drew a picture, if it carries one."""
    from PIL import Image  # noqa: PLC0415, it comes with matplotlib

    with Image.open(path) as picture:
        return picture.info.get(DIGEST)


def draw(page: Path) -> list[Path]:
    """Run a page, copy its pictures to `IMAGES`, and return their paths."""
    import matplotlib  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415
    from PIL.PngImagePlugin import PngInfo  # noqa: PLC0415

    matplotlib.use("Agg")
    about = PngInfo()
    about.add_text(DIGEST, digest(page))
    with tempfile.TemporaryDirectory() as folder, _working_in(folder), matplotlib.rc_context():
        failures, _ = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8")
        if failures:
            sys.exit(f"{page.name} gave other results than it says; its pictures stay as they were")
        pictures = sorted(Path().glob("*.png"))
        for picture in pictures:
            with Image.open(picture) as drawn:
                drawn.convert("RGB").save(IMAGES / picture.name, pnginfo=about, optimize=True)
    return [IMAGES / picture.name for picture in pictures]


@contextlib.contextmanager
def _working_in(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the tutorials and keep the pictures that their code draws.")
    parser.add_argument("pages", nargs="*", type=Path, help="pages to run; all of docs/tutorials if none are named")
    for page in parser.parse_args().pages or sorted(PAGES.glob("*.md")):
        for path in draw(page.resolve()):
            print(path)
