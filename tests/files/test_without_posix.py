"""What a system without POSIX's locks, positioned reads and modes can do, played in a process of its own."""

import subprocess
import sys

import numpy as np

from armful.tables.table import Table

WINDOWS = """
import os, signal, sys
sys.modules["fcntl"] = sys.modules["pty"] = sys.modules["resource"] = None
for name in ("preadv", "pread", "pwrite", "fchmod", "fchown", "sched_getaffinity", "O_CLOEXEC", "O_NOFOLLOW", "killpg"):
    delattr(os, name)
os.O_BINARY = 0
del signal.SIGALRM, signal.SIGHUP

import numpy as np
import armful
from armful.tables.table import Table

folder = sys.argv[1]
X = np.random.default_rng(0).standard_normal((40_000, 5))
table = Table.build(X, folder + "/arms", progress=False)
assert np.array_equal(table.rows(0, table.n_arms), X)
policy = armful.C2UCB(n_features=5, noise=1.0, seed=0)
for _ in range(3):
    choice = policy.choose(table, armful.TopK(20))
    assert np.array_equal(choice.features, X[choice.indices])
    policy.learn(choice.features, choice.features[:, 0])
policy.save(folder + "/policy.npz")
policy.save(folder + "/policy.npz")
again = armful.load(folder + "/policy.npz")
assert np.array_equal(again.choose(table, armful.TopK(20)).indices, policy.choose(table, armful.TopK(20)).indices)
table = Table.build(X + 1, folder + "/arms", progress=False)
assert np.array_equal(table.rows(0, table.n_arms), X + 1)
"""


def test_tables_are_built_and_read_and_policies_saved_without_posix(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS, str(tmp_path)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arms", "policy.npz"]
    here = Table.open(tmp_path / "arms")
    assert np.array_equal(here.rows(0, 9), np.random.default_rng(0).standard_normal((40_000, 5))[:9] + 1)
