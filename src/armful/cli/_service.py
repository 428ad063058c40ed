"""The commands of the decision service: they translate options. The work is done by `armful.service`."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from armful.cli import _campaign_options as campaign_options
from armful.cli import _service_options as options
from armful.cli._failing import needs, stopped

if TYPE_CHECKING:
    from armful.ledger import Ledger
    from armful.service.serving import Running

EVERYWHERE = ("http://0.0.0.0", "http://[::]")
"""How the address begins of a service that was bound to all addresses of the machine."""

key = typer.Typer(
    help="Make, list and revoke the keys of a decision service.\n\nExample: armful key create autumn --role decide"
)


def serve(
    name: campaign_options.Name,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    workers: options.Workers = 1,
    update_every: options.UpdateEvery = None,
    access_log: options.AccessLog = True,
    which: campaign_options.Which = None,
    as_json: campaign_options.Json = False,
) -> int:
    """Serve decisions over HTTP, with a dashboard.

    Answers POST /v1/decisions from memory and learns from rewards as they
    come. What was answered is in the campaign's store. Prints the address
    when it is ready, runs until Ctrl-C, and answers what was asked before.

    Example: armful serve autumn --port 8000 --workers 2
    """
    with _work():
        from armful.service.options import ServeOptions  # noqa: PLC0415
        from armful.service.serving import serve as serve_campaign  # noqa: PLC0415

        how = ServeOptions(
            campaign=which,
            update_every=None if update_every is None else _duration("--update-every", update_every),
            access_log=access_log,
        )

        def tell(running: "Running") -> None:
            tell_address(running, f"{_shown(name)} is served at {_where(running.url)}; Ctrl-C ends it", as_json)

        return serve_campaign(name, host=host, port=port, workers=workers, options=how, when_ready=tell)


def dashboard(
    name: campaign_options.Name,
    port: options.Port = 8001,
    which: campaign_options.Which = None,
    as_json: campaign_options.Json = False,
) -> int:
    """Show a campaign in the browser, while it runs.

    Shows the outcomes over time beside the holdout, what the model believes,
    and the audit. Only this machine can open the page, and it changes
    nothing. A campaign that is served has the same page at its own address.

    Example: armful dashboard autumn
    """
    with _work():
        from armful.service.showing import show  # noqa: PLC0415

        def tell(running: "Running") -> None:
            tell_address(running, f"the dashboard of {_shown(name)} is at {running.url}; Ctrl-C ends it", as_json)

        return show(name, port=port, campaign=which, when_ready=tell)


def compact(
    name: campaign_options.Name, which: campaign_options.Which = None, as_json: campaign_options.Json = False
) -> None:
    """Give back space on the disk that the campaign's store no longer uses.

    Changes nothing that is recorded, and may run while the campaign is
    served: requests wait until the file is written anew. That takes as much
    space again meanwhile. In PostgreSQL it vacuums the tables.

    Example: armful compact autumn
    """
    with _work(), _ledger(name, which) as ledger:
        from armful.cli._campaign_output import print_json  # noqa: PLC0415
        from armful.cli._printing import size  # noqa: PLC0415

        before = ledger.size()
        ledger.compact()
        after = ledger.size()
        if as_json:
            print_json({"bytes_before": before, "bytes_after": after})
            return
        typer.echo(f"the store of {_shown(name)} takes {size(after)}, before it took {size(before)}")


@key.command("create")
def create_key(
    name: campaign_options.Name,
    roles: options.Roles = None,
    expires: options.Expires = None,
    label: options.Label = "",
    which: campaign_options.Which = None,
    as_json: campaign_options.Json = False,
) -> None:
    """Make a key and print it, once: only a hash of it is kept.

    Once a campaign has a key, its service answers requests with a key only.
    The dashboard can still be read without one on the machine that serves.
    Keys for software that decides, that reports rewards and that reads need
    not be the same.

    Example: armful key create autumn --role decide --role reward --label shop
    """
    with _work(), _ledger(name, which) as ledger:
        from armful.cli._campaign_output import print_json  # noqa: PLC0415
        from armful.service.keys import ROLES, check_roles, new_key  # noqa: PLC0415

        if not roles:
            raise ValueError(f"give --role, which may be repeated: {', '.join(ROLES)}")
        ends = None if expires is None else datetime.now(UTC) + _duration("--expires", expires)
        key_id, secret, kept = new_key()
        info = ledger.add_key(id=key_id, hash=kept, roles=check_roles(roles), label=label, expires_at=ends)
        if as_json:
            print_json({"id": key_id, "key": secret, "roles": list(info.roles), "expires_at": info.expires_at})
            return
        typer.echo(secret)
        typer.echo(f"\nkeep it: it is not shown again. It may {' and '.join(info.roles)}; its id is {key_id}", err=True)


@key.command("list")
def list_keys(
    name: campaign_options.Name, which: campaign_options.Which = None, as_json: campaign_options.Json = False
) -> None:
    """List the keys of a campaign: ids, roles and whether they hold, never the keys themselves.

    Example: armful key list autumn
    """
    with _work(), _ledger(name, which) as ledger:
        from armful.cli._campaign_output import print_json  # noqa: PLC0415
        from armful.cli._printing import date, draw, printable  # noqa: PLC0415

        keys, now = ledger.keys(), datetime.now(UTC)
        if as_json:
            fields = ("id", "label", "roles", "created_at", "expires_at", "revoked_at")
            print_json({"keys": [{field: getattr(each, field) for field in fields} for each in keys]})
            return
        if not keys:
            typer.echo("there is no key: a service on this machine answers without one")
            return
        rows = []
        for each in keys:
            state = "valid" if each.expires_at is None else f"until {date(each.expires_at)}"
            if each.expires_at is not None and each.expires_at <= now:
                state = f"expired {date(each.expires_at)}"
            if each.revoked_at is not None:
                state = f"revoked {date(each.revoked_at)}"
            rows.append((each.id, ", ".join(each.roles), date(each.created_at), state, printable(each.label)))
        draw(["id", "roles", "made", "state", "label"], rows, numbers=False)


@key.command("revoke")
def revoke_key(
    name: campaign_options.Name,
    key_id: options.KeyId,
    which: campaign_options.Which = None,
    as_json: campaign_options.Json = False,
) -> None:
    """Revoke a key, for good: a running service refuses it within seconds.

    Example: armful key revoke autumn 3f2a9c10b4d7
    """
    with _work(), _ledger(name, which) as ledger:
        from armful.cli._campaign_output import print_json  # noqa: PLC0415
        from armful.service.keys import key_id as id_of  # noqa: PLC0415

        wanted = id_of(key_id) or key_id
        if not ledger.revoke_key(wanted):
            keys = ledger.keys()
            there = ", ".join(each.id for each in keys) or "none"
            raise ValueError(f"there is no key with this id; the campaign has {there}")
        if as_json:
            print_json({"id": wanted, "revoked": True})
            return
        typer.echo(f"{wanted} is revoked; a running service refuses it within seconds")


@contextmanager
def _work() -> Iterator[None]:
    """Name what is not installed, and end with a sentence when the command is interrupted before it serves."""
    try:
        with needs("serve"):
            yield
    except KeyboardInterrupt:
        stopped()


@contextmanager
def _ledger(name: str, which: str | None) -> Iterator["Ledger"]:
    from armful.campaigns import Campaign  # noqa: PLC0415

    with Campaign.open(name, name=which) as campaign:
        yield campaign.ledger


def tell_address(running: "Running", sentence: str, as_json: bool) -> None:
    """Print the address at once, also into a pipe."""
    from armful.cli._campaign_output import print_json  # noqa: PLC0415

    if as_json:
        print_json({"url": openable(running.url), "pid": os.getpid(), "processes": running.processes})
    else:
        typer.echo(sentence)


def openable(url: str) -> str:
    """Return an address that a browser on this machine can open: that of "all addresses" is none.

    Examples
    --------
    >>> openable("http://0.0.0.0:8000"), openable("http://[::]:8000"), openable("http://10.0.0.7:8000")
    ('http://localhost:8000', 'http://localhost:8000', 'http://10.0.0.7:8000')
    """
    return next((url.replace(host, "http://localhost", 1) for host in EVERYWHERE if url.startswith(f"{host}:")), url)


def _where(url: str) -> str:
    """Return an address for a sentence, with what other machines use where the service has all addresses."""
    here = openable(url)
    return here if here == url else f"{here}, and for other machines at the name of this one, {socket.gethostname()}"


def _shown(name: str) -> str:
    """Return the name of a campaign for a sentence: the address of a store without its password."""
    from armful.campaigns.settings._toml_text import without_password  # noqa: PLC0415
    from armful.cli._printing import printable  # noqa: PLC0415

    return printable(without_password(name))


def _duration(option: str, text: str) -> timedelta:
    from armful.campaigns.settings._amounts import duration  # noqa: PLC0415

    try:
        return duration(text)
    except ValueError as error:
        hint = f": {error}" if str(error) else ""
        raise ValueError(f"{option} takes a time like 30s, 10m, 12h or 90d, got {text!r}{hint}") from None
