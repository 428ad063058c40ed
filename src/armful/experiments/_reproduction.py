"""The cells of the paper's experiment and of two beyond it, and running them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from armful import checks
from armful.environments import PaperInstance
from armful.experiments.plan import Cell
from armful.experiments.recipe import Recipe
from armful.experiments.results import Result
from armful.experiments.running import Progress, run_cells
from armful.simulation.loop import refuse_too_many

KINDS = ("grouped", "uniform")
ROUNDS_PER_K = 20
B = PaperInstance.bound
CAP_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
CAMPAIGN_ARMS, CAMPAIGN_K, CAMPAIGN_ROUNDS, CAMPAIGN_B = 5000, 500, 20, 1.0
CAMPAIGN_SIZE = f"k = {CAMPAIGN_K} of {CAMPAIGN_ARMS:,} arms, T = {CAMPAIGN_ROUNDS}"

Signs = tuple[int, ...]
ALL_SIGNS: tuple[Signs, ...] = tuple(product((1, -1), repeat=4))


def paper_policies(cap: float = B) -> dict[str, Recipe]:
    """Return the paper's Table 2, with Algorithm 2 verbatim as `CappedC2UCB-paper` and clipped as `CappedC2UCB`."""
    papers = {"ridge": "d", "radius": "sqrt(d)"}
    return {
        "EpsilonGreedy": Recipe("EpsilonGreedy", {"epsilon": 0.05, "ridge": 1.0}),
        "C2UCB": Recipe("C2UCB", papers),
        "ArmwiseThompson": Recipe("ArmwiseThompson", papers),
        "CombLinUCB": Recipe("CombLinUCB", {"ridge": 1.0, "noise": 1.0, "radius": "sqrt(d)"}),
        "CombLinTS": Recipe("CombLinTS", {"ridge": 1.0, "noise": 1.0}),
        "CappedC2UCB-paper": Recipe("CappedC2UCB", {**papers, "rule": "paper", "cap": cap}),
        "CappedC2UCB": Recipe("CappedC2UCB", {**papers, "rule": "clip", "cap": cap}),
    }


@dataclass(frozen=True)
class Protocol:
    """How much to run. worst_signs: report each policy on the worst of the 16 theta*, as the paper does."""

    sizes: Sequence[int] = (2, 4, 8, 16)
    runs: int = 100
    seed: int = 0
    worst_signs: bool = False

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError("sizes must hold at least one k, got none")
        for k in self.sizes:
            PaperInstance(k=k)
            if k == 1:
                raise ValueError(f"sizes must be at least 2, got 1: with k = 1 means of the noise half exceed B = {B}")
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError(f"sizes must be different from one another, got {list(self.sizes)}")
        checks.count("runs", self.runs)
        checks.count("seed", self.seed, minimum=0)
        refuse_too_many(self.runs, ROUNDS_PER_K * max(self.sizes))

    @property
    def n_cells(self) -> int:
        """The number of all cells."""
        searched = len(self.search_cells()) if self.worst_signs else 0
        return searched + len(self.paper_cells({})) + len(self.campaign_cells()) + len(self.cap_cells())

    def search_cells(self) -> list[Cell]:
        """Return cells for every theta* at the largest size, on seeds that are not reported."""
        return [
            replace(cell, environment_recipe=_paper_recipe(cell.environment, signs), seed=self.seed + 1)
            for cell in self.paper_cells({})
            if cell.k == max(self.sizes)
            for signs in ALL_SIGNS
        ]

    def paper_cells(self, signs: Mapping[tuple[str, str], Signs]) -> list[Cell]:
        """Return the cells of figures (a) and (b). signs: of theta* by kind and policy, all positive by default."""
        return [
            self._cell(kind, name, _paper_recipe(kind, signs.get((kind, name), ALL_SIGNS[0])), policy, k)
            for k in sorted(self.sizes, reverse=True)
            for kind in KINDS
            for name, policy in paper_policies().items()
        ]

    def campaign_cells(self) -> list[Cell]:
        """Return the cells of figure (c): many more arms in a round than rounds."""
        environment = Recipe("Campaign", {"n_arms": CAMPAIGN_ARMS, "n_features": 20, "bound": CAMPAIGN_B})
        policies = paper_policies(cap=CAMPAIGN_B)
        return [
            self._cell("campaign", name, environment, policy, CAMPAIGN_K, CAMPAIGN_ROUNDS)
            for name, policy in policies.items()
        ]

    def cap_cells(self) -> list[Cell]:
        """Return the cells of figure (d): the grouped instance at the largest size with a wrong B, and without cap."""
        k, environment = max(self.sizes), _paper_recipe("grouped", ALL_SIGNS[0])
        capped = [
            self._cell("grouped", name, environment, paper_policies(cap=B * factor)[name], k)
            for name in ("CappedC2UCB-paper", "CappedC2UCB")
            for factor in CAP_FACTORS
        ]
        return [*capped, self._cell("grouped", "C2UCB", environment, paper_policies()["C2UCB"], k)]

    def _cell(
        self, kind: str, name: str, environment: Recipe, policy: Recipe, k: int, rounds: int | None = None
    ) -> Cell:
        return Cell(kind, name, environment, policy, k, rounds or ROUNDS_PER_K * k, self.runs, self.seed)


@dataclass(frozen=True)
class Reproduction:
    """All results. cap: pairs of the factor by which B was misjudged (None for C2UCB) and the result."""

    protocol: Protocol
    paper: list[Result]
    campaign: list[Result]
    cap: list[tuple[float | None, Result]]
    worst_signs: dict[tuple[str, str], Signs]

    def of(self, kind: str, policy: str | None = None) -> list[Result]:
        """Return the results of one figure, of one policy or of all, from small to large."""
        results = [r for r in self.paper if r.environment == kind and policy in (None, r.policy)]
        return sorted(results, key=lambda result: result.k)


def run(protocol: Protocol, folder: Path, *, workers: int, progress: Progress | None = None) -> Reproduction:
    """Run everything, or what is missing of it, and return the results."""
    worst = _worst_signs(protocol, folder, workers, progress) if protocol.worst_signs else {}
    paper, campaign, cap = (
        run_cells(cells, folder, workers=workers, progress=progress)
        for cells in (protocol.paper_cells(worst), protocol.campaign_cells(), protocol.cap_cells())
    )
    factors = [*CAP_FACTORS, *CAP_FACTORS, None]
    return Reproduction(protocol, paper, campaign, list(zip(factors, cap, strict=True)), worst)


def _worst_signs(
    protocol: Protocol, folder: Path, workers: int, progress: Progress | None
) -> dict[tuple[str, str], Signs]:
    """Return for each kind and policy the signs of the theta* with the largest mean regret."""
    cells = protocol.search_cells()
    results = run_cells(cells, folder, workers=workers, progress=progress)
    signs = [cell.environment_recipe.options["signs"] for cell in cells]
    rising = sorted(zip([result.mean for result in results], signs, cells, strict=True), key=lambda each: each[:2])
    return {(cell.environment, cell.policy): signs for _, signs, cell in rising}  # the last ones stay


def _paper_recipe(kind: str, signs: Signs) -> Recipe:
    return Recipe("PaperInstance", {"kind": kind, "signs": signs})
