"""The user's own policies, worlds and sizes, compared."""

from collections.abc import Sequence
from pathlib import Path

import armful
from armful.experiments import figures, page
from armful.experiments.mistakes import told
from armful.experiments.plan import Plan, file_name, size_name
from armful.experiments.results import Result, growth, tidy, write_table
from armful.policies import Policy


def check(plan: Plan) -> None:
    """Make everything once, so that a wrong option is told before anything runs."""
    for name, world in plan.environments.items():
        for k, _ in plan.sizes_in(name):
            environment = world.make(k=k)
            with told(f"environment {name!r}", type(environment), expected=()):
                n_features = getattr(environment, "n_features", None)
            if not hasattr(environment, "rounds") or n_features is None:
                raise ValueError(f"environment {name!r} needs n_features and rounds(n_rounds, rng)")
            for label, learner in plan.policies.items():
                policy = learner.make(n_features=n_features)
                if not hasattr(policy, "choose") or not hasattr(policy, "learn"):
                    raise ValueError(f"policy {label!r} needs choose and learn")
                if _has_no_score(type(policy)):
                    raise ValueError(f"policy {label!r}: {learner.kind} must define score(self, arms, k)")


def _has_no_score(kind: type) -> bool:
    return issubclass(kind, Policy) and kind.score is Policy.score and kind.choose is Policy.choose


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
    target.write_text(page.page("armful compare", parts), encoding="utf-8")
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
                f"`{policy}`",
                *(page.plus_minus(mine[size].mean, mine[size].stderr) for size in sizes),
                "-" if fit is None else f"{fit.exponent:.2f} ± {fit.stderr:.2f}",
            ]
        )
    return page.table(["policy", *(size_name(*size) for size in sizes), "growth exponent"], rows)
