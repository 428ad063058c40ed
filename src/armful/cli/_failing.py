"""How a command fails: one sentence on standard error, with `--json` an object on standard output, and exit code 2."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

STOPPED = "stopped; nothing is half done, and armful status says what is kept"


def fail(sentence: str, problems: Sequence[str] = ()) -> NoReturn:
    """Print a sentence and the problems that it announces, and end the command with code 2."""
    if "--json" in sys.argv:
        print(json.dumps({"error": sentence, **({"problems": list(problems)} if problems else {})}))
    print("\n".join([f"armful: {sentence}", *(f"  {problem}" for problem in problems)]), file=sys.stderr)
    sys.exit(2)


def stopped() -> NoReturn:
    """Say that the command was interrupted, and end it as shells expect."""
    print(f"armful: {STOPPED}", file=sys.stderr)
    if "--json" in sys.argv:
        print(json.dumps({"error": STOPPED}))
    sys.exit(130)


def describe(error: BaseException) -> str:
    """Return the message of an error in one line.

    Examples
    --------
    >>> describe(FileNotFoundError(2, "No such file or directory", "customers.csv"))
    'customers.csv: No such file or directory'
    >>> describe(ValueError("k must be at least 1, got 0"))
    'k must be at least 1, got 0'
    """
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this command. {error}".strip(" .")
    return " ".join(str(error).splitlines()) or type(error).__name__


def missing_extra(error: ImportError, extra: str) -> str:
    """Return the sentence that says what to install."""
    package = (error.name or "a package").partition(".")[0]
    return f"this command needs {package}: install the extra [{extra}], in a clone by: pip install '.[{extra}]'"


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import what a command needs; what is not installed is named with its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "armful":
            raise
        raise ModuleNotFoundError(missing_extra(error, extra), name=error.name) from None
