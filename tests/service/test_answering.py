"""What surrounds the answers: durability, logs, metrics, and clients of real connections that misbehave."""

import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from armful.campaigns import Campaign
from armful.errors import LedgerError
from armful.service import _metrics
from armful.service._logging import JsonFormatter
from armful.service._metrics import FOLDER, shared_metrics
from armful.service.updater import _updates
from tests.service.small_service import features, live, make_campaign, request_of, serving


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path / "autumn")


# -- durability ----------------------------------------------------------------------------------------


def test_nothing_is_acknowledged_before_it_is_in_the_store(folder, monkeypatch):
    with serving(folder) as service:
        ledger = service.worker.ledger
        may_write, plain = threading.Event(), type(ledger).add_group
        monkeypatch.setattr(type(ledger), "add_group", lambda *a: may_write.wait(120) and plain(*a))
        work = service.run_later(service.post_later("/v1/decisions", request_of(features())))
        assert service.get("/healthz").status_code == 200  # others are answered meanwhile
        assert not work.done()
        assert ledger.last_number() == 0
        may_write.set()
        assert work.result(120).status_code == 200
        assert ledger.last_number() == 1


def test_a_store_that_fails_is_not_acknowledged_and_the_next_request_is(folder, monkeypatch):
    with serving(folder) as service:
        ledger = service.worker.ledger

        def fail(*_):
            raise LedgerError("the disk is full: /var/lib/secret.sqlite")

        with monkeypatch.context() as broken:
            broken.setattr(type(ledger), "add_group", fail)
            for path, body in (
                ("/v1/decisions", request_of(features(), key="k")),
                ("/v1/decisions/1/rewards", {"rewards": {"a1": 1.0}}),
                ("/v1/rewards", {"rewards": [{"decision_id": "1", "id": "a1", "reward": 1.0}]}),
            ):
                response = service.post(path, body)
                assert response.status_code == 503
                assert response.headers["retry-after"]
                assert "secret" not in response.text
        again = service.post("/v1/decisions", request_of(features(), key="k")).json()
        assert not again["repeated"]
        assert again["decision_id"] == "1"


@pytest.mark.slow
def test_a_decision_that_the_store_cannot_read_may_be_there(folder, monkeypatch):
    with serving(folder) as service:
        service.post("/v1/decisions", request_of(features()))
        monkeypatch.setattr(type(service.worker.ledger), "round", fails)
        response = service.get("/v1/decisions/1")
        assert response.status_code == 503
        assert response.headers["retry-after"]


def test_a_store_that_hangs_gets_a_time_out(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path / "autumn", 'service.timeout = "1 second"\n')
    with serving(folder) as service:
        ledger, over = service.worker.ledger, threading.Event()
        plain = type(ledger).add_group
        monkeypatch.setattr(type(ledger), "add_group", lambda *a: over.wait(120) and plain(*a))
        response = service.post("/v1/decisions", request_of(features(), key="k"))
        assert response.status_code == 503
        monkeypatch.setattr(service.worker, "_seconds", 120)  # a busy machine may take longer than a second
        over.set()
        deadline = time.monotonic() + 120
        while ledger.last_number() == 0:
            assert time.monotonic() < deadline
        assert service.post("/v1/decisions", request_of(features(), key="k")).json()["repeated"]


def test_a_full_queue_says_when_to_come_again(folder, monkeypatch):
    with serving(folder) as service:
        monkeypatch.setattr(service.worker._commit, "_most_waiting", 0)
        response = service.post("/v1/decisions", request_of(features()))
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert "0 requests are waiting for the ledger already" in response.json()["detail"]


def test_what_is_in_flight_when_it_stops_is_stored(folder, monkeypatch):
    with serving(folder) as service:
        ledger = service.worker.ledger
        plain = type(ledger).add_group

        def slowly(*arguments):
            time.sleep(0.05)
            return plain(*arguments)

        monkeypatch.setattr(type(ledger), "add_group", slowly)
        works = [service.run_later(service.post_later("/v1/decisions", request_of(features()))) for _ in range(20)]
        while len(service.worker._waiting) < 20 and not all(work.done() for work in works):
            time.sleep(0.001)
    acknowledged = sum(work.result(120).status_code == 200 for work in works)
    with Campaign.open(folder) as campaign:
        assert campaign.ledger.last_number() == acknowledged == 20


def test_it_is_not_ready_when_the_store_does_not_answer(folder, monkeypatch, caplog):
    monkeypatch.setattr("armful.service._worker.READY_SECONDS", 0.0)
    with serving(folder) as service:
        assert service.get("/readyz").json() == {"status": "ok"}

        def fail(_):
            raise LedgerError("no connection to secret@db.internal")

        monkeypatch.setattr(type(service.worker.ledger), "model_version", fail)
        response = service.get("/readyz")
        assert response.status_code == 503
        assert "secret" not in response.text
        assert "no connection to secret@db.internal" in caplog.text
        assert service.get("/healthz").status_code == 200
        assert service.post("/v1/decisions", request_of(features())).status_code == 200


