"""The policies that tests run over."""

import math

import pytest

from armful import C2UCB, ArmwiseThompson, CappedC2UCB, CombLinTS, CombLinUCB, EpsilonGreedy, Policy

PAPER_POLICIES = {
    "EpsilonGreedy": lambda d: EpsilonGreedy(n_features=d),
    "C2UCB": lambda d: C2UCB(n_features=d, ridge=d, radius=math.sqrt(d)),
    "CappedC2UCB": lambda d: CappedC2UCB(n_features=d, ridge=d, radius=math.sqrt(d), cap=0.9),
    "CappedC2UCB-paper": lambda d: CappedC2UCB(n_features=d, ridge=d, radius=math.sqrt(d), cap=0.9, rule="paper"),
    "CappedC2UCB-default": lambda d: CappedC2UCB(n_features=d, cap=1.0),
    "ArmwiseThompson": lambda d: ArmwiseThompson(n_features=d, ridge=d, radius=math.sqrt(d)),
    "CombLinUCB": lambda d: CombLinUCB(n_features=d),
    "CombLinTS": lambda d: CombLinTS(n_features=d),
}


@pytest.fixture(params=list(PAPER_POLICIES))
def make_policy(request: pytest.FixtureRequest):
    """A function from the number of features to a policy: each of the paper's, and the default."""

    def make(n_features: int) -> Policy:
        return PAPER_POLICIES[request.param](n_features)

    return make
