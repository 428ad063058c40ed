"""Worlds to learn in."""

from armful.environments.lower_bounds import CombinedLowerBound, LearningLowerBound, NoiseLowerBound
from armful.environments.paper import PaperInstance
from armful.environments.round import Environment, Round, played
from armful.environments.synthetic import Campaign, Slates

__all__ = [
    "Campaign",
    "CombinedLowerBound",
    "Environment",
    "LearningLowerBound",
    "NoiseLowerBound",
    "PaperInstance",
    "Round",
    "Slates",
    "played",
]
