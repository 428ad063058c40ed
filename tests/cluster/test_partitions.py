"""Partitions of any size, merged in any grouping, give the candidates of the whole."""

import copy
import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful import C2UCB, ArmwiseThompson, AtMost, CappedC2UCB, NestedQuotas, Quotas, TopK
from armful.cluster._partitions import Partition, RoundInfo
from armful.scan._scoring import Scoring
from armful.tables._array_store import ArrayRows
from tests.scan.plain import plain_choice

N, D = 700, 4


def rows_of(kind, rng):
    X = rng.standard_normal((N, D))
    return X[rng.integers(0, 60, N)] if kind == "duplicates" else X


def constraint_of(kind, rng):
    groups = rng.integers(0, 12, N)
    groups[:12] = np.arange(12)
    return {
        "TopK": TopK(25),
        "AtMost": AtMost(40),
        "at least": Quotas(groups, at_least=2, at_most=6, total=(30, 40)),
        "exactly": Quotas(groups, exactly={3: 4, 5: 1}),
        "nested": NestedQuotas({"r": groups // 4, "c": groups}, at_least={"c": 1}, at_most={"r": 9, "c": 4}),
    }[kind]


def policy_of(kind):
    return {
        "C2UCB": C2UCB(n_features=D, seed=3),
        "capped": CappedC2UCB(n_features=D, cap=0.4, seed=3),
        "Thompson": ArmwiseThompson(n_features=D, seed=3),
    }[kind]


class Blocked(ArrayRows):
    """Rows in smaller blocks than are worth while; counts what is read."""

    def __init__(self, X, block_rows):
        super().__init__(X)
        self.block_rows, self.read = block_rows, 0

    def rows(self, begin, end):
        self.read += end - begin
        return super().rows(begin, end)

    def take(self, indices):
        self.read += len(indices)
        return super().take(indices)


def round_of(policy, constraint, caps=None):
    scoring = Scoring(policy, constraint.k, caps)
    key = scoring.key_for_ties(copy.deepcopy(policy.rng), np.ones((1, D)))
    return RoundInfo.of(scoring, constraint.ranks, key)


def found_in(this_round, rows, begin, end, constraint, caps=None, first=0):
    of_arm = constraint.ranks.of_arm
    groups = None if of_arm is None else of_arm[begin:end].astype(np.uint8)
    return this_round.prune(Partition(rows, begin, end, first), groups, None if caps is None else caps[begin:end])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 99),
    cuts=st.sets(st.integers(1, N - 1), max_size=9),
    kinds=st.tuples(
        st.sampled_from(["plain", "duplicates"]),
        st.sampled_from(["TopK", "AtMost", "at least", "exactly", "nested"]),
        st.sampled_from(["C2UCB", "capped", "Thompson"]),
    ),
    capped=st.booleans(),
    block_rows=st.sampled_from([64, 512]),
)
def test_partitions_merged_in_any_grouping_hold_the_best_set(seed, cuts, kinds, capped, block_rows):
    rng = np.random.default_rng(seed)
    X, constraint, policy = rows_of(kinds[0], rng), constraint_of(kinds[1], rng), policy_of(kinds[2])
    policy.learn(X[:9], X[:9, 0])
    caps = rng.integers(0, 3, N) / 2 if capped and policy.takes_caps else None
    this_round, ends = round_of(policy, constraint, caps), [0, *sorted(cuts), N]
    found = [
        found_in(this_round, Blocked(X[begin:end], block_rows), begin, end, constraint, caps, first=begin)
        for begin, end in pairwise(ends)
    ]
    while len(found) > 1:
        size = int(rng.integers(2, 4))
        found = [this_round.merge(found[i : i + size]) for i in range(0, len(found), size)]
    best, scores, _ = plain_choice(policy, X, constraint, caps)
    again = constraint.best_among(found[0].scores, this_round.key, found[0].indices)
    assert np.array_equal(again.indices, best.indices)
    assert np.array_equal(found[0].scores, scores.value[found[0].indices])
    assert np.array_equal(found[0].indices, np.unique(found[0].indices))


@pytest.mark.parametrize(("kind", "most"), [("TopK", 25), ("AtMost", 40), ("at least", 40 + 24), ("exactly", 5 + 5)])
def test_a_partition_keeps_no_more_than_could_be_chosen(kind, most):
    rng = np.random.default_rng(0)
    X, constraint, policy = rows_of("plain", rng), constraint_of(kind, rng), policy_of("C2UCB")
    found = found_in(round_of(policy, constraint), Blocked(X, 512), 0, N, constraint)
    assert found.indices.size <= most
    assert sys.getsizeof(found) <= most * (8 + 8 + 1) + 100
    assert sys.getsizeof(found) >= found.indices.size * (8 + 8)


def test_scores_of_some_arms_leave_fewer_survivors():
    rng = np.random.default_rng(0)
    X, constraint, policy = rows_of("plain", rng), TopK(25), policy_of("C2UCB")
    best, _, _ = plain_choice(policy, X, constraint)
    this_round = round_of(policy, constraint)
    known = RoundInfo.of(this_round.scoring, constraint.ranks, this_round.key, (best.indices, X[best.indices]))
    halves = [(0, 350), (350, N)]
    before = [found_in(this_round, Blocked(X, 50), *half, constraint) for half in halves]
    after = [found_in(known, Blocked(X, 50), *half, constraint) for half in halves]
    assert sum(found.indices.size for found in after) == 25 < sum(found.indices.size for found in before)
    assert np.array_equal(np.sort(best.indices), known.merge(after).indices)


def test_nothing_is_read_twice():
    rng = np.random.default_rng(0)
    X, constraint = rows_of("plain", rng), TopK(25)
    rows = Blocked(X, 100)
    found_in(round_of(policy_of("C2UCB"), constraint), rows, 0, N, constraint)
    assert rows.read == N


def test_a_partition_reads_only_its_own_rows():
    rng = np.random.default_rng(0)
    X, constraint = rows_of("plain", rng), TopK(25)
    rows = Blocked(X, 100)
    found = found_in(round_of(policy_of("C2UCB"), constraint), rows, 200, 500, constraint)
    assert rows.read == 300
    assert found.indices.min() >= 200
    assert found.indices.max() < 500


def test_rows_outside_the_last_block_are_read_when_asked_for():
    X = rows_of("plain", np.random.default_rng(0))
    partition = Partition(Blocked(X[100:], 100), 100, N, 100)
    assert np.array_equal(partition.rows(200, 300), X[200:300])
    assert np.array_equal(partition.take(np.array([250, 201])), X[[250, 201]])
    assert np.array_equal(partition.take(np.array([250, 650])), X[[250, 650]])


def test_a_pickled_round_does_not_grow_with_the_number_of_arms():
    def size(n):
        groups = np.arange(n) % 5
        quotas = Quotas(groups, at_most=2, total=6)
        policy = CappedC2UCB(n_features=D, cap=1.0, seed=0)
        return len(pickle.dumps(round_of(policy, quotas, np.ones(n))))

    assert size(100_000) == size(100)
