"""The decision service under load, beside a bare web application and beside Vowpal Wabbit's daemon.

Every request carries N candidates with 20 ready features and asks for a slate of 10; armful chooses by a model that has
learned 2,000 rewards, makes the decision durable in SQLite and answers. All servers run on this machine with one worker
and are asked in turn, so the ratios are of one run. CPU is that of the server's processes alone; that of armful's
updates is measured by itself.

- "bare": FastAPI and pydantic parse the same body and answer a fixed slate. It chooses nothing and stores nothing.
- "bare, all fields": the same, with all fields and limits of armful's request, finite numbers only, and the features
  of the candidates as one array, which is what armful chooses from.
- "vw": the daemon of Vowpal Wabbit (`--cb_explore_adf`, one of the candidates; `--ccb_explore_adf`, a slate of 10) is
  sent the same numbers as text. It stores nothing.

    python benchmarks/service.py            # about eight minutes; needs pip install .[bench]; Linux only
    python benchmarks/service.py --quick
    python benchmarks/service.py --keys     # every request has an idempotency key of its own, as those of armful.Client
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from armful import Campaign, Client
from armful.campaigns.decisions import DecisionFold, update_model
from armful.service._calls import new_key

D, K = 20, 10
Reader = Callable[[asyncio.StreamReader], Awaitable[bytes]]
SWAPS = 10
"""So many models at least are swapped in during each turn."""
TICK = os.sysconf("SC_CLK_TCK")
SETTINGS = """\
name = "load"
id = "id"
choose.k = {k}
policy.cap = 1.0
holdout.share = 0.0
features.ready = {d}

[outcomes]
reward = "click"
window = "{window}"
learn = "at once"

