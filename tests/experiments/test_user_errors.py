"""Mistakes in classes of one's own, as a plan meets them."""

from dataclasses import replace

import pytest

from armful import C2UCB
from armful.experiments import Recipe, run_cells
from armful.experiments._comparison import check
from tests.experiments.test_plan import TINY

OWN = """
import sys
import numpy as np
from armful import Policy
from armful.environments import Slates

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one}\\n{two}")

class Without(Policy):
    pass

class Greedy(Policy):
    def score(self, arms, k):
        return arms.mean

class Key(Greedy):
    def score(self, arms, k):
        return {}["x"]

class Heir(Key):
    pass

class Shapes(Greedy):
    def score(self, arms, k):
        return arms.mean + np.zeros(7)

class Unpicklable(Greedy):
    def score(self, arms, k):
        raise Odd("two", "lines")

class Exits(Greedy):
    def score(self, arms, k):
        sys.exit(3)

class Arguments(Greedy):
    def score(self, arms):
        return arms.mean

class Learner:
    def choose(self, X, constraint):
        return 1
    def learn(self, features, rewards):
        pass

class Init(Greedy):
    def __init__(self, **common):
        super().__init__(**common)
        self.x = {}["x"]

class NoRounds(Slates):
    def rounds(self, n_rounds, rng):
        yield from None

class Features:
    n_features = property(lambda self: {}["x"])
    def rounds(self, n_rounds, rng):
        return iter(())
"""


def line_of(text):
    """The number of the first line of OWN that holds `text`."""
    return next(i for i, line in enumerate(OWN.splitlines(), start=1) if text in line)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


def with_policy(kind):
    return replace(TINY, policies={"mine": Recipe(kind)}, sizes=[(3, 8)])


def with_environment(kind):
    return replace(TINY, environments={"town": Recipe(kind)}, policies={"mine": Recipe("C2UCB")}, sizes=[(3, 8)])


@pytest.mark.parametrize(
    ("name", "message", "line"),
    [
        ("Key", "KeyError: 'x' (own.py, line {}, in Key.score)", line_of('{}["x"]')),
        ("Heir", "KeyError: 'x' (own.py, line {}, in Key.score)", line_of('{}["x"]')),
        ("Unpicklable", "Odd: two lines (own.py, line {}, in Unpicklable.score)", line_of("raise Odd")),
        ("Exits", "SystemExit: 3 (own.py, line {}, in Exits.score)", line_of("sys.exit")),
    ],
)
def test_an_error_in_score_is_reported_with_its_line(file, tmp_path, name, message, line):
    with pytest.raises(ValueError) as caught:
        run_cells(with_policy(f"{file}:{name}").cells(), tmp_path)
    assert str(caught.value) == f"mine in slates with k = 3, T = 8: {message.format(line)}"


