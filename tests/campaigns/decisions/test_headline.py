"""The headline of a service says what its lift means, and without a lift what is known."""

import numpy as np
import pytest

from armful.campaigns import Lift
from armful.campaigns.decisions._counts import COLUMNS
from armful.campaigns.decisions.summary import headline

TOTALS = {"decisions": 10.0, "open": 0.0, "came": 4.0}
KNOWN = {"decisions": 83.0, "came": 8.0, "chosen_n": 40.0, "chosen_sum": 8.0, "chosen_sizes": 40.0}
SURE, LIKELY, OPEN = (0.1, 0.3, 0.05, 0.35), (0.1, 0.3, -0.05, 0.45), (-0.1, 0.3, -0.2, 0.4)


def made_lift(interval, relative, sign=1):
    low, high, anytime_low, anytime_high = sorted(sign * each for each in interval[:2]) + sorted(
        sign * each for each in interval[2:]
    )
    return Lift(
        sentence="+9 %",
        level=0.95,
        per_contact=(low + high) / 2,
        low=low,
        high=high,
        anytime_low=anytime_low,
        anytime_high=anytime_high,
        relative=relative,
    )


@pytest.mark.parametrize(
    ("lift", "expected"),
    [
        (made_lift(SURE, 1.46), "Chosen sets earn 146 % more than random ones."),
        (made_lift(SURE, 0.0042), "Chosen sets earn 0.42 % more than random ones."),
        (made_lift(SURE, None), "Chosen sets earn more than random ones."),
        (made_lift(LIKELY, 1.46), "Chosen sets probably earn more than random ones."),
        (made_lift(OPEN, 0.5), "Too early to say whether chosen sets do better than random ones."),
        (made_lift(LIKELY, -0.5, -1), "Chosen sets probably earn less than random ones."),
        (made_lift(SURE, -0.5, -1), "Chosen sets earn less than random ones."),
        (Lift(sentence="too few to tell", level=0.95), "too few to tell."),
    ],
)
def test_the_headline_says_what_the_intervals_allow(lift, expected):
    assert headline(TOTALS, lift, "click") == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, "Nothing has been decided yet."),
        ({"decisions": 83.0, "open": 83.0}, "No window for rewards has closed yet."),
        ({"decisions": 508.0, "open": 1.0}, "No reward has come for 507 decisions whose window has closed."),
        ({"decisions": 2.0, "open": 1.0}, "No reward has come for 1 decision whose window has closed."),
        ({"decisions": 83.0, "came": 5.0}, "No reward of an arm that the policy chose is known yet."),
        ({**KNOWN, "holdout_n": 1.0}, "Each chosen arm earned 0.2 clicks on average."),
        (KNOWN, "Each chosen arm earned 0.2 clicks on average; there is no holdout to compare with."),
        ({**KNOWN, "chosen_sum": 7e7, "holdout_n": 1.0}, "Each chosen arm earned 1,750,000 clicks on average."),
    ],
)
def test_without_a_lift_the_headline_has_no_count_that_the_page_has_newer(known, expected):
    totals = {**dict(zip(COLUMNS, np.zeros(len(COLUMNS)), strict=True)), **known}
    assert headline(totals, None, "click") == expected
