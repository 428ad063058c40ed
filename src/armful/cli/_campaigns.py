"""The commands of campaigns: they translate options. The work is done by `armful.campaigns`.

Imports wait until a command runs, so that `armful --help` is quick and each command needs its own extra only.
"""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import typer

from armful.cli import _campaign_options as options
from armful.cli import _service_options as service_options
from armful.cli._campaign_commands import at_a_terminal, opened, source_of, tell_result, work
from armful.cli._failing import needs


def init(
    name: options.NewFolder,
    source: options.Source = None,
    kind: options.Kind = "campaign",
    id_column: options.IdColumn = None,
    reward: options.Reward = None,
    k: options.K = None,
    context: options.Context = None,
    features: options.ReadyFeatures = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Begin a campaign: look at your customers and write the settings.

    Makes the folder NAME with campaign.toml in it. That file says how each
    column is used and how many customers a round contacts. What is not given
    here is guessed and explained: change what is wrong. Nothing is overwritten.

    With --kind service the settings are those of a service that decides
    slates on request: FILE then has items, or past impressions.

    Example: armful init autumn --from customers.csv

    Example: armful init shop --kind service --features 20
    """
    with work():
        from armful.campaigns.init import init_campaign, init_service  # noqa: PLC0415

        if kind not in ("campaign", "service"):
            raise ValueError(f"--kind is campaign or service, got {kind!r}")
        if kind == "service":
            columns = [] if context is None else [each.strip() for each in context.split(",") if each.strip()]
            if source is None and features is None:
                raise ValueError("give items or past impressions by --from FILE, or ready features by --features N")
            done = init_service(
                name, source, features=features, context=columns, id=id_column, reward=reward, k=k, delimiter=delimiter
            )
        else:
            if context is not None or features is not None:
                raise ValueError(f"{'--features' if context is None else '--context'} is for --kind service")
            if source is None:
                raise ValueError("give your customers by --from FILE")
            done = init_campaign(name, source, id=id_column, reward=reward, k=k, delimiter=delimiter)
        tell_result(done, as_json, "check", str(name))


def check(name: options.Name, which: options.Which = None, as_json: options.Json = False) -> None:
    """Check the settings of a campaign.

    Reads campaign.toml and lists every mistake, with its line and what was
    expected there. Changes nothing.

    Example: armful check autumn
    """
    with work():
        from armful.campaigns import read_settings  # noqa: PLC0415
        from armful.campaigns._opening import refuse_other_name  # noqa: PLC0415

        if "://" in name:
            with opened(name, which) as campaign:
                settings = campaign.settings
        else:
            settings = read_settings(Path(name, "campaign.toml"))
            refuse_other_name(Path(name), settings, which)
        tell_result(settings, as_json, "plan" if settings.service is None else "serve", name, which=which)


def plan(
    name: options.Name,
    rounds: options.Rounds = 8,
    every: options.Every = 7.0,
    base_rate: options.BaseRate = None,
    which: options.Which = None,
    now: options.Now = None,
    as_json: options.Json = False,
) -> None:
    """See before the launch what the campaign can show.

    Says how careful the first rounds will be, how many rounds it takes to
    learn, and how large the holdout must be to see an improvement. It
    simulates the campaign on your own customers and changes nothing.

    Example: armful plan autumn
    """
    with work(), opened(name, which, now) as campaign:
        progress = at_a_terminal()
        done = campaign.plan(rounds=rounds, every=timedelta(days=every), base_rate=base_rate, progress=progress)
        tell_result(done, as_json, "choose", name, source_of(campaign), which=which)


def choose(
    name: options.Name,
    file: options.Customers,
    key: options.Key = None,
    out: options.ListFile = None,
    dry_run: options.DryRun = False,
    which: options.Which = None,
    now: options.Now = None,
    as_json: options.Json = False,
) -> None:
    """Choose whom to contact in the next round.

    Writes a list of customers, best first. It obeys the settings (how many,
    quotas, who rests) and uses what the outcomes so far have taught. The
    round is recorded as sent; --dry-run shows it first.

    Example: armful choose autumn customers.csv
    """
    if key == "":  # what a script gives whose variable is not set
        raise ValueError("--key must not be empty: give a name for the round, like 2026-W10, or leave it out")
    with work(), opened(name, which, now) as campaign:
        done = campaign.choose(file, key=key, out=out, dry_run=dry_run, progress=at_a_terminal())
        given = {"--key": key, "--out": out, "--now": now}
        again = [word for option, value in given.items() if value is not None for word in (option, str(value))]
        then = ["choose", name, str(file), *again] if dry_run else ["learn", name, "outcomes.csv"]
        tell_result(done, as_json, *then, which=which)


def learn(
    name: options.Name,
    file: options.OutcomesFile,
    id_column: options.IdColumn = None,
    reward: options.Reward = None,
    round_column: options.RoundColumn = None,
    time: options.TimeColumn = None,
    which: options.Which = None,
    now: options.Now = None,
    as_json: options.Json = False,
) -> None:
    """Learn from outcomes: who bought, visited or answered.

    Finds the contact that each outcome belongs to, and says what matched, what
    did not and what is outstanding. Outcomes may come late, a file may be sent
    twice, and a later value corrects an earlier one.

    Example: armful learn autumn outcomes.csv
    """
    with work(), opened(name, which, now) as campaign:
        done = campaign.learn(file, id=id_column, reward=reward, round=round_column, time=time)
        tell_result(done, as_json, "status", name, which=which)


def status(
    name: options.Name, which: options.Which = None, now: options.Now = None, as_json: options.Json = False
) -> None:
    """Show where the campaign stands.

    Lists the rounds with their outcomes, how many are outstanding, how much of
    each round was tried to learn from it, and what the model believes about
    your customers. Changes nothing.

    Example: armful status autumn
    """
    with work(), opened(name, which, now) as campaign:
        done = campaign.status()
        then = ["report", name] if done.rounds else ["choose", name, source_of(campaign)]
        if campaign.settings.service is not None:
            then = ["dashboard", name]
        tell_result(done, as_json, *then, which=which)


def report(
    name: options.Name,
    out: options.ReportFile = None,
    which: options.Which = None,
    now: options.Now = None,
    as_json: options.Json = False,
) -> None:
    """Write the report that says whether it worked.

    One page to open in a browser or to send on. It has the improvement over
    the holdout with its uncertainty, every round, what was learned, and a
    check of what could mislead.

    Example: armful report autumn
    """
    with work(), opened(name, which, now) as campaign:
        from armful.campaigns.lift import estimate_lift, lift_data  # noqa: PLC0415
        from armful.campaigns.lift._words import unit_of  # noqa: PLC0415
        from armful.cli._campaign_output import Reported  # noqa: PLC0415

        unit = unit_of(campaign.settings.outcomes.reward)
        done = Reported(report=campaign.report(out), lift=estimate_lift(lift_data(campaign.records()), unit=unit))
        tell_result(done, as_json, "choose", name, source_of(campaign), which=which)


def forget(
    name: options.Name,
    ids: options.Ids,
    yes: options.Yes = False,
    which: options.Which = None,
    now: options.Now = None,
    as_json: options.Json = False,
) -> None:
    """Erase customers from the campaign.

    Their contacts and outcomes are removed from every round, and the model is
    computed anew without them. This cannot be undone.

    Example: armful forget autumn --id 4711
    """
    with work(), opened(name, which, now) as campaign:
        if not yes and sys.stdin.isatty():
            who = ids[0] if len(ids) == 1 else f"{len(ids)} customers"
            if not typer.confirm(f"Erase {who} from {name} for good?", err=True):
                raise ValueError("nothing was erased, since it was not confirmed")
        tell_result(campaign.forget(ids), as_json, "status", name, which=which)


def demo(
    out: options.DemoFolder = Path("armful-demo"),
    seed: options.Seed = 0,
    serve: service_options.Serve = False,
    port: service_options.DemoPort = None,
    seconds: service_options.Seconds = None,
    as_json: options.Json = False,
) -> int:
    """Run a made campaign from beginning to end, in about a minute.

    Makes 200,000 customers who respond in a way that the campaign has to find
    out, contacts 2,000 of them in each of eight weeks, and learns from what
    they buy. Prints each command as you would type it.

    With --serve it is a news page: a decision service whose made readers come
    and click until Ctrl-C, and its dashboard to watch.

    Example: armful demo --out try-it
    Example: armful demo --serve
    """
    if serve:
        with needs("serve"):
            from armful.cli._service_demo import run_service_demo  # noqa: PLC0415
        with work():
            return run_service_demo(
                out, seed=seed, port=8000 if port is None else port, seconds=seconds, as_json=as_json
            )
    if seconds is not None:
        raise ValueError("--seconds is for --serve: without it the demo ends by itself")
    if port is not None:
        raise ValueError("--port is for --serve: without it the demo serves nothing")
    with work():
        from armful.cli._demo_output import run_demo  # noqa: PLC0415

        run_demo(out, seed=seed, as_json=as_json)
    return 0


COMMANDS: tuple[Callable[..., int | None], ...] = (init, check, plan, choose, learn, status, report, forget, demo)
