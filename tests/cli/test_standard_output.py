"""Standard output of a command with `--json`, while code that is not Python's prints too."""

import json
import subprocess
import sys

import pytest

from armful.cli._standard_output import keep_for_json
from tests.cli.campaigns import Terminal

SETTINGS = """
name = "autumn"
id = "item"
choose.k = 2
policy.cap = 1.0
features.ready = 3
outcomes.reward = "click"
"""
PRINTING = """
import ctypes, os, runpy
from armful import campaigns

def read_settings(path, read=campaigns.read_settings):
    os.write(1, b"written to the descriptor\\n")
    ctypes.CDLL(None if os.name == "posix" else "ucrtbase").puts(b"kept in the buffer of C")
    return read(path)

campaigns.read_settings = read_settings
runpy.run_module("armful", run_name="__main__")
"""


@pytest.fixture(autouse=True)
def campaign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "autumn").mkdir()
    (tmp_path / "autumn" / "campaign.toml").write_text(SETTINGS)


def check(*options, **streams):
    command = [sys.executable, "-c", PRINTING, "check", *options]
    return subprocess.run(command, text=True, timeout=900, check=False, **streams)


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def test_with_json_what_a_library_prints_goes_to_standard_error():
    done = check("autumn", "--json", **PIPES)
    assert json.loads(done.stdout)["name"] == "autumn"
    assert sorted(done.stderr.splitlines()) == ["kept in the buffer of C", "written to the descriptor"]
    assert done.returncode == 0


def test_an_error_is_the_only_json_too():
    done = check("winter", "--json", **PIPES)
    assert json.loads(done.stdout)["error"] in done.stderr
    assert done.returncode == 2


def test_without_json_everything_is_where_it_was_printed():
    done = check("autumn", **PIPES)
    assert {"written to the descriptor", "kept in the buffer of C"} < set(done.stdout.splitlines())
    assert done.stderr == ""


def test_standard_output_and_error_may_be_the_same():
    done = check("autumn", "--json", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert any(line.startswith('{"name": "autumn"') for line in done.stdout.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the descriptor")
def test_a_closed_standard_output_is_no_reason_to_fail():
    command = f'"{sys.executable}" -m armful check autumn --json 1>&-'
    done = subprocess.run(command, shell=True, text=True, timeout=900, check=False, **PIPES)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_standard_error_nothing_is_changed(monkeypatch):
    """Python has none where its descriptor is closed; older versions of scipy cannot be imported there."""
    before = sys.stdout
    monkeypatch.setattr(sys, "stderr", None)
    keep_for_json()
    assert sys.stdout is before


def test_a_stream_of_the_caller_is_left_alone(capsys, monkeypatch):
    replaced = sys.stdout
    assert Terminal(capsys, monkeypatch).works("check", "autumn", "--json").json["name"] == "autumn"
    assert sys.stdout is replaced
