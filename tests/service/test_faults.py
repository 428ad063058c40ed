"""Processes are killed, the store goes away and the clock jumps, under load: what was acknowledged is there.

Every fault comes while clients ask and report. Afterwards the ledger must hold every decision and reward that was
acknowledged, none of them twice, and the published model must be the sum over the ledger, computed here literally.
"""

import json
import os
import re
import signal
import socket
from itertools import pairwise

import numpy as np
import pytest
from sqlalchemy import select

from armful.campaigns import Campaign
from armful.campaigns.decisions import PublishedModel
from armful.ledger._schema import rewards
from tests.ledger.power_cuts import integrity
from tests.postgresql import Server
from tests.service.faulty import change
from tests.service.load import Load
from tests.service.running import Service, is_alive, until

pytestmark = pytest.mark.slow
SETTINGS = """
name = "autumn"
store = {store}
id = "item"
choose.k = 3
policy.cap = 1.0
features.ready = 4
holdout.share = 0.1
[outcomes]
reward = "click"
window = "1 hour"
learn = "at once"
[service]
explore = 0.1
"""


class Site:
    """A campaign, its service at one address, and the load on it."""

    def __init__(self, folder, store="sqlite:///ledger.sqlite"):
        self.folder, self.conditions = folder / "autumn", folder / "conditions.json"
        self.folder.mkdir()
        (self.folder / "campaign.toml").write_text(SETTINGS.format(store=json.dumps(store)))
        change(self.conditions)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.service, self.load = None, None

    def start(self):
        self.service = Service("tests.service.faulty", self.folder, self.port, 2, self.conditions)
        if self.load is None:
            self.load = Load(self.service.url)
        self.goes_on()

    def goes_on(self):
        """Wait until every client has been answered some more."""
        before = [(len(told.decisions), len(told.rewards)) for told in self.load.told]

        def all_moved():
            assert [told.unexpected for told in self.load.told] == [[]] * len(self.load.told), self.service.log()
            now = [(len(told.decisions), len(told.rewards)) for told in self.load.told]
            return all(a[0] >= b[0] + 3 and a[1] >= b[1] + 3 for a, b in zip(now, before, strict=True))

        until(all_moved, "further decisions of every client")

    def kill(self, name):
        """Kill a process of the service, and wait until another is in its place."""
        os.kill(self.service.processes[name], signal.SIGKILL)
        before = self.service.processes[name]
        self.service.processes[name] = until(lambda: self._newest(name, before), "another process")

    def _newest(self, name, before):
        """The id of a process that became ready after another one."""
        found = re.findall(rf"{name} \(process (\d+)\) is ready", self.service.log())
        return int(found[-1]) if found and int(found[-1]) != before else None

    def stop(self):
        """Stop the load, wait until the model holds everything, and end the service."""
        self.load.stop()

        def is_published():
            with Campaign.open(self.folder) as campaign:
                ledger = campaign.ledger
                newest = ledger.newest_model(state=False)
                wanted = (ledger.position(), ledger.last_number())
                return newest is not None and (newest[0].position, newest[0].last_round) == wanted

        until(is_published, "a model of everything")
        assert self.service.end() == 0, self.service.log()

    def check(self):
        """Compare what was acknowledged with the ledger, and the model with the sum over it."""
        assert [told.unexpected for told in self.load.told] == [[]] * len(self.load.told)
        assert self.load.n_decisions >= 10
        assert self.load.n_rewards >= 10
        with Campaign.open(self.folder) as campaign:
            ledger = campaign.ledger
            rounds, last = ledger.rounds(), ledger.last_number()
            assert [info.number for info in rounds] == list(range(1, last + 1))
            keys = {info.key: info.number for info in rounds}
            assert len(keys) == last, "a decision is there twice"
            block = ledger.block(1, last)
            numbers = block.numbers[block.of_round]
            places = {(str(numbers[i]), arm): i for i, arm in enumerate(block.ids)}
            assert len(places) == block.ids.size, "an arm is there twice"
            for told in self.load.told:
                for key, (decision_id, ids) in told.decisions.items():
                    assert str(keys[key]) == decision_id
                    mine = np.flatnonzero(numbers == keys[key])
                    assert block.ids[mine[np.argsort(block.positions[mine])]].tolist() == ids
                for where, value in told.rewards.items():
                    assert block.rewards[places[where]] == value
            assert_no_reward_twice(ledger)
            check_model(campaign, block)