def test_polling_goes_on_after_an_error(folder, monkeypatch):
    with serving(folder, poll_every=timedelta(milliseconds=5)) as service:
        asked = threading.Semaphore(0)

        def fail(_):
            asked.release()
            raise LedgerError("no connection")

        monkeypatch.setattr(type(service.worker.ledger), "model_version", fail)
        for _ in range(3):
            assert asked.acquire(timeout=120)


# -- logs and metrics ----------------------------------------------------------------------------------


def test_request_ids_come_back_and_bad_ones_are_replaced(folder):
    with serving(folder) as service:
        assert service.get("/healthz", headers={"X-Request-ID": "abc-1.2:3"}).headers["x-request-id"] == "abc-1.2:3"
        for bad in ("", "a b", "x" * 200, 'a"b'):
            made = service.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"]
            assert re.fullmatch(r"[0-9a-f]{16}", made)


def test_logs_are_json_without_bodies_and_keys(folder, caplog):
    secret, unit = "armful_000000000000_" + "5" * 48, "private-person"
    with caplog.at_level(logging.INFO, "armful"), serving(folder) as service:
        service.post("/v1/decisions", request_of(features(), unit=unit), headers={"X-Request-ID": "one"})
        service.get("/v1/status?key=hidden", headers={"Authorization": f"Bearer {secret}", "X-Request-ID": "two"})
        service.get(f"/v1/decisions/{secret}", headers={"X-Request-ID": secret})
        service.get(f"/{secret}/rewards", headers={"X-Request-ID": f"of-{secret}"})
    lines = [JsonFormatter().format(record) for record in caplog.records]
    requests = {line["request_id"]: line for line in map(json.loads, lines) if line["message"] == "request"}
    assert (requests["one"]["method"], requests["one"]["path"], requests["one"]["status"]) == (
        "POST",
        "/v1/decisions",
        200,
    )
    assert requests["one"]["caller"] == "local"
    assert requests["two"]["status"] == 401
    for line in lines:
        assert "\n" not in line
        assert secret not in line
        assert "5555" not in line
        assert unit not in line
        assert "hidden" not in line


@pytest.mark.slow
def test_lines_of_requests_come_in_order_and_before_what_follows(folder):
    """In a process of its own, as `configure_logging` is for the whole process."""
    program = f"""if True:
        from armful.service import _logging
        from tests.service.small_service import serving
        _logging.configure_logging()
        with serving({str(folder)!r}) as service:
            for i in range(5):
                service.get("/healthz", headers={{"X-Request-ID": f"r{{i}}"}})
            _logging.LOGGER.warning("between")
            service.get("/healthz", headers={{"X-Request-ID": "last"}})
    """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    named = [line.get("request_id", line["message"]) for line in lines if line["logger"] == "armful.service"]
    assert named == ["r0", "r1", "r2", "r3", "r4", "between", "last"]


def test_a_long_path_does_not_make_a_long_line(folder, caplog):
    with caplog.at_level(logging.INFO, "armful"), serving(folder) as service:
        service.get("/" + "a" * 5000)
    assert max(len(JsonFormatter().format(record)) for record in caplog.records) < 1000


def test_requests_are_not_logged_if_told_so(folder, caplog):
    with caplog.at_level(logging.INFO, "armful"), serving(folder, access_log=False) as service:
        service.get("/healthz")
    assert not [record for record in caplog.records if record.getMessage() == "request"]


def test_an_error_is_logged_with_its_request(folder, caplog, monkeypatch):
    with serving(folder) as service:
        monkeypatch.setattr(service.worker.decider, "decide", lambda *a, **k: 1 / 0)
        service.post("/v1/decisions", request_of(features()), headers={"X-Request-ID": "bad"})
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    line = json.loads(JsonFormatter().format(record))
    assert line["request_id"] == "bad"
    assert "ZeroDivisionError" in line["exception"]


def test_metrics_count(folder):
    with serving(folder) as service:
        for _ in range(3):
            answer = service.post("/v1/decisions", request_of(features(), key="k")).json()
        service.post("/v1/decisions", {"candidates": []})
        arm = answer["chosen"][0]["id"]
        for reward in (1.0, 1.0, 0.0):
            service.post("/v1/decisions/1/rewards", {"rewards": {arm: reward}})
        lines = service.get("/metrics").text.splitlines()
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    assert values['armful_decisions_total{share="chosen"}'] == 1
    assert values["armful_decisions_repeated_total"] == 2
    assert values['armful_requests_total{route="decide",status="200"}'] == 3
    assert values['armful_requests_total{route="decide",status="422"}'] == 1
    assert [values[f'armful_rewards_total{{kind="{kind}"}}'] for kind in ("new", "repeated", "corrected")] == [1, 1, 1]
    assert values['armful_request_seconds_count{route="decide"}'] == 4
    assert values["armful_commit_size_count"] == 6
    assert values["armful_model_version"] == 0
    assert values["armful_commit_waiting"] == 0


