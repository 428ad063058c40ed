"""Names that mean something to a terminal or to a figure, and disks that are full."""

import errno
import subprocess
import sys
from dataclasses import replace

import pytest

from armful.experiments import Recipe, run_cells
from armful.experiments._comparison import write
from armful.files import _atomic_file as atomic_file
from tests.experiments.test_plan import TINY

ODD = ["[/bold] x", "[red]y[/red]", r"$\frac$", "$a$ `b`", "<i>&amp;", "#_%", "[link=x]"]


@pytest.mark.slow
def test_names_survive_the_terminal_the_figure_and_the_page(tmp_path):
    policies = "".join(f"[policies.'{name}']\nclass = 'EpsilonGreedy'\nepsilon = 0.{i}\n" for i, name in enumerate(ODD))
    (tmp_path / "plan.toml").write_text(
        "runs = 3\nsizes = [{ k = 2, rounds = 4 }]\n"
        f"{policies}[environments.'[/town] $x_$']\nclass = 'Slates'\nn_arms = 5\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "armful", "compare", "plan.toml", "--workers", "1", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[/town] $x_$, [link=x], k = 2" in " ".join(done.stderr.split())  # the last that was run


def test_names_with_dollars_and_brackets_are_drawn_as_they_are(tmp_path):
    plan = replace(
        TINY,
        policies={name: Recipe("EpsilonGreedy", {"epsilon": i / 10}) for i, name in enumerate(ODD)},
        environments={"[/town] $x_$": TINY.environments["slates"]},
    )
    page = write(plan, run_cells(plan.cells(), tmp_path / "cells"), tmp_path).read_text(encoding="utf-8")
    for name in ("[/bold] x", "[red]y[/red]", r"$\frac$", "$a$ `b`", "&lt;i&gt;&amp;amp;", "#_%", "[/town] $x_$"):
        assert name in page


def no_room(self, data):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_names_the_cell_and_its_true_size(tmp_path, monkeypatch):
    cell = TINY.cells()[0]
    path = tmp_path / f"{cell.key()}.json"
    sizes = []

    def no_room_for(self, data):
        sizes.append(len(data))
        no_room(self, data)

    monkeypatch.setattr(atomic_file.PartFile, "write", no_room_for)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run_cells([cell], tmp_path)
    assert str(caught.value).startswith(f"{path} could not be written")
    assert f"it needs at least {sizes[0]} bytes" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["results.csv", "results.parquet", "figure-slates.png", "report.html"])
def test_a_full_disk_names_every_other_file_too(tmp_path, monkeypatch, name):
    results = run_cells(TINY.cells(), tmp_path / "cells")
    begin = atomic_file.write_bytes

    def full_for_one(path, data):
        if path.name == name:
            monkeypatch.setattr(atomic_file.PartFile, "write", no_room)
        begin(path, data)

    for module in ("results", "_figures", "_comparison"):
        monkeypatch.setattr(f"armful.experiments.{module}.write_bytes", full_for_one)
    with pytest.raises(OSError, match=rf"{name} could not be written: No space left on device; it needs at least \d"):
        write(TINY, results, tmp_path)
