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
        What rewards are called, in the plural.
    """
    lifts = list(lifts_of_moments(_moments(segments), level=LEVEL, adjust=False, unit=unit))
    return lifts[-1] if lifts else None


def _moments(segments: Iterable[Segment]) -> Iterator[Moments]:
    """Yield the moments after each segment in which both shares have at least two known rewards."""
    n_rounds, counts, totals = 0, np.zeros(2), np.zeros(2)
    sums, seen = np.zeros((2, N_CLUSTERS)), np.zeros((2, N_CLUSTERS), dtype=bool)
    for segment in segments:
        of = segment.counts
        sizes = np.array([of.total("holdout_n"), of.total("chosen_n") + of.total("explored_n")])
        if sizes.min() < 2:
            continue
        rewards = np.array([of.total("holdout_sum"), of.total("chosen_sum") + of.total("explored_sum")])
        n_rounds += 1
        counts, totals = counts + sizes, totals + rewards / sizes
        sums += np.sqrt(sizes / (sizes - 1))[:, None] / sizes[:, None] * of.clusters
        seen |= of.seen
        yield Moments(
            last_round=segment.last,
            n_rounds=n_rounds,
            n_treated=int(counts[1]),
            n_others=int(counts[0]),
            treated_people=int(seen[1].sum()),
            other_people=int(seen[0].sum()),
            mean1=float(totals[1]),
            mean0=float(totals[0]),
            control=0.0,
            control_error=0.0,
            uu=float(sums[1] @ sums[1]),
            ww=float(sums[0] @ sums[0]),
            zz=0.0,
            uw=0.0,
            uz=0.0,
            wz=0.0,
        )
