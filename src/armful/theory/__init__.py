"""What can be proved: regret bounds, inequalities of every trajectory, certificates, cadence. See docs/theory.md.

The same words everywhere: `radius` is alpha_T, the last and largest radius (`beta`, or a value of `log_det_radius`);
`k` the size of a set; `rounds` T; `length` L >= |x|; `bound` B >= |theta*.x|; `ridge` lambda; `noise` R;
`norm` S >= |theta*|. "Paper" is Takemura et al. 2021. G is `log_det_bound`. A bound holds wherever the confidence
set does: with probability at least 1 - delta, for a radius that never falls.
"""

from typing import TYPE_CHECKING, NoReturn

from armful._signatures import missing_name
from armful.theory.bounds import (
    Setting,
    beta,
    c2ucb_bound,
    c2ucb_matroid_bound,
    c2ucb_round_counting_bound,
    cadence,
    capped_bound,
    delay_term,
    log_det_bound,
    log_det_radius,
    lower_bound_order,
)
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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name, __all__)
