"""How good the defaults are: every policy with its defaults in every environment of armful, and in one more.

    python benchmarks/defaults.py [--write]     # --write puts the table into docs/defaults.md

Loss 0 is the best policy of an environment, 1 is chance: (regret - best) / (chance - best). The policies of a
repetition meet the same arms and the same noise. Takes about ten minutes on one core.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import armful
from armful import environments
from armful.environments import Round

PAGE = Path(__file__).parent.parent / "docs" / "defaults.md"
BEGIN, END = "<!-- begin: benchmarks/defaults.py -->\n", "<!-- end: benchmarks/defaults.py -->\n"


class Requests:
    """Requests for 10 of 500 items with 12 categories of 9 levels each; a click or none.

    Rows are the categories as 0 and 1 and a constant, at unit length. The chance of a click is linear in them but for
    being kept between 0.02 and 0.98: 0.23 on average, about 0.66 for the best ten.
    """

    n_features = 109

    def rounds(self, n_rounds: int, rng: np.random.Generator) -> Iterator[Round]:
        effects = 0.052 * rng.standard_normal((12, 9))
        for _ in range(n_rounds):
            levels = rng.integers(9, size=(500, 12))
            features = np.zeros((500, 109))
            features[:, 0] = 1.0
            features[np.arange(500)[:, None], 1 + 9 * np.arange(12) + levels] = 1.0
            chances = np.clip(0.23 + effects[np.arange(12), levels].sum(axis=1), 0.02, 0.98)
            yield Round(features / math.sqrt(13), armful.TopK(10), chances, noise="bernoulli")


@dataclass(frozen=True)
class Case:
    """An environment, its number of rounds, and a ridge where a user would give one.

    The paper's instances, whose rows reach a length of 2^(k - 1), are run with the paper's ridge.
    """

    environment: Any
    rounds: int
    repetitions: int
    ridge: float | None = None

    @cached_property
    def cap(self) -> float:
        """A cap that somebody who knows the rewards would give: 1 for clicks, else by the mean rewards of the arms.

        All but one in a thousand of these are below it, in other rounds than the measured ones; rounded up to a digit.
        """
        rounds = [
            shown
            for seed in range(1000, 1010)
            for shown in islice(self.environment.rounds(self.rounds, np.random.default_rng(seed)), 0, None, 5)
        ]
        if rounds[0].noise == "bernoulli":
            return 1.0
        highest = float(np.quantile(np.concatenate([shown.mean for shown in rounds]), 0.999))
        if highest <= 0:
            return 0.0
        digit = 10.0 ** math.floor(math.log10(highest))
        return round(math.ceil(highest / digit - 1e-9) * digit, 12)


CASES = {
    "Slates, 5 of 100": Case(environments.Slates(), 50, 400),
    "Slates, 20 of 100": Case(environments.Slates(k=20), 50, 100),
    "Requests, 10 of 500": Case(Requests(), 300, 10),
    "Campaign, 5 of 5,000": Case(environments.Campaign(k=5), 100, 20),
    "Campaign, 500 of 5,000": Case(environments.Campaign(), 20, 20),
    "Regions": Case(environments.Regions(), 50, 50),
    "Budgets": Case(environments.Budgets(), 50, 40),
    "Routes": Case(environments.Routes(), 50, 40),
    "Matchings": Case(environments.Matchings(), 50, 40),
    "Networks": Case(environments.Networks(), 50, 50),
    "Panels": Case(environments.Panels(), 30, 4),
    "Bundles": Case(environments.Bundles(), 100, 50),
    "PaperInstance, grouped, k = 8": Case(environments.PaperInstance(k=8), 160, 50, ridge=7.0),
    "PaperInstance, uniform, k = 8": Case(environments.PaperInstance(k=8, kind="uniform"), 160, 50, ridge=7.0),
    "NoiseLowerBound": Case(environments.NoiseLowerBound(n_features=4, k=8), 100, 1000),
    "LearningLowerBound": Case(environments.LearningLowerBound(n_features=8, k=8), 40, 100),
    "CombinedLowerBound": Case(environments.CombinedLowerBound(n_features=8, k=8), 100, 100),
}

Make = Callable[[int, Case], armful.Policy]


def given(case: Case) -> dict[str, Any]:
    return {} if case.ridge is None else {"ridge": case.ridge}


POLICIES: dict[str, Make] = {
    "CappedC2UCB": lambda d, case: armful.CappedC2UCB(n_features=d, cap=case.cap, **given(case)),
    "C2UCB": lambda d, case: armful.C2UCB(n_features=d, **given(case)),
    "CombLinUCB": lambda d, case: armful.CombLinUCB(n_features=d, **given(case)),
    "CombLinTS": lambda d, case: armful.CombLinTS(n_features=d, **given(case)),
    "ArmwiseThompson": lambda d, case: armful.ArmwiseThompson(n_features=d, **given(case)),
    "EpsilonGreedy": lambda d, case: armful.EpsilonGreedy(n_features=d, **given(case)),
    "greedy": lambda d, case: armful.EpsilonGreedy(n_features=d, epsilon=0.0, **given(case)),
    "chance": lambda d, case: armful.EpsilonGreedy(n_features=d, epsilon=1.0, **given(case)),
}


def play(case: Case, make: Make, seed: int = 0) -> armful.Trajectories:
    policy = make(case.environment.n_features, case)
    return armful.simulate(policy, case.environment, rounds=case.rounds, repetitions=case.repetitions, seed=seed)


def losses(regrets: dict[str, float]) -> dict[str, float]:
    best, chance = min(regrets.values()), regrets["chance"]
    return {name: (regret - best) / (chance - best) for name, regret in regrets.items()}


def table() -> list[str]:
    rows, all_losses, checks = [], {name: [] for name in POLICIES}, []
    for name, case in CASES.items():
        played = {policy: play(case, make) for policy, make in POLICIES.items()}
        regrets = {policy: float(result.total_regret.mean()) for policy, result in played.items()}
        here = losses(regrets)
        for policy, loss in here.items():
            all_losses[policy].append(loss)
        cells = [name, f"{case.cap:g}", f"{min(regrets.values()):.0f}", f"{regrets['chance']:.0f}"]
        cells += [f"{here[policy]:.2f}" for policy in POLICIES if policy != "chance"]
        rows.append("| " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
        if name.startswith("Slates, 5"):
            ratio = regrets["CappedC2UCB"] / regrets["C2UCB"]
            checks.append(f"- {name}: `CappedC2UCB` loses {ratio:.2f} times what `C2UCB` loses (aim: at most 1.1).")
        if name.startswith("Requests"):
            last = {policy: result.rewards[:, -50:].mean() for policy, result in played.items()}
            share = last["CappedC2UCB"] / last["EpsilonGreedy"]
            checks.append(
                f"- {name}: clicks per request in the last 50 of {case.rounds}: `CappedC2UCB` "
                f"{last['CappedC2UCB']:.1f}, which is {share:.0%} (aim: above 85 %) of `EpsilonGreedy`'s "
                f"{last['EpsilonGreedy']:.1f}; chance {last['chance']:.1f}."
            )
    policies = [policy for policy in POLICIES if policy != "chance"]
    head = "| environment | cap | best regret | regret of chance | " + " | ".join(f"`{p}`" for p in policies) + " |"
    rule = "| --- " * (4 + len(policies)) + "|"
    means = "| **mean loss** | | | | " + " | ".join(f"**{np.mean(all_losses[p]):.2f}**" for p in policies) + " |"
    worst = "| **worst loss** | | | | " + " | ".join(f"**{max(all_losses[p]):.2f}**" for p in policies) + " |"
    capped = all_losses["CappedC2UCB"]
    checks.append(
        f"- `CappedC2UCB` over all environments: mean loss {np.mean(capped):.3f} (aim: at most 0.05), worst "
        f"{max(capped):.2f} (aim: at most 0.15)."
    )
    return [head, rule, *rows, means, worst, "", *checks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = table()
    print("\n".join(lines))
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