@pytest.mark.slow
def test_workers_share_their_metrics(tmp_path):
    """Two processes count; each of them shows the sum, and gauges of one that has ended are not in it."""
    program = """if True:
        from armful.service._metrics import Metrics
        metrics = Metrics()
        metrics.decided("chosen")
        metrics.waiting.set(5)
        print(metrics.text().decode())
    """
    with shared_metrics(2):
        assert FOLDER in os.environ
        shown = [
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
            for _ in range(2)
        ]
    assert FOLDER not in os.environ
    assert 'armful_decisions_total{share="chosen"} 1.0' in shown[0].stdout
    assert 'armful_decisions_total{share="chosen"} 2.0' in shown[1].stdout
    assert "armful_commit_waiting 5.0" in shown[1].stdout
    with shared_metrics(1):
        assert FOLDER not in os.environ


@pytest.mark.slow
def test_metrics_go_on_when_their_folder_was_removed():
    """As systemd does with what a user has in memory, when that user logs out."""
    first = """if True:
        import os, shutil
        from armful.service._metrics import FOLDER, Metrics
        metrics = Metrics()
        shutil.rmtree(os.environ[FOLDER])
        metrics.text()
        shutil.rmtree(os.environ[FOLDER])
    """
    second = """if True:
        from armful.service._metrics import Metrics
        metrics = Metrics()
        metrics.decided("chosen")
        print(metrics.text().decode())
    """
    with shared_metrics(2):
        for program in (first, second):
            run = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
            )
    assert 'armful_decisions_total{share="chosen"} 1.0' in run.stdout


@pytest.mark.parametrize("there", [True, False])
def test_metrics_that_workers_share_are_in_memory_if_the_system_has_such_a_folder(tmp_path, monkeypatch, there):
    memory = tmp_path / "memory"
    if there:
        memory.mkdir()
    monkeypatch.setattr(_metrics, "MEMORY", memory)
    with shared_metrics(2):
        assert (Path(os.environ[FOLDER]).parent == memory) == there
        assert Path(os.environ[FOLDER]).is_dir()


@pytest.mark.slow
def test_the_age_of_a_model_is_that_of_the_newest_once_every_worker_has_it():
    """A worker that showed the age of an old model swaps it; then another worker is asked."""
    first = """if True:
        import subprocess, sys, time
        from armful.service._metrics import Metrics
        metrics = Metrics()
        metrics.model(1, time.time() - 1e6)
        metrics.refresh(0, 0)
        metrics.text()
        metrics.model(2, time.time() - 10)
        print(subprocess.run([sys.executable, "-c", sys.argv[1]], capture_output=True, text=True, check=True).stdout)
    """
    second = """if True:
        import time
        from armful.service._metrics import Metrics
        metrics = Metrics()
        metrics.model(2, time.time() - 10)
        metrics.refresh(0, 0)
        print(metrics.text().decode())
    """
    with shared_metrics(2):
        command = [sys.executable, "-c", first, second]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    age = re.search(r"^armful_model_age_seconds (\S+)", shown, re.MULTILINE)
    assert 10 <= float(age[1]) < 1e5


def test_a_model_that_needs_no_update_is_known_to_be_up_to_date(folder, monkeypatch):
    clock = [datetime.now(UTC)]

    def checked():
        shown = service.get("/metrics")
        assert shown.status_code == 200
        return float(re.search(r"^armful_model_checked_timestamp_seconds (\S+)", shown.text, re.MULTILINE)[1])

    monkeypatch.setattr("armful.service._reading.CHECKED_SECONDS", 120)  # a busy machine may take longer than a second
    with serving(folder, now=lambda: clock[0]) as service, Campaign.open(folder, now=lambda: clock[0]) as campaign:
        assert checked() == 0
        update = _updates(campaign, timedelta(seconds=30))
        update()
        assert checked() == pytest.approx(clock[0].timestamp(), abs=1e-3)
        before = service.get("/v1/status").json()["model"]
        clock[0] += timedelta(hours=1)
        update()
        assert checked() == pytest.approx(clock[0].timestamp(), abs=1e-3)
        after = service.get("/v1/status").json()["model"]
        assert (after["version"], after["made_at"]) == (before["version"], before["made_at"])
        monkeypatch.setattr(type(service.worker.ledger), "newest_model", fails)
        assert checked() == pytest.approx(clock[0].timestamp(), abs=1e-3)
        monkeypatch.setattr("armful.service._reading.CHECKED_SECONDS", 0.01)
        over, reads = threading.Event(), []

        def hangs(*_, **__):
            reads.append("one")
            over.wait(120)

        monkeypatch.setattr(type(service.worker.ledger), "newest_model", hangs)
        for _ in range(5):
            assert checked() == pytest.approx(clock[0].timestamp(), abs=1e-3)
        over.set()
    assert reads == ["one"], "each scrape took a thread from the other reads"


