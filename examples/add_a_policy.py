"""A policy of your own in a few lines, beside armful's in the same comparison.

Run it here, or name it in a plan: class = "add_a_policy.py:CautiousUCB".
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from armful import Arms, Policy
from armful.experiments import Plan, Recipe, run_cells
from armful.testing import PolicyContract


class CautiousUCB(Policy):
    """Optimism that fades as more is seen: mean + width * strength / (1 + n / patience)."""

    def __init__(self, *, strength: float = 2.0, patience: float = 200.0, **common) -> None:
        super().__init__(**common)
        self.strength, self.patience = strength, patience

    def score(self, arms: Arms, k: int):
        mean, width = arms.mean_and_width  # (..., n_arms)
        fading = np.asarray(self.strength / (1 + self.state.n / self.patience))  # (...), one for each learner
        return mean + fading[..., None] * width


class TestCautiousUCB(PolicyContract):
    """With this in a test file, pytest checks your policy as it checks armful's own."""

    def policy(self, n_features: int, seed: int) -> Policy:
        return CautiousUCB(n_features=n_features, seed=seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
    options = parser.parse_args()

    plan = Plan(
        policies={
            "CautiousUCB": Recipe(f"{__file__}:CautiousUCB", {"strength": 1.0}),
            "C2UCB": Recipe("C2UCB"),
            "CombLinTS": Recipe("CombLinTS", {"noise": 0.5}),
            "EpsilonGreedy": Recipe("EpsilonGreedy"),
        },
        environments={"slates": Recipe("Slates", {"n_arms": 50, "n_features": 6})},
        sizes=[(3, 30), (6, 60)],
        runs=20,
    )
    with tempfile.TemporaryDirectory() as folder:
        results = run_cells(plan.cells(), Path(folder), workers=1)
    largest = sorted((result for result in results if result.k == 6), key=lambda result: result.mean)
    for result in largest:
        print(f"{result.policy:13} regret {result.mean:6.1f} ± {result.stderr:.1f}")

    if options.figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 3), layout="constrained")
        axes = figure.subplots()
        for result in largest:
            axes.errorbar(result.mean, result.policy, xerr=result.stderr, marker="o", capsize=4, color="C0")
        axes.invert_yaxis()
        axes.set(xlabel="regret after 60 rounds, mean of 20 runs with its standard error", xlim=(0, None))
        figure.savefig(options.figure)