[service]
update_every = "{update_every}"
most_arms = 20000
"""


@dataclass(frozen=True)
class Load:
    """What was measured at one number of connections: requests, a second, latencies in ms, CPU ms of a request."""

    n: int
    rate: float
    p50: float
    p99: float
    cpu: float


# -- servers -------------------------------------------------------------------------------------------------------


@contextmanager
def armful(folder: Path, *, window: str = "1 hour", update_every: str = "10 seconds") -> Iterator[tuple[int, int]]:
    """Serve a campaign, a new one if there is none; give process id and port."""
    folder.mkdir(exist_ok=True)
    settings = SETTINGS.format(k=K, d=D, window=window, update_every=update_every)
    (folder / "campaign.toml").write_text(settings)
    with _process([sys.executable, "-m", "armful", "serve", str(folder), "--port", "0", "--no-access-log"]) as process:
        yield process.pid, _port(process)


@contextmanager
def taught(folder: Path) -> Iterator[tuple[int, int]]:
    """Serve a new campaign whose model has learned something, and is not updated any more.

    A model that has learned nothing gives all arms the same score, and ties take longer. What updates take is measured
    by itself (`show_updates`): in a turn of seconds there is one or there is none.
    """
    with armful(folder, update_every="1 second") as server:
        teach(server)
    with armful(folder, update_every="1 hour") as server:
        yield server


def teach(server: tuple[int, int]) -> None:
    """Send rewards and wait until there is a model that has learned them, as a service in use has."""
    rng, url = np.random.default_rng(0), f"http://127.0.0.1:{server[1]}"
    with Client(url) as client:
        for i, request in enumerate(http_requests(50, 200)):
            candidates = json.loads(request.partition(b"\r\n\r\n")[2])["candidates"]
            decision = client.decide(candidates, key=f"lesson {i}")
            features = {each["id"]: each["features"] for each in candidates}
            chances = {id: sum(features[id][: D // 2]) / np.sqrt(D) for id in decision.ids}
            client.reward(decision.decision_id, {id: float(rng.random() < p) for id, p in chances.items()})
        while client.status().model.n_observations < 200 * K:
            time.sleep(0.2)


@contextmanager
def bare(*, all_fields: bool = False) -> Iterator[tuple[int, int]]:
    """Serve the bare application."""
    port = _free_port()
    options = ["--all-fields"] if all_fields else []
    with _process([sys.executable, __file__, "--bare", str(port), *options]) as process:
        _wait_for(port)
        yield process.pid, port


@contextmanager
def vowpal_wabbit(options: str) -> Iterator[tuple[int, int]]:
    """Run the daemon of Vowpal Wabbit."""
    port = _free_port()
    code = (
        "from vowpalwabbit import pyvw\n"
        f"pyvw.Workspace('{options} --daemon --foreground --num_children 1 --port {port} --quiet').run_parser()"
    )
    with _process([sys.executable, "-c", code]) as process:
        _wait_for(port)
        yield process.pid, port


def serve_bare(port: int, *, all_fields: bool) -> None:
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    app.add_api_route("/v1/decisions", _with_all_fields() if all_fields else _with_few_fields(), methods=["POST"])
    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def _with_few_fields() -> Callable[..., Any]:
    from pydantic import BaseModel

    class Candidate(BaseModel):
        id: str
        features: list[float]

    class Decision(BaseModel):
        candidates: list[Candidate]
        key: str | None = None

    async def decide(decision: Decision) -> dict[str, object]:
        return _fixed([each.id for each in decision.candidates])

    return decide


def _with_all_fields() -> Callable[..., Any]:
    from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

    Id = Annotated[str, Field(min_length=1, max_length=200)]
    Scalar = str | int | float | bool | None
    Bound = float | dict[str, float] | None

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

    class Candidate(Strict):
        id: Id
        columns: dict[str, Scalar] | None = None
        features: Annotated[list[FiniteFloat], Field(min_length=1)] | None = None

    class Quota(Strict):
        column: Id
        at_least: Bound = None
        at_most: Bound = None
        nested: bool = False

    class Constraint(Strict):
        k: Annotated[int, Field(ge=1)] | None = None
        quotas: list[Quota] | None = None
        exclude: tuple[Id, ...] = ()
        require: tuple[Id, ...] = ()

    class Decision(Strict):
        candidates: Annotated[list[Candidate | Id], Field(min_length=1)] | None = None
        context: dict[str, Scalar] | None = None
        constraint: Constraint | None = None
        key: Id | None = None
        unit: Id | None = None

    async def decide(decision: Decision) -> dict[str, object]:
        candidates = [each for each in decision.candidates or () if isinstance(each, Candidate)]
        X = np.array([each.features for each in candidates], dtype=np.float32)
        assert X.shape == (len(candidates), D)
        return _fixed([each.id for each in candidates])

    return decide


def _fixed(ids: list[str]) -> dict[str, object]:
    chosen = [
        {"id": id, "position": i + 1, "predicted": 0.1, "bonus": 0.1, "capped": False, "probability": None}
        for i, id in enumerate(ids[:K])
    ]
    return {"decision_id": "1", "chosen": chosen, "model_version": 1}


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _port(process: subprocess.Popen[str]) -> int:
    """Return the port that `armful serve` prints when it is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            return int(found[1])
    raise RuntimeError("armful serve ended before it was ready")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK + sum(cpu_seconds(int(child)) for child in children)


# -- load ----------------------------------------------------------------------------------------------------------


class Keyed(Sequence[bytes]):
    """Requests, of which each has another idempotency key whenever it is asked for."""

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._parts = [request.partition(b"\r\n") for request in requests]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, i: int) -> bytes:
        line, end, rest = self._parts[i]
        return b"".join([line, end, b"idempotency-key: ", new_key().encode(), end, rest])


