"""What can be proved: regret bounds, inequalities of every trajectory, certificates, cadence. See docs/theory.md.

The names are the same everywhere. `radius` is alpha_T, the last and largest radius (`beta`, or a value of
`log_det_radius`); `k` the size of a set; `rounds` T; `n_features` d; `length` L >= |x|; `bound` B >= |theta*.x|;
`ridge` lambda; `noise` R; `norm` S >= |theta*|; G is `log_det_bound`. A bound holds where the confidence set contains
theta*: with probability at least 1 - delta, for a radius that never decreases.
"""

from armful.theory.bounds import (
    Setting,
    c2ucb_bound,
    c2ucb_matroid_bound,
    c2ucb_round_counting_bound,
    capped_bound,
    delay_term,
)
from armful.theory.orders import cadence, lower_bound_order
from armful.theory.radii import beta, log_det_bound, log_det_radius
from armful.theory.shocks import estimate_shock
from armful.theory.trajectory import Inequality, TrajectoryReport, check_trajectory, regret_certificate

__all__ = [
    "Inequality",
    "Setting",
    "TrajectoryReport",
    "beta",
    "c2ucb_bound",
    "c2ucb_matroid_bound",
    "c2ucb_round_counting_bound",
    "cadence",
    "capped_bound",
    "check_trajectory",
    "delay_term",
    "estimate_shock",
    "log_det_bound",
    "log_det_radius",
    "lower_bound_order",
    "regret_certificate",
]
