"""What a campaign needs before its first decision."""

from armful.campaigns import Campaign, FeatureRecipe
from armful.campaigns.features._size import refuse_too_many
from armful.campaigns.rounds._customers import fit_recipe
from armful.campaigns.settings import unservable


def frozen_recipe(campaign: Campaign) -> FeatureRecipe:
    """Return the recipe of a campaign's features; when it is first served, fit it on the source and freeze it.

    Raises
    ------
    ValueError
        If there is no file to fit it on, it cannot be used, or the settings are not those of a service,
        or of a campaign with rounds of lists.
    """
    settings = campaign.settings
    for _, sentence in unservable(settings):
        raise ValueError(f"{settings.name} cannot be served: {sentence}")
    if not campaign.is_served and campaign.ledger.last_number():
        raise ValueError(
            f"{settings.name} has rounds of lists, whose report would end with the first decision of a service: look "
            "at it by `armful dashboard`, or add a table [service] to campaign.toml to serve it all the same"
        )
    recipe = campaign.recipe
    if recipe is not None:
        if settings.features.ready and recipe.names != list(settings.features.ready):
            raise ValueError(
                f"{settings.name} was begun with {recipe.n_features} other features than features.ready names now: set "
                "it back, or begin a campaign of another name"
            )
        return recipe
    if settings.features.ready:
        recipe = FeatureRecipe.fit(settings.features, ())
    elif settings.source is None:
        raise ValueError(
            f"{settings.name} has no source to work out its features from: set source in campaign.toml, or "
            "features.ready if requests bring features"
        )
    else:
        recipe = fit_recipe(settings.folder / settings.source, settings)
    refuse_too_many(recipe)
    campaign.ledger.freeze_recipe(recipe.to_json())
    return recipe
