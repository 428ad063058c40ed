"""One policy that many threads use."""

import copy
import gc
import pickle
import sys
import threading
import time

import numpy as np
import pytest

import armful
from armful import C2UCB, ArmwiseThompson, CappedC2UCB, CombLinTS, EpsilonGreedy, Policy, RidgeState, Table, TopK
from armful.policies._locks import Locks
from armful.testing._expectations import expect_close

D, THREADS, CALLS = 4, 8, 200
RNG = np.random.default_rng(0)
ARMS = RNG.standard_normal((30, D))
ROWS, REWARDS = RNG.standard_normal((THREADS, CALLS, 5, D)), RNG.standard_normal((THREADS, CALLS, 5))
MANY = RNG.standard_normal((17_000, D))


@pytest.fixture(autouse=True)
def eager_threads():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, n_threads=THREADS):
    """`work(i)` in threads that begin at once; what one of them raises is raised."""
    ready, failed = threading.Barrier(n_threads), []

    def run(i):
        try:
            ready.wait(900)
            work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    if failed:
        raise failed[0]


def expect_like(state, expected):
    assert state.n == expected.n
    for name in ("V", "b", "theta", "residual"):
        expect_close(getattr(state, name), getattr(expected, name), name)


def learned_one_by_one():
    return C2UCB(n_features=D).state.learn(ROWS.reshape(-1, D), REWARDS.reshape(-1))


def test_threads_that_load_do_not_take_a_good_file_for_a_damaged_one(tmp_path):
    """Python 3.11 fails to parse literals, as numpy does for each array, where the garbage collector lets others in."""
    C2UCB(n_features=D).save(tmp_path / "policy")
    before = gc.get_threshold()

    def let_others_in(phase, info):
        sum(range(50))

    gc.set_threshold(10)
    gc.callbacks.append(let_others_in)
    try:
        in_threads(lambda _: [armful.load(tmp_path / "policy") for _ in range(60)])
    finally:
        gc.callbacks.remove(let_others_in)
        gc.set_threshold(*before)


@pytest.mark.slow
def test_nothing_is_lost_when_threads_learn_choose_merge_and_save(tmp_path):
    policy, table = CappedC2UCB(n_features=D, cap=2.0, seed=0), Table.wrap(MANY)

    def work(i):
        for t in range(CALLS):
            if t % 10 == 9:
                policy.merge(RidgeState(n_features=D).learn(ROWS[i, t], REWARDS[i, t]))
            else:
                policy.learn(ROWS[i, t], REWARDS[i, t])
            if t % 4 == 0:
                assert len(policy.choose(ARMS, TopK(3))) == 3
            if t % 40 == 0:
                assert len(policy.choose(table, TopK(3))) == 3
                assert policy.scores(ARMS, k=3).shape == (30,)
            if t % 50 == 0:
                policy.save(tmp_path / "policy")
                armful.load(tmp_path / "policy")

    in_threads(work)
    expect_like(policy.state, learned_one_by_one())


def test_no_call_of_learn_is_lost():
    policy = C2UCB(n_features=D)

    def work(i):
        for rows, rewards in zip(ROWS[i], REWARDS[i], strict=True):
            policy.learn(rows, rewards)

    in_threads(work)
    expect_like(policy.state, learned_one_by_one())


def test_no_call_of_discount_is_lost():
    policy = C2UCB(n_features=D)
    policy.learn(ROWS[0, 0], REWARDS[0, 0])
    in_threads(lambda i: [policy.discount(0.99) for _ in range(20)])
    assert policy.state.n == pytest.approx(5 * 0.99 ** (20 * THREADS), rel=1e-12)


class Pedantic(Policy):
    """Expects the state to stay what it is while it scores."""

    def score(self, arms, k):
        for _ in range(20):
            assert self.state is arms.state
            time.sleep(0)
        return arms.mean + 0.0 * self.rng.random()


def test_a_choice_sees_one_state():
    policy = Pedantic(n_features=D, seed=0)

    def work(i):
        for t in range(20):
            if i % 2:
                policy.learn(ROWS[i, t], REWARDS[i, t])
                policy.discount(0.9)
            else:
                policy.choose(ARMS, TopK(3))
                policy.scores(ARMS, k=2)

    in_threads(work)


