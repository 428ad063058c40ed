"""Pages run in a folder of their own, without a screen: nothing that they save or draw is left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):  # most pages draw nothing, and need no matplotlib
        pyplot.close("all")
        pyplot.rcdefaults()


@pytest.fixture(autouse=True)
def _no_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page that fails before it ends its service does not leave it running."""
    started = []

    class Watched(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    yield
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait()
