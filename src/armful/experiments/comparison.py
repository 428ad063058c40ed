"""The user's own policies, worlds and sizes, compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import armful
from armful import checks
from armful.experiments import figures, page
from armful.experiments.mistakes import told
from armful.experiments.pairs import Difference, behind_the_lowest, rough
from armful.experiments.plan import Plan, file_name, size_name
from armful.experiments.recipe import find, is_environment, is_policy
from armful.experiments.results import Result, growth, tidy, write_table
from armful.files.atomic_file import write_bytes
from armful.policies import Policy
from armful.simulation import BATCH


def check(plan: Plan) -> None:
    """Make everything once, so that a wrong option is told before anything runs.

    A class is called only if it is a policy where the plan has a policy, an environment where it has an environment.
    """
    for label, learner in plan.policies.items():
        kind = find(learner.kind)
        if not is_policy(kind):
            raise ValueError(f"policy {label!r}: {learner.kind} is no policy; it needs choose and learn")
        if _has_no_score(kind):
            raise ValueError(f"policy {label!r}: {learner.kind} must define score(self, arms, k)")
    for name, world in plan.environments.items():
        if not is_environment(find(world.kind)):
            raise ValueError(
                f"environment {name!r}: {world.kind} is no environment; it needs n_features and rounds(n_rounds, rng)"
            )
        for k, rounds in plan.sizes_in(name):
            environment = world.make(k=k)
            with told(f"environment {name!r}", type(environment), expected=()):
                n_features = getattr(environment, "n_features", None)
            if n_features is None:
                raise ValueError(f"environment {name!r} needs n_features")
            _refuse_too_large(plan.runs, rounds, n_features, getattr(environment, "n_arms", 0))
            for learner in plan.policies.values():
                learner.make(n_features=n_features)


def _has_no_score(kind: type) -> bool:
    return issubclass(kind, Policy) and kind.score is Policy.score and kind.choose is Policy.choose


def _refuse_too_large(runs: int, rounds: int, n_features: int, n_arms: int) -> None:
    """Refuse what no memory holds; `BATCH` runs are simulated at once, each with arms and an estimate of its own."""
    together = min(runs, BATCH)
    checks.fits_in_memory(f"{runs} runs of {rounds} rounds", 7 * runs * rounds)
    checks.fits_in_memory(f"estimates with n_features = {n_features}", 4 * together * (n_features + 1) ** 2)
    checks.fits_in_memory(
        f"{together} runs at once with n_arms = {n_arms} and n_features = {n_features}", together * n_arms * n_features
    )


REGRET = (
    "Regret is how much less the chosen sets were worth, in true mean rewards, than the best allowed ones, added up "
    "over all rounds: lower is better."
)


@dataclass(frozen=True)
class Standing:
    """How the policies did in one environment.

    sizes: the k and T it was run at. policies: from the lowest regret at the last size to the highest.
    results, behind: by policy and size; `behind` is the difference to the lowest, None for that one.
    """

    environment: str
    sizes: list[tuple[int, int]]
    policies: list[str]
    results: dict[tuple[str, tuple[int, int]], Result]
    behind: dict[tuple[str, tuple[int, int]], Difference | None]

    def sentences(self) -> list[str]:
        """Who lost least at each size, and from whom the runs do not tell it apart."""
        return [self._sentence(size) for size in self.sizes]

    def _sentence(self, size: tuple[int, int]) -> str:
        differences = {policy: self.behind[policy, size] for policy in self.policies}
        best = next(policy for policy, difference in differences.items() if difference is None)
        result = self.results[best, size]
        lost = f"{size_name(*size)}: {page.code(best)} lost least, {page.plus_minus(result.mean, result.stderr)}"
        unclear = {policy: d for policy, d in differences.items() if d is not None and not d.is_clear}
        if len(self.policies) == 1:
            return f"{size_name(*size)}: {page.code(best)} lost {page.plus_minus(result.mean, result.stderr)}."
        if not unclear:
            return f"{lost}, clearly less than all others."
        if result.runs == 1:
            return f"{lost}; a single run cannot tell policies apart."
        names = ", ".join(f"{page.code(name)} ({rough(d.runs_needed)})" for name, d in unclear.items())
        return f"{lost}; {result.runs} runs are too few to tell it from {names}."


def standings(plan: Plan, results: Sequence[Result]) -> list[Standing]:
    """Return how the policies did, environment by environment."""
    return [_standing(plan, name, [r for r in results if r.environment == name]) for name in plan.environments]


def _standing(plan: Plan, environment: str, results: Sequence[Result]) -> Standing:
    sizes = plan.sizes_in(environment)
    by_place = {(result.policy, (result.k, result.rounds)): result for result in results}
    behind: dict[tuple[str, tuple[int, int]], Difference | None] = {}
    for size in sizes:
        here = [by_place[policy, size] for policy in plan.policies]
        behind |= {(r.policy, size): d for r, d in zip(here, behind_the_lowest(here), strict=True)}
    order = sorted(plan.policies, key=lambda policy: by_place[policy, sizes[-1]].mean)
    return Standing(environment, sizes, order, by_place, behind)


def write(plan: Plan, results: Sequence[Result], out: Path) -> Path:
    """Table, figures and page into the folder `out`; the path of the page."""
    write_table(tidy(results, "environment"), out / "results")
    styles = figures.style_of(plan.policies)
    parts = [page.paragraph(text) for text in _about(plan)]
    parts += [page.heading("The policies and their options"), page.bullets(_options(plan))]
    for standing in standings(plan, results):
        name = standing.environment
        path = out / f"figure-{file_name(name)}"
        _figure([result for result in results if result.environment == name], name).save(path, styles)
        world = plan.environments[name]
        parts += [
            page.heading(name),
            page.paragraph(f"{page.code(world.short_kind)}{_with_options(world.options)}."),
            page.bullets(standing.sentences()),
            page.image(Path(f"{path}.svg"), "Lower is better. Bars are one standard error."),
            _regret_table(standing),
            *_differences(standing),
        ]
    target = out / "report.html"
    write_bytes(target, page.page("armful compare", parts).encode())
    return target


def _about(plan: Plan) -> list[str]:
    return [
        f"{REGRET} k is how many arms are chosen in a round, T the number of rounds.",
        f"Each number is the mean of {plan.runs} run{'s' * (plan.runs > 1)} with its standard error (seed {plan.seed}, "
        f"armful {armful.__version__}). In one run all policies meet the same arms and the same luck, so they are "
        "compared run by run. Where these are too few to tell two policies apart, the number in brackets says about "
        "how many runs might, if the difference stays.",
    ]


def _options(plan: Plan) -> list[str]:
    """What each policy is and how it is set, in a sentence."""
    sentences = []
    n_features = next(world.make(k=plan.sizes_in(name)[0][0]).n_features for name, world in plan.environments.items())
    for name, recipe in plan.policies.items():
        made = recipe.make(n_features=n_features)
        others = made.options if isinstance(made, Policy) else {}
        left = {o: v for o, v in others.items() if o not in recipe.options and o != "n_features"}
        what = "" if name == recipe.kind else f" is {page.code(recipe.short_kind)}"
        defaults = f"; left at the defaults: {_listed(left)}" if left else ""
        sentences.append(f"{page.code(name)}{what}{_with_options(recipe.options)}{defaults}.")
    return sentences


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in options.items())


def _with_options(options: Mapping[str, Any]) -> str:
    return f" with {_listed(options)}" if options else ""


def _figure(results: Sequence[Result], name: str) -> figures.Figure:
    several_sizes = len({(result.k, result.rounds) for result in results}) > 1
    return figures.regret_by_size(results, name) if several_sizes else figures.regret_by_round(results, name)


def _regret_table(standing: Standing) -> str:
    rows = []
    for policy in standing.policies:
        mine = [standing.results[policy, size] for size in standing.sizes]
        fit = growth(mine)
        rows.append(
            [
                page.code(policy),
                *(page.plus_minus(result.mean, result.stderr) for result in mine),
                "-" if fit is None else f"{fit.exponent:.2f} ± {fit.stderr:.2f}",
            ]
        )
    several = len(standing.sizes) > 1
    columns = ["regret", *(size_name(*size) for size in standing.sizes), *(["growth exponent"] if several else [])]
    return page.table(columns, [row if several else row[:-1] for row in rows])


def _differences(standing: Standing) -> list[str]:
    """How far each policy is behind the lowest, with intervals."""
    if len(standing.policies) == 1:
        return []
    rows = []
    for policy in standing.policies:
        each = [standing.behind[policy, size] for size in standing.sizes]
        rows.append([page.code(policy), *("lowest" if d is None else page.interval(d) for d in each)])
    return [
        page.paragraph(
            "Regret beyond the lowest, run by run, with its interval: 95 % for all pairs of policies in a column at "
            "once. Where an interval includes 0, these runs do not tell the two apart.",
            note=True,
        ),
        page.table(["beyond the lowest", *(size_name(*size) for size in standing.sizes)], rows),
    ]
