"""Planning a campaign on a sample of its own customers."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.holdout import uniforms
from armful.campaigns.planning import make_plan
from armful.campaigns.planning._records import PlanResult
from armful.campaigns.planning._words import left_out
from armful.campaigns.reading._person_ids import as_ids
from armful.campaigns.reading._row_progress import with_progress
from armful.campaigns.reading._rows import open_rows
from armful.campaigns.rounds._customers import columns_of, fit_recipe
from armful.campaigns.settings import Settings
from armful.checks import FloatArray
from armful.tables._progress import progress_bar

SAMPLE = 20_000
"""About how many customers are simulated."""


def plan_campaign(
    settings: Settings,
    recipe: FeatureRecipe | None,
    *,
    rounds: int,
    every: timedelta,
    base_rate: float | None,
    progress: bool,
) -> PlanResult:
    """Return the plan of a campaign; recipe: None before the first round. The rest as for `Campaign.plan`."""
    if settings.source is None:
        raise ValueError("a plan needs your customers: say in campaign.toml where they are, source = ...")
    if every <= timedelta(0):
        raise ValueError(f"every must be longer than 0, got {every}")
    source = str(settings.folder / settings.source)
    recipe = recipe or fit_recipe(source, settings, progress=progress)
    X, n_customers = _sample(source, settings, recipe, progress)
    with progress_bar("simulating", None, show=progress) as advance:
        plan = make_plan(
            X=X,
            n_customers=n_customers,
            k=settings.choose.k,
            rounds=rounds,
            make_policy=lambda seed: settings.policy.make(recipe.n_features, seed),
            holdout=settings.holdout.share,
            window_rounds=math.ceil(settings.outcomes.window / every) - 1,
            rest=settings.choose.rest,
            cap=settings.policy.options.get("cap"),
            base_rate=base_rate,
            seed=settings.seed,
            progress=lambda _, of: advance(1, f"of {of}"),
        )
    return replace(plan, sentences=(*plan.sentences, *left_out(settings)))


def _sample(source: str, settings: Settings, recipe: FeatureRecipe, progress: bool) -> tuple[FloatArray, int]:
    """Return the features of about 20,000 customers, all if there are fewer, and the number of all customers."""
    columns, texts = columns_of(settings, recipe)
    kept, keys, fraction, n = list[FloatArray](), list[FloatArray](), 1.0, 0
    reader = open_rows(source, columns=columns, text=texts, delimiter=settings.delimiter)
    for batch in with_progress(reader, "reading customers", show=progress):
        ids = np.asarray(as_ids(batch.column(settings.id), settings.id, n).to_numpy(False), dtype=np.str_)
        u = uniforms(ids, f"{settings.name} plan")
        rows = np.flatnonzero(u < fraction)
        kept.append(recipe.transform(batch.take(rows)).astype(np.float64))
        keys.append(u[rows])
        n += batch.num_rows
        if sum(map(len, keys)) > 2 * SAMPLE:  # the customers with the smallest numbers are a random sample
            X, u = np.concatenate(kept), np.concatenate(keys)
            fraction = float(np.partition(u, SAMPLE)[SAMPLE])
            kept, keys = [X[u < fraction]], [u[u < fraction]]
    return np.concatenate(kept), n
