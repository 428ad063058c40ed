"""The headline of a service says what its lift means."""

import pytest

from armful.campaigns import Lift
from armful.campaigns.decisions.summary import headline

TOTALS = {"decisions": 10.0}


@pytest.mark.parametrize(
    ("interval", "relative", "expected"),
    [
        ((0.1, 0.3), 1.46, "Chosen sets earn 146 % more than the random ones of the holdout."),
        ((0.1, 0.3), None, "Chosen sets earn more than the random ones of the holdout."),
        ((-0.1, 0.3), 0.5, "Chosen sets cannot be told yet from the random ones of the holdout."),
        ((-0.3, -0.1), -0.5, "Chosen sets earn less than the random ones of the holdout."),
        ((None, None), None, "too few to tell"),
    ],
)
def test_the_headline_says_what_the_interval_allows(interval, relative, expected):
    low, high = interval
    lift = Lift(sentence="too few to tell", level=0.95, low=low, high=high, relative=relative)
    assert headline(TOTALS, lift, "click") == expected
