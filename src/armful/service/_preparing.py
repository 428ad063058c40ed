"""What a campaign needs before its first decision."""

from armful.campaigns import Campaign, FeatureRecipe
from armful.campaigns.rounds._customers import fit_recipe


def frozen_recipe(campaign: Campaign) -> FeatureRecipe:
    """Return the recipe of a campaign's features; when it is first served, fit it on the source and freeze it.

    Raises
    ------
    ValueError
        If there is no file to fit it on, or it cannot be used.
    """
    recipe = campaign.recipe
    if recipe is not None:
        return recipe
    settings = campaign.settings
    if settings.features.ready:
        recipe = FeatureRecipe.fit(settings.features, ())
    elif settings.source is None:
        raise ValueError(
            f"{settings.name} has no source to work out its features from: set source in campaign.toml, or "
            "features.ready if requests bring features"
        )
    else:
        recipe = fit_recipe(settings.folder / settings.source, settings)
    campaign.ledger.freeze_recipe(recipe.to_json())
    return recipe
