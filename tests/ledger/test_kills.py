"""Processes that write at once, and are killed at any moment: see `writers.py`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armful.ledger import Ledger
from tests.ledger.power_cuts import integrity
from tests.ledger.writers import IDS, N_ARMS, SLATE
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


def acknowledged(url, folder, names, *, n_times, n_rounds, kind="rounds"):
    """Run the writers and return what was acknowledged: lists by the word that a line begins with."""
    file = folder / f"acknowledged by {names}"
    program = [sys.executable, "-m", "tests.ledger.writers", url, file, names, str(n_times), str(n_rounds), kind]
    subprocess.run(program, check=True, cwd=ROOT)
    lines = [line.split(" ", 1) for line in file.read_text().splitlines()]
    assert [line for line in lines if line[0] == "error"] == []
    words = ("round", "half", "all") if kind == "rounds" else ("decided", "rewarded")
    return {word: [key for what, key in lines if what == word] for word in words}


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


# -- decisions ---------------------------------------------------------------------------------------


def whole_decisions(url):
    """Return number and number of rewards of each decision by its key, after checks that nothing is half done."""
    with Ledger.open(url, "autumn") as ledger:
        block = ledger.block(1, ledger.last_number())
        assert block.numbers.tolist() == list(range(1, len(block) + 1))
        assert sorted(zip(block.of_round.tolist(), block.ids.tolist(), strict=True)) == [
            (i, arm) for i in range(len(block)) for arm in sorted(SLATE)
        ]
        assert not block.corrected.any()
        n_rewards = np.bincount(block.of_round, block.rewards == 1.0, minlength=len(block)).astype(int).tolist()
        assert set(n_rewards) <= {0, len(SLATE)}
        assert ledger.position() == sum(n_rewards)
        return {info.key: (info.number, n_rewards[info.number - 1]) for info in ledger.rounds()}


def check_acknowledged(said, found):
    assert len(said["decided"]) > 0, "every writer was killed before it wrote anything"
    for line in said["decided"]:
        key, number = line.split(" ")
        assert found[key][0] == int(number)
    assert all(found[key][1] == len(SLATE) for key in said["rewarded"])


@pytest.mark.slow
def test_decisions_that_were_acknowledged_are_there_though_every_process_is_killed(url, tmp_path):
    said = acknowledged(url, tmp_path, "ab", n_times=40, n_rounds=0, kind="decisions")
    found = whole_decisions(url)
    check_acknowledged(said, found)
    after = acknowledged(url, tmp_path, "yz", n_times=1, n_rounds=30, kind="decisions")
    assert len(after["rewarded"]) == 60, "the next processes do not work"
    check_acknowledged(after, whole_decisions(url))


@pytest.mark.slow
def test_three_processes_that_decide_at_once_lose_and_double_nothing(url, tmp_path):
    said = acknowledged(url, tmp_path, "abc", n_times=1, n_rounds=60, kind="decisions")
    found = whole_decisions(url)
    expected = {f"{me}/{i}" for me in ("a0", "b0", "c0") for i in range(60) if i % 3}
    assert set(found) == expected | {f"all/{i}" for i in range(0, 60, 3)}
    assert len(said["decided"]) == len(said["rewarded"]) == 180
    check_acknowledged(said, found)
