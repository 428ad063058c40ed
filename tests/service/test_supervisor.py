"""The supervisor with a trivial app: its processes are real ones, see `supervised.py`."""

import concurrent.futures
import logging
import os
import re
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from armful.service import _children
from armful.service._children import Role, Silence
from armful.service._supervisor import Supervisor
from tests.service.running import PATIENCE_SECONDS, Service, is_alive, until

pytestmark = pytest.mark.slow


class Supervised(Service):
    def __init__(self, folder, n_workers, app):
        super().__init__("tests.service.supervised", n_workers, app, folder)
        self.folder = folder

    def get(self, path="/"):
        with httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS) as client:
            return client.get(self.url + path)

    def answers(self):
        """The id of the worker that answers; None if there is none."""
        try:
            return int(self.get().text)
        except httpx.TransportError:
            return None

    def kill(self, name):
        os.kill(self.processes[name], signal.SIGKILL)

    def drained(self, name):
        return (self.folder / f"drained-{self.processes[name]}").exists()

    def logged(self):
        return [line["message"] for line in self.messages()]


@pytest.fixture
def start(tmp_path, interruptible):
    started = []

    def start(n_workers=2, app="plain"):
        started.append(Supervised(tmp_path, n_workers, app))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_signal_ends_everything_and_nothing_is_left(start, kind, n_workers):
    service = start(n_workers)
    assert service.answers() in service.processes.values()
    assert len(service.processes) == n_workers + 1
    assert service.end(kind) == 0
    assert all(service.drained(name) for name in service.processes)
    assert not any(is_alive(pid) for pid in service.processes.values())
    assert service.answers() is None


def test_a_request_in_flight_is_answered_and_a_new_one_is_not_taken(start, tmp_path):
    service = start()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(service.get, "/slow")
        until((tmp_path / "slow-began").exists, "the request")
        service.process.send_signal(signal.SIGTERM)
        until(lambda: service.answers() is None, "the end of new connections")
        assert service.process.poll() is None
        (tmp_path / "go-on").touch()
        assert slow.result().status_code == 200
    assert service.process.wait(PATIENCE_SECONDS) == 0


def test_answers_that_do_not_end_by_themselves_are_ended(start):
    service = start(n_workers=1)
    with httpx.stream("GET", service.url + "/events", trust_env=False, timeout=PATIENCE_SECONDS) as events:
        parts = events.iter_raw()
        assert next(parts).startswith(b".")
        service.process.send_signal(signal.SIGTERM)
        assert b"".join(parts).endswith(b".end")
    assert service.process.wait(PATIENCE_SECONDS) == 0


def test_an_interrupt_from_a_terminal_reaches_all_processes_and_harms_none(start):
    service = start()
    os.killpg(service.process.pid, signal.SIGINT)
    assert service.process.wait(PATIENCE_SECONDS) == 0
    assert all(service.drained(name) for name in service.processes)
    assert service.log() == ""


def test_a_second_signal_ends_at_once(start, tmp_path):
    service = start()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(service.get, "/slow")
        until((tmp_path / "slow-began").exists, "the request")
        service.process.send_signal(signal.SIGTERM)
        until(lambda: service.answers() is None, "the end of new connections")
        assert service.end() == 1
        assert isinstance(slow.exception(), httpx.TransportError)
    assert not any(is_alive(pid) for pid in service.processes.values())


def test_a_dead_worker_is_started_again_and_it_is_said_why(start):
    service = start(n_workers=1)
    service.kill("worker 0")
    until(lambda: service.answers() not in (None, service.processes["worker 0"]), "a new worker")
    assert service.end() == 0
    pid = service.processes["worker 0"]
    assert service.logged()[0] == (
        f"worker 0 (process {pid}) was ended by SIGKILL; another one is started in 0.01 seconds"
    )


def test_a_dead_updater_is_started_again(start, tmp_path):
    service = start(n_workers=1)
    service.kill("updater")
    until(lambda: any(re.fullmatch(r"updater .* is ready", line) for line in service.logged()), "another updater")
    assert service.end() == 0
    assert any("was ended by SIGKILL; another one is started" in line for line in service.logged())


def test_requests_are_answered_while_one_of_two_workers_is_dead(start, tmp_path):
    service = start(n_workers=2, app="two_live")
    service.kill("worker 0")
    until(lambda: (tmp_path / "deaths").exists() and len((tmp_path / "deaths").read_text()) >= 3, "deaths")
    assert {service.answers() for _ in range(10)} == {service.processes["worker 1"]}
    assert service.end() == 0
    pauses = [float(line.split()[-2]) for line in service.logged() if "there is no room; another one" in line]
    assert pauses[:2] == sorted(pauses[:2])
    assert pauses[0] < pauses[1]


def test_connections_that_stay_open_are_shared_by_all_workers(start):
    service = start(n_workers=3)
    clients = [httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS) for _ in range(30)]
    answered = [int(client.get(service.url).text) for client in clients]
    assert {service.processes[f"worker {i}"] for i in range(3)} == set(answered)
    for client in clients:
        client.close()
    assert service.end() == 0


