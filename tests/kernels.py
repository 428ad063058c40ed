"""Run the numeric tests on several kernels of OpenBLAS, each with several numbers of threads.

OpenBLAS chooses its kernels by the processor; `OPENBLAS_CORETYPE` makes one machine play others, as far as it can.
"""

import argparse
import os
import subprocess
import sys
import time

TESTS = ["tests/model", "tests/scan", "tests/cluster", "tests/policies", "tests/simulation"]

PLAYED = """
import numpy, threadpoolctl
numpy.ones((300, 300)) @ numpy.ones((300, 300))
print(*[blas["architecture"] for blas in threadpoolctl.threadpool_info() if blas["internal_api"] == "openblas"][:1])
"""

RUN = """
import sys
import numpy, pytest, scipy.linalg, threadpoolctl
with threadpoolctl.threadpool_limits(int(sys.argv[1]), user_api="blas"):  # the environment allows no more than cores
    sys.exit(pytest.main(sys.argv[2:]))
"""


def environment(kernel: str) -> dict[str, str]:
    # Threads that wait for work sleep at once: by default they spin, and more threads than cores hold each other up.
    return {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_THREAD_TIMEOUT": "4"}


def played(kernel: str) -> str | None:
    """Return the kernel that OpenBLAS really uses when it is set to this one; None if it cannot run here."""
    done = subprocess.run(
        [sys.executable, "-c", PLAYED], env=environment(kernel), capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def run(kernel: str, threads: int) -> bool:
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow or kernels"]
    command = [sys.executable, "-c", RUN, str(threads), *options, *TESTS]
    begin = time.monotonic()
    failed = subprocess.run(command, env=environment(kernel), check=False).returncode != 0
    result = "FAILED" if failed else "passed"
    print(f"{kernel}, {threads} thread(s): {result} in {time.monotonic() - begin:.0f} s", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="+", required=True)
    parser.add_argument("--threads", nargs="+", type=int, required=True)
    options = parser.parse_args()
    kernels: dict[str, str] = {}
    for kernel in options.kernels:
        used = played(kernel)
        if used is None:
            print(f"{kernel}: left out, this processor lacks the instructions (AVX-512 for SkylakeX)")
        elif used == "":
            print(f"{kernel}: left out, numpy does not use OpenBLAS here")
        elif used in kernels.values():
            print(f"{kernel}: left out, this OpenBLAS uses its kernels for {used}, which run anyway")
        else:
            kernels[kernel] = used
    sys.stdout.flush()
    if not kernels:
        print("no kernel can be played here: nothing was tested")
        return 1
    failed = [run(kernel, threads) for kernel in kernels for threads in options.threads]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