def test_a_line_in_another_file_of_the_user_is_reported_too(tmp_path, monkeypatch):
    (tmp_path / "rules.py").write_text(
        "class Rule:\n    k = 1\n    def best(self, scores, X=None, rng=None):\n        return {}[1]\n"
    )
    (tmp_path / "town.py").write_text(
        "import numpy as np\nfrom armful.environments import Round\nfrom rules import Rule\n\nclass Town:\n"
        "    n_features = 2\n    def rounds(self, n_rounds, rng):\n        yield Round(np.eye(2), Rule(), np.ones(2))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    message = r"^mine in town with T = 8: KeyError: 1 \(rules.py, line 4, in Rule.best\)$"
    with pytest.raises(ValueError, match=message):
        run_cells(with_environment(f"{tmp_path / 'town.py'}:Town").cells(), tmp_path / "cells")


def test_a_mistake_without_words_is_called_by_its_name(tmp_path):
    path = tmp_path / "silent.py"
    path.write_text(
        "from armful import C2UCB\n\nclass Silent(C2UCB):\n    def score(self, arms, k):\n        raise ValueError\n"
    )
    message = r"^mine in slates with k = 3, T = 8: ValueError \(silent.py, line 5, in Silent.score\)$"
    with pytest.raises(ValueError, match=message):
        run_cells(with_policy(f"{path}:Silent").cells(), tmp_path / "cells")


def test_a_wrong_shape_is_reported_with_its_line(file, tmp_path):
    sentence = rf"^mine in slates .*could not be broadcast.* \(own.py, line {line_of('zeros(7)')}, in Shapes.score\)$"
    with pytest.raises(ValueError, match=sentence):
        run_cells(with_policy(f"{file}:Shapes").cells(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Key", "Unpicklable", "Exits"])
def test_worker_processes_tell_what_this_process_tells(file, tmp_path, name):
    plan = replace(with_policy(f"{file}:{name}"), policies={p: Recipe(f"{file}:{name}") for p in ("mine", "too")})
    with pytest.raises(ValueError) as here:
        run_cells(plan.cells(), tmp_path, workers=1)
    with pytest.raises(ValueError) as there:
        run_cells(plan.cells(), tmp_path, workers=2)
    assert str(there.value).replace("too in", "mine in") == str(here.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Arguments", r"takes 2 positional .* \(Arguments in armful's policy.py, line \d+, in Policy._score_arms\)$"),
        ("Learner", r"AttributeError: 'int' object .* \(Learner in armful's loop.py, line \d+, in run_alone\)$"),
    ],
)
def test_an_unusable_result_is_reported_with_the_class_and_the_line_of_armful(file, tmp_path, name, sentence):
    with pytest.raises(ValueError, match=sentence):
        run_cells(with_policy(f"{file}:{name}").cells(), tmp_path)


def test_an_error_in_rounds_is_reported_with_its_line(file, tmp_path):
    sentence = rf"^mine in town .*TypeError: .* \(own.py, line {line_of('yield from None')}, in NoRounds.rounds\)$"
    with pytest.raises(ValueError, match=sentence):
        run_cells(with_environment(f"{file}:NoRounds").cells(), tmp_path)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (with_policy("own.py:Without"), r"^policy 'mine': .*own.py:Without must define score\(self, arms, k\)$"),
        (
            with_policy("own.py:Init"),
            rf"own.py:Init: KeyError: 'x' \(own.py, line {line_of('self.x')}, in Init.__init__",
        ),
        (with_environment("own.py:Features"), r"^environment 'town': KeyError: 'x' \(own.py, line \d+, in Features"),
    ],
)
def test_what_can_be_seen_before_anything_runs_is(file, monkeypatch, plan, sentence):
    monkeypatch.chdir(file.parent)
    with pytest.raises(ValueError, match=sentence):
        check(plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit('bye')\n", "SystemExit: bye (broken.py, line 2)"),
        ("x = 1\ny = 1 / 0\n", "ZeroDivisionError: division by zero (broken.py, line 2)"),
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax (broken.py, line 2)"),
    ],
)
def test_a_file_or_module_that_does_not_load_is_reported_with_its_line(tmp_path, monkeypatch, text, message):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(ValueError) as caught:
        check(with_policy(f"{tmp_path / 'broken.py'}:Mine"))
    assert str(caught.value) == f"{tmp_path / 'broken.py'} cannot be loaded: {message}"
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError) as caught:
        check(with_policy("broken:Mine"))
    assert str(caught.value) == f"cannot import broken: {message}"


def test_a_bug_in_armful_keeps_its_traceback(tmp_path, monkeypatch):
    def score(self, arms, k):
        return {}["a bug"]

    monkeypatch.setattr(C2UCB, "score", score)
    with pytest.raises(KeyError, match="a bug") as caught:
        run_cells(with_policy("C2UCB").cells(), tmp_path)
    assert caught.traceback[-1].name == "score"


@pytest.mark.slow
def test_a_worker_process_that_dies_is_reported_in_a_sentence(tmp_path):
    file = tmp_path / "deadly.py"
    file.write_text("import os\nfrom armful import C2UCB\nclass Deadly(C2UCB):\n    score = lambda *_: os._exit(1)\n")
    plan = replace(with_policy(f"{file}:Deadly"), sizes=[(2, 5), (3, 8)])
    with pytest.raises(ChildProcessError, match=r"^a worker process ended before its work was done: "):
        run_cells(plan.cells(), tmp_path, workers=2)
