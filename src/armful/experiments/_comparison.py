"""The user's own policies, worlds and sizes, compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import armful
from armful import checks
from armful.experiments import _figures as figures
from armful.experiments import _page as page
from armful.experiments._standing import REGRET, Standing
from armful.experiments._user_errors import told
from armful.experiments.plan import Plan, file_name
from armful.experiments.recipe import find, is_environment, is_policy
from armful.experiments.results import Result, tidy, write_table
from armful.files._atomic_file import write_bytes
from armful.policies import CappedC2UCB, Policy
from armful.simulation.loop import BATCH, refuse_too_many


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
            checks.count(f"n_features of environment {name!r}", cast(int, n_features))
            _refuse_too_large(plan.runs, rounds, cast(int, n_features), getattr(environment, "n_arms", 0))
            for label, learner in plan.policies.items():
                if _needs_a_cap(learner.make(n_features=n_features)):
                    raise ValueError(
                        f"policy {label!r} needs a cap, a number that no arm's mean reward exceeds, like cap = 1.0; "
                        "C2UCB needs none"
                    )


def _has_no_score(kind: type) -> bool:
    return issubclass(kind, Policy) and kind.score is Policy.score and kind.choose is Policy.choose


def _needs_a_cap(policy: object) -> bool:
    """Whether a policy lacks a cap that it needs; a class that scores or chooses in its own way may bring one."""
    if not isinstance(policy, CappedC2UCB) or not policy.needs_caps:
        return False
    return type(policy).score is CappedC2UCB.score and type(policy).choose is Policy.choose


def _refuse_too_large(runs: int, rounds: int, n_features: int, n_arms: Any) -> None:
    """Refuse what no memory holds; `BATCH` runs are simulated at once, each with arms and an estimate of its own."""
    together = min(runs, BATCH)
    refuse_too_many(runs, rounds)
    checks.fits_in_memory(f"estimates with n_features = {n_features}", 4 * together * (n_features + 1) ** 2)
    if isinstance(n_arms, int):  # which an environment of the user's own need not have
        checks.fits_in_memory(
            f"{together} runs at once with n_arms = {n_arms} and n_features = {n_features}",
            together * n_arms * n_features,
        )


def standings(plan: Plan, results: Sequence[Result]) -> list[Standing]:
    """Return how the policies did, environment by environment."""
    return [Standing.of(name, [r for r in results if r.environment == name]) for name in plan.environments]


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
            standing.regret_table(),
            *standing.differences(),
        ]
    target = out / "report.html"
    write_bytes(target, page.page("armful compare", parts).encode())
    return target


def _about(plan: Plan) -> list[str]:
    return [
        f"Regret is {REGRET}: lower is better. k is how many arms are chosen in a round, T the number of rounds.",
        f"Each number is the mean of {plan.runs} run{'s' * (plan.runs > 1)} with its standard error (seed {plan.seed}, "
        f"armful {armful.__version__}). In one run all policies meet the same arms and the same luck, so they are "
        "compared run by run. How many runs might be enough to tell two policies apart supposes that the difference "
        "stays.",
    ]


def _options(plan: Plan) -> list[str]:
    """What each policy is and how it is set, in a sentence."""
    sentences = []
    n_features = next(world.make(k=plan.sizes_in(name)[0][0]).n_features for name, world in plan.environments.items())
    for name, recipe in plan.policies.items():
        made = recipe.make(n_features=n_features)
        others = _all_options(made)
        left = {o: v for o, v in others.items() if o not in recipe.options and o != "n_features"}
        what = "" if name == recipe.kind else f" is {page.code(recipe.short_kind)}"
        defaults = f"; left at the defaults: {_listed(left)}" if left else ""
        sentences.append(f"{page.code(name)}{what}{_with_options(recipe.options)}{defaults}.")
    return sentences


def _all_options(policy: object) -> dict[str, Any]:
    """What a policy was made with, where it says so: a class of the user's own may not keep its options."""
    try:
        return policy.options if isinstance(policy, Policy) else {}
    except AttributeError:
        return {}


def _listed(options: Mapping[str, Any]) -> str:
    return page.plain(", ".join(f"{name} = {value!r}" for name, value in options.items()))


def _with_options(options: Mapping[str, Any]) -> str:
    return f" with {_listed(options)}" if options else ""


def _figure(results: Sequence[Result], name: str) -> figures.Figure:
    several_sizes = len({(result.k, result.rounds) for result in results}) > 1
    return figures.regret_by_size(results, name) if several_sizes else figures.regret_by_round(results, name)
