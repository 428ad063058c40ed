"""Single decisions of the service: how they are learned, and what is published."""

from armful.campaigns.decisions.fold import DecisionFold
from armful.campaigns.decisions.published import PublishedModel
from armful.campaigns.decisions.update import update_model

__all__ = ["DecisionFold", "PublishedModel", "update_model"]
