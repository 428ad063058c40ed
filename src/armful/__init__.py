"""armful: choose a set, see how each of its items did, choose better next time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armful import constraints, environments, theory
from armful._signatures import explain_classes, explain_missing_names, missing_name
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
from armful.errors import FileFormatError, InfeasibleError, LedgerError, PrecisionError, ServiceError, SettingsError
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
    "AsyncClient",
    "AtMost",
    "Campaign",
    "CappedC2UCB",
    "Choice",
    "Client",
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
    "LedgerError",
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
    "ServiceError",
    "SettingsError",
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
for module in (constraints, environments, theory):
    explain_missing_names(vars(module))

_LAZY = {  # what they need is imported when they are used
    "AsyncClient": ("armful.service.client", "serve"),
    "Campaign": ("armful.campaigns", "campaigns"),
    "Client": ("armful.service.client", "serve"),
}

if TYPE_CHECKING:  # a type checker refuses names that are not there
    from armful.campaigns import Campaign
    from armful.service.client import AsyncClient, Client
else:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise missing_name(__name__, name, __all__)
        module, extra = _LAZY[name]
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "armful":
                raise
            raise ImportError(f"armful.{name} needs {error.name}: install armful with the extra [{extra}]") from None
