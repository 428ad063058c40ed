"""Environments to simulate policies in: the paper's, its lower bounds, and one for each constraint."""

from armful.environments.constrained import Budgets, Bundles, Networks, Panels, Regions
from armful.environments.lower_bounds import CombinedLowerBound, LearningLowerBound, NoiseLowerBound
from armful.environments.matchings import Matchings
from armful.environments.paper import PaperInstance
from armful.environments.round import Environment, Round
from armful.environments.routes import Routes
from armful.environments.synthetic import Campaign, Slates

__all__ = [
    "Budgets",
    "Bundles",
    "Campaign",
    "CombinedLowerBound",
    "Environment",
    "LearningLowerBound",
    "Matchings",
    "Networks",
    "NoiseLowerBound",
    "Panels",
    "PaperInstance",
    "Regions",
    "Round",
    "Routes",
    "Slates",
]
