"""Stores of older and newer versions."""

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from armful.errors import LedgerError
from armful.ledger import Ledger, _versions
from armful.ledger._engine import open_store, parse_url
from armful.ledger._postgresql import PostgresqlStore
from armful.ledger._schema import SCHEMA_VERSION, VERSION_TABLE, metadata
from armful.ledger._sqlite import SqliteStore
from armful.testing._made_decisions import expect_block, made_decision, new_rewards
from armful.testing._made_rounds import NOON, add, in_threads, made_arms
from tests.postgresql import own_schema

FEATURES = np.array([[1.0, 0.5], [0.25, -2.0]], dtype="<f4")
FIRST_STORE = [
    "INSERT INTO campaigns (name, created_at, settings, recipe, position) "
    "VALUES ('autumn', '2025-01-01 00:00:00', 'k = 2', '{}', 5), ('spring', '2025-01-01 00:00:00', '', NULL, 0)",
    "INSERT INTO rounds (campaign_id, number, key, chosen_at, closes_at, n_features, details) "
    "VALUES (1, 1, 'monday', '2025-01-06 10:00:00', '2025-01-20 10:00:00', 2, '{\"note\": \"first\"}'), "
    "(1, 2, NULL, '2025-01-13 10:00:00', '2025-01-27 10:00:00', 2, '{}')",
    "INSERT INTO chosen (round_id, arm, position, share, predicted, bonus, capped, probability, features, groups) "
    "VALUES (1, 'ann', 0, 'chosen', 0.5, 0.25, true, NULL, :ann, '{\"region\": \"north\"}'), "
    "(1, 'bob', 0, 'holdout', NULL, NULL, false, 0.125, :bob, '{\"region\": \"south\"}'), "
    "(2, 'bob', 0, 'chosen', 0.5, 0.25, false, NULL, :bob, NULL)",
    "INSERT INTO rewards (round_id, arm, seq, reward, received_at) VALUES (1, 'ann', 1, 0, '2025-01-07 00:00:00'), "
    "(1, 'ann', 4, 1, '2025-01-08 00:00:00'), (1, 'bob', 3, 0.5, '2025-01-07 00:00:00')",
    "INSERT INTO snapshots (campaign_id, first_round, last_round, position, state, made_at) "
    "VALUES (1, 1, 1, 4, :ann, '2025-02-01 00:00:00')",
]
"""A store as the first version of the schema has it; written out, since today's code can no longer write one."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    else:
        with own_schema() as url:
            yield f"{url}%20-ctimezone%3DUTC"


def unprepared(url):
    parsed = parse_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    return SqliteStore(parsed.database, create=True) if is_sqlite else PostgresqlStore(parsed)


def make_first_store(url, then="0001"):
    store = unprepared(url)
    with store.writing() as connection:
        _versions.migrate(connection, "0001")
        for statement in FIRST_STORE:
            blobs = {name: row.tobytes() for name, row in zip(("ann", "bob"), FEATURES, strict=True)}
            connection.execute(text(statement), {name: blobs[name] for name in blobs if f":{name}" in statement})
        _versions.migrate(connection, then)
    store.close()


def test_a_store_of_the_first_version_is_opened_with_all_that_is_in_it(url):
    make_first_store(url)
    with Ledger.open(url, "autumn") as ledger:
        assert (ledger.settings, ledger.recipe, ledger.position()) == ("k = 2", "{}", 5)
        first, second = ledger.rounds()
        assert (first.number, first.key, first.details) == (1, "monday", {"note": "first"})
        assert (first.chosen_at.isoformat(), second.closes_at.isoformat()) == (
            "2025-01-06T10:00:00+00:00",
            "2025-01-27T10:00:00+00:00",
        )
        chosen, outcomes = ledger.chosen_and_outcomes(1)
        assert (chosen.ids.tolist(), chosen.shares.tolist()) == (["ann", "bob"], ["chosen", "holdout"])
        assert (chosen.features == FEATURES).all()
        assert chosen.groups["region"].tolist() == ["north", "south"]
        assert (chosen.predicted[0], chosen.bonus[0], chosen.capped.tolist()) == (0.5, 0.25, [True, False])
        assert chosen.probabilities[1] == 0.125
        assert outcomes.rewards.tolist() == [1.0, 0.5]
        assert outcomes.corrected.tolist() == [True, False]
        assert outcomes.received_at.tolist() == [1736294400.0, 1736208000.0]
        assert np.isnan(ledger.outcomes(2).rewards).all()
        assert ledger.last_reward_positions() == {1: 4}
        assert ledger.snapshot(1, 1) == (4, FEATURES[0].tobytes())
        add(ledger, made_arms(np.random.default_rng(0), ["cy"]), 3)
        assert ledger.add_rewards([2], ["bob"], [1.0], NOON).new == 1
        assert ledger.last_reward_positions() == {1: 4, 2: 6}
        assert ledger.forget(["ann"]) == 1
    assert Ledger.campaigns(url) == ["autumn", "spring"]


@pytest.mark.parametrize("version", ["0001", "0002"])
def test_decisions_can_be_added_to_an_older_store(url, version):
    make_first_store(url, version)
    rng = np.random.default_rng(0)
    with Ledger.open(url, "autumn") as ledger:
        assert [(info.unit, info.model_version) for info in ledger.rounds()] == [(None, None)] * 2
        expect_block(ledger, 1, 2)
        assert ledger.changed_rounds(0).tolist() == [1]
        new = [made_decision(rng, key=key, unit="ann") for key in ("monday", "tuesday")]
        assert [answer.number for answer in ledger.add_decisions(new)] == [1, 3]
        ledger.add_reward_requests([new_rewards((2, "bob", 1.0), (3, "a", 1.0))])
        assert ledger.changed_rounds(5).tolist() == [2, 3]
        expect_block(ledger, 1, 3)
        assert (ledger.forget(["ann"]), len(ledger.chosen(3)), ledger.chosen_ids(1).tolist()) == (1, 0, ["bob"])
        assert (ledger.models(), ledger.keys(), ledger.arms_since(0)) == ([], [], (0, []))


def test_an_older_store_that_several_open_at_once_is_brought_up_to_date_once(url):
    make_first_store(url)
    found = []

    def read(_):
        with Ledger.open(url, "autumn") as ledger:
            found.append(ledger.last_reward_positions())

    in_threads(read, 4)
    assert found == [{1: 4}] * 4


def test_the_migrations_make_the_tables_that_the_code_uses(url):
    store = open_store(url, create=True)
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
    store.close()


def test_the_version_that_the_code_knows_is_the_newest_migration():
    assert ScriptDirectory(str(_versions.MIGRATIONS)).get_current_head() == SCHEMA_VERSION


def test_a_store_of_a_newer_version_is_left_alone(url):
    Ledger.open(url, "autumn", create=True).close()
    store = unprepared(url)
    with store.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0099'"))
    for create in (False, True):
        with pytest.raises(LedgerError, match=r"newer armful \(schema 0099, this one knows 0003\): upgrade armful$"):
            Ledger.open(url, "autumn", create=create)
    with store.reading() as connection:
        assert _versions.schema_version(connection) == "0099"
    store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(url, monkeypatch):
    make_first_store(url)
    migrate = _versions.migrate

    def fail_at_the_end(connection):
        migrate(connection)
        raise LedgerError("the power went")

    monkeypatch.setattr("armful.ledger._engine.migrate", fail_at_the_end)
    with pytest.raises(LedgerError, match="the power went"):
        Ledger.open(url, "autumn")
    monkeypatch.undo()
    store = unprepared(url)
    with store.reading() as connection:
        assert _versions.schema_version(connection) == "0001"
    store.close()
    with Ledger.open(url, "autumn") as ledger:
        assert ledger.last_reward_positions() == {1: 4}
