"""The loop of choosing and learning in an environment, for many repetitions at once."""

from armful.simulation.loop import simulate
from armful.simulation.trajectories import Trajectories

__all__ = ["Trajectories", "simulate"]
