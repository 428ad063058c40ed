"""Standard output that holds the JSON of a command and nothing else."""

import os
import sys

STDOUT, STDERR = 1, 2


def keep_for_json() -> None:
    """Let `sys.stdout` alone write to standard output: what others write to its descriptor goes to standard error.

    HiGHS prints a line of its own now and then, though its display is off. This holds until the process ends, since C
    may keep such a line in a buffer until then. Nothing is done where `sys.stdout` or `sys.stderr` is another stream.
    """
    try:
        if (sys.stdout.fileno(), sys.stderr.fileno()) != (STDOUT, STDERR):
            return
        kept = os.dup(STDOUT)
    except (AttributeError, OSError):  # one of them is closed, or has no descriptor
        return
    before = sys.stdout
    before.flush()
    os.dup2(STDERR, STDOUT)
    sys.stdout = open(kept, "w", encoding=before.encoding, errors=before.errors)  # noqa: SIM115 - until the end
