import copy
import pickle

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

import armful
from armful import (
    C2UCB,
    ArmwiseThompson,
    AtMost,
    CappedC2UCB,
    CombLinTS,
    CombLinUCB,
    EpsilonGreedy,
    NestedQuotas,
    Quotas,
    RidgeState,
    Table,
    TopK,
)
from armful.scan import _dispatch as dispatch
from armful.scan import _pruning as pruning
from armful.scan import _table_cache as table_cache
from armful.scan import _threads as threads
from armful.scan._table_cache import borrow_cache
from tests.scan.plain import assert_plain, plain_choice

POLICIES = {
    "C2UCB": lambda d: C2UCB(n_features=d, ridge=1.0, seed=1),
    "a small radius": lambda d: C2UCB(n_features=d, ridge=1.0, radius=0.05, seed=1),
    "no radius": lambda d: C2UCB(n_features=d, ridge=1.0, radius=0.0, seed=1),
    "wide bonuses": lambda d: C2UCB(n_features=d, ridge=1.0, radius=50.0, seed=1),
    "clip": lambda d: CappedC2UCB(n_features=d, ridge=1.0, cap=1.0, seed=1),
    "clip by norm": lambda d: CappedC2UCB(n_features=d, ridge=1.0, cap=2.0, norm=0.5, seed=1),
    "clip by spread": lambda d: CappedC2UCB(n_features=d, ridge=1.0, spread=1.0, seed=1),
    "paper": lambda d: CappedC2UCB(n_features=d, ridge=1.0, cap=1.0, rule="paper", seed=1),
    "Thompson": lambda d: ArmwiseThompson(n_features=d, ridge=1.0, seed=1),
    "CombLinUCB": lambda d: CombLinUCB(n_features=d, ridge=1.0, seed=1),
    "CombLinTS": lambda d: CombLinTS(n_features=d, ridge=1.0, seed=1),
    "EpsilonGreedy": lambda d: EpsilonGreedy(n_features=d, ridge=1.0, epsilon=0.5, seed=1),
}


@pytest.fixture(autouse=True)
def every_number_is_many(monkeypatch):
    monkeypatch.setattr(dispatch, "SCAN_FROM", 1)


