"""The command as its user runs it: in a process of its own."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest


def armful(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from armful.cli import main; main()", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
def test_reproduce_writes_everything_and_says_where(tmp_path):
    done = armful("reproduce", "--sizes", "2", "--runs", "2", "--workers", "2", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "report: here/report.html" in done.stdout
    names = {path.name for path in (tmp_path / "here").iterdir()}
    figures = {
        f"figure-{name}.{ending}" for name in ("grouped", "uniform", "campaign", "cap") for ending in ("png", "svg")
    }
    assert names >= {"report.html", "regret.csv", "regret.parquet", *figures}

    first = (tmp_path / "here" / "regret.csv").read_text()
    again = armful("reproduce", "--sizes", "2", "--runs", "2", "--workers", "1", "--out", "there", cwd=tmp_path)
    assert again.returncode == 0
    assert (tmp_path / "there" / "regret.csv").read_text() == first


@pytest.mark.slow
def test_compare_runs_the_example_with_an_own_policy_added(tmp_path):
    example = armful("compare", "--example", cwd=tmp_path).stdout
    (tmp_path / "mine.py").write_text("from armful import EpsilonGreedy\nclass Mine(EpsilonGreedy):\n    pass\n")
    plan = example.replace("runs = 50", "runs = 2").replace(
        "[environments.slates]", "[policies.mine]\nclass = 'mine.py:Mine'\nepsilon = 0.05\n\n[environments.slates]"
    )
    (tmp_path / "plan.toml").write_text(plan)
    done = armful("compare", "plan.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} >= {"mine", "C2UCB", "paper-rule"}
    mine, greedy = (
        [row["mean"] for row in rows if row["policy"] == name and row["environment"] == "slates"]
        for name in ("mine", "EpsilonGreedy")
    )
    assert mine == greedy
    assert (tmp_path / "out" / "figure-slates.png").exists()
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "--sizes", "two"], "--sizes takes whole numbers"),
        (["reproduce", "--sizes", "600"], "k must be at most 500"),
        (["reproduce", "--sizes", "1"], "sizes must be at least 2"),
        (["compare"], "which plan?"),
        (["compare", "missing.toml"], "missing.toml does not exist"),
        (["reproduce", "--out", "taken", "--sizes", "2"], "taken"),
    ],
)
def test_mistakes_get_one_sentence_and_no_traceback(arguments, sentence, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    done = armful(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("armful: ")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ("    pass", "must define score(self, arms, k)"),
        (
            "    def __init__(self, **common):\n        {}['x']\n    def score(self, arms, k):\n        return 0",
            "KeyError: 'x' (mine.py, line 4, in Mine.__init__)",
        ),
        ("    def score(self, arms, k):\n        return {}['x']", "KeyError: 'x' (mine.py, line 4, in Mine.score)"),
    ],
)
def test_a_mistake_in_a_class_of_ones_own_gets_one_sentence(own, sentence, tmp_path):
    (tmp_path / "mine.py").write_text(f"from armful import Policy\nclass Mine(Policy):\n{own}\n")
    (tmp_path / "plan.toml").write_text(
        "runs = 2\nsizes = [{ k = 2, rounds = 3 }, { k = 3, rounds = 3 }]\n"
        "[policies.mine]\nclass = 'mine.py:Mine'\n[environments.Slates]\n"
    )
    done = armful("compare", "plan.toml", "--workers", "2", cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("comparing")]
    assert done.returncode == 2
    assert len(lines) == 1
    assert lines[0].startswith("armful: ")
    assert lines[0].endswith(sentence)


@pytest.mark.slow
def test_an_environment_without_k_is_named_by_its_rounds(tmp_path):
    (tmp_path / "plan.toml").write_text(
        "runs = 2\nsizes = [{ k = 2, rounds = 3 }, { k = 3, rounds = 4 }]\n"
        "[policies.C2UCB]\n[environments.Slates]\n[environments.Routes]\n"
    )
    done = armful("compare", "plan.toml", "--workers", "1", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = [(row["environment"], row["k"], row["T"]) for row in csv.DictReader(file)]
    assert rows == [("Routes", "", "3"), ("Routes", "", "4"), ("Slates", "2", "3"), ("Slates", "3", "4")]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<th>T = 3</th>" in report
    assert "<th>k = 2, T = 3</th>" in report


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.9, 4.0])
def test_an_interrupt_gets_one_sentence_and_the_next_call_goes_on(tmp_path, interruptible, wait):
    """Once while the workers start, once while they work."""
    command = [
        sys.executable,
        "-c",
        "from armful.cli import main; main()",
        "reproduce",
        "--sizes",
        "16",
        "--runs",
        "2000",
    ]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--out", "here"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "here" / "cells").exists():  # from here on the work is interruptible
        time.sleep(0.01)
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=900)
    assert process.returncode == 130
    assert stderr.strip().splitlines()[-1].startswith("armful: stopped; what is finished is kept")
    assert "Traceback" not in stderr


def test_help_shows_an_example(tmp_path):
    for command in ("reproduce", "compare"):
        done = armful(command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert f"Example: armful {command}" in done.stdout
