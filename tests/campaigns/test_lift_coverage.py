"""How often intervals contain the lift of made campaigns (`made_lift`), 400 of each kind.

An interval that covers 94 % of the time fails a test of its coverage with probability 1e-6: then fewer than 353 of 400
contain the lift. One that covers 75 % of the time passes with probability 1e-10. A table with 10,000 campaigns of each
kind is in docs/lift.md.
"""

import numpy as np
import pytest
from scipy.stats import binom

from armful.campaigns.lift import estimate_lift, lift_path
from tests.campaigns.made_lift import MadeCampaign, stratified_interval

REPETITIONS = 400
FEWEST = int(binom.ppf(1e-6, REPETITIONS, 0.94))

CAMPAIGNS = {
    "people who come back often": MadeCampaign(),
    "a small holdout": MadeCampaign(people=600, contacts=150, holdout=0.15),
    "people who come back seldom": MadeCampaign(people=5000),
    "sales": MadeCampaign(sales=True, holdout=0.2),
    "a house rule by score": MadeCampaign(rule="score"),
    "a house rule by a score that tells nearly all": MadeCampaign(rule="score", effect=1.0, own=0.1, noise=0.3),
}


def draws(campaign, seed=0):
    rng = np.random.default_rng([seed, campaign.rounds])
    return (campaign.draw(rng) for _ in range(REPETITIONS))


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [4, 8, 20])
@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_the_interval_contains_the_lift_as_often_as_it_says(kind, rounds):
    """False-alarm rate: 1e-6 for each of 18 kinds if the interval covers 94 %."""
    campaign = CAMPAIGNS[kind].with_(rounds=rounds)
    lifts = [estimate_lift(data) for data in draws(campaign)]
    assert sum(lift.low <= campaign.lift <= lift.high for lift in lifts) >= FEWEST


@pytest.mark.slow
def test_stratifying_by_round_alone_would_not_do():
    """With people who come back in 20 rounds: the same test, and it fails. False-alarm rate below 1e-6."""
    campaign = CAMPAIGNS["people who come back often"].with_(rounds=20)
    intervals = [stratified_interval(data) for data in draws(campaign)]
    assert sum(low <= campaign.lift <= high for low, high in intervals) < FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [4, 8])
def test_the_adjusted_interval_covers_and_is_narrower(rounds):
    """Most of the reward is predicted. False-alarm rate: about 1e-6 for each of three comparisons."""
    campaign = MadeCampaign(rounds=rounds, people=5000, effect=1.0, own=0.3, noise=0.7)
    pairs = [(estimate_lift(data), estimate_lift(data, adjust=False)) for data in draws(campaign)]
    assert sum(adjusted.low <= campaign.lift <= adjusted.high for adjusted, _ in pairs) >= FEWEST
    widths = np.array([[adjusted.high - adjusted.low, plain.high - plain.low] for adjusted, plain in pairs])
    errors = np.array([[adjusted.per_contact, plain.per_contact] for adjusted, plain in pairs]) - campaign.lift
    assert widths[:, 0].mean() < 0.97 * widths[:, 1].mean()
    assert np.mean(errors[:, 0] ** 2) < np.mean(errors[:, 1] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["people who come back often", "a small holdout", "people who come back seldom"])
def test_the_anytime_interval_holds_after_every_round_at_once_and_the_other_does_not(kind):
    """Looked at after each of 20 rounds. False-alarm rate: 1e-6 if it covers 94 %; the other covers about 80 %."""
    campaign = CAMPAIGNS[kind].with_(rounds=20)
    always, once = 0, 0
    for data in draws(campaign):
        looks = [(lift, campaign.lift_so_far[lift.n_rounds - 1]) for lift in lift_path(data)]
        always += all(lift.anytime_low <= truth <= lift.anytime_high for lift, truth in looks)
        once += all(lift.low <= truth <= lift.high for lift, truth in looks)
    assert always >= FEWEST
    assert once < always
