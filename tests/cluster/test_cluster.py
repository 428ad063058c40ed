"""Real clusters on this machine: worker processes, each under a nanny that starts it again when it is killed."""

import asyncio
import os
import pickle
import signal
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import armful
from armful import C2UCB, ArmwiseThompson, AtMost, CappedC2UCB, Diverse, OneOf, Policy, Quotas, Table, TopK
from armful.cluster import _arms as cluster
from armful.cluster import _dask_runner as runner
from armful.cluster._partitions import RoundInfo
from armful.scan._scoring import Scoring
from armful.tables import _build as build
from armful.tables import parquet as parquet_tables
from armful.tables.parquet import ParquetTable
from armful.testing import ArmsContract
from armful.testing._expectations import expect_close
from tests.clusters import local_cluster
from tests.scan.plain import assert_plain

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow
D = 6


@contextmanager
def workers(n_workers, folder):
    with local_cluster(folder, n_workers=n_workers) as local, distributed.Client(local, set_as_default=False) as client:
        yield client


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 600.0)  # a busy machine is slow to start a worker again


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    with workers(2, tmp_path_factory.mktemp("two")) as client:
        yield client


@pytest.fixture
def client(two):
    two.wait_for_workers(2, timeout=900)
    return two


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    with workers(4, tmp_path_factory.mktemp("four")) as client:
        yield client


