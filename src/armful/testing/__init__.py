"""Contract suites: inherit one in a test file, write one method, and pytest runs every check on your own class.

Examples
--------
>>> from armful import C2UCB
>>> from armful.testing import PolicyContract
>>> class MyPolicy(C2UCB):
...     pass
>>> class TestMyPolicy(PolicyContract):
...     def policy(self, n_features, seed):
...         return MyPolicy(n_features=n_features, seed=seed)
"""

from armful.testing.arms_contract import ArmsContract
from armful.testing.constraint_contract import ConstraintContract, RankedConstraintContract
from armful.testing.environment_contract import EnvironmentContract
from armful.testing.model_contract import ModelContract
from armful.testing.objective_contract import ObjectiveContract
from armful.testing.policy_contract import PolicyContract

__all__ = [
    "ArmsContract",
    "ConstraintContract",
    "EnvironmentContract",
    "ModelContract",
    "ObjectiveContract",
    "PolicyContract",
    "RankedConstraintContract",
]
