"""Which sets are allowed: one file per family."""

from armful.constraints.cardinality import AtMost, TopK
from armful.constraints.combined import Excluding, Requiring
from armful.constraints.listed import OneOf
from armful.constraints.quotas import NestedQuotas, Quotas
from armful.constraints.selection import Constraint, Limit, Selection, best_each

__all__ = [
    "AtMost",
    "Constraint",
    "Excluding",
    "Limit",
    "NestedQuotas",
    "OneOf",
    "Quotas",
    "Requiring",
    "Selection",
    "TopK",
    "best_each",
]