def http_requests(n: int, count: int, *, keys: bool = False) -> Sequence[bytes]:
    """Return so many requests of n candidates; keys: with idempotency keys."""
    rng = np.random.default_rng(n)
    requests = []
    for _ in range(count):
        X = (rng.uniform(0, 1, (n, D)) / np.sqrt(D)).round(5)
        candidates = [{"id": f"item-{i}", "features": row} for i, row in enumerate(X.tolist())]
        body = json.dumps({"candidates": candidates}, separators=(",", ":")).encode()
        head = ["POST /v1/decisions HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
        requests.append("\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body)
    return Keyed(requests) if keys else requests


def vw_requests(n: int, count: int, *, slots: bool) -> list[bytes]:
    """Return the same candidates as text for Vowpal Wabbit."""
    rng = np.random.default_rng(n)
    requests = []
    for _ in range(count):
        X = (rng.uniform(0, 1, (n, D)) / np.sqrt(D)).round(5)
        numbers = [" ".join(f"x{j}:{value}" for j, value in enumerate(row)) for row in X.tolist()]
        if slots:
            lines = ["ccb shared |", *(f"ccb action |a {row}" for row in numbers), *["ccb slot |"] * K]
        else:
            lines = [f"|a {row}" for row in numbers]
        requests.append(("\n".join(lines) + "\n\n").encode())
    return requests


async def _read_http(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{head!r} {await reader.read(500)!r}")
    length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
    return await reader.readexactly(length)


async def _read_vw(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\n\n")


@dataclass
class Versions:
    """Reads decisions, and keeps which models made them."""

    seen: set[bytes] = field(default_factory=set)

    async def read(self, reader: asyncio.StreamReader) -> bytes:
        body = await _read_http(reader)
        self.seen.add(re.search(rb'"model_version":(\w+)', body)[1])
        return body


async def _load(
    port: int, requests: Sequence[bytes], connections: int, numbers: Iterable[int], read: Reader
) -> list[float]:
    times: list[float] = []
    left = iter(numbers)

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        for i in left:
            request = requests[i % len(requests)]
            begin = time.perf_counter()
            writer.write(request)
            await writer.drain()
            await read(reader)
            times.append(time.perf_counter() - begin)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return times


def load(
    server: tuple[int, int], requests: Sequence[bytes], connections: int, total: int | Iterable[int], read: Reader
) -> Load:
    """Send so many requests over so many connections, or one for each of some numbers, and measure."""
    pid, port = server
    cpu, begin = cpu_seconds(pid), time.perf_counter()
    numbers = range(total) if isinstance(total, int) else total
    times = asyncio.run(_load(port, requests, connections, numbers, read))
    seconds, cpu = time.perf_counter() - begin, cpu_seconds(pid) - cpu
    p50, p99 = np.percentile(np.array(times) * 1e3, [50, 99])
    n = len(times)
    return Load(n=n, rate=n / seconds, p50=float(p50), p99=float(p99), cpu=cpu / n * 1e3)


# -- the tables ----------------------------------------------------------------------------------------------------


def compare_cpu(folder: Path, repeats: int, *, keys: bool) -> None:
    print(
        f"\nCPU of a request: armful (durable decisions) beside the others, 16 connections, medians of {repeats} turns"
    )
    print(
        "| candidates | armful ms | bare ms | armful / bare | bare, all fields ms | armful / bare, all fields "
        "| vw one ms | armful / vw | vw slate ms | armful / vw |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with (
        taught(folder / "cpu") as ours,
        bare() as theirs,
        bare(all_fields=True) as strict,
        vowpal_wabbit("--cb_explore_adf") as one,
        vowpal_wabbit("--ccb_explore_adf") as slate,
    ):
        for n, total in ((100, 6000), (1000, 800), (10_000, 48)):
            bodies = http_requests(n, 20, keys=keys)
            texts, slates = vw_requests(n, 20, slots=False), vw_requests(n, 4, slots=True)
            for server in (ours, theirs, strict):
                load(server, bodies, 4, max(total // 40, 8), _read_http)
            cpu: dict[str, list[float]] = {"ours": [], "bare": [], "strict": [], "one": [], "slate": []}
            for _ in range(repeats):
                cpu["ours"].append(load(ours, bodies, 16, total, _read_http).cpu)
                cpu["bare"].append(load(theirs, bodies, 16, total, _read_http).cpu)
                cpu["strict"].append(load(strict, bodies, 16, total, _read_http).cpu)
                # The daemons answer one connection at a time.
                cpu["one"].append(load(one, texts, 1, total, _read_vw).cpu)
                cpu["slate"].append(load(slate, slates, 1, max(total // 8, 4), _read_vw).cpu)
            a, *others = (float(np.median(each)) for each in cpu.values())
            print(f"| {n:,} | {a:.2f} |", " | ".join(f"{b:.2f} | {a / b:.2f}" for b in others), "|", flush=True)


def show_updates(folder: Path) -> None:
    """Fold what the service of `compare_cpu` decided, as its updater would."""
    with Campaign.open(folder / "cpu") as campaign:
        fold = DecisionFold.of(campaign.ledger, campaign.settings)
        begin = time.process_time()
        update_model(fold, campaign.now())
        seconds, n = time.process_time() - begin, fold.last_round
    print(f"\nThe updater takes {seconds / n * 1e3:.3f} ms of CPU for each decision that it folds ({n:,} decisions).")


def show_load(folder: Path, factor: float, *, keys: bool) -> None:
    print("\narmful under load (durable decisions) beside the bare application: requests a second, p50 / p99 in ms")
    print(
        "| candidates | connections | armful | bare | p50 / p99 armful | p50 / p99 bare | rate armful / bare "
        "| CPU armful / bare | CPU armful / bare, all fields |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with taught(folder / "load") as ours, bare() as theirs, bare(all_fields=True) as strict:
        for n, total in ((100, 4000), (1000, 300), (10_000, 40)):
            bodies = http_requests(n, 20, keys=keys)
            for connections in (1, 4, 16, 64):
                count = max(int(total * factor), connections)
                a, b, c = (load(each, bodies, connections, count, _read_http) for each in (ours, theirs, strict))
                latencies = f"{a.p50:.1f} / {a.p99:.1f} | {b.p50:.1f} / {b.p99:.1f}"
                ratios = " | ".join(f"{each:.2f}" for each in (a.rate / b.rate, a.cpu / b.cpu, a.cpu / c.cpu))
                print(f"| {n:,} | {connections} | {a.rate:.0f} | {b.rate:.0f} | {latencies} | {ratios} |", flush=True)


def show_swaps(folder: Path, turns: int, *, keys: bool) -> None:
    """Compare latencies while models are swapped every second with those of a service that is not updated meanwhile."""
    print("\nLatency in ms while a model is folded and swapped every second; 100 candidates, 16 connections")
    print("| turn | requests | swaps | quiet p50 / p99 | swapping p50 / p99 | ratio of p99 |")
    print("| --- | --- | --- | --- | --- | --- |")
    bodies, ratios = http_requests(100, 50, keys=keys), []
    with (
        taught(folder / "quiet") as quiet,
        armful(folder / "swapping", window="1 second", update_every="1 second") as swapping,
    ):
        for turn in range(turns):
            versions = Versions()
            b = load(swapping, bodies, 16, _until_swapped(versions), versions.read)
            a = load(quiet, bodies, 16, b.n, Versions().read)
            ratios.append(b.p99 / a.p99)
            latencies = f"{a.p50:.1f} / {a.p99:.1f} | {b.p50:.1f} / {b.p99:.1f}"
            print(f"| {turn + 1} | {b.n:,} | {len(versions.seen) - 1} | {latencies} | {ratios[-1]:.2f} |", flush=True)
    print(f"median ratio of p99: {np.median(ratios):.2f}")


def _until_swapped(versions: Versions) -> Iterator[int]:
    """Count until enough models have been swapped in; raise RuntimeError if that takes minutes."""
    deadline = time.monotonic() + 600
    for i in takewhile(lambda _: len(versions.seen) <= SWAPS, count()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(versions.seen) - 1} models were swapped in within ten minutes")
        yield i


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument("--only", choices=["cpu", "load", "swaps"], help="one of the tables")
    parser.add_argument("--keys", action="store_true", help="give each request an idempotency key of its own")
    parser.add_argument("--bare", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--all-fields", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bare:
        serve_bare(arguments.bare, all_fields=arguments.all_fields)
        return
    needed = {"load": ["fastapi"], "swaps": []}.get(arguments.only, ["fastapi", "vowpalwabbit"])
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        parser.error(f"{' and '.join(missing)} cannot be imported: run pip install '.[bench]' first")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only in (None, "cpu"):
            compare_cpu(folder, repeats=3 if arguments.quick else 7, keys=arguments.keys)
            show_updates(folder)
        if arguments.only in (None, "load"):
            show_load(folder, 0.25 if arguments.quick else 1.0, keys=arguments.keys)
        if arguments.only in (None, "swaps"):
            show_swaps(folder, turns=2 if arguments.quick else 5, keys=arguments.keys)


if __name__ == "__main__":
    main()
