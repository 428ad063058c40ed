"""The commands of campaigns: their options. The work is done by `armful.campaigns`, the printing by `_campaign_output`.

Imports wait until a command runs, so that `armful --help` is quick and each command needs its own extra only.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armful.cli._failing import needs, stopped

if TYPE_CHECKING:
    from armful.campaigns import Campaign

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The campaign: its folder, or the address of its store.", show_default=False),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for scripts, and nothing else on standard output.")
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="DATE",
        help="Pretend it is this moment, like 2026-03-01: for trying things out and for catching up on past rounds.",
        show_default=False,
    ),
]


def init(
    name: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to make for the campaign.", show_default=False)
    ],
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Your customers: a CSV or Parquet file, one row for each.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Begin a campaign: look at your customers and write the settings.

    Makes the folder NAME with campaign.toml in it. That file says how each
    column is used and how many customers are contacted in a round. What was
    guessed is explained: change what is wrong. Nothing is overwritten.

    Example: armful init autumn --from customers.csv
    """
    with _work():
        from armful.campaigns import init_campaign  # noqa: PLC0415
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell(init_campaign(name, source), as_json, name=str(name), file=str(source))


def check(name: Name, as_json: Json = False) -> None:
    """Check the settings of a campaign.

    Reads campaign.toml and lists every mistake, with its line and what was
    expected there. Changes nothing.

    Example: armful check autumn
    """
    with _work():
        from armful.campaigns import check_settings  # noqa: PLC0415
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell(check_settings(Path(name)), as_json, name=name)


def plan(name: Name, now: Now = None, as_json: Json = False) -> None:
    """See before the launch what the campaign can show.

    Says how careful the first rounds will be, how many rounds it takes to
    learn, and how large the holdout must be to see an improvement. It
    simulates the campaign on your own customers and changes nothing.

    Example: armful plan autumn
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell(campaign.plan(progress=_at_a_terminal()), as_json, name=name, file=campaign.settings.source)


def choose(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Your customers as they are now: CSV, Parquet or a folder of Parquet.",
            show_default=False,
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="A name for the round, like 2026-W10: the same again gives the same round.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the list; NAME/rounds/007/chosen.csv by default.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be chosen. Nothing is recorded or written.")
    ] = False,
    now: Now = None,
    as_json: Json = False,
) -> None:
    """Choose whom to contact in the next round.

    Writes a list of customers, best first. It obeys the settings (how many,
    quotas, who rests) and uses what the outcomes so far have taught. The
    round is recorded as sent; --dry-run shows it first.

    Example: armful choose autumn customers.csv
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        done = campaign.choose(file, key=key, out=out, dry_run=dry_run, progress=_at_a_terminal())
        output.tell(done, as_json, name=name, file=str(file))


def learn(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Outcomes: a CSV or Parquet file, one row for each.", show_default=False),
    ],
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="The column with the customers' ids.", show_default=False),
    ] = None,
    reward: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the outcome, like bought.", show_default=False)
    ] = None,
    round_column: Annotated[
        str | None,
        typer.Option("--round", metavar="COLUMN", help="The column with the number of the round.", show_default=False),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says when it happened.", show_default=False)
    ] = None,
    now: Now = None,
    as_json: Json = False,
) -> None:
    """Learn from outcomes: who bought, visited or answered.

    Finds the contact that each outcome belongs to, and says what matched, what
    did not and what is outstanding. Outcomes may come late, a file may be sent
    twice, and a later value corrects an earlier one.

    Example: armful learn autumn outcomes.csv
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        done = campaign.learn(
            file, id=id_column, reward=reward, round=round_column, time=time, progress=_at_a_terminal()
        )
        output.tell(done, as_json, name=name, file=campaign.settings.source)


def status(name: Name, now: Now = None, as_json: Json = False) -> None:
    """Show where the campaign stands.

    Lists the rounds with their outcomes, how many are outstanding, how much of
    each round was tried to learn from it, and what the model believes about
    your customers. Changes nothing.

    Example: armful status autumn
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell(campaign.status(), as_json, name=name, file=campaign.settings.source)


def report(
    name: Name,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write it; NAME/report.html by default.", show_default=False),
    ] = None,
    now: Now = None,
    as_json: Json = False,
) -> None:
    """Write the report that says whether it worked.

    One page to open in a browser or to send on. It has the improvement over
    the holdout with its uncertainty, every round, what was learned, and a
    check of what could mislead.

    Example: armful report autumn
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell(campaign.report(out), as_json, name=name, file=campaign.settings.source)


def forget(
    name: Name,
    ids: Annotated[
        list[str],
        typer.Option("--id", metavar="ID", help="The customer to erase; may be repeated.", show_default=False),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    now: Now = None,
    as_json: Json = False,
) -> None:
    """Erase customers from the campaign.

    Their contacts and outcomes are removed from every round, and the model is
    computed anew without them. This cannot be undone.

    Example: armful forget autumn --id 4711
    """
    with _work(), _campaign(name, now) as campaign:
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        if not yes and sys.stdin.isatty():
            who = ids[0] if len(ids) == 1 else f"{len(ids)} customers"
            if not typer.confirm(f"Erase {who} from {name} for good?", err=True):
                raise ValueError("nothing was erased, since it was not confirmed")
        output.tell(campaign.forget(ids), as_json, name=name)


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder for everything that is made.")] = Path(
        "armful-demo"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same campaign.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Run a made campaign from beginning to end, in about a minute.

    Makes 200,000 customers who respond in a way that the campaign has to find
    out, contacts 2,000 of them in each of eight weeks, and learns from what
    they buy. Prints each command as you would type it.

    Example: armful demo --out try-it
    """
    with _work():
        from armful.campaigns._demo import demo_steps  # noqa: PLC0415
        from armful.cli import _campaign_output as output  # noqa: PLC0415

        output.tell_demo(demo_steps(out, seed=seed), as_json)


COMMANDS: tuple[Callable[..., None], ...] = (init, check, plan, choose, learn, status, report, forget, demo)


@contextmanager
def _work() -> Iterator[None]:
    """Name what is not installed, and end with a sentence when the command is interrupted."""
    try:
        with needs("campaigns"):
            yield
    except KeyboardInterrupt:
        stopped()


@contextmanager
def _campaign(name: str, now: str | None) -> Iterator["Campaign"]:
    from armful.campaigns import Campaign  # noqa: PLC0415

    moment = None if now is None else _moment(now)
    with Campaign.open(name, now=None if moment is None else lambda: moment) as campaign:
        yield campaign


def _moment(text: str) -> datetime:
    """Return the moment that is meant; one without an offset is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--now takes a date like 2026-03-01 or a moment like 2026-03-01T12:00, got {text!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _at_a_terminal() -> bool:
    """Whether progress bars are seen by somebody."""
    return sys.stderr.isatty()
