"""What the model believes of each feature."""

from armful import C2UCB
from armful.campaigns._believed import coefficients


def test_a_coefficient_of_zero_has_no_sign():
    policy = C2UCB(n_features=2)
    policy.learn([[0.0, 1.0]], [-1.0])
    found = {each.name: each for each in coefficients(policy, ["never seen", "seen"], ready=True)}
    assert str(found["never seen"].value) == "0.0"
    assert found["seen"].value == policy.state.theta[1] < 0
