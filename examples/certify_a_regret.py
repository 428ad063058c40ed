"""Measured regret beside what is proved: the certificate of the run, and the regret bounds.

The environment is the second half of the paper's grouped instance: one arm doubles each round, promises ever more and
pays nothing, and comes only with k - 1 poor arms. More sizes: python certify_a_regret.py 2 4 8 16 32
"""

import argparse

import numpy as np

from armful import C2UCB, CappedC2UCB, OneOf, Policy, theory

RADIUS = {"noise": 1.0, "norm": 1.0, "ridge": 3.0, "delta": 0.1}
THETA = np.array([0.0, 0.1, 0.9])
B = 0.9
RUNS = 20


def arms(k: int, t: int) -> np.ndarray:
    """The arm that grows, k - 1 poor ones and k good ones, `(2k, 3)`."""
    grows, poor, good = np.eye(3)
    return np.vstack([2.0 ** (t % k) * grows, np.tile(poor, (k - 1, 1)), np.tile(good, (k, 1))])


def play(policy: Policy, k: int, rng: np.random.Generator) -> tuple[float, list[np.ndarray], list[float]]:
    """Regret after 20k rounds, what was chosen in each, and the radius that chose it."""
    one_of_two = OneOf([range(k), range(k, 2 * k)])
    regret, chosen, radii = 0.0, [], []
    for t in range(1, 20 * k + 1):
        radii.append(float(theory.log_det_radius(log_det_gain=policy.state.log_det_gain, **RADIUS)))
        choice = policy.choose(arms(k, t), one_of_two)
        mean = choice.features @ THETA
        policy.learn(choice.features, mean + rng.standard_normal(k))
        regret += k * B - mean.sum()
        chosen.append(choice.features)
    return regret, chosen, radii


def row(k: int) -> list[float]:
    """Means over the runs of what the table shows."""
    common = {"n_features": 3, "radius": "logdet", **RADIUS}
    setting = {"k": k, "rounds": 20 * k, "n_features": 3, "length": 2.0 ** (k - 1), "ridge": 3.0}
    table = []
    for run in range(RUNS):
        regret, chosen, radii = play(C2UCB(**common, seed=run), k, np.random.default_rng(run))
        certificate = theory.regret_certificate(chosen, ridge=3.0, radius=radii, k=k, bound=B)
        counting = theory.c2ucb_round_counting_bound(radius=max(radii), bound=B, **setting)
        paper = theory.c2ucb_bound(radius=max(radii), bound=B, **setting)
        clipped, chosen, radii = play(CappedC2UCB(**common, cap=B, seed=run), k, np.random.default_rng(run))
        its = theory.regret_certificate(chosen, ridge=3.0, radius=radii, k=k, bound=B, clip=True)
        table.append([regret, certificate[-1], counting, paper, 2 * B * k * 20 * k, clipped, its[-1]])
    return np.mean(table, axis=0).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[2, 4])
    parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
    options = parser.parse_args()

    names = ["regret", "certificate", "round counting", "Theorem 2", "2BkT", "regret of `clip`", "its certificate"]
    print(f"| k | {' | '.join(names)} |")
    print("| --- " * (len(names) + 1) + "|")
    rows = []
    for k in options.sizes:
        rows.append(row(k))
        print(f"| {k} | " + " | ".join(f"{value:,.0f}" for value in rows[-1]) + " |")

    if options.figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        lines = list(zip(names, zip(*rows, strict=True), strict=True))
        for name, values in sorted(lines, key=lambda line: -line[1][-1]):
            axes.plot(options.sizes, values, marker="o", label=name.replace("`", ""))
        axes.set(xscale="log", yscale="log", xlabel="k, arms in a set", ylabel="regret after 20k rounds, and bounds")
        axes.set_xticks(options.sizes, [str(k) for k in options.sizes])
        axes.minorticks_off()
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.savefig(options.figure)