def fails(*_, **__):
    raise LedgerError("the disk is gone")


def test_gauges_are_refreshed_without_being_asked_for(tmp_path):
    """Another worker may be the one that Prometheus asks."""
    folder = make_campaign(tmp_path / "autumn", 'service.timeout = "1 second"\n')
    with serving(folder) as service:
        metrics = service.worker.metrics
        metrics.model(1, time.time() - 50)
        metrics.model_age.set(0)
        metrics.waiting.set(7)
        deadline = time.monotonic() + 120
        while metrics.model_age._value.get() < 50 or metrics.waiting._value.get() != 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_requests_that_wait_for_the_store_are_counted_while_they_wait(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path / "autumn", 'service.timeout = "10 minutes"\n')
    with serving(folder) as service:
        worker, over = service.worker, threading.Event()
        plain = type(worker.ledger).add_group
        monkeypatch.setattr(type(worker.ledger), "add_group", lambda *a: over.wait(120) and plain(*a))

        def waiting():
            return float(re.search(r"^armful_commit_waiting (\S+)", service.get("/metrics").text, re.MULTILINE)[1])

        async def give_up():
            worker._waiting.update(dict.fromkeys(worker._waiting, 0.0))  # their deadlines have passed
            worker._give_up()

        try:
            works = [service.run_later(service.post_later("/v1/decisions", request_of(features()))) for _ in range(3)]
            deadline = time.monotonic() + 120
            while len(worker._waiting) < 3:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert waiting() == 3
            service.run(give_up())
            assert [work.result(120).status_code for work in works] == [503] * 3
            assert waiting() == 0
        finally:
            over.set()
        assert service.post("/v1/decisions", request_of(features())).status_code == 200
        assert waiting() == 0


# -- clients that misbehave ----------------------------------------------------------------------------


def head(url, length, **more):
    host = url.removeprefix("http://")
    lines = [f"POST /v1/decisions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in {"Content-Length": length, **more}.items() if value is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connect(url):
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=120)


def read_all(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.slow
def test_a_body_that_comes_too_slowly(tmp_path):
    folder = make_campaign(tmp_path / "autumn", 'service.timeout = "1 second"\n')
    with live(folder) as url, connect(url) as slow:
        slow.sendall(head(url, 100) + b"{")
        assert httpx.get(f"{url}/healthz").status_code == 200
        answer = read_all(slow)  # until the service closes the connection
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in answer


def test_a_body_that_never_ends(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.largest_body = 100000\n")
    with live(folder) as url, connect(url) as endless:
        endless.sendall(head(url, None, **{"Transfer-Encoding": "chunked"}))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            while True:
                endless.sendall(chunk)
        except OSError:
            pass  # the service has closed the connection
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_body_that_is_announced_as_huge(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.largest_body = 100000\n")
    with live(folder) as url:
        response = httpx.post(
            f"{url}/v1/decisions", content=b" " * 5_000_000, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 413
        assert response.headers["connection"] == "close"


def test_clients_that_go_away(folder):
    body = json.dumps(request_of(features(), key="gone")).encode()
    with live(folder) as url:
        for sent in (head(url, len(body)) + body[:50], head(url, len(body)) + body, head(url, 10) + b"{"):
            with connect(url) as connection:
                connection.sendall(sent)
        with connect(url) as connection:
            connection.sendall(b"\x00\x01 nonsense\r\n\r\n")
            assert read_all(connection).startswith(b"HTTP/1.1 400")
        response = httpx.post(f"{url}/v1/decisions", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 200


@pytest.mark.slow
def test_many_connections_at_once_are_written_together(folder):
    async def load(url):
        limits = httpx.Limits(max_connections=32)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as client:
            bodies = [request_of(features(), key=f"k{i % 100}") for i in range(200)]
            return await asyncio.gather(*(client.post("/v1/decisions", json=body) for body in bodies))

    with live(folder) as url:
        answers = asyncio.run(load(url))
        sizes = re.search(r"armful_commit_size_count (\S+)", httpx.get(f"{url}/metrics").text)
    assert {answer.status_code for answer in answers} == {200}
    assert sorted({int(answer.json()["decision_id"]) for answer in answers}) == list(range(1, 101))
    assert float(sizes[1]) < 200  # transactions, each of which is synced to the disk once