@pytest.mark.parametrize(
    ("arms", "make"),
    [
        (ARMS, lambda: CombLinTS(n_features=D, seed=3)),
        (ARMS, lambda: C2UCB(n_features=D, radius=0.0, seed=3)),  # ties alone
        (MANY, lambda: ArmwiseThompson(n_features=D, seed=3)),
        (Table.wrap(MANY), lambda: EpsilonGreedy(n_features=D, seed=3)),
    ],
)
def test_each_choice_draws_random_numbers_of_its_own(arms, make):
    """Threads make the choices that one thread makes, each once, whoever makes which."""
    alone, shared, calls = make(), make(), 4
    expected = sorted(tuple(alone.choose(arms, TopK(4)).indices.tolist()) for _ in range(THREADS * calls))
    found = []
    in_threads(lambda i: [found.append(tuple(shared.choose(arms, TopK(4)).indices.tolist())) for _ in range(calls)])
    assert sorted(found) == expected
    assert shared.rng.bit_generator.state == alone.rng.bit_generator.state


def test_what_is_saved_is_of_one_moment(tmp_path):
    """State and generator: the one thread learns before each choice, so the number of both says when it was."""
    policy, positions = EpsilonGreedy(n_features=D, seed=0), {}
    policy_alone = EpsilonGreedy(n_features=D, seed=0)
    for t in range(60):
        positions[float(t), str(policy_alone.rng.bit_generator.state)] = "after choosing"
        positions[float(t + 1), str(policy_alone.rng.bit_generator.state)] = "after learning"
        policy_alone.choose(ARMS, TopK(3))
        positions[float(t + 1), str(policy_alone.rng.bit_generator.state)] = "after both"

    def work(i):
        if i == 0:
            for t in range(60):
                policy.learn(ROWS[0, t, :1], REWARDS[0, t, :1])
                policy.choose(ARMS, TopK(3))
            return
        for t in range(10):
            policy.save(tmp_path / f"{i}-{t}")

    in_threads(work, 4)
    for path in tmp_path.iterdir():
        saved = armful.load(path)
        assert (saved.state.n, str(saved.rng.bit_generator.state)) in positions


# -- waiting ---------------------------------------------------------------------------------------


class Slow(armful.Constraint):
    """A constraint that waits for an event, or fails."""

    k = 3

    def __init__(self, error=None):
        self.inside, self.go_on, self.error = threading.Event(), threading.Event(), error

    def best(self, scores, X=None, rng=None):
        rng.random(3)
        self.inside.set()
        assert self.go_on.wait(900)
        if self.error:
            raise self.error
        return TopK(3).best(scores, X, rng)

    def violation(self, indices):
        return 0.0


