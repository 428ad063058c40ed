"""What docs/howto/deploy-the-service.md says, and the files of examples/deploy, fit the service."""

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from armful.campaigns.settings import ServiceSettings
from armful.service import _guarded_http, _server, _supervisor
from tests.service.running import until
from tests.service.small_service import features, make_campaign, request_of, serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "deploy-the-service.md").read_text("utf-8")
DEPLOY = ROOT / "examples" / "deploy"
NGINX, UNIT, CONTAINER = (
    (DEPLOY / name).read_text("utf-8") for name in ("nginx.conf", "armful.service", "Containerfile")
)


def number(pattern, text):
    (found,) = re.findall(f"^ *{pattern}", text, re.MULTILINE)
    return int(found)


def test_the_proxy_closes_idle_connections_before_the_service_does():
    assert number(r"keepalive_timeout (\d+)s;", NGINX) < _server.KEEP_ALIVE_SECONDS


def test_the_proxy_takes_bodies_as_large_as_the_service_does_and_waits_longer_for_answers():
    assert number(r"client_max_body_size (\d+)m;", NGINX) * 2**20 == ServiceSettings().largest_body
    times = [int(seconds) for seconds in re.findall(r"proxy_read_timeout (\d+)s;", NGINX)]
    assert min(times) > ServiceSettings().timeout.total_seconds()


def test_the_unit_has_files_and_time_enough():
    assert number(r"LimitNOFILE=(\d+)", UNIT) > 2 * _guarded_http.MOST_CONNECTIONS
    assert number(r"TimeoutStopSec=(\d+)", UNIT) > _supervisor.GRACE_SECONDS


def test_the_health_of_a_container_is_asked_for_where_it_listens():
    (port,) = re.findall(r'"--port", "(\d+)"', CONTAINER)
    assert f"http://127.0.0.1:{port}/readyz" in CONTAINER
    assert f"EXPOSE {port}\n" in CONTAINER


def test_a_backup_while_decisions_are_made_has_all_before_it_and_can_be_restored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, over, decided = make_campaign(Path("autumn")), threading.Event(), []

    def decide():
        while not over.is_set():
            decided.append(service.post("/v1/decisions", request_of(features())).json()["decision_id"])

    def stored(served, ids):
        return [served.get(f"/v1/decisions/{each}").json() for each in ids]

    with serving(folder) as service:
        asking = threading.Thread(target=decide)
        asking.start()
        try:
            before = until(lambda: len(decided) >= 20 and decided[:], "decisions")
            (statement,) = re.findall(r'`sqlite3 autumn/ledger\.sqlite "(.+?)"`', PAGE)
            with closing(sqlite3.connect("autumn/ledger.sqlite")) as connection:
                connection.execute(statement)
            n = len(decided)
            until(lambda: len(decided) > n, "a decision after the backup")
        finally:
            over.set()
            asking.join()
        live = stored(service, before)
    for file in folder.glob("ledger.sqlite*"):
        file.unlink()
    Path("backup.sqlite").rename(folder / "ledger.sqlite")
    with serving(folder) as service:
        assert stored(service, before) == live
        new = service.post("/v1/decisions", request_of(features())).json()["decision_id"]
        assert new in decided, "the id of a decision that is not in the backup"