def assert_no_reward_twice(ledger):
    """A reward that was sent again is the same row: only a correction is another one."""
    query = select(rewards.c.round_id, rewards.c.arm, rewards.c.reward).order_by(*rewards.primary_key)
    with ledger._store.reading() as connection:
        rows = connection.execute(query).all()
    assert rows
    assert all(row != following for row, following in pairwise(rows)), "a reward is there twice"


def check_model(campaign, block):
    """The published model is the sum over the ledger, to rounding."""
    info, state, _ = campaign.ledger.newest_model()
    model = PublishedModel.from_bytes(state)
    X, came = block.features.astype(np.float64), np.isfinite(block.rewards)
    closed = (block.closes_at <= info.closed_until.timestamp())[block.of_round]
    learned = came | closed
    rewards = np.where(came, block.rewards, 0.0)
    d = X.shape[1]
    V = model.state.ridge * np.eye(d) + X[learned].T @ X[learned]
    np.testing.assert_allclose(model.state.V, V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.state.b, X[learned].T @ rewards[learned], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.pending.T @ model.pending, X[~learned].T @ X[~learned], rtol=1e-9, atol=1e-9)
    assert model.n_observations == learned.sum()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    if site.load is not None:
        site.load.stop()
    if site.service is not None:
        site.service.close()


def test_killed_workers(site):
    site.start()
    for name in 3 * ("worker 1", "worker 2"):
        site.kill(name)
        site.goes_on()
    site.stop()
    site.check()
    assert integrity(site.folder / "ledger.sqlite") == "ok"


def test_a_killed_updater(site):
    site.start()
    with Campaign.open(site.folder) as campaign:
        until(lambda: campaign.ledger.model_version() > 0, "a model")
        for _ in range(3):
            site.kill("updater")
            version = campaign.ledger.model_version()
            until(lambda v=version: campaign.ledger.model_version() > v, "a model of the next updater")
    site.goes_on()
    site.stop()
    site.check()


def test_settings_that_are_edited_meanwhile_are_those_of_the_next_start(site):
    site.start()
    file = site.folder / "campaign.toml"
    settings = file.read_text()
    with Campaign.open(site.folder) as campaign:
        file.write_text("garbage [")
        for name in ("worker 1", "worker 2", "updater"):
            site.kill(name)
            site.goes_on()
        version = campaign.ledger.model_version()
        until(lambda: campaign.ledger.model_version() > version, "a model of the next updater")
    assert "not TOML" not in site.service.log()
    file.write_text(settings)
    site.stop()
    site.check()


def test_a_killed_supervisor(site):
    site.start()
    first = site.service
    first.process.kill()
    until(lambda: not any(is_alive(pid) for pid in first.processes.values()), "the end of its processes")
    site.start()
    first.close()
    site.stop()
    site.check()


def test_everything_is_killed_at_once(site):
    site.start()
    for _ in range(2):
        first = site.service
        os.killpg(first.process.pid, signal.SIGKILL)
        site.start()
        first.close()
    site.stop()
    site.check()
    assert integrity(site.folder / "ledger.sqlite") == "ok"


def test_a_disk_that_is_full(site):
    site.start()
    change(site.conditions, bytes=4096)
    until(lambda: "the store failed" in site.service.log(), "an error of the disk")
    until(lambda: "the model was not updated" in site.service.log(), "an error of the updater")
    change(site.conditions)
    site.goes_on()
    site.stop()
    site.check()
    assert integrity(site.folder / "ledger.sqlite") == "ok"


def test_a_clock_that_jumps(site):
    site.start()
    for seconds in (30 * 60, 86400, -86400, 0):
        change(site.conditions, seconds=seconds)
        site.goes_on()
    change(site.conditions, seconds=7200)
    site.stop()
    with Campaign.open(site.folder) as campaign:
        info, _, _ = campaign.ledger.newest_model()
        closes = campaign.ledger.block(1, info.last_round).closes_at
        assert 0 < (closes <= info.closed_until.timestamp()).mean() < 1, "some windows are closed, and some are open"
    site.check()


def test_a_killed_postgresql(tmp_path):
    with Server() as server:
        site = Site(tmp_path, server.url)
        try:
            site.start()
            for _ in range(2):
                n = site.service.log().count("the store failed")
                server.kill()
                until(lambda n=n: site.service.log().count("the store failed") > n, "an error of the store")
                server.start()
                site.goes_on()
            site.stop()
            site.check()
        finally:
            server.start()
            site.load.stop()
            site.service.close()
