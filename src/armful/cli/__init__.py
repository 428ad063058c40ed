"""The command line: it translates, and decides nothing."""

import sys


def main() -> None:
    """Run `armful`; its version and the example plan need no extra."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from armful import __version__  # noqa: PLC0415 - each door loads what it needs alone

        print(f"armful {__version__}")
        return
    if arguments == ["compare", "--example"]:
        from armful.experiments.plan import EXAMPLE  # noqa: PLC0415

        print(EXAMPLE, end="")
        return
    try:
        import matplotlib  # noqa: F401, PLC0415 - asked for here so that a missing extra is one sentence
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
