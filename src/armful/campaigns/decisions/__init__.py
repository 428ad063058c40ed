"""Single decisions of the service: how they are learned, and what is published."""

from armful.campaigns.decisions.fold import DecisionFold
from armful.campaigns.decisions.published import PublishedModel

__all__ = ["DecisionFold", "PublishedModel"]
