"""Comparison of the policies in one environment, in numbers and in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from armful.experiments import _page as page
from armful.experiments._pairs import FEWEST, Difference, behind_the_lowest, rough
from armful.experiments.plan import size_name
from armful.experiments.results import Result, fit_growth

REGRET = (
    "how much lower the true mean rewards of the chosen sets were than those of the best allowed sets, summed over all "
    "rounds"
)

Size = tuple[int, int]


@dataclass(frozen=True)
class Standing:
    """Regret of the policies in one environment.

    sizes: pairs of k and T, rising. policies: from the lowest regret at the last size to the highest.
    results, behind: by policy and size; `behind` is the difference to the lowest, None for that one.
    """

    environment: str
    sizes: list[Size]
    policies: list[str]
    results: dict[tuple[str, Size], Result]
    behind: dict[tuple[str, Size], Difference | None]

    @classmethod
    def of(cls, environment: str, results: Sequence[Result]) -> "Standing":
        """Return the standing from the results of every policy at every size."""
        by_size = {(r.policy, (r.k, r.rounds)): r for r in results}
        sizes = sorted({(r.k, r.rounds) for r in results})
        behind: dict[tuple[str, Size], Difference | None] = {}
        for size in sizes:
            here = [r for r in results if (r.k, r.rounds) == size]
            behind |= {(r.policy, size): d for r, d in zip(here, behind_the_lowest(here), strict=True)}
        order = sorted(dict.fromkeys(r.policy for r in results), key=lambda policy: by_size[policy, sizes[-1]].mean)
        return cls(environment, sizes, order, by_size, behind)

    def sentences(self) -> list[str]:
        """Return which policy lost least at each size, and which others the runs do not tell from it."""
        return [f"{size_name(*size)}: {self._sentence(size)}" for size in self.sizes]

    def _sentence(self, size: Size) -> str:
        differences = {policy: self.behind[policy, size] for policy in self.policies}
        best = next(policy for policy, difference in differences.items() if difference is None)
        result = self.results[best, size]
        lost = page.plus_minus(result.mean, result.stderr)
        if len(self.policies) == 1:
            return f"{page.code(best)} lost {lost}."
        lost_least = f"{page.code(best)} lost least, {lost}"
        unclear = {policy: d for policy, d in differences.items() if d is not None and not d.is_clear}
        if not unclear:
            return f"{lost_least}, clearly less than all others."
        if result.runs < FEWEST:
            return f"{lost_least}; it takes {FEWEST} runs at least to tell policies apart."
        others = page.joined(
            [f"{page.code(name)} ({rough(d.runs_needed)} runs might be enough)" for name, d in unclear.items()]
        )
        return f"{lost_least}; {result.runs} runs are too few to tell it from {others}."

    def regret_table(self) -> str:
        """Return mean regret and its standard error by policy and size, and its growth."""
        several = len(self.sizes) > 1
        rows = []
        for policy in self.policies:
            mine = [self.results[policy, size] for size in self.sizes]
            row = [page.code(policy), *(page.plus_minus(result.mean, result.stderr) for result in mine)]
            if several:
                fit = fit_growth(mine)
                row.append("-" if fit is None else f"{fit.exponent:.2f} ± {fit.stderr:.2f}")
            rows.append(row)
        return page.table(["regret", *self._columns(), *(["growth exponent"] if several else [])], rows)

    def differences(self) -> list[str]:
        """Return how far each policy is behind the lowest, with intervals, and how to read them."""
        if len(self.policies) == 1:
            return []
        rows = []
        for policy in self.policies:
            each = [self.behind[policy, size] for size in self.sizes]
            rows.append([page.code(policy), *("lowest" if d is None else page.interval(d) for d in each)])
        note = (
            "Regret beyond the lowest, run by run, with its interval: 95 % for all pairs of policies in a column at "
            "once. Where an interval includes 0, these runs do not tell the two apart."
        )
        return [page.paragraph(note, kind="note"), page.table(["beyond the lowest", *self._columns()], rows)]

    def _columns(self) -> list[str]:
        return [size_name(*size) for size in self.sizes]