def test_children_end_by_themselves_when_the_supervisor_is_killed(start, tmp_path):
    service = start()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        slow = pool.submit(service.get, "/slow")
        until((tmp_path / "slow-began").exists, "the request")
        service.process.kill()
        until(lambda: service.answers() is None, "the end of new connections")
        (tmp_path / "go-on").touch()
        assert slow.result().status_code == 200, "it was in flight"
    until(lambda: not any(is_alive(pid) for pid in service.processes.values()), "the end of the processes")
    assert all(service.drained(name) for name in service.processes)


@pytest.mark.parametrize(
    ("app", "sentence"),
    [
        ("fails", "the settings have two mistakes"),
        ("fails_in_start", "the model is missing; run armful check"),
        ("dies", r"worker \d \(process \d+\) was ended by SIGKILL before it was ready"),
    ],
)
def test_what_cannot_start_is_said_once(start, app, sentence):
    service = start(app=app)
    assert re.fullmatch(f"sentence: {sentence}\n", service.first_line)
    assert service.process.wait(PATIENCE_SECONDS) == 2
    assert service.process.stdout.read() == ""


def test_a_worker_that_is_told_to_end_drains_and_is_replaced(start):
    service = start(n_workers=1)
    os.kill(service.processes["worker 0"], signal.SIGTERM)
    until(lambda: service.answers() not in (None, service.processes["worker 0"]), "a new worker")
    assert service.drained("worker 0")
    assert service.end() == 0


def test_a_worker_that_is_told_to_end_as_soon_as_it_is_ready_drains_too(start):
    service = start(n_workers=1, app="ends_when_ready")
    until(lambda: service.answers() not in (None, service.processes["worker 0"]), "a new worker")
    assert service.drained("worker 0")
    assert service.end() == 0


def test_a_worker_that_hangs_is_killed_and_started_again(start):
    service = start(n_workers=1, app="watched")
    pid = service.processes["worker 0"]
    os.kill(pid, signal.SIGSTOP)
    until(lambda: any("is ready" in line for line in service.logged()), "another worker")
    until(lambda: service.answers() not in (None, pid), "its answer")
    assert service.end() == 0
    assert f"worker 0 (process {pid}) hangs, and is killed" in service.logged()
    assert not any("updater" in line for line in service.logged()), "it sends no heartbeats"


def test_a_worker_that_hangs_as_soon_as_it_is_ready_is_killed(start):
    service = start(n_workers=1, app="stops_when_ready")
    killed = f"worker 0 (process {service.processes['worker 0']}) hangs, and is killed"
    until(lambda: killed in service.logged(), "the end of the worker")


ENDING = """
import multiprocessing, os, signal, threading
from armful.service._children import Lifeline

supervisor, ours = multiprocessing.Pipe()
over = threading.Event()
Lifeline(ours).when_to_end(over.set)
with over._cond:  # as for a moment in each wait
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
print(over.wait(600))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_a_signal_ends_a_process_that_is_about_to_wait():
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "True\n"


def run_until_told_to_end(lifeline):
    over = threading.Event()
    lifeline.when_to_end(over.set)
    lifeline.ready()
    over.wait()


def test_a_process_that_the_system_has_no_room_for_is_tried_again(monkeypatch, caplog):
    """The others go on meanwhile; when the service begins it is an error."""
    monkeypatch.setattr(_children, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(_children, "STEADY_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(logging.getLogger("armful"), "propagate", True)  # where caplog looks
    roles = [Role(name="worker", run=run_until_told_to_end)]
    supervisor = Supervisor(roles, None, lambda pids: os.kill(pids["worker"], signal.SIGTERM))
    attempts, plain, full = [], _children.SPAWN.Process.start, BlockingIOError(11, "no more processes")

    def start(process):
        attempts.append(process)
        if len(attempts) == 2:
            raise full
        if len(attempts) == 3:
            supervisor._n_signals = 1
        plain(process)

    monkeypatch.setattr(_children.SPAWN.Process, "start", start)
    with caplog.at_level(logging.ERROR, "armful"):
        assert supervisor.run() == 0
    assert len(attempts) == 3
    assert f"worker cannot be started now: {full}; next try in 0.02 s" in caplog.messages
    attempts[:] = [None]
    with pytest.raises(BlockingIOError):
        Supervisor(roles, None, lambda _: None).run()
    attempts[:] = [None]
    child = _children.Child(roles[0])
    with pytest.raises(BlockingIOError):
        child.start()
    assert list(child.waitables()) == [], "the pipe is still open"


def test_time_in_which_the_supervisor_did_not_run_is_no_silence():
    silence = Silence()
    assert silence.seconds(0, 1000.0) == silence.seconds(0, 1001.0) == 0, "it has not begun"
    assert silence.seconds(1, 1002.0) == 0
    assert silence.seconds(1, 1002.5) == 0.5
    assert silence.seconds(1, 5000.0) == 1.5, "the machine was suspended"
    assert silence.seconds(2, 5000.5) == 0
    assert sum(silence.seconds(2, 5000.5 + i / 4) >= 60 for i in range(1, 241)) == 1
