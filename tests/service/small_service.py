"""A small campaign, its application in this process, and plain requests to it."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from armful.service.app import create_app
from armful.service.options import ServeOptions

SETTINGS = """name = "autumn"
id = "item"
choose.k = 3
holdout.share = 0
policy.cap = 1
policy.ridge = 1
outcomes.reward = "click"
outcomes.window = "30 minutes"
features.ready = 4
"""
LOCAL = {"client": ("127.0.0.1", 4711)}


def make_campaign(folder: Path, more: str = "", settings: str = SETTINGS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.toml").write_text(f"{settings}{more}", encoding="utf-8")
    return folder


def features(n: int = 12, d: int = 4, seed: int = 0) -> np.ndarray:
    """Return features of n arms, of about unit length."""
    return np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)


def request_of(X: np.ndarray, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"id": f"a{i}", "features": row} for i, row in enumerate(X.tolist())], **more}


class Service:
    """An application whose loop runs in a thread; requests are made one after the other, or many at once."""

    def __init__(self, app: Any, client: tuple[str, int] | None = ("127.0.0.1", 4711)) -> None:
        self.app, self._client_address = app, client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Service":
        self._thread.start()
        self._lifespan = self.app.router.lifespan_context(self.app)
        self.run(self._lifespan.__aenter__())
        transport = httpx.ASGITransport(self.app, client=self._client_address)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=120)
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._http.aclose())
        self.run(self._lifespan.__aexit__(None, None, None))
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def run_later(self, work: Any) -> Any:
        """Return a future of a request that goes on in the loop's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def post_later(self, path: str, json: Any) -> httpx.Response:
        return await self._http.post(path, json=json)

    @property
    def worker(self) -> Any:
        return self.app.state.worker

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.run(self._http.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        return self.request("POST", path, **({} if json is None else {"json": json}), **more)

    def post_at_once(self, path: str, bodies: list[Any]) -> list[httpx.Response]:
        return self.post_each([(path, body) for body in bodies])

    def post_each(self, requests: list[tuple[str, Any]]) -> list[httpx.Response]:
        """Post each body to its path, all at once."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(*(self._http.post(path, json=body) for path, body in requests))

        return self.run(all_of_them())


@contextmanager
def serving(folder: Path, *, client: tuple[str, int] | None = ("127.0.0.1", 4711), **options: Any):
    with Service(create_app(str(folder), options=ServeOptions(**options)), client) as service:
        yield service


@contextmanager
def live(folder: Path, **options: Any):
    """Serve a campaign on a free port of this machine, and give its address."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        app = create_app(str(folder), options=ServeOptions(**options))
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 120
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(120)
            assert not thread.is_alive()
