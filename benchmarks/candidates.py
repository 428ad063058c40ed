"""The candidates of a request become features: ways to do it, as ratios of one run.

100 candidates with 10 raw columns (6 numbers, 4 categories) and a context of 2. `pyarrow` makes a batch of the request
and gives it to `FeatureRecipe.transform`; that is what the encoder is compared with. Processor time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.settings import parse_settings
from armful.ledger import Ledger
from armful.service.constraints import Constraints
from armful.service.encoding import Encoder
from armful.service.registry import Registry

N = 100
TOP = 'name = "shop"\nid = "item"\nchoose.k = 10\npolicy.cap = 1.0\noutcomes.reward = "click"\n'
NUMBERS, CATEGORIES = [f"n{i}" for i in range(6)], [f"c{i}" for i in range(4)]
COLUMNS = "\n".join(
    ["[features.columns]"]
    + [f'{name} = {{ kind = "number" }}' for name in [*NUMBERS, "age"]]
    + [f'{name} = {{ kind = "category" }}' for name in [*CATEGORIES, "country"]]
)
CONTEXT = {"country": "PT", "age": 33}
QUOTA = '\n[[choose.quotas]]\ncolumn = "c0"\nat_most = 0.4\n'


def rows(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    numbers = rng.normal(size=(n, len(NUMBERS))).tolist()
    words = rng.choice(list("abcde"), size=(n, len(CATEGORIES))).tolist()
    return [
        dict(zip(NUMBERS, x, strict=True)) | dict(zip(CATEGORIES, w, strict=True))
        for x, w in zip(numbers, words, strict=True)
    ]


def measured(ways: dict[str, Callable[[], object]], runs: int, times_each: int = 20) -> dict[str, float]:
    """Return the median seconds of each way, in processor time, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            begin = time.process_time()
            for _ in range(times_each):
                way()
            times[name].append((time.process_time() - begin) / times_each)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    rng = np.random.default_rng(0)
    crossed = parse_settings(TOP + COLUMNS + '\n[service]\ncontext = ["country", "age"]', None)
    plain = parse_settings(TOP + COLUMNS + "\n[service]" + QUOTA, None)
    ready = parse_settings(TOP + "features.ready = 20", None)
    past = [row | {"country": "PD"[i % 2], "age": 20 + i % 50} for i, row in enumerate(rows(rng, 2000))]
    fitted = [FeatureRecipe.fit(each.features, [pa.RecordBatch.from_pylist(past)]) for each in (crossed, plain)]
    with_context, without = Encoder.of(crossed, fitted[0]), Encoder.of(plain, fitted[1])
    of_ready = Encoder.of(ready, None)
    arms = [SimpleNamespace(id=f"a{i}", columns=row, features=None) for i, row in enumerate(rows(rng, 5000))]
    some = arms[:N]
    numbers = [SimpleNamespace(id=str(i), columns=None, features=rng.normal(size=20).tolist()) for i in range(N)]
    ids = [arm.id for arm in some]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(f"sqlite:///{folder}/ledger.sqlite", "shop", create=True, settings="")
        registry = Registry(ledger, with_context)
        ledger.put_arms(registry.contents(arms))
        registry.refresh()
        other = Registry(ledger, without)
        constraints, labels = Constraints(plain), without.groups("c0", some)
        ways: dict[str, Callable[[], object]] = {
            "pyarrow, raw columns with context": lambda: fitted[0].transform(
                pa.RecordBatch.from_pylist([arm.columns | CONTEXT for arm in some])
            ),
            "raw columns with context": lambda: with_context.encode(some, CONTEXT),
            "raw columns": lambda: without.encode(some, None),
            "20 ready features": lambda: of_ready.encode(numbers, None),
            "registered arms with context": lambda: registry.candidates(ids, CONTEXT),
            "registered arms": lambda: other.candidates(ids, None),
            "constraint with a quota": lambda: constraints.build(ids, lambda _: labels),
        }
        for way in ways.values():
            way()
        found = measured(ways, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
        ledger.close()
    print(f"{N} candidates, {fitted[0].n_features} features with the context, {fitted[1].n_features} without")
    base = found["pyarrow, raw columns with context"]
    for name, seconds in found.items():
        print(f"{name:36} {1e3 * seconds:7.3f} ms  {seconds / base:6.3f}")


if __name__ == "__main__":
    main()
