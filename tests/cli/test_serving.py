"""`armful serve` and `armful dashboard` in processes of their own, used as their users do."""

import json
import os
import signal

import httpx
import numpy as np
import pytest

import armful
from armful.campaigns import Campaign
from tests.cli.test_service_commands import SETTINGS
from tests.service.running import Service, until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "autumn").mkdir()
    (tmp_path / "autumn" / "campaign.toml").write_text(SETTINGS)
    return tmp_path / "autumn"


@pytest.fixture
def start(tmp_path, interruptible):
    started = []

    def start(command, *arguments):
        started.append(Service("armful", command, *arguments, "--port", "0", "--json", cwd=tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.close()


def candidates(rng, n=20):
    return {f"a{i}": rng.normal(size=3) / 3 for i in range(n)}


@pytest.mark.parametrize("workers", [1, 2])
def test_decisions_are_made_learned_from_and_kept(start, folder, workers):
    service = start("serve", "autumn", "--workers", workers, "--update-every", "0.1s")
    rng = np.random.default_rng(0)
    with service.client() as client:
        for i in range(30):
            decision = client.decide(candidates(rng), unit=f"user-{i}")
            assert len(decision.ids) == 2
            client.reward(decision, dict(zip(decision.ids, [1.0, 0.0], strict=True)))
        until(lambda: client.model().model.version > 0, "a model")
        again = client.decide(candidates(rng, 5), key="once")
        assert client.decide(candidates(np.random.default_rng(1), 5), key="twice").decision_id != again.decision_id
    assert service.end() == 0
    with Campaign.open(folder) as campaign:
        ledger = campaign.ledger
        assert ledger.last_number() == 32
        block = ledger.block(1, 32)
        assert np.nansum(block.rewards) == 30
        assert block.units[:30].tolist() == [f"user-{i}" for i in range(30)]
    service = start("serve", "autumn", "--no-access-log")
    with service.client() as client:
        assert client.model().model.version > 0
        assert client.decision(again).decision_id == again.decision_id
    assert service.end(signal.SIGINT) == 0
    assert "/v1/" not in service.log()


def test_a_key_that_is_revoked_is_refused_by_a_running_service(start, folder):
    with Campaign.open(folder) as campaign:
        from armful.service.keys import new_key  # noqa: PLC0415

        key_id, key, kept = new_key()
        campaign.ledger.add_key(id=key_id, hash=kept, roles=["decide"])
        service = start("serve", "autumn")
        with service.client(key=key) as client, service.client() as nobody:
            assert client.decide(candidates(np.random.default_rng(0))).ids
            with pytest.raises(armful.ServiceError, match="401"):
                nobody.decide(candidates(np.random.default_rng(0)))
            with pytest.raises(armful.ServiceError, match="403"):
                client.status()
            campaign.ledger.revoke_key(key_id)

            def is_refused():
                try:
                    client.decide(candidates(np.random.default_rng(0)))
                except armful.ServiceError as error:
                    return error.status == 401
                return False

            until(is_refused, "the refusal")
    assert service.end() == 0
    assert key.rpartition("_")[2] not in service.log()


def test_the_address_is_one_line_for_people(folder, tmp_path, interruptible):
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    command = [sys.executable, "-m", "armful", "serve", "autumn", "--port", "0", "--no-access-log"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    line = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as from a terminal
    rest, logged = process.communicate()
    assert line.startswith("autumn is served at http://127.0.0.1:")
    assert line.endswith("; Ctrl-C ends it\n")
    assert (process.returncode, rest) == (0, "")
    assert all(json.loads(each)["level"] == "info" for each in logged.splitlines())


def test_the_dashboard_shows_a_campaign_and_ends_while_somebody_looks(start, folder):
    service = start("dashboard", "autumn")
    with httpx.Client(base_url=service.url, trust_env=False, timeout=600) as browser:
        assert "<html" in browser.get("/").text
        assert [each["name"] for each in browser.get("/dashboard/campaigns").json()["campaigns"]] == ["autumn"]
        assert browser.get("/dashboard/data", headers={"x-forwarded-for": "192.0.2.1"}).status_code == 403
        with browser.stream("GET", "/dashboard/events") as events:
            parts = events.iter_lines()
            assert next(parts)
            service.process.send_signal(signal.SIGTERM)
            for _ in parts:
                pass
    assert service.process.wait(900) == 0
