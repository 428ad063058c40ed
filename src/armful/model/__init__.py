"""What was learned: the ridge state, and how far the truth may be from it."""

from armful.model.ridge import RidgeState

__all__ = ["RidgeState"]
