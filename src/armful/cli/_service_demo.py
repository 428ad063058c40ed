"""What `armful demo --serve` prints: the commands as they would be typed, the address, and in the end how it went."""

import logging
import shlex
from pathlib import Path

import typer

from armful.cli._campaign_output import summary
from armful.cli._printing import printable
from armful.cli._service import tell_address
from armful.service.demo import ServiceDemo, Totals
from armful.service.options import ServeOptions
from armful.service.serving import Running, listening, serve


def run_service_demo(folder: Path, *, seed: int, port: int, seconds: float | None, as_json: bool) -> int:
    """Make the campaign, serve it with its readers, and return the exit code."""
    demo = ServiceDemo(folder, seed=seed)

    def say(text: str) -> None:
        typer.echo(text, err=as_json)

    with listening("127.0.0.1", port):
        pass  # a port in use is refused before anything is made
    demo.make_impressions()
    say(f"A news page shows 5 of 100 articles; {printable(str(demo.impressions))} has what was clicked before.")
    say(f"$ {shlex.join(['armful', *demo.init_command])}")
    made = demo.init()
    if not as_json:
        summary(made)
    say(f"\nIn {printable(str(demo.campaign / 'campaign.toml'))} a few lines are changed by hand:")
    for line in demo.edit():
        say(f"    {line}")
    say(f"$ {shlex.join(['armful', 'serve', str(demo.campaign), '--port', str(port)])}")

    def tell(running: Running) -> None:
        tell_address(running, f"readers come; watch them at {running.url}; Ctrl-C ends it", as_json)

    options = ServeOptions(access_log=False, log_level=logging.WARNING)
    code = serve(str(demo.campaign), port=port, options=options, beside=demo.readers, when_ready=tell, seconds=seconds)
    demo.add_late_clicks()
    totals = demo.totals()
    if totals is not None and totals.pages:
        say(_sentence(totals))
    say(f"The campaign stays in {printable(str(demo.campaign))}: armful dashboard shows it, armful serve goes on.")
    return code


def _sentence(totals: Totals) -> str:
    """Return how good the pages were in truth, which a real service never sees."""
    means = [each / totals.pages for each in (totals.chosen, totals.at_random, totals.best)]
    return (
        f"\n{totals.pages + totals.holdout_pages:,} pages were shown. In truth, the model's had {means[0]:.2f} clicks "
        f"each; random pages have {means[1]:.2f}, and the best ones {means[2]:.2f}."
    )
