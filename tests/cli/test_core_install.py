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


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["compare", "plan.toml"], "experiments"),
        (["reproduce"], "experiments"),
        (["choose", "autumn", "customers.csv"], "campaigns"),
        (["--help"], "campaigns"),
        ([], "campaigns"),
    ],
)
def test_the_rest_says_in_a_sentence_what_to_install(tmp_path, arguments, extra):
    done = in_the_core_install(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("armful: this command needs ")
    assert f"pip install '.[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


HIDING = """
import runpy, sys
sys.modules.update(dict.fromkeys({hidden!r}))
runpy.run_module("armful", run_name="__main__", alter_sys=True)
"""


def without(*hidden, arguments, cwd):
    """The command where these packages are not installed, but typer is."""
    return subprocess.run(
        [sys.executable, "-c", HIDING.format(hidden=hidden), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("hidden", "arguments", "extra"),
    [
        ("matplotlib", ["reproduce"], "experiments"),
        ("sqlalchemy", ["status", "autumn"], "campaigns"),
        ("pyarrow", ["choose", "autumn", "customers.csv"], "campaigns"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(tmp_path, hidden, arguments, extra):
    done = without(hidden, arguments=arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"armful: this command needs {hidden}: install the extra [{extra}], in a clone by: pip install '.[{extra}]'\n"
    )


def test_all_commands_are_listed_whichever_extra_is_installed(tmp_path):
    done = without("matplotlib", "pyarrow", "sqlalchemy", "plotly", arguments=["--help"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("init", "choose", "learn", "report", "demo", "reproduce", "compare"):
        assert f" {command} " in done.stdout


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
