"""What the files around the code say of each other."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

import armful

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
NAMING_TARGETS = [
    *WORKFLOWS,
    ROOT / ".github/pull_request_template.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    ROOT / "RELEASING.md",
]
# A command: in a step of a workflow, in `backticks`, or on an indented line.
COMMAND = re.compile(r"(?:run: |`|^ {4,})make ([^`#\n]+)", re.MULTILINE)


def text(path):
    return path.read_text(encoding="utf-8")


def targets_named_in(words):
    """The targets in commands like `make PYTHON=python3.13 test`."""
    commands = [shlex.split(command) for command in COMMAND.findall(words)]
    return {word for command in commands for word in command if "=" not in word and word.strip(".")}


def targets():
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text(ROOT / "Makefile"), re.MULTILINE)
    return set(phony.split())


def test_a_target_is_found_where_it_is_named():
    step = "      - run: make test KERNELS='Zen Haswell'"
    prose = "`make PYTHON=python3.13 ...` and `make docs` make sense"
    assert targets_named_in(f"{step}\n{prose}\n    make check demo  # all\n") == {"test", "docs", "check", "demo"}


def test_every_workflow_is_checked():
    assert {path.stem for path in WORKFLOWS} == {"docs", "release", "test"}


@pytest.mark.parametrize("path", NAMING_TARGETS, ids=lambda path: path.name)
def test_every_target_that_is_named_is_in_the_makefile(path):
    named = targets_named_in(text(path))
    assert named
    assert named <= targets()


def test_every_target_has_a_rule_and_a_line_of_help():
    makefile = text(ROOT / "Makefile")
    assert targets() == set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert targets() - {"help"} == set(re.findall(r'@echo "make ([a-z-]+) ', makefile))


def test_workflows_run_nothing_but_make():
    steps = [step for path in WORKFLOWS for step in re.findall(r"^ +(?:- )?run: (.*)$", text(path), re.MULTILINE)]
    assert all(step.startswith("make ") for step in steps)


def test_workflows_begin_with_the_right_to_read_only():
    for path in WORKFLOWS:
        assert "\npermissions:\n  contents: read\n" in text(path), path.name


def test_the_citation_is_of_this_version():
    (version,) = re.findall(r'^version: "(.*)"$', text(ROOT / "CITATION.cff"), re.MULTILINE)
    assert version == armful.__version__


def test_the_python_versions_of_the_classifiers_are_those_that_are_tested():
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    (matrix,) = re.findall(r"^ +python: \[(.*)\]$", text(ROOT / ".github/workflows/test.yml"), re.MULTILINE)
    tested = [word.strip('" ') for word in matrix.split(",")]
    prefix = "Programming Language :: Python :: 3."
    named = [word.rpartition(" ")[2] for word in project["classifiers"] if word.startswith(prefix)]
    assert named == tested
    assert project["requires-python"] == f">={tested[0]}"
