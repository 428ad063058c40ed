"""What a comparison says, on the page and in the terminal."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from armful.cli._tables import show
from armful.experiments import Recipe, run_cells
from armful.experiments._comparison import standings, write
from tests.experiments.test_plan import TINY
from tests.experiments.test_results import result

SIZES = [(2, 5), (3, 8)]
PLAN = replace(TINY, policies={name: Recipe("C2UCB") for name in ("low", "near", "far")}, runs=6)
REGRET = {
    "far": [20.0, 22.0, 21.0, 22.0, 21.0, 21.5],
    "near": [10.0, 14.0, 11.0, 10.5, 10.5, 11.5],
    "low": [10.0, 11.0, 11.0, 10.0, 10.5, 10.5],
}
RESULTS = [
    result(10, regret, environment="slates", policy=policy, k=k, rounds=rounds)
    for policy, regret in REGRET.items()
    for k, rounds in SIZES
]


def printed(standing, width):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(standing, console)
    return console.file.getvalue()


def test_the_sentence_names_the_lowest_and_what_the_runs_do_not_tell_from_it():
    (standing,) = standings(PLAN, RESULTS)
    assert standing.policies == ["low", "near", "far"]
    assert standing.sentences()[0].startswith("k = 2, T = 5: `low` lost least, 10.5 ± 0.2; 6 runs are too few")
    assert re.search(r"to tell it from `near` \(about \d+ runs might be enough\)\.$", standing.sentences()[0])
    (clear,) = standings(
        replace(PLAN, policies={n: PLAN.policies[n] for n in ("low", "far")}),
        [r for r in RESULTS if r.policy != "near"],
    )
    assert clear.sentences()[1] == "k = 3, T = 8: `low` lost least, 10.5 ± 0.2, clearly less than all others."


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_very_few_runs_tell_nothing(runs):
    few = [replace(r, regret=r.regret[:runs], runs=runs) for r in RESULTS]
    (standing,) = standings(replace(PLAN, runs=runs), few)
    assert standing.sentences()[0].endswith("; it takes 5 runs at least to tell policies apart.")


def test_the_table_in_the_terminal_marks_the_lowest_and_what_is_not_clearly_above_it():
    text = printed(standings(PLAN, RESULTS), 80)
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert lines["low"].count("*") == lines["near"].count("*") == 2
    assert "*" not in lines["far"]
    assert "21.2 ± 0.3" in lines["far"]
    assert "lower is better" in text


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_every_number_is_shown_however_narrow_the_terminal(width):
    text = printed(standings(PLAN, RESULTS), width)
    assert max(len(line) for line in text.splitlines()) <= max(width, 30)
    assert text.count("21.2 ± 0.3") == 2
    assert all(f"k = {k}, T = {rounds}" in text for k, rounds in SIZES)


def test_the_page_shows_options_and_paired_differences_with_intervals(tmp_path):
    plan = replace(TINY, runs=8)
    page = write(plan, run_cells(plan.cells(), tmp_path / "cells"), tmp_path).read_text(encoding="utf-8")
    assert (
        "<code>greedy</code> is <code>EpsilonGreedy</code> with epsilon = 0.0; left at the defaults: ridge = 1.0."
        in page
    )
    assert "<code>C2UCB</code> with ridge = &#x27;d&#x27;; left at the defaults: radius = " in page
    assert "<code>Slates</code> with n_arms = 12, n_features = 4." in page
    assert re.search(r"<td>lowest</td>", page)
    assert re.search(r"<td>\+\d+\.\d \([-+]\d+\.\d to \+\d+\.\d\)</td>", page)
    assert "lower is better" in page
    assert "k is how many arms are chosen in a round, T the number of rounds" in page


def test_a_plan_with_one_policy_compares_nothing(tmp_path):
    plan = replace(TINY, policies={"greedy": TINY.policies["greedy"]})
    page = write(plan, run_cells(plan.cells(), tmp_path / "cells"), tmp_path).read_text(encoding="utf-8")
    assert "beyond the lowest" not in page
    (standing,) = standings(plan, run_cells(plan.cells(), tmp_path / "cells"))
    assert "*" not in printed([standing], 80).replace("* the lowest", "")
