"""Ways to score the arms: one file per family."""

from typing import TYPE_CHECKING, NoReturn

from armful._signatures import missing_name
from armful.policies._loading import load
from armful.policies.choice import Choice
from armful.policies.epsilon_greedy import EpsilonGreedy
from armful.policies.explanation import Explanation
from armful.policies.inclusion import Inclusion, choose_with_inclusion
from armful.policies.policy import Policy
from armful.policies.scores import Scores
from armful.policies.thompson import ArmwiseThompson, CombLinTS
from armful.policies.ucb import C2UCB, CappedC2UCB, CombLinUCB

__all__ = [
    "C2UCB",
    "ArmwiseThompson",
    "CappedC2UCB",
    "Choice",
    "CombLinTS",
    "CombLinUCB",
    "EpsilonGreedy",
    "Explanation",
    "Inclusion",
    "Policy",
    "Scores",
    "choose_with_inclusion",
    "load",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name, __all__)
