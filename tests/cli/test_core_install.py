"""The command in an install without extras, where numpy and scipy are all there is."""

import subprocess
import sys
import tomllib

import pytest

import armful

CORE_ONLY = """
import runpy, sys

class CoreOnly:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {"armful", "numpy", "scipy", *sys.stdlib_module_names} and name[:1] != "_":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, CoreOnly())
runpy.run_module("armful", run_name="__main__", alter_sys=True)
"""


def in_the_core_install(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", CORE_ONLY, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_version_is_printed(tmp_path):
    done = in_the_core_install("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"armful {armful.__version__}\n", "")


def test_the_example_plan_is_printed(tmp_path):
    done = in_the_core_install("compare", "--example", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"runs", "sizes", "policies", "environments"} <= set(tomllib.loads(done.stdout))


@pytest.mark.parametrize("arguments", [["compare", "plan.toml"], ["reproduce"], ["--help"], []])
def test_the_rest_says_in_a_sentence_what_to_install(tmp_path, arguments):
    done = in_the_core_install(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("armful: this command needs ")
    assert "pip install '.[experiments]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_python_m_armful_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "armful", "compare", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Usage: armful compare" in done.stdout


def test_running_a_plan_from_python_needs_no_extra():
    code = CORE_ONLY.replace(
        'runpy.run_module("armful", run_name="__main__", alter_sys=True)', "import armful.experiments; print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "ok\n"
