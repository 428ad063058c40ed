"""A campaign replayed on real data in which every outcome is known: the bank marketing data (UCI), 41,188 phone calls.

The file is not part of armful: give the path of `bank-additional-full.csv`. Each cell of the table is a whole campaign
by the commands' own functions: `init` guesses the settings (only the reward column and k are given), every round
`choose` sees the next rows as its customers, and `learn` the outcomes of those chosen. Beside it, on the same features
and with the same holdout: a greedy ridge regression, a greedy logistic regression (scikit-learn), a random choice, and
the best choice with hindsight.

    python benchmarks/case_study.py bank-additional-full.csv
    python benchmarks/case_study.py bank-additional-full.csv --write     # also into docs/case-study.md
"""

import argparse
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from sklearn.linear_model import LogisticRegression

from armful import Quotas, RidgeState, TopK
from armful.campaigns import Campaign
from armful.campaigns.holdout import share_of
from armful.campaigns.init import init_campaign

PAGE = Path(__file__).parents[1] / "docs" / "case-study.md"
MARKS = "<!-- results begin -->", "<!-- results end -->"
HOLDOUT = 0.05
METHODS = ["armful", "greedy ridge", "greedy logistic", "random", "best with hindsight"]


@dataclass(frozen=True)
class Setting:
    """How the rows are divided into rounds: `rows` a round, `k` of them contacted."""

    name: str
    rows: int
    k: int
    shuffled: bool
    quotas: bool = False
    discount: float = 1.0


SETTINGS = [
    Setting("200 of 2,000, file order", 2000, 200, False),
    Setting("200 of 2,000, file order, discount 0.9", 2000, 200, False, discount=0.9),
    Setting("200 of 2,000, file order, quotas", 2000, 200, False, quotas=True),
    Setting("20 of 1,000, file order", 1000, 20, False),
    Setting("200 of 2,000, shuffled", 2000, 200, True),
    Setting("200 of 2,000, shuffled, quotas", 2000, 200, True, quotas=True),
    Setting("20 of 1,000, shuffled", 1000, 20, True),
]


def read(path: Path) -> pa.Table:
    """Return the calls with an id, all columns but `duration` (known only afterwards, as `init` says) as they are."""
    table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=";"))
    table = table.append_column("client", pa.array([f"c{i}" for i in range(len(table))]))
    bought = pa.array((table["y"].to_numpy(zero_copy_only=False) == "yes").astype(np.int64))
    return table.drop_columns(["y"]).append_column("bought", bought)


def rounds_of(table: pa.Table, setting: Setting, seed: int) -> list[pa.Table]:
    if setting.shuffled:
        table = table.take(np.random.default_rng(seed).permutation(len(table)))
    return [table.slice(begin, setting.rows) for begin in range(0, len(table) - setting.rows + 1, setting.rows)]


def replay(rounds: list[pa.Table], setting: Setting, seed: int, folder: Path) -> dict[str, int]:
    """Return the successes of each method in one replay."""
    source = folder / "customers.csv"
    csv.write_csv(pa.concat_tables(rounds).drop_columns(["bought"]), source)
    name = f"bank {seed}"  # another name is another holdout
    init_campaign(folder / "campaign", source, id="client", reward="bought", k=setting.k, name=name)
    settings = folder / "campaign" / "campaign.toml"
    text = (
        settings.read_text()
        .replace("seed = 0 ", f"seed = {seed} ")
        .replace("discount = 1.0", f"discount = {setting.discount}")
    )
    if setting.quotas:
        text += '\n[[choose.quotas]]\ncolumn = "contact"\nat_least = 0.2\n'
    settings.write_text(text)
    day = [datetime(2008, 5, 1, tzinfo=UTC)]
    result = dict.fromkeys(METHODS, 0)
    with Campaign.open(folder / "campaign", now=lambda: day[0]) as campaign:
        for customers in rounds:
            number = campaign.choose(customers.drop_columns(["bought"])).number
            bought = dict(zip(customers["client"].to_pylist(), customers["bought"].to_pylist(), strict=True))
            ids = campaign.ledger.chosen_ids(number).tolist()
            campaign.learn(pa.table({"client": ids, "bought": [bought[id] for id in ids]}))
            result["armful"] += sum(bought[id] for id in ids)
            day[0] += timedelta(days=30)
        recipe = campaign.recipe
        features = [np.concatenate([recipe.transform(batch) for batch in each.to_batches()]) for each in rounds]
        holdout = [share_of(each["client"].to_numpy(), name, holdout=HOLDOUT) == 1 for each in rounds]
    for method, model in {"greedy ridge": ridge, "greedy logistic": logistic}.items():
        result[method] = greedy(model, rounds, features, holdout, setting, seed)
    for customers in rounds:
        y = customers["bought"].to_numpy()
        result["random"] += y[np.random.default_rng([seed, 2]).permutation(len(y))[: setting.k]].sum()
        result["best with hindsight"] += int(best(setting, customers, y.astype(float), setting.k, slice(None)))
    return result


