"""Every example runs, says something, and its contract classes pass."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


WITHOUT_MATPLOTLIB = """
import runpy, sys
sys.modules["matplotlib"] = None  # importing it fails
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_something_without_matplotlib(path, tmp_path):
    script = tmp_path / "without_matplotlib.py"
    script.write_text(WITHOUT_MATPLOTLIB)
    run([sys.executable, script, path], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_a_figure_when_asked(path, tmp_path):
    run([sys.executable, path, "--figure", tmp_path / "figure.svg"], tmp_path)
    assert "</svg>" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add_a_policy", "add_an_environment"])
def test_the_classes_of_an_example_pass_their_contract(name):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
