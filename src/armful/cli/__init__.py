"""The command line: it translates, and decides nothing."""

import sys


def main() -> None:
    """Run `armful`."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - asked for here so that a missing extra is one sentence
        import pyarrow  # noqa: F401, PLC0415
        import typer  # noqa: F401, PLC0415
    except ImportError as error:
        sys.exit(
            f"armful's commands need {error.name}: install the extra [experiments], "
            "in a clone by: pip install '.[experiments]'"
        )
    from armful.cli.app import run  # noqa: PLC0415

    run()
