"""How many features a service can use."""

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._numbers import Ready

MOST_FEATURES = 1000
"""A choice from 100 candidates takes some 20 ms with so many features, and the model 8 MB."""


def refuse_too_many(recipe: FeatureRecipe) -> None:
    """Raise ValueError if a recipe makes more features than can be served, and say where most of them come from."""
    if recipe.n_features <= MOST_FEATURES:
        return
    many = f"{recipe.n_features:,} features, and a service can use {MOST_FEATURES:,}"
    if isinstance(recipe.parts[0], Ready):
        raise ValueError(f"features.ready has {many}: leave out those that tell least, or use fewer directions of them")
    widths = {part.columns[0]: len(part.names) for part in recipe.parts}
    pairs = {f"{a} \N{MULTIPLICATION SIGN} {b}": widths[a] * widths[b] for a, b in recipe.interactions}
    largest = sorted({**widths, **pairs}.items(), key=lambda item: -item[1])[:3]
    shares = ", ".join(f"{name} ({n:,})" for name, n in largest)
    raise ValueError(
        f"the columns make {many}; most come from {shares}: leave columns out of features.columns or "
        "service.context, list fewer pairs in features.interactions, or lower at_most of categories"
    )