def background(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_learning_does_not_wait_for_a_slow_constraint():
    policy, slow = C2UCB(n_features=D, seed=0), Slow()
    thread = background(lambda: policy.choose(ARMS, slow))
    assert slow.inside.wait(900)
    policy.learn(ROWS[0, 0], REWARDS[0, 0])
    policy.merge(RidgeState(n_features=D).learn(ROWS[0, 1], REWARDS[0, 1]))
    assert policy.state.n == 10
    slow.go_on.set()
    thread.join(900)


class SlowTable(Table):
    """A table that waits for an event before rows are read, or fails."""

    inside, go_on, error = threading.Event(), threading.Event(), None

    def rows(self, begin, end):
        self.wait()
        return super().rows(begin, end)

    def rows_float32(self, begin, end):
        self.wait()
        return super().rows_float32(begin, end)

    def wait(self):
        self.inside.set()
        assert self.go_on.wait(900)
        if self.error:
            raise self.error


def test_a_choice_from_a_large_table_blocks_no_other_thread(tmp_path):
    policy, table = C2UCB(n_features=D, seed=0), SlowTable.wrap(MANY)
    table.inside, table.go_on, found = threading.Event(), threading.Event(), []
    alone = C2UCB(n_features=D, seed=0)
    expected = [alone.choose(MANY, TopK(3)).indices, alone.choose(ARMS, TopK(3)).indices]
    thread = background(lambda: found.append(policy.choose(table, TopK(3)).indices))
    assert table.inside.wait(900)
    second = policy.choose(ARMS, TopK(3)).indices
    policy.learn(ROWS[0, 0], REWARDS[0, 0])
    policy.save(tmp_path / "policy")
    table.go_on.set()
    thread.join(900)
    assert [found[0].tolist(), second.tolist()] == [indices.tolist() for indices in expected]


@pytest.mark.parametrize("another_draws", [False, True])
def test_a_choice_that_fails_gives_back_what_it_drew_unless_another_has_drawn_since(another_draws):
    policy, table = C2UCB(n_features=D, seed=0), SlowTable.wrap(MANY)
    table.inside, table.go_on, table.error = threading.Event(), threading.Event(), ValueError("the disk is gone")
    before, failed = policy.rng.bit_generator.state, []

    def work():
        with pytest.raises(ValueError, match="the disk is gone"):
            policy.choose(table, TopK(3))
        failed.append(True)

    thread = background(work)
    assert table.inside.wait(900)
    if another_draws:
        policy.choose(ARMS, TopK(3))
    drawn = policy.rng.bit_generator.state
    assert drawn != before
    table.go_on.set()
    thread.join(900)
    assert failed
    assert policy.rng.bit_generator.state == (drawn if another_draws else before)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no")])
def test_after_an_interrupt_others_go_on_and_the_generator_is_where_it_was(error):
    policy, slow = C2UCB(n_features=D, seed=0), Slow(error)
    slow.go_on.set()
    before = policy.rng.bit_generator.state
    with pytest.raises(type(error)):
        policy.choose(ARMS, slow)
    assert policy.rng.bit_generator.state == before
    background(lambda: policy.choose(ARMS, TopK(3))).join(900)
    assert policy.rng.bit_generator.state != before


# -- copies ----------------------------------------------------------------------------------------


def test_copies_work_while_the_original_is_in_use_by_another_thread():
    policy, slow = C2UCB(n_features=D, seed=0), Slow()
    thread = background(lambda: policy.choose(ARMS, slow))
    assert slow.inside.wait(900)
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert other._thread_locks is not policy._thread_locks
        other.learn(ROWS[0, 0], REWARDS[0, 0])
        assert len(other.choose(ARMS, TopK(3))) == 3
    slow.go_on.set()
    thread.join(900)


def test_a_shallow_copy_draws_from_the_same_generator_and_so_has_the_same_locks():
    policy = C2UCB(n_features=D, seed=0)
    twin = copy.copy(policy)
    assert twin.rng is policy.rng
    assert twin._thread_locks is policy._thread_locks


def test_a_policy_with_a_pickle_of_its_own_making_is_shared_too():
    class Lean(C2UCB):
        def __getstate__(self):
            return {name: value for name, value in vars(self).items() if name != "_thread_locks"}

    policy = copy.deepcopy(Lean(n_features=D, seed=0))
    assert "_thread_locks" not in vars(policy)
    policy.learn(ROWS[0, 0], REWARDS[0, 0])
    assert len(policy.choose(ARMS, TopK(3))) == 3


def test_locks_are_not_pickled():
    locks = Locks()
    with locks.drawing, locks.state, locks.learning:
        other = pickle.loads(pickle.dumps(locks))
    assert other is not locks
    assert copy.deepcopy({"a": locks})["a"] is not locks


# -- one state read by many ------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [3, 40, 400])
def test_one_state_says_the_same_to_every_thread(n_rows):
    """Also what it works out when it is first asked for."""
    X, rewards = RNG.standard_normal((n_rows, D)), RNG.standard_normal(n_rows)
    names = ("V", "b", "theta", "squared_rewards", "squared_norms", "residual", "log_det", "root")
    for _ in range(10):
        states = [RidgeState(n_features=D).learn(X[:2], rewards[:2]).learn(X[2:], rewards[2:]) for _ in range(2)]
        expected = {name: getattr(states[0], name) for name in names}
        merged = (states[0] + states[0]).V
        found = []
        shared = states[1]
        in_threads(
            lambda i, s=shared, found=found: found.append(({name: getattr(s, name) for name in names}, (s + s).V))
        )
        for here, sum_here in found:
            assert all(np.array_equal(here[name], expected[name]) for name in names)
            assert np.array_equal(sum_here, merged)
