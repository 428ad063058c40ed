"""What the model believes of each feature."""

from collections.abc import Sequence

import numpy as np

from armful.campaigns._intervals import STANDARD_ERRORS
from armful.campaigns._results import Coefficient
from armful.model.radius import estimated_noise
from armful.policies import Policy


def coefficients(policy: Policy, names: Sequence[str], *, ready: bool = False) -> list[Coefficient]:
    """Return the coefficient of each feature with an interval of about 95 %, the largest first.

    Features are between 0 and `1 / sqrt(d)`, so a coefficient divided by `sqrt(d)` is the change of the reward from the
    lowest to the highest value of the feature. The interval is the estimate plus and minus 1.96 standard errors; that
    the ridge pulls the estimate to zero is not in it. Of features that came ready the coefficients are as they are.
    """
    d = policy.n_features
    scale = 1.0 if ready else 1 / np.sqrt(d)
    theta = np.asarray(policy.state.theta) * scale + 0.0  # no -0.0
    errors = estimated_noise(policy.state) * policy.state.mean_and_width(np.eye(d))[1] * scale
    order = np.argsort(-np.abs(theta), kind="stable")
    return [
        Coefficient(
            name=names[i],
            value=float(theta[i]),
            low=float(theta[i] - STANDARD_ERRORS * errors[i]),
            high=float(theta[i] + STANDARD_ERRORS * errors[i]),
        )
        for i in order.tolist()
    ]
