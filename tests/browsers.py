"""Chromium for tests: where it is, and what is said where there is none."""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOW = "install Chromium (Debian and Ubuntu: apt-get install chromium) to run them"


def chromium() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def is_required() -> bool:
    """Whether tests that need a browser fail without one, instead of being left out."""
    return os.environ.get("ARMFUL_BROWSER_TESTS") == "required"


def flags() -> list[str]:
    """Flags with which Chromium starts in a container too, and asks nothing of other hosts."""
    root = sys.platform != "win32" and os.geteuid() == 0
    return ["--disable-background-networking", "--disable-component-update", *(["--no-sandbox"] if root else [])]
