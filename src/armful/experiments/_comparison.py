"""Checking a plan and writing the report of its results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import armful
from armful import checks
from armful.experiments import _figures as figures
from armful.experiments import _page as page
from armful.experiments._standing import REGRET, Standing
from armful.experiments._user_errors import explain_user_errors
from armful.experiments.plan import Plan, file_name
from armful.experiments.recipe import find, is_environment, is_policy
from armful.experiments.results import Result, tidy, write_table
from armful.files._atomic_file import write_bytes
from armful.policies import CappedC2UCB, Policy
from armful.simulation.loop import BATCH, refuse_too_many


def check(plan: Plan) -> None:
    """Make everything once, so that a wrong option is refused before anything runs.

    A class is called only if it is a policy where the plan has a policy, an environment where it has an environment.
    """
    for name, recipe in plan.policies.items():
        kind = find(recipe.kind)
        if not is_policy(kind):
            raise ValueError(f"policy {name!r}: {recipe.kind} is not a policy; it needs choose and learn")
        if _has_no_score(kind):
            raise ValueError(f"policy {name!r}: {recipe.kind} must define score(self, arms, k)")
    for name, recipe in plan.environments.items():
        if not is_environment(find(recipe.kind)):
            raise ValueError(
                f"environment {name!r}: {recipe.kind} is not an environment; "
                "it needs n_features and rounds(n_rounds, rng)"
            )
        for k, rounds in plan.sizes_in(name):
            environment = recipe.make(k=k)
            with explain_user_errors(f"environment {name!r}", type(environment), expected=()):
                n_features = getattr(environment, "n_features", None)
            checks.count(f"n_features of environment {name!r}", cast(int, n_features))
            _refuse_too_large(plan.runs, rounds, cast(int, n_features), getattr(environment, "n_arms", 0))
            for policy, policy_recipe in plan.policies.items():
                if _needs_a_cap(policy_recipe.make(n_features=n_features)):
                    raise ValueError(
                        f"policy {policy!r} needs a cap, a number that no arm's mean reward exceeds, like cap = 1.0; "
                        "C2UCB needs none"
                    )


def _has_no_score(kind: type) -> bool:
    return issubclass(kind, Policy) and kind.score is Policy.score and kind.choose is Policy.choose


def _needs_a_cap(policy: object) -> bool:
    """Return whether a policy lacks a cap that it needs; a class with its own score or choose may bring one."""
    if not isinstance(policy, CappedC2UCB) or not policy.needs_caps:
        return False
    return type(policy).score is CappedC2UCB.score and type(policy).choose is Policy.choose


def _refuse_too_large(runs: int, rounds: int, n_features: int, n_arms: Any) -> None:
    """Refuse what does not fit in memory; `BATCH` runs are simulated at once, each with its own arms and estimate."""
    at_once = min(runs, BATCH)
    refuse_too_many(runs, rounds)
    checks.fits_in_memory(f"estimates with n_features = {n_features}", 4 * at_once * (n_features + 1) ** 2)
    if isinstance(n_arms, int):  # which a user's environment need not have
        checks.fits_in_memory(
            f"{at_once} runs at once with n_arms = {n_arms} and n_features = {n_features}",
            at_once * n_arms * n_features,
        )


def standings(plan: Plan, results: Sequence[Result]) -> list[Standing]:
    """Return how the policies did, environment by environment."""
    return [Standing.of(name, [r for r in results if r.environment == name]) for name in plan.environments]


def write(plan: Plan, results: Sequence[Result], out: Path) -> Path:
    """Write table, figures and page into the folder `out`; return the path of the page."""
    write_table(tidy(results, "environment"), out / "results")
    styles = figures.style_of(plan.policies)
    parts = [page.paragraph(text) for text in _about(plan)]
    parts += [page.heading("The policies and their options"), page.bullets(_options(plan))]
    for standing in standings(plan, results):
        name = standing.environment
        path = out / f"figure-{file_name(name)}"
        draw = figures.regret_by_size if len(standing.sizes) > 1 else figures.regret_by_round
        draw(list(standing.results.values()), name).save(path, styles)
        recipe = plan.environments[name]
        parts += [
            page.heading(name),
            page.paragraph(f"{page.code(recipe.short_kind)}{_with_options(recipe.options)}."),
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
        f"armful {armful.__version__}). In one run all policies meet the same arms and the same noise, so they are "
        "compared run by run. How many runs might be enough to tell two policies apart supposes that the difference "
        "stays.",
    ]


def _options(plan: Plan) -> list[str]:
    """Return a sentence on each policy: its class and its options."""
    sentences = []
    n_features = next(recipe.make(k=plan.sizes_in(name)[0][0]).n_features for name, recipe in plan.environments.items())
    for name, recipe in plan.policies.items():
        options = _all_options(recipe.make(n_features=n_features))
        left = {o: v for o, v in options.items() if o not in recipe.options and o != "n_features"}
        what = "" if name == recipe.kind else f" is {page.code(recipe.short_kind)}"
        defaults = f"; left at the defaults: {_comma_separated(left)}" if left else ""
        sentences.append(f"{page.code(name)}{what}{_with_options(recipe.options)}{defaults}.")
    return sentences


def _all_options(policy: object) -> dict[str, Any]:
    """Return the options of a policy; none for a user's class that does not keep them."""
    try:
        return policy.options if isinstance(policy, Policy) else {}
    except AttributeError:
        return {}


def _comma_separated(options: Mapping[str, Any]) -> str:
    return page.plain(", ".join(f"{name} = {value!r}" for name, value in options.items()))


def _with_options(options: Mapping[str, Any]) -> str:
    return f" with {_comma_separated(options)}" if options else ""