def features(kind, n, d, rng):
    X = rng.standard_normal((n, d))
    if kind == "duplicates":
        X = X[rng.integers(0, max(n // 6, 1), n)]
    elif kind == "rare":
        X = (rng.random((n, d)) < 0.03).astype(np.float64)
    elif kind == "units":
        X *= rng.choice([1e-4, 1.0, 300.0], size=d)
    elif kind == "tiny":
        X *= 1e-25
    elif kind == "single":
        X = X.astype(np.float32)
    elif kind == "whole numbers":
        X = rng.integers(-3, 4, (n, d))
    return X


def constraint_of(kind, n, k, rng):
    groups = rng.integers(0, 20, n)
    groups[:20] = np.arange(20)  # each is there
    most = max(k // 12, 2)
    if kind == "TopK":
        return TopK(k)
    if kind == "AtMost":
        return AtMost(k)
    if kind == "at most":
        return Quotas(groups, at_most=most, total=(1, max(k, 2)))
    if kind == "at least":
        return Quotas(groups, at_least=1, total=(25, max(k, 25)))
    if kind == "exactly":
        return Quotas(groups, exactly={0: 1, 3: 1, 4: 0})
    nest = {"region": groups // 5, "city": groups}
    return NestedQuotas(nest, at_least={"city": 1, "region": 6}, at_most={"region": 6 + k // 5, "city": 2 + k // 20})


KINDS = ["normal", "duplicates", "rare", "units", "tiny", "single", "whole numbers"]
CONSTRAINTS = ["TopK", "AtMost", "at most", "at least", "exactly", "nested"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:rewards up to")  # far above the cap, on features of any size
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    constraint=st.sampled_from(CONSTRAINTS),
    n=st.integers(1025, 2600),
    d=st.integers(1, 9),
    part=st.floats(0.002, 0.4),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_round_gives_the_plain_choice(name, kind, constraint, n, d, part, seed):
    """The same arms and fresh ones, while the policy learns, forgets, is saved and loaded, and its state replaced."""
    rng = np.random.default_rng(seed)
    X = features(kind, n, d, rng)
    table = Table.wrap(X)
    table.block_rows = int(rng.choice([512, 1024]))
    allowed = constraint_of(constraint, n, max(int(part * n), 1), rng)
    theta = rng.standard_normal(d)
    policy = POLICIES[name](d)
    for t in range(6):
        caps = np.where(rng.random(n) < 0.3, np.inf, rng.uniform(-0.5, 1.0, n)) if name == "clip" and t % 2 else None
        assert_plain(copy.deepcopy(policy), X, X, allowed, caps)
        choice = assert_plain(policy, table, X, allowed, caps)
        policy.learn(choice.features, choice.features @ theta + 0.1 * rng.standard_normal(len(choice)))
        if t == 2:
            policy.discount(0.6)
        if t == 4:
            policy.state = POLICIES[name](d).state.learn(X[:5], np.ones(5))


@pytest.mark.filterwarnings("ignore:rewards up to .* are far above the cap")
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["C2UCB", "clip", "Thompson"]))
def test_rows_that_come_and_go_and_a_policy_saved_and_loaded(tmp_path_factory, seed, name):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 4))
    policy, path = POLICIES[name](4), tmp_path_factory.mktemp("policy") / "policy.npz"
    for _ in range(5):
        table = Table.wrap(X)
        table.block_rows = 512
        for _ in range(2):
            choice = assert_plain(policy, table, X, TopK(50))
            policy.learn(choice.features, choice.features[:, 0] + rng.standard_normal(50))
        policy.save(path)
        policy = armful.load(path)
        gone = rng.random(len(X)) < 0.2
        X = np.concatenate([X[~gone], rng.standard_normal((300, 4))])


def test_cached_widths_leave_few_arms_to_score(monkeypatch):
    rng = np.random.default_rng(0)
    X, theta = rng.standard_normal((20_000, 8)), rng.standard_normal(8)
    policy, table = C2UCB(n_features=8, radius=1.0, seed=0), Table.wrap(X)
    scored = []
    exact = pruning.Pruner.score_exactly
    monkeypatch.setattr(pruning.Pruner, "score_exactly", lambda self, X, p: scored.append(p.size) or exact(self, X, p))
    for t in range(5):
        scored.clear()
        choice = assert_plain(policy, table, X, TopK(200))
        policy.learn(choice.features, choice.features @ theta + rng.standard_normal(200))
        if t >= 2:
            assert sum(scored) < 0.1 * len(X)


def test_a_screen_in_float32_leaves_little_more_than_the_chosen_arms_to_score(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 8))
    policy = C2UCB(n_features=8, radius=1.0, seed=0)
    policy.learn(X[:50], X[:50, 0])
    scored = []
    exact = pruning.Pruner.score_exactly
    monkeypatch.setattr(pruning.Pruner, "score_exactly", lambda self, X, p: scored.append(p.size) or exact(self, X, p))
    assert_plain(policy, X, X, TopK(200))
    assert sum(scored) < 300


def test_nothing_is_cached_of_an_array_that_may_change():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    policy = C2UCB(n_features=3, radius=1.0, seed=0)
    for _ in range(4):
        choice = assert_plain(policy, X, X, TopK(10))
        policy.learn(choice.features, np.ones(10))
        X *= 1 + 9 * rng.random((3000, 1))


def test_two_policies_and_two_tables_do_not_share_a_cache():
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((2000, 3)), 10 * rng.standard_normal((2000, 3))]
    wrapped = [Table.wrap(X) for X in tables]
    policies = [C2UCB(n_features=3, radius=1.0, seed=0), C2UCB(n_features=3, radius=1.0, seed=0)]
    policies[1].learn(rng.standard_normal((500, 3)), np.ones(500))
    for t in range(8):
        policy, X, table = policies[t // 2 % 2], tables[t % 2], wrapped[t % 2]
        choice = assert_plain(policy, table, X, TopK(20))
        policy.learn(choice.features, choice.features[:, 0])
    kept = set()
    for policy in policies:
        for table in wrapped:
            with borrow_cache(table, policy) as cache:
                kept.add(id(cache))
                assert cache.chosen.size == 20
    assert len(kept) == 4


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_the_number_of_threads_does_not_matter(monkeypatch, cores):
    monkeypatch.setattr(threads, "_cores", lambda: cores)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4))
    table, policy = Table.wrap(X), ArmwiseThompson(n_features=4, seed=0)
    table.block_rows = 512
    for _ in range(4):
        choice = assert_plain(policy, table, X, Quotas(np.arange(5000) % 7, at_most=9, total=40))
        policy.learn(choice.features, choice.features[:, 0])


def test_without_threadpoolctl_the_choice_is_the_same(monkeypatch):
    monkeypatch.setattr(threads, "_controller", lambda: None)
    X = np.random.default_rng(0).standard_normal((5000, 4))
    assert_plain(C2UCB(n_features=4, seed=0), X, X, TopK(7))


def test_a_memory_mapped_matrix_and_an_array_in_fortran_order(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    assert_plain(C2UCB(n_features=4, seed=0), np.load(tmp_path / "X.npy", mmap_mode="r"), X, TopK(9))
    assert_plain(C2UCB(n_features=4, seed=0), np.asfortranarray(X), X, TopK(9))


def test_a_table_on_disk(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    table = Table.build(X, tmp_path / "arms.table", progress=False)
    policy = CappedC2UCB(n_features=4, cap=1.0, seed=0)
    for _ in range(4):
        choice = assert_plain(policy, table, X, AtMost(30))
        policy.learn(choice.features, choice.features[:, 0])


@pytest.mark.parametrize("many_are", [1, 10_000])
def test_ids_of_the_chosen_arms(monkeypatch, many_are):
    monkeypatch.setattr(dispatch, "SCAN_FROM", many_are)
    X = np.arange(2000.0)[:, None]
    names = np.array([f"customer {i}" for i in range(2000)])
    policy = C2UCB(n_features=1, ridge=1.0, seed=0)
    policy.learn([[1.0]], [1.0])
    assert policy.choose(Table.wrap(X, ids=names), TopK(2)).ids.tolist() == ["customer 1999", "customer 1998"]
    assert policy.choose(Table.wrap(X[:9], ids=names[:9]), TopK(1)).ids.tolist() == ["customer 8"]
    assert policy.choose(X, TopK(2)).ids is None


def test_an_explanation_is_that_of_the_plain_choice(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    policies = [CappedC2UCB(n_features=3, cap=1.0, seed=0) for _ in range(2)]
    for policy in policies:
        policy.learn(X[:40], X[:40, 0])
    quotas = Quotas(np.arange(2000) % 5, at_most=2, total=6)
    scanned = policies[0].choose(Table.wrap(X), quotas).explain()
    monkeypatch.setattr(dispatch, "SCAN_FROM", 10**9)
    assert str(scanned) == str(policies[1].choose(X, quotas).explain())


def test_an_explanation_of_arms_that_changed_is_refused():
    X = np.random.default_rng(0).standard_normal((2000, 3))
    choice = C2UCB(n_features=3, seed=0).choose(X, TopK(3))
    X *= 2
    with pytest.raises(ValueError, match=r"^the arms have changed since they were chosen; choose again, then explain$"):
        choice.explain()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 700, 1999])
def test_a_number_that_is_not_one_is_named_by_its_row_and_nothing_changes(monkeypatch, value, row):
    monkeypatch.setattr("armful.tables._array_store.rows_per_block", lambda d: 512)
    X = np.random.default_rng(0).standard_normal((2000, 3))
    X[row, 1] = value
    for make in POLICIES.values():
        policy = make(3)
        before = policy.rng.bit_generator.state
        with pytest.raises(ValueError, match=rf"^features must be finite, got {value} in row {row}$"):
            policy.choose(X, TopK(3))
        assert policy.rng.bit_generator.state == before


def test_a_width_beyond_float64_is_refused():
    X = np.random.default_rng(0).standard_normal((2000, 3)) * 1e200
    with pytest.raises(armful.PrecisionError, match="beyond the range of float64"):
        C2UCB(n_features=3, seed=0).choose(X, TopK(3))


def test_features_beyond_float32_are_scored_in_float64():
    X = np.random.default_rng(0).standard_normal((2000, 3)) * 1e60
    assert_plain(C2UCB(n_features=3, ridge=1.0, seed=0), X, X, TopK(3))


def test_too_few_arms_and_too_many_groups_are_refused():
    X = np.random.default_rng(0).standard_normal((2000, 3))
    with pytest.raises(armful.InfeasibleError, match=r"^TopK\(2001\) needs 2001 arms, 2000 are there$"):
        C2UCB(n_features=3, seed=0).choose(Table.wrap(X), TopK(2001))
    with pytest.raises(ValueError, match=r"^Quotas has groups for 9 arms, got 2000$"):
        C2UCB(n_features=3, seed=0).choose(Table.wrap(X), Quotas(np.arange(9), at_most=1))
    with pytest.raises(ValueError, match=r"^the policy is for 4 features, the table has 3$"):
        C2UCB(n_features=4, seed=0).choose(Table.wrap(X), TopK(2))
    with pytest.raises(ValueError, match=r"^C2UCB takes no caps; CappedC2UCB does$"):
        C2UCB(n_features=3, seed=0).choose(Table.wrap(X), TopK(2), caps=np.ones(2000))


def test_what_does_not_scale_says_what_does(monkeypatch):
    monkeypatch.setattr(dispatch, "LARGEST_UNRANKED", 1000)
    table = Table.wrap(np.random.default_rng(0).standard_normal((1001, 3)))
    scales = "TopK, AtMost, Quotas and NestedQuotas without an objective do; shortlist with one of these first"
    with pytest.raises(ValueError, match=rf"^Knapsack does not scale to 1001 arms: {scales}"):
        C2UCB(n_features=3, seed=0).choose(table, armful.Knapsack(np.ones(1001), 3))
    with pytest.raises(ValueError, match=rf"^Diverse does not scale to 1001 arms: {scales}"):
        C2UCB(n_features=3, seed=0).choose(table, TopK(3), objective=armful.Diverse(weight=1.0, scale=1.0))


def test_what_does_not_scale_works_on_a_smaller_table():
    X = np.random.default_rng(0).standard_normal((600, 3))
    policy = C2UCB(n_features=3, seed=0)
    assert_plain(policy, Table.wrap(X), X, armful.OneOf([[1, 2], [500, 3]]))
    wanted = plain_choice(policy, X, TopK(3))[0].indices
    diverse = armful.Diverse(weight=1e-9, scale=1.0)
    assert set(policy.choose(Table.wrap(X), TopK(3), objective=diverse).indices) == set(wanted)


def test_a_policy_with_a_score_of_its_own_does_not_inherit_armwise():
    class Contrary(C2UCB):
        def score(self, arms, k):
            return -arms.mean_and_width[1]

    X = np.random.default_rng(0).standard_normal((2000, 3))
    for arms in (X, Table.wrap(X)):
        policy = Contrary(n_features=3, seed=0)
        assert dispatch.many_arms(policy, arms, None) is None
        assert_plain(policy, arms, X, TopK(5))


def test_a_constraint_with_a_best_of_its_own_is_not_solved_by_rank():
    class Worst(TopK):
        def best(self, scores, X=None, rng=None):
            return super().best(-np.asarray(scores), X, rng)

    X = np.random.default_rng(0).standard_normal((2000, 3))
    assert_plain(C2UCB(n_features=3, seed=0), X, X, Worst(5))


def test_the_sizes_from_which_it_scans(monkeypatch):
    monkeypatch.undo()
    for d in (3, 50):
        policy = C2UCB(n_features=d, seed=0)
        seen = [dispatch.many_arms(policy, np.ones((n, d)), None) is not None for n in (15_999, 16_000)]
        assert seen == [False, True], d


def test_means_of_a_float32_table_beyond_float32_are_not_taken_for_small_ones():
    rng = np.random.default_rng(0)
    X = (1e10 * rng.standard_normal((2000, 3))).astype(np.float32)
    policy, table = C2UCB(n_features=3, ridge=1.0, radius=1.0, seed=0), Table.wrap(X)
    for _ in range(4):
        choice = assert_plain(policy, table, X, TopK(50))
        policy.learn(choice.features, 1e30 * rng.standard_normal(50))


def test_a_policy_that_is_not_hashable_caches_nothing():
    class Equal(C2UCB):
        def __eq__(self, other):
            return True

        __hash__ = None

    X = np.random.default_rng(0).standard_normal((2000, 3))
    policy, table = Equal(n_features=3, radius=1.0, seed=0), Table.wrap(X)
    for _ in range(3):
        policy.learn(assert_plain(policy, table, X, TopK(5)).features, np.ones(5))


def test_a_policy_that_bounds_its_scores_on_one_side_only_is_scored_in_full():
    class OneSided(armful.Policy):
        armwise = True

        def score(self, arms, k):
            return arms.mean_and_width[0]

        def highest_score(self, low, high, k):
            raise AssertionError("not to be asked")

    X = np.random.default_rng(0).standard_normal((2000, 3))
    policy = OneSided(n_features=3, seed=0)
    assert_plain(policy, Table.wrap(X), X, TopK(5))


def test_an_explanation_calls_arms_by_their_ids():
    X = np.arange(2000.0)[:, None]
    policy = C2UCB(n_features=1, ridge=1.0, seed=0)
    policy.learn([[1.0]], [1.0])
    (arm,) = policy.choose(Table.wrap(X, ids=np.arange(2000) + 7_000_000), TopK(1)).explain().arms
    assert (arm["arm"], arm["runner_up"]) == (7_001_999, [7_001_998])
    (arm,) = policy.choose(X, TopK(1)).explain().arms
    assert (arm["arm"], arm["runner_up"]) == (1999, [1998])


def test_an_explanation_sees_a_change_in_arms_that_were_not_chosen_and_in_caps():
    X = np.random.default_rng(0).standard_normal((2000, 3))
    choice = C2UCB(n_features=3, ridge=1.0, seed=0).choose(X, TopK(3))
    other = np.setdiff1d(np.arange(2000), choice.indices)[0]
    X[other] += 100
    with pytest.raises(ValueError, match=r"^the arms have changed since they were chosen"):
        choice.explain()
    caps = np.full(2000, 0.4)
    policy = CappedC2UCB(n_features=3, ridge=1.0, seed=0)
    policy.learn(X[:9], X[:9, 0])
    choice = policy.choose(X, TopK(3), caps=caps)
    before = str(choice.explain())
    caps[:] = -7
    assert str(choice.explain()) == before


def test_an_explanation_does_not_read_all_features(tmp_path):
    table = Table.build(np.random.default_rng(0).standard_normal((2000, 3)), tmp_path / "arms", progress=False)
    choice = C2UCB(n_features=3, seed=0).choose(table, TopK(3))
    choice.explain()
    assert "X" not in vars(choice._problem.arms)


def test_an_interrupted_round_drops_the_cache(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    policy, table = C2UCB(n_features=3, radius=1.0, seed=0), Table.wrap(X)
    for _ in range(2):
        policy.learn(assert_plain(policy, table, X, TopK(20)).features, np.zeros(20))
    policy.learn(X[:500], np.zeros(500))
    update_to = table_cache.TableCache.update_to

    def interrupted(self, state):
        update_to(self, state)
        raise KeyboardInterrupt

    monkeypatch.setattr(table_cache.TableCache, "update_to", interrupted)
    before = policy.rng.bit_generator.state
    with pytest.raises(KeyboardInterrupt):
        policy.choose(table, TopK(20))
    assert policy.rng.bit_generator.state == before
    monkeypatch.undo()
    monkeypatch.setattr(dispatch, "SCAN_FROM", 1)
    with borrow_cache(table, policy) as kept:
        assert kept.chosen.size == 0
        assert not kept.has_bounds(0, 3000)
    assert_plain(policy, table, X, TopK(20))


def test_another_thread_does_not_share_a_cache_in_use():
    table, policy = Table.wrap(np.ones((2000, 2))), C2UCB(n_features=2, seed=0)
    with borrow_cache(table, policy) as mine, borrow_cache(table, policy) as other:
        assert mine is not other


def test_blas_gets_its_threads_back_however_scans_overlap():
    first, second = threads.BLAS_AT_ONE, threads.BLAS_AT_ONE
    had = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        wanted = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
        first.__enter__()
        second.__enter__()
        first.__exit__()
        assert all(pool["num_threads"] == 1 for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
        second.__exit__()
        assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == wanted
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == had


@pytest.mark.parametrize("order", ["Fortran", "backwards", "every other"])
def test_a_norm_is_the_same_however_an_array_lies_in_memory(order):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 18))
    X = {"Fortran": np.asfortranarray(X[:, :9]), "backwards": X[:, 8::-1], "every other": X[:, ::2]}[order]
    policy = CappedC2UCB(n_features=9, norm=0.3, seed=0)
    policy.learn(X[:60], X[:60, 0])
    assert_plain(policy, X, X, TopK(50))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_score_that_is_not_finite_is_named_by_its_row():
    X = np.random.default_rng(0).standard_normal((3000, 4)) * 1e-5
    X[2500:2510] = 1e150
    table = Table.wrap(X)
    table.block_rows = 512
    with pytest.raises(ValueError, match=r"^scores must be finite, got -?inf in row 25\d\d$"):
        ArmwiseThompson(n_features=4, radius=1e160, seed=0).choose(table, TopK(3))


@pytest.mark.parametrize("many_are", [1, 1000])
def test_a_small_table_changed_in_place_is_refused(tmp_path, monkeypatch, many_are):
    monkeypatch.setattr(dispatch, "SCAN_FROM", many_are)
    table = Table.build(np.ones((100, 2)), tmp_path / "arms", progress=False)
    with (tmp_path / "arms").open("r+b") as file:
        file.seek(40)
        file.write(b"\x07" * 8)
    with pytest.raises(armful.FileFormatError, match="was changed in place"):
        C2UCB(n_features=2, seed=0).choose(table, TopK(3))


def test_arms_that_are_equal_in_float32_are_ranked_in_float64():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((50, 6)), 60, axis=0) * (1 + 1e-11 * rng.standard_normal((3000, 6)))
    policy, table = C2UCB(n_features=6, radius=0.1, seed=0), Table.wrap(X)
    for _ in range(6):
        choice = assert_plain(policy, table, X, TopK(130))
        policy.learn(choice.features, choice.features[:, 0] + 0.1 * rng.standard_normal(130))
    assert table.rows_float32(0, 3000).dtype == np.float32
    assert len(np.unique(table.rows_float32(0, 3000), axis=0)) < 100 < len(np.unique(X, axis=0))


def test_features_of_a_table_beyond_float32():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    X[::700] *= 1e60
    policy, table = C2UCB(n_features=3, radius=1.0, ridge=1e90, seed=0), Table.wrap(X)
    for _ in range(4):
        choice = assert_plain(policy, table, X, TopK(50))
        policy.learn(choice.features, rng.standard_normal(50))


def test_inaccurate_widths_are_not_cached(monkeypatch):
    def refuse(*_):
        raise AssertionError("remembered")

    monkeypatch.setattr(table_cache.TableCache, "set_bounds", refuse)
    X = np.random.default_rng(0).standard_normal((2000, 2))
    policy, table = C2UCB(n_features=2, seed=0), Table.wrap(X)
    policy.learn([[1e10, 1e10]], [1.0])
    assert not table_cache.widths_are_accurate(policy.state)
    for _ in range(2):
        assert_plain(policy, table, X, TopK(5))


@pytest.mark.parametrize(("size", "rewards"), [(1e25, 0.0), (1e18, 1e35)])
def test_squares_of_widths_or_means_alone_may_be_beyond_float32(size, rewards):
    X = np.random.default_rng(0).standard_normal((2000, 3))
    X[::300] *= size
    policy = C2UCB(n_features=3, ridge=1e10, seed=0)
    policy.learn(1e5 * np.eye(3), np.full(3, rewards))
    assert_plain(policy, X, X, TopK(4))


def test_means_that_float32_makes_inf_minus_inf_of_are_not_left_out():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    X[77] = 1e39
    table, policy = Table.wrap(X), C2UCB(n_features=2, ridge=1e10, radius=0.1, seed=0)
    policy.learn(1e6 * np.eye(2), [1e6, -5e5])
    for _ in range(3):
        assert 77 in assert_plain(policy, table, X, TopK(3)).indices


def test_only_float64_in_memory_is_copied_to_float32_and_before_the_first_round(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    before = X.copy()
    on_disk = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    on_disk[:] = X
    wrapped = {
        "copied": Table.wrap(X),
        "pickled": pickle.loads(pickle.dumps(Table.wrap(X))),
        "not to be": Table.wrap(X, float32_copy=False),
        "of float32": Table.wrap(X.astype(np.float32)),
        "not to be, pickled": pickle.loads(pickle.dumps(Table.wrap(X, float32_copy=False))),
        "mapped": Table.wrap(on_disk),
        "a view of what is mapped": Table.wrap(np.asarray(on_disk)[:2000]),
        "over a buffer that is mapped": Table.wrap(np.frombuffer(on_disk._mmap).reshape(X.shape)),
    }
    X[:] = 0.0  # it must not, and here it shows that the copy was made by then
    for name, table in wrapped.items():
        rows = table.rows_float32(700, 1600)
        assert (rows is not None) == (name in ("copied", "pickled")), name
        assert rows is None or np.array_equal(rows, before[700:1600].astype(np.float32)), name


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_arm_that_stays_chosen_is_scored_once_a_round_and_not_read_again(tmp_path, monkeypatch, in_memory):
    rng = np.random.default_rng(0)
    X, theta, k = rng.standard_normal((40_000, 8)), rng.standard_normal(8), 1000
    table = Table.wrap(X) if in_memory else Table.build(X, tmp_path / "arms.table", progress=False)
    policy, scored, taken = C2UCB(n_features=8, radius=1.0, seed=0), [], []
    both, take = RidgeState.mean_and_width, Table.take
    monkeypatch.setattr(RidgeState, "mean_and_width", lambda self, X, **o: scored.append(len(X)) or both(self, X, **o))
    monkeypatch.setattr(Table, "take", lambda self, i: taken.append(len(i)) or take(self, i))
    last = np.zeros(0)
    for t in range(6):
        best, _, _ = plain_choice(policy, X, TopK(k))
        scored.clear()
        taken.clear()
        choice = policy.choose(table, TopK(k))
        assert np.array_equal(choice.indices, best.indices)
        new = len(np.setdiff1d(choice.indices, last))
        if t >= 3:
            assert new < k / 4  # or it would show nothing
            assert k <= sum(scored) < k + 4 * new + 100
            assert sum(taken) < 4 * new + 100
        assert np.array_equal(choice.features, X[choice.indices])
        assert not choice.features.flags.writeable
        assert choice.features.base is None or not choice.features.base.flags.writeable
        last = choice.indices
        policy.learn(choice.features, choice.features @ theta + rng.standard_normal(k))


def test_a_table_on_disk_is_read_once_a_round(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 8))
    table = Table.build(X, tmp_path / "arms.table", progress=False)
    policy, theta, read = C2UCB(n_features=8, radius=1.0, seed=0), rng.standard_normal(8), []
    rows = type(table._store).rows
    monkeypatch.setattr(type(table._store), "rows", lambda self, a, b: read.append(b - a) or rows(self, a, b))
    for t in range(5):
        read.clear()
        choice = policy.choose(table, TopK(200))
        policy.learn(choice.features, choice.features @ theta + rng.standard_normal(200))
        assert read.count(len(X)) == 1, t  # and the rows of those who were chosen


def test_thresholds_that_rise_meanwhile_do_not_switch_a_stage_off(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30_000, 5))
    seen, raised = [], np.inf
    find = pruning.Ranks.thresholds_of

    def raise_after(ranks, thresholds, arms):
        found = find(ranks, thresholds, arms)
        for pruner in seen:
            pruner.thresholds = np.maximum(pruner.thresholds, raised)  # as another thread may, once it was asked for
        return found

    start = pruning.Pruner.__init__

    def remember(pruner, *arguments):
        start(pruner, *arguments)
        seen.append(pruner)

    monkeypatch.setattr(pruning.Pruner, "__init__", remember)
    policy = C2UCB(n_features=5, seed=1)
    policy.learn(X[:20], np.ones(20))
    raised = float(np.sort(policy.scores(X, 10))[-100])
    monkeypatch.setattr(pruning.Ranks, "thresholds_of", raise_after)
    choice = policy.choose(X, TopK(10))
    assert seen[0]._use_float32
    monkeypatch.undo()
    assert set(choice.indices) == set(np.argsort(policy.scores(X, 10))[-10:])
