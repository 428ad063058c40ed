"""The command line: a thin layer over `armful.campaigns` and `armful.experiments`."""

import sys

from armful.cli._failing import fail, missing_extra, stopped
from armful.cli._standard_output import keep_for_json


def main() -> None:
    """Run `armful`. `--version` and `compare --example` need no extra, and each command no more than its own."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from armful import __version__  # noqa: PLC0415 - import no more than the command needs

        print(f"armful {__version__}")
        return
    if arguments == ["compare", "--example"]:
        from armful.experiments._example import EXAMPLE  # noqa: PLC0415

        print(EXAMPLE, end="")
        return
    if "--json" in arguments:
        keep_for_json()
    try:
        import rich  # noqa: F401, PLC0415 - imported here so that a missing extra is one sentence
        import typer  # noqa: F401, PLC0415

        from armful.cli._app import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        fail(missing_extra(error, "experiments" if arguments[:1] in (["reproduce"], ["compare"]) else "campaigns"))
    except KeyboardInterrupt:
        stopped()
    run(arguments)
