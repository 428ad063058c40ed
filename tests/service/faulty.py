"""A service whose disk and clock a test can change while it runs; run as a program.

Usage: python -m tests.service.faulty FOLDER PORT N_WORKERS CONDITIONS

CONDITIONS is a file with JSON: "seconds" is added to the clock, and no file can be written beyond "bytes".
"""

import json
import os
import resource
import sys
from datetime import UTC, datetime, timedelta

from armful.service.options import ServeOptions
from armful.service.serving import serve


class Conditions:
    """The clock of a process; asked for the time, it also applies the limit on files to the process."""

    def __init__(self, path):
        self.path = path

    def __call__(self):
        with open(self.path, encoding="utf-8") as file:
            now = json.load(file)
        limit = now.get("bytes", resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return datetime.now(UTC) + timedelta(seconds=now.get("seconds", 0))


def change(path, **conditions):
    """Change the conditions, at once for all who read the file."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(conditions, file)
    os.replace(part, path)


def main():
    name, port, workers, conditions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

    def say(running):
        print(json.dumps({"url": running.url, "processes": running.processes}), flush=True)

    options = ServeOptions(
        update_every=timedelta(seconds=0.05),
        poll_every=timedelta(seconds=0.05),
        access_log=False,
        dashboard=False,
        now=Conditions(conditions),
    )
    sys.exit(serve(name, port=port, workers=workers, options=options, when_ready=say))


if __name__ == "__main__":
    main()