def best(setting: Setting, customers: pa.Table, y: NDArray[Any], k: int, who: Any) -> float:
    return float(y[who][constraint(setting, customers, k, who).best(y[who]).indices].sum())


def constraint(setting: Setting, customers: pa.Table, k: int, who: Any) -> TopK | Quotas:
    if not setting.quotas:
        return TopK(k)
    groups = np.array(customers["contact"].to_pylist())[who]
    sizes = {label: int((groups == label).sum()) for label in np.unique(groups).tolist()}
    return Quotas(groups, at_least={label: min(round(0.2 * k), size) for label, size in sizes.items()}, total=k)


Model = Callable[[NDArray[Any], NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]


def ridge(X: NDArray[Any], y: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return RidgeState(n_features=X.shape[1]).learn(X, y).mean


def logistic(X: NDArray[Any], y: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    if len(np.unique(y)) < 2:
        return lambda rows: np.zeros(len(rows))
    model = LogisticRegression(C=float(X.shape[1]), max_iter=1000).fit(X, y)  # in the units of features of 0..1
    return lambda rows: np.asarray(model.decision_function(rows))


def greedy(
    model: Model, rounds: list[pa.Table], features: list[Any], holdout: list[Any], setting: Setting, seed: int
) -> int:
    """Return the successes of choosing those whom a model expects most of, with the same random holdout."""
    rng = np.random.default_rng([seed, 1])
    X, y, successes = np.zeros((0, features[0].shape[1])), np.zeros(0), 0
    for customers, rows, held in zip(rounds, features, holdout, strict=True):
        outcome = customers["bought"].to_numpy()
        k_held = round(setting.k * held.mean())
        free = np.flatnonzero(~held)
        scores = model(X, y)(rows[free].astype(float)) if len(y) else np.zeros(free.size)
        order = constraint(setting, customers, setting.k - k_held, free).best(scores, rng=rng).indices
        picked = np.concatenate([free[order], rng.permutation(np.flatnonzero(held))[:k_held]])
        successes += int(outcome[picked].sum())
        X, y = np.concatenate([X, rows[picked].astype(float)]), np.concatenate([y, outcome[picked]])
    return successes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--write", action="store_true", help="put the table into docs/case-study.md")
    options = parser.parse_args()
    table = read(options.file)
    lines = ["| successes | " + " | ".join(METHODS) + " |", "| --- " * (len(METHODS) + 1) + "|"]
    print("\n".join(lines))
    for setting in SETTINGS:
        runs = []
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(replay(rounds_of(table, setting, seed), setting, seed, Path(folder)))
        cells = []
        for method in METHODS:
            values = np.array([run[method] for run in runs], dtype=float)
            cells.append(f"{values.mean():,.0f} ± {values.std(ddof=1) / np.sqrt(len(values)):.0f}")
        lines.append(f"| {setting.name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        inside = f"{MARKS[0]}\n" + "\n".join(lines) + f"\n{MARKS[1]}"
        PAGE.write_text(re.sub(f"{MARKS[0]}.*{MARKS[1]}", lambda _: inside, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
