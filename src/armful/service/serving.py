"""`armful serve`: checks a campaign, binds an address, and runs the processes that serve it."""

import errno
import functools
import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from armful.campaigns import Campaign
from armful.checks import count
from armful.errors import with_message
from armful.service._accepting import Shares
from armful.service._children import Role
from armful.service._logging import configure_logging
from armful.service._metrics import shared_metrics
from armful.service._preparing import frozen_recipe
from armful.service._server import App, run_worker
from armful.service._supervisor import Supervisor
from armful.service.app import create_app
from armful.service.options import ServeOptions
from armful.service.updater import run_updater

WAITING_CONNECTIONS = 2048


@dataclass(frozen=True, kw_only=True)
class Running:
    """A service that has started.

    Attributes
    ----------
    url : str
        Its address.
    processes : dict of str to int
        The ids of its processes, by name.
    """

    url: str
    processes: dict[str, int]


def serve(
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    options: ServeOptions | None = None,
    beside: Callable[[str], Role] | None = None,
    when_ready: Callable[[Running], None] = lambda _: None,
    seconds: float | None = None,
) -> int:
    """Serve a campaign until SIGINT or SIGTERM: nobody can connect then, and requests in flight are answered.

    Parameters
    ----------
    name : str
        A folder with `campaign.toml`, or the URL of a store.
    host : str
        The address to bind. Other than loopback it needs a key.
    port : int
        The port; 0 for one that is free.
    workers : int
        The number of processes that answer requests.
    options : ServeOptions, optional
        How it is served.
    beside : callable, optional
        Takes the address and returns a further process to run.
    when_ready : callable
        Called once, when all processes are ready.
    seconds : float, optional
        End by itself when it was ready for so many seconds.

    Returns
    -------
    int
        The exit code; 0 if everything that was begun was finished.

    Raises
    ------
    ValueError
        If the service cannot start; the message says why.
    OSError
        If the address cannot be bound.
    """
    options = options or ServeOptions()
    check_workers(workers)
    with listening(host, port) as bound, shared_metrics(workers):
        with Campaign.open(name, name=options.campaign) as campaign:
            _check_keys(campaign, host, bound)
            frozen_recipe(campaign)
            options = replace(options, settings=campaign.settings)
        make_app = functools.partial(create_app, name, options=options)
        shares = Shares(workers)
        roles = [
            Role(name=f"worker {i + 1}", run=run_worker, arguments=(bound, make_app, (shares, i), options.log_level))
            for i in range(workers)
        ]
        roles.append(Role(name="updater", run=run_updater, arguments=(name, options)))
        if beside is not None:
            roles.append(beside(address(host, bound.getsockname()[1])))
        return run(roles, bound, host, when_ready, seconds)


def serve_app(make_app: Callable[[], App], *, host: str, port: int, when_ready: Callable[[Running], None]) -> int:
    """Serve an application that changes nothing, in one process; arguments and result as for `serve`."""
    with listening(host, port) as bound:
        return run([Role(name="worker", run=run_worker, arguments=(bound, make_app))], bound, host, when_ready)


def run(
    roles: list[Role],
    bound: socket.socket,
    host: str,
    when_ready: Callable[[Running], None],
    seconds: float | None = None,
) -> int:
    """Run processes on a bound socket until a signal, and return the exit code."""
    configure_logging()
    url = address(host, bound.getsockname()[1])
    supervisor = Supervisor(roles, bound, lambda pids: when_ready(Running(url=url, processes=pids)))
    return supervisor.run(seconds)


def check_workers(workers: int) -> None:
    """Raise ValueError if so many processes cannot share a socket here."""
    if count("workers", workers) > 1 and os.name == "nt":
        raise ValueError(f"on Windows a service has one worker, got --workers {workers}; use Linux for more")


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that listens; raise OSError of one sentence if the address cannot be bound."""
    where = address(host, port).removeprefix("http://")
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{host} is no address of this machine ({error}); give one by --host") from None
    with bound:
        if os.name != "nt":  # there it would let another program take the port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(place)
            bound.listen(WAITING_CONNECTIONS)
        except OSError as error:
            raise with_message(error, _why_not_bound(error, where)) from None
        yield bound


def _why_not_bound(error: OSError, where: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use by another program; give another port by --port, or 0 for a free one"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where} may not be used by this user; give a port from 1024 on by --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where} is no address of this machine; give one by --host"
    return f"{where} cannot be used: {error.strerror}"


def address(host: str, port: int) -> str:
    """Return the URL of a service.

    Examples
    --------
    >>> address("127.0.0.1", 8000), address("::1", 8000)
    ('http://127.0.0.1:8000', 'http://[::1]:8000')
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _check_keys(campaign: Campaign, host: str, bound: socket.socket) -> None:
    """Raise ValueError if everybody could reach a service that nobody has a key for."""
    if ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback:
        return
    keys, now = campaign.ledger.keys(), datetime.now(UTC)
    for key in keys:
        if key.revoked_at is None and (key.expires_at is None or key.expires_at > now):
            return
    raise ValueError(
        f"{host} can be reached from other machines, and {campaign.settings.name} has no key: make one by `armful key "
        "create`, or serve on 127.0.0.1"
    )
