"""Which sets are allowed: one file per family."""

from armful.constraints._ranks import GroupBounds, Ranks
from armful.constraints.assignment import Assignment
from armful.constraints.base import Constraint, Limit
from armful.constraints.cardinality import AtMost, TopK
from armful.constraints.knapsack import Knapsack
from armful.constraints.linear import Linear
from armful.constraints.nested import NestedQuotas
from armful.constraints.one_of import OneOf
from armful.constraints.overlapping import overlapping_quotas
from armful.constraints.paths import Path
from armful.constraints.quotas import Quotas
from armful.constraints.ranked import RankedConstraint
from armful.constraints.restricted import Excluding, Requiring
from armful.constraints.selection import Selection
from armful.constraints.trees import SpanningTree

__all__ = [
    "Assignment",
    "AtMost",
    "Constraint",
    "Excluding",
    "GroupBounds",
    "Knapsack",
    "Limit",
    "Linear",
    "NestedQuotas",
    "OneOf",
    "Path",
    "Quotas",
    "RankedConstraint",
    "Ranks",
    "Requiring",
    "Selection",
    "SpanningTree",
    "TopK",
    "overlapping_quotas",
]
