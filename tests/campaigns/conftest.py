import sys

import pytest

from tests.campaigns.small import Clock

if sys.platform == "win32":  # these tests fork, kill, and use files of POSIX
    collect_ignore = ["commands.py", "test_bad_files.py", "test_on_postgresql.py", "test_survival.py"]


@pytest.fixture
def clock() -> Clock:
    return Clock()
