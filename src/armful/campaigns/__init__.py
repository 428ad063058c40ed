"""Campaigns: rounds chosen from files, outcomes that come late, a report; needs `pip install 'armful[campaigns]'`."""

from armful._signatures import explain_arguments
from armful.campaigns._records import RoundRecord
from armful.campaigns._results import Coefficient, Forgotten, Learned, Round, RoundStatus, ServiceStatus, Status
from armful.campaigns.audit import Finding
from armful.campaigns.campaign import Campaign
from armful.campaigns.features import FeatureRecipe
from armful.campaigns.holdout import share_of
from armful.campaigns.init import InitResult, init_campaign, init_service
from armful.campaigns.lift import Lift, LiftData, estimate_lift, lift_data
from armful.campaigns.planning import PlanResult, make_plan
from armful.campaigns.settings import Settings, read_settings

__all__ = [
    "Campaign",
    "Coefficient",
    "FeatureRecipe",
    "Finding",
    "Forgotten",
    "InitResult",
    "Learned",
    "Lift",
    "LiftData",
    "PlanResult",
    "Round",
    "RoundRecord",
    "RoundStatus",
    "ServiceStatus",
    "Settings",
    "Status",
    "estimate_lift",
    "init_campaign",
    "init_service",
    "lift_data",
    "make_plan",
    "read_settings",
    "share_of",
]

explain_arguments(Campaign)
