"""The commands of a campaign as their user runs them: each in a process of its own."""

import json
import subprocess
import sys

import pytest

from tests.cli.campaigns import day, in_a_process, read_rows, write_customers, write_outcomes

pytestmark = pytest.mark.slow


def test_a_campaign_from_the_first_file_to_the_report(tmp_path):
    """Nothing is edited but the reward column. The rewards follow the region, and the model finds that out."""
    write_customers(tmp_path / "customers.csv", n=600)
    in_a_process("init", "autumn", "--from", "customers.csv", "--k", "60", cwd=tmp_path)
    settings = tmp_path / "autumn" / "campaign.toml"
    settings.write_text(settings.read_text().replace('reward = "reward"', 'reward = "bought"'))
    in_a_process("check", "autumn", cwd=tmp_path)
    assert in_a_process("plan", "autumn", cwd=tmp_path).endswith("next: armful choose autumn customers.csv\n")

    region = {row["customer_id"]: row["region"] for row in read_rows(tmp_path / "customers.csv")}
    for week in range(3):
        in_a_process("choose", "autumn", "customers.csv", "--now", day(21 * week), cwd=tmp_path)
        chosen = read_rows(tmp_path / "autumn" / "rounds" / f"{week + 1:03d}" / "chosen.csv")
        lines = ["customer_id,bought", *(f"{row['id']},{int(region[row['id']] == 'south')}" for row in chosen)]
        (tmp_path / "outcomes.csv").write_text("\n".join(lines) + "\n")
        in_a_process("learn", "autumn", "outcomes.csv", "--now", day(21 * week + 7), cwd=tmp_path)
    last = [row for row in chosen if row["share"] == "chosen"]
    assert all(region[row["id"]] == "south" for row in last)

    status = json.loads(in_a_process("status", "autumn", "--now", day(80), "--json", cwd=tmp_path))
    assert [each["mean_chosen"] for each in status["rounds"]][-1] == 1.0
    assert status["coefficients"][0]["name"] == "region: south"
    in_a_process("report", "autumn", "--now", day(80), cwd=tmp_path)
    assert (tmp_path / "autumn" / "report.html").stat().st_size > 10_000
    person = chosen[0]["id"]
    forgotten = json.loads(in_a_process("forget", "autumn", "--id", person, "--json", cwd=tmp_path))
    assert forgotten["n_people"] == 1
    after = json.loads(in_a_process("status", "autumn", "--now", day(80), "--json", cwd=tmp_path))
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
