"""Finished cells are taken from their files, if these are what was written for them."""

import json
import os
from dataclasses import replace

import pytest

from armful.experiments import Result, run_cells
from armful.experiments._comparison import write
from tests.experiments.test_plan import TINY

SPACED = replace(
    TINY,
    policies={"a b": TINY.policies["greedy"], "C2UCB": TINY.policies["C2UCB"]},
    environments={"town 1": TINY.environments["slates"]},
    sizes=[(2, 5)],
)


def run(plan, folder):
    reported = []
    return run_cells(plan.cells(), folder, progress=reported.append), sum(isinstance(each, Result) for each in reported)


@pytest.mark.parametrize(
    "renamed",
    [
        {"policies": {"a_b": SPACED.policies["a b"], "C2UCB": SPACED.policies["C2UCB"]}},
        {"policies": {"other": SPACED.policies["a b"], "C2UCB": SPACED.policies["C2UCB"]}},
        {"environments": {"town_1": SPACED.environments["town 1"]}},
        {"environments": {"village": SPACED.environments["town 1"]}},
    ],
)
def test_a_renamed_policy_or_environment_goes_on_with_what_is_finished(tmp_path, renamed):
    first, ran = run(SPACED, tmp_path / "cells")
    assert ran == 2
    plan = replace(SPACED, **renamed)
    again, ran = run(plan, tmp_path / "cells")
    assert ran == 0
    assert [r.regret for r in again] == [r.regret for r in first]
    assert [(r.environment, r.policy) for r in again] == [(c.environment, c.policy) for c in plan.cells()]
    report = write(plan, again, tmp_path).read_text(encoding="utf-8")
    assert all(name in report for name in (*plan.policies, *plan.environments))


def test_cells_that_differ_in_their_names_alone_run_once(tmp_path):
    plan = replace(SPACED, policies=dict.fromkeys(("one", "two", "three"), SPACED.policies["a b"]))
    results, _ = run(plan, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert [r.policy for r in results] == ["one", "two", "three"]
    assert results[0].regret == results[1].regret == results[2].regret


EDITS = {
    "a number": lambda content: content["result"]["regret"].__setitem__(0, 0.0),
    "runs": lambda content: content["result"].update(runs=1000),
    "policy": lambda content: content["result"].update(policy="C2UCB"),
    "seed": lambda content: content["result"].update(seed=7),
    "cell": lambda content: content.update(cell="another"),
    "sha256": lambda content: content.update(sha256="0" * 64),
    "no checksum": lambda content: content.pop("sha256"),
    "more": lambda content: content["result"].update(more=1),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edited_cell_is_run_again(tmp_path, edit):
    first, _ = run(SPACED, tmp_path)
    path = tmp_path / f"{SPACED.cells()[0].key()}.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    again, ran = run(SPACED, tmp_path)
    assert ran == 1
    assert [r.regret for r in again] == [r.regret for r in first]
    assert run(SPACED, tmp_path)[1] == 0


KINDS = {"folder": os.mkdir} | ({"pipe": os.mkfifo} if hasattr(os, "mkfifo") else {})


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_named(tmp_path, kind):
    path = tmp_path / f"{SPACED.cells()[0].key()}.json"
    KINDS[kind](path)
    with pytest.raises(FileExistsError) as refusal:
        run(SPACED, tmp_path)
    assert str(refusal.value) == f"{path} is a {kind} where a file of results belongs: remove it"


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"sha256": 3}', "[" * 100_000, "\x00", "\ud800"])
def test_a_file_that_is_something_else_is_run_again(tmp_path, text):
    run(SPACED, tmp_path)
    (tmp_path / f"{SPACED.cells()[0].key()}.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert run(SPACED, tmp_path)[1] == 1


def test_a_cell_copied_over_another_is_run_again(tmp_path):
    first, _ = run(SPACED, tmp_path)
    one, other = (tmp_path / f"{cell.key()}.json" for cell in SPACED.cells())
    one.write_bytes(other.read_bytes())
    again, ran = run(SPACED, tmp_path)
    assert ran == 1
    assert [r.regret for r in again] == [r.regret for r in first]
