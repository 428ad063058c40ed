"""Processes that write at once, and are killed at any moment: see `writers.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

from armful.ledger import Ledger
from tests.ledger.power_cuts import integrity
from tests.ledger.writers import IDS, N_ARMS
from tests.postgresql import own_schema

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite'}"
        assert integrity(tmp_path / "ledger.sqlite") == "ok"
    else:
        with own_schema() as url:
            yield url


def acknowledged(url, folder, names, *, n_times, n_rounds):
    """Run the writers and return what was acknowledged: the keys of rounds, by "round", "half" and "all"."""
    file = folder / f"acknowledged by {names}"
    program = [sys.executable, "-m", "tests.ledger.writers", url, file, names, str(n_times), str(n_rounds)]
    subprocess.run(program, check=True, cwd=ROOT)
    lines = [line.split(" ", 1) for line in file.read_text().splitlines()]
    assert [line for line in lines if line[0] == "error"] == []
    return {kind: [key for what, key in lines if what == kind] for kind in ("round", "half", "all")}


def whole_rounds(url):
    """Return the number of rewards of each round by its key, after checks that nothing is half done or doubled."""
    with Ledger.open(url, "autumn") as ledger:
        rounds = ledger.rounds()
        assert [info.number for info in rounds] == list(range(1, len(rounds) + 1))
        found = {}
        for info in rounds:
            chosen, outcomes = ledger.chosen_and_outcomes(info.number)
            assert sorted(chosen.ids.tolist()) == sorted(IDS)
            assert not outcomes.corrected.any()
            found[info.key] = int((outcomes.rewards == 1.0).sum())
            assert found[info.key] in (0, N_ARMS // 2, N_ARMS)
        assert ledger.position() == sum(found.values())
        return found


@pytest.mark.slow
def test_what_was_acknowledged_is_there_though_every_writer_is_killed(url, tmp_path):
    said = acknowledged(url, tmp_path, "ab", n_times=40, n_rounds=0)
    found = whole_rounds(url)
    assert len(said["round"]) > 0, "every writer was killed before it wrote anything"
    assert set(said["round"]) <= set(found)
    assert all(found[key] >= N_ARMS // 2 for key in said["half"])
    assert all(found[key] == N_ARMS for key in said["all"])
    after = acknowledged(url, tmp_path, "yz", n_times=1, n_rounds=2)
    assert len(after["all"]) == 4, "the next processes do not work"
    assert len(whole_rounds(url)) == len(found) + 4


@pytest.mark.slow
def test_two_processes_at_once_lose_and_double_nothing(url, tmp_path):
    said = acknowledged(url, tmp_path, "ab", n_times=1, n_rounds=12)
    expected = {f"{writer}/{i}": N_ARMS for writer in ("a0", "b0") for i in range(12)}
    assert whole_rounds(url) == expected
    assert sorted(said["all"]) == sorted(expected)
