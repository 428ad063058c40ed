"""The lift of decisions over the holdout, clustered by unit."""

from collections.abc import Iterable, Iterator

import numpy as np

from armful.campaigns.decisions._counts import N_CLUSTERS
from armful.campaigns.decisions._segments import Segment
from armful.campaigns.lift import Lift, lifts_of_moments
from armful.campaigns.lift._clustered import Moments

LEVEL = 0.95


def decision_lift(segments: Iterable[Segment], unit: str) -> Lift | None:
    """Return the lift per arm over all segments, each compared within itself; None if it cannot be estimated.

    A unit is in one share only, so the two shares are independent. Units are put into clusters at random, and the
    variance is that between clusters: it allows for units that come back, in the same slate or weeks later.

    Parameters
    ----------
    segments : iterable of Segment
        The first decisions first.
    unit : str
        What stands after a number of rewards, as `unit_of` returns it.
    """
    lifts = list(lifts_of_moments(_moments(segments), level=LEVEL, adjust=False, unit=unit, per="arm"))
    return lifts[-1] if lifts else None


def _moments(segments: Iterable[Segment]) -> Iterator[Moments]:
    """Yield the moments after each segment in which both shares have at least two known rewards."""
    compared, sums, seen = np.zeros(5), np.zeros((2, N_CLUSTERS)), np.zeros((2, N_CLUSTERS), dtype=bool)
    for segment in segments:
        of = segment.counts
        if not of.compared[0]:
            continue
        compared, sums, seen = compared + of.compared, sums + of.clusters, seen | of.seen
        n_segments, n_others, n_treated, others, treated = compared.tolist()
        yield Moments(
            last_round=segment.last,
            n_rounds=int(n_segments),
            n_treated=int(n_treated),
            n_others=int(n_others),
            treated_people=int(seen[1].sum()),
            other_people=int(seen[0].sum()),
            mean1=treated,
            mean0=others,
            control=0.0,
            control_error=0.0,
            uu=float(sums[1] @ sums[1]),
            ww=float(sums[0] @ sums[0]),
            zz=0.0,
            uw=0.0,
            uz=0.0,
            wz=0.0,
        )
