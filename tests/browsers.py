"""Chromium for tests: where it is, what is said where there is none, and how it starts."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOW = "install Chromium (Debian and Ubuntu: apt-get install chromium) to run them"
PATIENCE_MS = 120_000


def chromium() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def is_required() -> bool:
    """Whether tests that need a browser fail without one, instead of being left out."""
    return os.environ.get("ARMFUL_BROWSER_TESTS") == "required"


@contextmanager
def launched() -> "Iterator[Browser]":
    """Start Chromium; raise AssertionError where there is none."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - every run of the tests imports this module

    found = chromium()
    assert found is not None, f"a browser is needed and there is no Chromium: {HOW}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_flags(), timeout=PATIENCE_MS)
        yield browser
        browser.close()


def _flags() -> list[str]:
    """Flags with which Chromium starts in a container too, and asks nothing of other hosts."""
    root = sys.platform != "win32" and os.geteuid() == 0
    return ["--disable-background-networking", "--disable-component-update", *(["--no-sandbox"] if root else [])]