def rows(n, d=D, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def finished(client, array):
    for future in client.futures_of(array):
        future.exception()


# -- the same choice, however the arms are divided -----------------------------------------------------


class TestTwoWorkers(ArmsContract):
    @pytest.fixture(autouse=True)
    def cluster(self, client):
        self.options = {"client": client}

    def arms(self, X):
        return self.options["client"].persist(da.from_array(X, chunks=(1500, X.shape[1])))

    def learn(self, policy, X, rewards, weights):
        spread = None if weights is None else da.from_array(weights, chunks=1000)
        policy.learn(self.arms(X), da.from_array(rewards, chunks=777), weights=spread, **self.options)


class TestFourWorkersWithUnevenChunks(ArmsContract):
    """Also of float32, in columns that are divided too."""

    @pytest.fixture(autouse=True)
    def cluster(self, four):
        self.options = {"client": four}

    def arms(self, X):
        rest = len(X) - 511 - 1 - 513
        chunks = (511, 0, 1, rest, 513), (5, X.shape[1] - 5)
        return self.options["client"].persist(da.from_array(X.astype(np.float32), chunks=chunks))

    def learn(self, policy, X, rewards, weights):
        policy.learn(self.arms(X), rewards, weights=weights, **self.options)


class TestATableOnDisk(ArmsContract):
    @pytest.fixture(autouse=True)
    def cluster(self, client, tmp_path, monkeypatch):
        monkeypatch.setattr(build, "rows_per_block", lambda n_features: 1024)  # several partitions
        self.options, self.names = {"client": client}, (tmp_path / f"{i}" for i in range(1000))

    def arms(self, X):
        table = Table.build(X, next(self.names), progress=False)
        assert table.block_rows == 1024
        return table


class TestParquet(ArmsContract):
    @pytest.fixture(autouse=True)
    def cluster(self, client, tmp_path, monkeypatch):
        monkeypatch.setattr(parquet_tables, "rows_per_block", lambda n_features: 1200)  # several partitions
        self.options, self.names = {"client": client}, (tmp_path / f"{i}" for i in range(1000))

    def arms(self, X):
        folder = next(self.names)
        folder.mkdir()
        columns = pa.table({f"x{i}": X[:, i] for i in range(X.shape[1])})
        parquet.write_table(columns[:2100], folder / "a.parquet", row_group_size=1000)
        parquet.write_table(columns[2100:], folder / "b.parquet", row_group_size=1100)
        return ParquetTable(folder)


@pytest.mark.parametrize("chunk", [1, 511, 513, 599, 600])
def test_chunks_of_any_size_give_the_same_choice(client, chunk):
    X = rows(600)[np.random.default_rng(1).integers(0, 200, 600)]
    arms = da.from_array(X, chunks=(chunk, D))
    assert_plain(ArmwiseThompson(n_features=D, seed=0), arms, X, TopK(20), client=client)


@pytest.mark.parametrize("n_arms", [1, 5, 512, 513])
def test_few_arms_are_chosen_from_as_from_one_array(client, n_arms):
    X = rows(n_arms)
    assert_plain(C2UCB(n_features=D, seed=0), da.from_array(X, chunks=(100, D)), X, AtMost(3), client=client)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
def test_numbers_of_other_kinds_are_taken(client, dtype):
    X = (3 * rows(2000)).astype(dtype)
    assert_plain(C2UCB(n_features=D, ridge=1.0, seed=0), da.from_array(X, chunks=(900, D)), X, TopK(9), client=client)


def test_ids_come_with_the_choice(client, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "rows_per_block", lambda n_features: 512)
    monkeypatch.setattr(parquet_tables, "rows_per_block", lambda n_features: 512)
    X = rows(3000)
    names = [f"arm {i}" for i in range(3000)]
    columns = pa.table({"id": names} | {f"x{i}": X[:, i] for i in range(D)})
    parquet.write_table(columns, tmp_path / "x.parquet", row_group_size=700)
    policy = C2UCB(n_features=D, seed=0)
    for table in (
        Table.build(tmp_path / "x.parquet", tmp_path / "x.table", progress=False),
        ParquetTable(tmp_path / "x.parquet"),
    ):
        for n_arms in (40, 300):
            choice = assert_plain(policy, table, X, TopK(n_arms), client=client)
            assert choice.ids.tolist() == [names[i] for i in choice.indices.tolist()]


# -- what travels ------------------------------------------------------------------------------------


def test_no_partition_is_sent_to_this_machine(client, monkeypatch):
    n, k, returned = 40_000, 50, []

    def recorded(self, tasks, doing, results=runner.DaskRunner.results):
        found = results(self, tasks, doing)
        returned.extend(len(pickle.dumps(result)) for result in found)
        return found

    monkeypatch.setattr(runner.DaskRunner, "results", recorded)
    X = rows(n, d=20)
    arms = client.persist(da.from_array(X, chunks=(4000, 20)))
    assert_plain(C2UCB(n_features=20, ridge=1.0, seed=0), arms, X, TopK(k), client=client)
    assert len(returned) <= 11
    assert sum(returned) < k * (20 * 8 + 8 + 8) + 11 * 500


def test_what_workers_send_each_other_does_not_grow_with_the_partitions():
    X, k = rows(10_000), 50
    constraint, policy = TopK(k), C2UCB(n_features=D, seed=0)
    for x in X[:200]:
        policy.learn(x[None], [0.5])
    scoring = Scoring(policy, k, None)
    key = scoring.key_for_ties(policy.rng, X[:1])
    pickled = cluster._pickled(RoundInfo.of(scoring, constraint.ranks, key))
    assert len(pickled) < 3 * 8 * (D + 1) ** 2 + 3000
    parts = [
        cluster._prune(pickled, X[begin : begin + 2000], begin, begin + 2000, None, None)
        for begin in range(0, 10_000, 2000)
    ]
    for found in [*parts, cluster._merge(pickled, parts)]:
        assert len(pickle.dumps(found)) < k * (8 + 8) + 500


def test_groups_are_sent_once_for_each_constraint(client, monkeypatch):
    sent = []

    def recorded(self, values, keep=runner.DaskRunner.keep):
        if isinstance(values[0], np.ndarray):  # not the round
            sent.append(sum(value.nbytes for value in values))
        return keep(self, values)

    monkeypatch.setattr(runner.DaskRunner, "keep", recorded)
    X = rows(3000)
    arms = client.persist(da.from_array(X, chunks=(700, D)))
    policy, quotas = C2UCB(n_features=D, seed=0), Quotas(np.arange(3000) % 200, at_most=1, total=70)
    for _ in range(3):
        assert_plain(policy, arms, X, quotas, client=client)
    assert sent == [3000]  # a byte for each arm
    assert_plain(policy, arms.rechunk((1000, D)), X, quotas, client=client)
    assert sent == [3000, 3000]
    assert_plain(policy, arms, X, TopK(4), client=client)
    assert len(sent) == 2
    del quotas
    assert not cluster._sent_groups


def test_arms_that_cannot_change_are_remembered_from_round_to_round(client, tmp_path, monkeypatch):
    known = []

    def recorded(this_round, pickled=cluster._pickled):
        known.append(bool(np.isfinite(this_round.thresholds).any()))
        return pickled(this_round)

    monkeypatch.setattr(cluster, "_pickled", recorded)
    X, Z = rows(3000), rows(3000, seed=1)
    lazy = da.from_array(X, chunks=(700, D))
    held, others = client.persist(lazy), client.persist(da.from_array(Z, chunks=(700, D)))
    table = Table.build(Z, tmp_path / "z.table", progress=False)
    policy = C2UCB(n_features=D, seed=0)
    for arms, features, expected in (
        (lazy, X, False),  # might be worked out from other files the next time
        (lazy, X, False),
        (held, X, False),
        (held, X, True),
        (others, Z, False),
        (table, Z, False),
        (table, Z, True),
        (held, X, False),
    ):
        choice = assert_plain(policy, arms, features, TopK(40), client=client)
        policy.learn(choice.features, choice.features[:, 1])
        policy.discount(0.5)
        assert known.pop() == expected
    quotas = Quotas(np.arange(3000) % 7, at_least=2, total=30)
    assert_plain(policy, held, X, quotas, client=client)
    assert_plain(C2UCB(n_features=D, seed=0), held, X, quotas, client=client)
    assert known == [True, False], "what one policy chose says nothing of another"


def test_many_partitions_are_merged_in_a_tree(client):
    two_workers = runner.DaskRunner(client)
    tasks = [two_workers.task(int, i) for i in range(100)]
    assert two_workers.results([two_workers.merged(tasks, sum)], "summing") == [4950]
    largest = two_workers.merged([two_workers.task(_sizes, [i]) for i in range(100)], _sizes)
    assert two_workers.results([largest], "counting") == [runner.GROUP]


def _sizes(values):
    return max(len(values), *(values if len(values) > 1 else [1]))


# -- killed workers ----------------------------------------------------------------------------------


class Deadly(C2UCB):
    """Kills the worker that scores the arm at index `fatal`; only once if there is a `marker`, a file to be made."""

    armwise = True

    def __init__(self, *, n_features, marker=None, fatal=2500, seed=0):
        super().__init__(n_features=n_features, seed=seed)
        self.marker, self.fatal, self.home = marker, fatal, os.getpid()

    def score(self, arms, k):
        if os.getpid() != self.home and self.fatal in arms.arm_indices:
            die_once(self.marker)
        return super().score(arms, k)

    lowest_score = C2UCB.lowest_score
    highest_score = C2UCB.highest_score


def die_once(marker):
    if marker is not None:
        try:
            with marker.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("persisted", [True, False])
def test_a_worker_killed_in_the_middle_of_a_scan_changes_nothing(client, tmp_path, persisted):
    n = 5000
    X = rows(n)
    quotas = Quotas(np.arange(n) % 30, at_least=1, total=80)
    arms = da.from_array(X, chunks=(500, D))
    if persisted:
        arms = client.persist(arms)
        finished(client, arms)
    before = set(pids(client))
    policy = Deadly(n_features=D, marker=tmp_path / "killed")
    for _ in range(2):
        choice = assert_plain(policy, arms, X, quotas, client=client)
        policy.learn(choice.features, choice.features[:, 0])
    killed = int((tmp_path / "killed").read_text())
    assert killed in before, "a worker died while it pruned its partition"
    assert killed not in pids(client)


def pids(client):
    client.wait_for_workers(2, timeout=900)
    return list(client.run(os.getpid).values())


def test_a_worker_killed_in_the_middle_of_a_table_on_disk_changes_nothing(client, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "rows_per_block", lambda n_features: 512)
    X = rows(5000)
    table = Table.build(X, tmp_path / "x.table", progress=False)
    assert_plain(Deadly(n_features=D, marker=tmp_path / "killed"), table, X, TopK(40), client=client)
    assert (tmp_path / "killed").exists()


def test_a_worker_killed_while_learning_changes_nothing(client, tmp_path):
    X, rewards = rows(4000), rows(4000, d=1, seed=1)[:, 0]

    def reward(block, block_info):
        begin = block_info[0]["array-location"][0][0]
        if begin == 2000:
            die_once(tmp_path / "killed")
        return rewards[begin : begin + len(block)]

    spread = client.persist(da.from_array(X, chunks=(500, D)))
    seen = spread.map_blocks(reward, drop_axis=1, dtype=np.float64, meta=np.empty(0))
    here, there = C2UCB(n_features=D), C2UCB(n_features=D)
    here.learn(X, rewards)
    there.learn(spread, seen, client=client)
    assert (tmp_path / "killed").exists()
    for name in ("V", "b", "n", "theta", "residual"):
        expect_close(getattr(there.state, name), getattr(here.state, name), name)


def test_arms_that_kill_every_worker_are_refused_in_a_sentence(client, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    policy = Deadly(n_features=D)
    before = policy.rng.bit_generator.state
    with pytest.raises(ValueError, match=r"^choosing: every worker that ran it died, .*smaller chunks"):
        policy.choose(da.from_array(rows(3000), chunks=(1000, D)), TopK(3), client=client)
    assert policy.rng.bit_generator.state == before
    client.wait_for_workers(2, timeout=900)


def test_files_that_are_not_there_at_once_are_read_again(client, tmp_path):
    X = rows(2000)

    def flaky(block):
        try:
            (tmp_path / "failed").open("x").close()
        except FileExistsError:
            return block
        raise OSError("the connection was reset")

    arms = da.from_array(X, chunks=(500, D)).map_blocks(flaky, dtype=float, meta=np.empty((0, 0)))
    assert not (tmp_path / "failed").exists()
    assert_plain(C2UCB(n_features=D), arms, X, TopK(5), client=client)
    assert (tmp_path / "failed").exists()


# -- what is refused ---------------------------------------------------------------------------------


class Comparing(Policy):
    def score(self, arms, k):
        return arms.mean - arms.mean.max()


ARMS = rows(1000)


@pytest.mark.parametrize(
    ("policy", "arms", "how", "sentence"),
    [
        (C2UCB, lambda: da.ones((9, D)), {"client": None}, r"^a dask Array is chosen from .* pass client="),
        (C2UCB, lambda: ARMS, {}, r"^client= is for a dask array, .* got ndarray: leave it out"),
        (C2UCB, lambda: Table.wrap(ARMS), {}, r"^client= is for a dask array, .* got a table in memory"),
        (
            C2UCB,
            lambda: da.ones((9, D)),
            {"client": "tcp://here"},
            r"^client must be a dask.distributed.Client, got str",
        ),
        (C2UCB, lambda: da.ones((9, D + 1)), {}, r"^features must have shape \(n_arms, 6\), got \(9, 7\)"),
        (C2UCB, lambda: da.ones(9), {}, r"^features must have shape \(n_arms, 6\), got \(9,\)"),
        (C2UCB, lambda: da.ones((0, D)), {}, r"^features must have at least one row"),
        (C2UCB, lambda: da.ones((9, D), dtype=complex), {}, r"^features must be a dask array of real numbers"),
        (C2UCB, lambda: da.ma.masked_array(da.ones((9, D))), {}, r"^features must be a dask array of real numbers"),
        (C2UCB, lambda: (x := da.ones((9, D)))[x[:, 0] > 0], {}, r"^features has chunks of unknown size: call its "),
        (C2UCB, lambda: da.ones((9, D)).to_delayed()[0, 0], {}, r"^features must be a dask array, got a dask Delayed"),
        (C2UCB, lambda: da.ones((9, D)), {"objective": Diverse(weight=1.0)}, r"^Diverse needs all arms on one machine"),
        (C2UCB, lambda: da.ones((9, D)), {"constraint": OneOf([[1]])}, r"^OneOf needs all arms on one machine"),
        (
            Comparing,
            lambda: da.ones((9, D)),
            {},
            r"needs all arms on one machine, since the score of an arm may depend",
        ),
        (C2UCB, lambda: da.ones((999, D)), {"caps": np.ones(999)}, r"^C2UCB takes no caps"),
        (C2UCB, lambda: da.ones((999, D)), {"constraint": TopK(1000)}, r"^TopK\(1000\) needs 1000 arms, 999 are there"),
    ],
)
def test_what_cannot_be_chosen_from_on_a_cluster_is_refused(client, policy, arms, how, sentence):
    chooser = policy(n_features=D)
    before = chooser.rng.bit_generator.state
    options = {"constraint": TopK(1), "client": client, **how}
    with pytest.raises(ValueError, match=sentence) as refused:
        chooser.choose(arms(), options.pop("constraint"), **options)
    assert "\n" not in str(refused.value)
    assert chooser.rng.bit_generator.state == before


def test_a_policy_whose_arms_depend_on_each_other_is_refused(client):
    with pytest.raises(ValueError, match=r"CappedC2UCB.* needs all arms on one machine"):
        CappedC2UCB(n_features=D, spread=1.0).choose(da.ones((9, D)), TopK(1), client=client)


def test_a_bad_row_is_named_by_its_index_among_all(client):
    X = rows(3000)
    X[2345, 1] = np.nan
    policy = ArmwiseThompson(n_features=D, seed=0)
    before = policy.rng.bit_generator.state
    with pytest.raises(ValueError, match=r"^features must be finite, got nan in row 2345$"):
        policy.choose(da.from_array(X, chunks=(700, D)), TopK(5), client=client)
    assert policy.rng.bit_generator.state == before


def test_a_chunk_that_is_not_what_it_promised_is_refused(client):
    arms = da.from_array(rows(2000), chunks=(500, D)).map_blocks(lambda block: block[1:], dtype=float)
    with pytest.raises(ValueError, match=r"^the chunk of rows \d+ to \d+ has shape \(499, 6\), its dask array says"):
        C2UCB(n_features=D).choose(arms, TopK(5), client=client)


def test_a_choice_on_a_cluster_is_explained_elsewhere(client):
    choice = C2UCB(n_features=D, seed=0).choose(da.from_array(rows(2000), chunks=(500, D)), TopK(5), client=client)
    with pytest.raises(ValueError, match=r"^explain needs the scores of all 2000 arms on one machine"):
        choice.explain()


def test_a_file_that_a_worker_does_not_see_is_named(client, tmp_path, monkeypatch):
    X = rows(2000)
    table = Table.build(X, tmp_path / "x.table", progress=False)
    (tmp_path / "x.table").rename(tmp_path / "moved.table")  # it stays open here
    with pytest.raises(ValueError, match=r"^the worker at tcp://\S+ does not see a file, .*x.table does not exist"):
        C2UCB(n_features=D).choose(table, TopK(5), client=client)
    columns = pa.table({f"x{i}": X[:, i] for i in range(D)})
    parquet.write_table(columns, tmp_path / "x.parquet")
    arms = ParquetTable(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").unlink()
    with pytest.raises(
        ValueError, match=r"^the worker at tcp://\S+ does not see a file, .*x.parquet could not be read"
    ):
        C2UCB(n_features=D).choose(arms, TopK(5), client=client)


def spoilt(shape, position):
    values = np.ones(shape)
    values[position] = np.nan
    return da.from_array(values, chunks=4)


@pytest.mark.parametrize(
    ("features", "rewards", "how", "sentence"),
    [
        (
            da.ones((9, D)),
            np.ones(9),
            {"client": None},
            r"^a dask Array is chosen from and learned from on its cluster",
        ),
        (np.ones((9, D)), np.ones(9), {}, r"^client= is for features in a dask array, got ndarray"),
        (da.ones((9, D)), np.ones(9), {"shock": 0.5}, r"^a shock is shared by all arms of one call"),
        (da.ones((9, D - 1)), np.ones(9), {}, r"^features must have shape \(n_arms, 6\), got \(9, 5\)"),
        (da.ones((9, D)), da.ones(8), {}, r"^rewards must have shape \(9,\), one for each row of features, got \(8,\)"),
        (da.ones((9, D)), np.ones((9, 1)), {}, r"^rewards must have shape \(9,\), one for each row of features"),
        (da.ones((9, D)), da.ones(9), {"weights": da.ones(8)}, r"^weights must have shape \(9,\), one for each row"),
        (da.ones((9, D)), ["a"] * 9, {}, r"^rewards must be an array of real numbers"),
        (da.ones((9, D)), da.ones(9), {"weights": -np.ones(9)}, r"^weights must not be negative, got -1.0"),
        (da.ones((9, D), chunks=4), spoilt(9, 7), {}, r"^rewards must be finite, got nan in row 7$"),
        (spoilt((9, D), (7, 2)), da.ones(9), {}, r"^features must be finite, got nan in row 7$"),
        (da.ones((9, D)), da.ones(9), {"weights": spoilt(9, 7)}, r"^weights must be finite, got nan in row 7$"),
    ],
)
def test_what_cannot_be_learned_on_a_cluster_is_refused(client, features, rewards, how, sentence):
    policy = C2UCB(n_features=D)
    before = policy.state
    with pytest.raises(ValueError, match=sentence) as refused:
        policy.learn(features, rewards, **{"client": client, **how})
    assert "\n" not in str(refused.value)
    assert policy.state is before


# -- clusters that are not what they should be -------------------------------------------------------


def choose_on(client):
    return C2UCB(n_features=D).choose(da.from_array(rows(2000), chunks=(500, D)), TopK(5), client=client)


def test_a_cluster_without_workers_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.5)
    with workers(0, tmp_path) as client, pytest.raises(ValueError, match=r"^no worker at tcp://\S+ for 0.5 s: start"):
        choose_on(client)


def test_a_cluster_that_was_closed_is_named(tmp_path):
    with workers(0, tmp_path) as client:
        pass
    with pytest.raises(ValueError, match=r"^the cluster .* is gone: connect to one with a new Client"):
        choose_on(client)


def test_a_cluster_that_is_closed_in_the_middle_is_named(tmp_path, monkeypatch):
    with workers(1, tmp_path) as client:
        finished = runner.DaskRunner._finished

        def closed(self, futures):
            client.cluster.close()
            return finished(self, futures)

        monkeypatch.setattr(runner.DaskRunner, "_finished", closed)
        with pytest.raises(ValueError, match=r"^the cluster .* is gone: connect to one with a new Client"):
            choose_on(client)


def test_a_worker_with_another_armful_is_refused(client, monkeypatch):
    monkeypatch.setattr(armful, "__version__", "99.0")
    monkeypatch.setattr(runner, "_checked", type(runner._checked)())
    with pytest.raises(ValueError, match=r"^the worker at tcp://\S+ has armful \S+, this machine 99.0: both must"):
        choose_on(client)


def test_a_worker_without_armful_is_refused(tmp_path):
    with workers(1, tmp_path) as client:
        client.run(exec, "import sys; sys.modules['armful'] = None")
        with pytest.raises(
            ValueError, match=r"^the worker at tcp://\S+ cannot import armful .*: it needs armful\[dask\]"
        ):
            choose_on(client)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^a cluster needs distributed: pip install '\.\[dask\]' in a clone of armful$"
    ):
        choose_on("tcp://somewhere")


def test_an_asynchronous_client_is_refused():
    async def ask():
        async with distributed.Client(processes=False, asynchronous=True, dashboard_address="127.0.0.1:0") as client:
            choose_on(client)

    with pytest.raises(ValueError, match=r"^client must not be asynchronous"):
        asyncio.run(ask())
