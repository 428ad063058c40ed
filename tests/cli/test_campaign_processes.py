"""The commands of a campaign as their user runs them: each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.campaigns import day, read_rows, write_customers, write_outcomes

COMMAND = [sys.executable, "-m", "armful"]

pytestmark = pytest.mark.slow


def armful(*arguments, cwd):
    done = subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_campaign_from_the_first_file_to_the_report(tmp_path):
    """Nothing is edited but the reward column. The rewards follow the region, and the model finds that out."""
    write_customers(tmp_path / "customers.csv", n=600)
    armful("init", "autumn", "--from", "customers.csv", "--k", "60", cwd=tmp_path)
    settings = tmp_path / "autumn" / "campaign.toml"
    settings.write_text(settings.read_text().replace('reward = "reward"', 'reward = "bought"'))
    armful("check", "autumn", cwd=tmp_path)
    assert armful("plan", "autumn", cwd=tmp_path).endswith("next: armful choose autumn customers.csv\n")

    region = {row["customer_id"]: row["region"] for row in read_rows(tmp_path / "customers.csv")}
    for week in range(3):
        armful("choose", "autumn", "customers.csv", "--now", day(21 * week), cwd=tmp_path)
        chosen = read_rows(tmp_path / "autumn" / "rounds" / f"{week + 1:03d}" / "chosen.csv")
        lines = ["customer_id,bought", *(f"{row['id']},{int(region[row['id']] == 'south')}" for row in chosen)]
        (tmp_path / "outcomes.csv").write_text("\n".join(lines) + "\n")
        armful("learn", "autumn", "outcomes.csv", "--now", day(21 * week + 7), cwd=tmp_path)
    last = [row for row in chosen if row["share"] == "chosen"]
    assert all(region[row["id"]] == "south" for row in last)

    status = json.loads(armful("status", "autumn", "--now", day(80), "--json", cwd=tmp_path))
    assert [each["mean_chosen"] for each in status["rounds"]][-1] == 1.0
    assert status["coefficients"][0]["name"] == "region: south"
    armful("report", "autumn", "--now", day(80), cwd=tmp_path)
    assert (tmp_path / "autumn" / "report.html").stat().st_size > 10_000
    person = chosen[0]["id"]
    forgotten = json.loads(armful("forget", "autumn", "--id", person, "--json", cwd=tmp_path))
    assert forgotten["n_people"] == 1
    after = json.loads(armful("status", "autumn", "--now", day(80), "--json", cwd=tmp_path))
    assert status["n_observations"] - after["n_observations"] == len(forgotten["rounds"])


def test_a_campaign_needs_no_matplotlib(tmp_path):
    write_customers(tmp_path / "customers.csv")
    code = "import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_module('armful', run_name='__main__')"
    for arguments in (
        ["init", "autumn", "--from", "customers.csv", "--k", "20", "--reward", "bought"],
        ["choose", "autumn", "customers.csv", "--now", day(0)],
        ["learn", "autumn", "outcomes.csv", "--now", day(1)],
        ["report", "autumn", "--now", day(20)],
    ):
        if arguments[0] == "learn":
            write_outcomes(tmp_path / "outcomes.csv", tmp_path / "autumn" / "rounds" / "001" / "chosen.csv")
        subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, check=True, timeout=900)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupted_choice_leaves_nothing_behind(tmp_path, interruptible):
    write_customers(tmp_path / "customers.csv", n=100_000)
    armful("init", "autumn", "--from", "customers.csv", "--k", "100", cwd=tmp_path)
    choose = [*COMMAND, "choose", "autumn", "customers.csv"]
    process = subprocess.Popen(choose, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "autumn").glob(".work/*/*")):  # the customers are being read
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=900)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "armful: stopped; nothing is half done, and armful status says what is kept\n"
    assert json.loads(armful("status", "autumn", "--json", cwd=tmp_path))["rounds"] == []
    assert not (tmp_path / "autumn" / ".work").exists()
    armful("choose", "autumn", "customers.csv", cwd=tmp_path)
    assert len(read_rows(tmp_path / "autumn" / "rounds" / "001" / "chosen.csv")) == 100


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_goes_away_gets_no_traceback(tmp_path, options):
    write_customers(tmp_path / "customers.csv")
    armful("init", "autumn", "--from", "customers.csv", "--k", "20", cwd=tmp_path)
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
