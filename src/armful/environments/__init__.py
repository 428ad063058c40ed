"""Environments to simulate policies in: the paper's, its lower bounds, and one for each constraint."""

from typing import TYPE_CHECKING, NoReturn

from armful._signatures import missing_name
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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name, __all__)
