"""Commands of a campaign that are interrupted, or whose reader goes away."""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.cli.campaigns import COMMAND, in_a_process, read_rows, write_customers

pytestmark = pytest.mark.slow


def test_an_interrupted_choice_leaves_nothing_behind(tmp_path, interruptible):
    write_customers(tmp_path / "customers.csv", n=300_000)
    in_a_process("init", "autumn", "--from", "customers.csv", "--k", "100", cwd=tmp_path)
    choose = [*COMMAND, "choose", "autumn", "customers.csv"]
    process = subprocess.Popen(choose, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "autumn").glob(".work/*/*")):  # the customers are being read
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=900)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "armful: stopped; nothing is half done, and armful status says what is kept\n"
    assert json.loads(in_a_process("status", "autumn", "--json", cwd=tmp_path))["rounds"] == []
    assert not (tmp_path / "autumn" / ".work").exists()
    in_a_process("choose", "autumn", "customers.csv", cwd=tmp_path)
    assert len(read_rows(tmp_path / "autumn" / "rounds" / "001" / "chosen.csv")) == 100


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_goes_away_gets_no_traceback(tmp_path, options):
    write_customers(tmp_path / "customers.csv")
    in_a_process("init", "autumn", "--from", "customers.csv", "--k", "20", cwd=tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "status", "autumn", *options],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=900,
        check=False,
    )
    os.close(writer)
    assert done.stderr == ""
