"""armful: choose a set, see how each of its items did, choose better next time."""

from typing import TYPE_CHECKING, NoReturn

from armful import environments, theory
from armful._signatures import explain_classes, missing_name
from armful.arms import Arms
from armful.constraints import (
    Assignment,
    AtMost,
    Constraint,
    Excluding,
    Knapsack,
    Limit,
    Linear,
    NestedQuotas,
    OneOf,
    Path,
    Quotas,
    Requiring,
    Selection,
    SpanningTree,
    TopK,
    overlapping_quotas,
)
from armful.errors import FileFormatError, InfeasibleError, PrecisionError
from armful.model.ridge import RidgeState
from armful.objectives import Coverage, Diverse, Objective
from armful.policies import (
    C2UCB,
    ArmwiseThompson,
    CappedC2UCB,
    Choice,
    CombLinTS,
    CombLinUCB,
    EpsilonGreedy,
    Explanation,
    Policy,
    Scores,
    load,
)
from armful.simulation.loop import simulate
from armful.simulation.trajectories import Trajectories
from armful.tables import ParquetTable, Table

__version__ = "0.1.0"

__all__ = [
    "C2UCB",
    "Arms",
    "ArmwiseThompson",
    "Assignment",
    "AtMost",
    "CappedC2UCB",
    "Choice",
    "CombLinTS",
    "CombLinUCB",
    "Constraint",
    "Coverage",
    "Diverse",
    "EpsilonGreedy",
    "Excluding",
    "Explanation",
    "FileFormatError",
    "InfeasibleError",
    "Knapsack",
    "Limit",
    "Linear",
    "NestedQuotas",
    "Objective",
    "OneOf",
    "ParquetTable",
    "Path",
    "Policy",
    "PrecisionError",
    "Quotas",
    "Requiring",
    "RidgeState",
    "Scores",
    "Selection",
    "SpanningTree",
    "Table",
    "TopK",
    "Trajectories",
    "environments",
    "load",
    "overlapping_quotas",
    "simulate",
    "theory",
]

explain_classes(globals(), leave_out=(Arms, Choice, Scores, Selection))
explain_classes(vars(environments))

if not TYPE_CHECKING:  # a type checker should go on to refuse names that are not there

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name, __all__)
