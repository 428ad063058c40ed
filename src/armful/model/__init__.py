"""What was learned: the seam for models, the ridge state, and confidence radii."""

from armful.model.base import Model
from armful.model.ridge import RidgeState

__all__ = ["Model", "RidgeState"]
