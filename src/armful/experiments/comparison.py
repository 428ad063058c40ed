"""The user's own policies, worlds and sizes, compared."""

from collections.abc import Sequence
from pathlib import Path

import armful
from armful import checks
from armful.experiments import figures, page
from armful.experiments.mistakes import told
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


def write(plan: Plan, results: Sequence[Result], out: Path) -> Path:
    """Table, figures and page into the folder `out`; the path of the page."""
    write_table(tidy(results, "environment"), out / "results")
    styles = figures.style_of(plan.policies)
    about = (
        f"{plan.runs} runs of each, seed {plan.seed}, armful {armful.__version__}; mean regret and its standard error."
    )
    parts = [page.paragraph(about)]
    for name in plan.environments:
        here = [result for result in results if result.environment == name]
        path = out / f"figure-{file_name(name)}"
        _figure(here, name).save(path, styles)
        parts += [
            page.heading(name),
            page.image(Path(f"{path}.svg"), "Bars are one standard error."),
            _table(plan, name, here),
        ]
    target = out / "report.html"
    write_bytes(target, page.page("armful compare", parts).encode())
    return target


def _figure(results: Sequence[Result], name: str) -> figures.Figure:
    several_sizes = len({(result.k, result.rounds) for result in results}) > 1
    return figures.regret_by_size(results, name) if several_sizes else figures.regret_by_round(results, name)


def _table(plan: Plan, environment: str, results: Sequence[Result]) -> str:
    sizes = plan.sizes_in(environment)
    rows = []
    for policy in plan.policies:
        mine = {(result.k, result.rounds): result for result in results if result.policy == policy}
        fit = growth([mine[size] for size in sizes])
        rows.append(
            [
                page.code(policy),
                *(page.plus_minus(mine[size].mean, mine[size].stderr) for size in sizes),
                "-" if fit is None else f"{fit.exponent:.2f} ± {fit.stderr:.2f}",
            ]
        )
    return page.table(["policy", *(size_name(*size) for size in sizes), "growth exponent"], rows)
