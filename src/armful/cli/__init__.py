"""The command line: a thin layer over `armful.experiments`."""

import sys


def main() -> None:
    """Run `armful`. `--version` and `compare --example` need no extra."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from armful import __version__  # noqa: PLC0415 - import no more than the command needs

        print(f"armful {__version__}")
        return
    if arguments == ["compare", "--example"]:
        from armful.experiments._example import EXAMPLE  # noqa: PLC0415

        print(EXAMPLE, end="")
        return
    try:
        import matplotlib  # noqa: F401, PLC0415 - imported here so that a missing extra is one sentence
        import pyarrow  # noqa: F401, PLC0415
        import rich  # noqa: F401, PLC0415
        import typer  # noqa: F401, PLC0415
    except ImportError as error:
        sys.exit(
            f"armful: this command needs {error.name}: install the extra [experiments], "
            "in a clone by: pip install '.[experiments]'"
        )
    from armful.cli._app import run  # noqa: PLC0415

    run()
