"""Errors say what an arm is called wherever it has a name, not in which row it stands alone."""

import pickle

import numpy as np
import pyarrow
import pytest

from armful import C2UCB, Assignment, CappedC2UCB, Excluding, Path, Policy, SpanningTree, Table, TopK
from armful.checks import NotFiniteError
from armful.scan._dispatch import SCAN_FROM

STREETS = [("home", "park"), ("park", "work"), ("home", "work"), ("work", "lake")]
PATH = Path(STREETS, "home", "work")
NAMED = {
    "park -> work": PATH,
    "park - work": SpanningTree(STREETS),
    "(ann, cook)": Assignment(rows=["ann", "ann", "bob", "bob"], columns=["dig", "cook", "dig", "cook"]),
    "(ann, cook) ": Excluding(Assignment(rows=["ann", "ann", "bob"], columns=["dig", "cook", "dig"]), [0]),
}


class OneScoreIsNaN(Policy):
    armwise = True

    def score(self, arms, k):
        return np.where(arms.arm_indices == 1, np.nan, 0.0)


def rows(n=4):
    return np.random.default_rng(0).standard_normal((n, 3)) / 2


def spoilt(values):
    values = np.array(values, dtype=float)
    values[1] = np.nan
    return values


def refusal(function, *args, **options):
    with pytest.raises(NotFiniteError) as raised:
        function(*args, **options)
    return str(raised.value)


@pytest.mark.parametrize("name", NAMED)
def test_a_row_of_features_is_named_by_the_constraint(name):
    constraint = NAMED[name]
    n_arms = 3 if isinstance(constraint, Excluding) else 4
    message = refusal(C2UCB(n_features=3).choose, spoilt(rows(n_arms)), constraint)
    assert message == f"features must be finite, got nan in row 1, {name.strip()}"
    message = refusal(constraint.best, spoilt(np.ones(n_arms)))
    assert message == f"scores must be finite, got nan in row 1, {name.strip()}"


def test_a_column_with_a_name_is_named_too():
    columns = dict(zip(["age", "spend", "visits"], spoilt(rows()).T, strict=True))
    message = refusal(C2UCB(n_features=3).choose, pyarrow.table(columns), PATH)
    assert message == "features must be finite, got nan in row 1, park -> work, column 'age'"


@pytest.mark.parametrize("n_arms", [4, SCAN_FROM])
def test_a_cap_and_a_score_are_named_by_the_id_of_their_arm(n_arms):
    table = Table.wrap(rows(n_arms), ids=[f"customer {i}" for i in range(n_arms)])
    message = refusal(CappedC2UCB(n_features=3).choose, table, TopK(2), caps=spoilt(np.ones(n_arms)))
    assert message == "caps must be numbers, infinity for no cap, got nan in row 1, 'customer 1'"
    message = refusal(OneScoreIsNaN(n_features=3).choose, table, TopK(2))
    assert message == "scores must be finite, got nan in row 1, 'customer 1'"


def test_the_rewards_and_weights_of_a_choice_are_named_by_its_arms():
    policy = C2UCB(n_features=3, seed=0)
    table = Table.wrap(rows(), ids=[7, 8, 9, 10])
    choice = policy.choose(table, TopK(2))
    assert refusal(policy.learn, choice, [1.0, np.nan]).endswith(f"got nan in row 1, {choice.ids[1]}")
    choice = policy.choose(rows(), SpanningTree(STREETS))
    name = choice.explain().arms[1]["arm"]
    assert refusal(policy.learn, choice, [1.0, np.nan, 0.0]).endswith(f"got nan in row 1, {name}")
    choice = policy.choose(rows(), TopK(2))
    message = refusal(policy.learn, choice, [1.0, 0.0], weights=[1.0, np.inf])
    assert message == f"weights must be finite, got inf in row 1, arm {choice.indices[1]}"
    assert policy.state.n == 0


@pytest.mark.parametrize("n_arms", [3, 6])
def test_another_number_of_arms_than_the_constraint_has_is_no_reason_to_fail_in_another_way(n_arms):
    values = np.ones(n_arms)
    values[-1] = np.nan
    assert refusal(PATH.best, values).startswith(f"scores must be finite, got nan in row {n_arms - 1}")


def test_the_name_crosses_processes():
    error = NotFiniteError("scores must be finite, got nan", 1).named("park -> work")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
