"""Campaigns: rounds chosen from files, outcomes that come late, a report; needs `pip install 'armful[campaigns]'`."""

from armful._signatures import explain_arguments
from armful.campaigns._records import RoundRecord
from armful.campaigns._results import Coefficient, Forgotten, Learned, Round, RoundStatus, Status
from armful.campaigns.campaign import Campaign
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.settings import Settings, read_settings

__all__ = [
    "Campaign",
    "Coefficient",
    "FeatureRecipe",
    "Forgotten",
    "Learned",
    "Round",
    "RoundRecord",
    "RoundStatus",
    "Settings",
    "Status",
    "read_settings",
]

explain_arguments(Campaign)
