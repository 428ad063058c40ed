"""What is left of a person who was forgotten: nothing in the tables, and on SQLite no bytes in the files."""

import json
import sqlite3

import numpy as np
import pytest

from armful.errors import LedgerError
from armful.ledger import Ledger, ModelInfo, _sqlite
from armful.testing._made_decisions import made_decision
from armful.testing._made_rounds import NOON, add, made_arms

TIMES = ("closed_until", "made_at", "checked_at")
PIECE = 9
"""So many letters of an id, or bytes of its features, in a row count as a trace."""


def traces(folder, secrets):
    """Return those of the byte strings of which a piece is in a file of the folder."""
    contents = b"\n".join(path.read_bytes() for path in folder.iterdir())
    return [s for s in secrets if any(s[i : i + PIECE] in contents for i in range(len(s) - PIECE + 1))]


def fill(ledger, rng, n_rounds, n_arms):
    """Add rounds in which people come back, in an order that moves rows between pages; return features by id."""
    everyone, features = [rng.bytes(8).hex() for _ in range(2 * n_arms)], {}
    for number in range(1, n_rounds + 1):
        arms = made_arms(rng, rng.choice(everyone, n_arms, replace=False).tolist(), n_features=6)
        add(ledger, arms, number)
        for arm, row in zip(arms.ids.tolist(), arms.features, strict=True):
            features.setdefault(arm, []).append(row.tobytes())
        for part in np.array_split(rng.permutation(arms.ids), 3):
            ledger.add_rewards(np.full(len(part), number), part, rng.random(len(part)), NOON)
        ledger.add_snapshot(number, number, ledger.position(), features[arms.ids[0]][-1])
    return features


@pytest.mark.slow
def test_no_bytes_of_the_forgotten_are_in_the_files(tmp_path):
    rng = np.random.default_rng(0)
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", "autumn", create=True) as ledger:
        features = fill(ledger, rng, n_rounds=150, n_arms=60)
        gone, kept = np.split(rng.permutation(list(features)), [60])
        secrets = [arm.encode() for arm in gone] + [features[arm][-1] for arm in gone]
        assert traces(tmp_path, secrets) == secrets, "they are not even found when they are there"
        for some in np.array_split(gone, 20):  # deleting moves rows between pages too
            assert ledger.forget(some) == len(some)
        assert traces(tmp_path, secrets) == []
        still = [arm.encode() for arm in kept] + [features[arm][-1] for arm in kept]
        assert traces(tmp_path, still) == still


@pytest.mark.slow
def test_no_bytes_of_a_forgotten_unit_are_in_the_files(tmp_path):
    rng, units = np.random.default_rng(1), [np.random.default_rng(i).bytes(10).hex() for i in range(80)]
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", "autumn", create=True) as ledger:
        order = rng.permutation(np.repeat(units, 5)).tolist()
        for i in range(0, len(order), 8):
            some = [
                made_decision(rng, key=f"{unit} {i}", unit=unit, details=json.dumps({"of": unit[::-1]}))
                for unit in dict.fromkeys(order[i : i + 8])
            ]
            ledger.add_decisions(some)
        ledger.put_arms([(unit, unit.encode()) for unit in units])
        info = ModelInfo(version=1, position=0, last_round=1, n_observations=1.0, **dict.fromkeys(TIMES, NOON))
        assert ledger.publish_model(info, f"state of {units[0]}".encode(), f'"{units[1]}"')
        gone, kept = units[:20], units[20:]
        secrets = [text.encode() for unit in gone for text in (unit, unit[::-1])]
        assert traces(tmp_path, secrets) == secrets, "they are not even found when they are there"
        assert ledger.forget(gone) == 20
        assert traces(tmp_path, secrets) == []
        still = [unit.encode() for unit in kept]
        assert traces(tmp_path, still) == still


def test_the_record_of_an_erasure_says_how_many_and_not_who(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", "autumn", create=True) as ledger:
        for number in (1, 2):
            add(ledger, made_arms(np.random.default_rng(number), ["ann", "bob", "cy"]), number)
        ledger.add_rewards([1, 1, 1], ["ann", "bob", "cy"], [1.0, 0.0, 1.0], NOON)
        ledger.add_rewards([1], ["ann"], [2.0], NOON)
        ledger.forget(["ann", "bob"])
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    columns = "campaign_id, position, n_people, n_rows"
    assert connection.execute(f"SELECT {columns} FROM erasures").fetchall() == [(1, 5, 2, 7)]
    connection.close()


def test_a_reader_that_keeps_old_copies_is_said_and_they_go_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr(_sqlite, "LOCK_SECONDS", 0.1)
    file = tmp_path / "ledger.sqlite"
    with Ledger.open(f"sqlite:///{file}", "autumn", create=True) as ledger:
        add(ledger, made_arms(np.random.default_rng(0), ["somebody in particular", "bob"]), 1)
        reader = sqlite3.connect(file, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chosen").fetchone()
        with pytest.raises(
            LedgerError, match=r"^all is erased, but old copies may still be in the files of .*: let it"
        ):
            ledger.forget(["somebody in particular"])
        assert ledger.chosen_ids(1).tolist() == ["bob"]
        assert traces(tmp_path, [b"somebody in particular"]) != []
        reader.execute("COMMIT")
        assert ledger.forget(["somebody in particular"]) == 0
        assert traces(tmp_path, [b"somebody in particular"]) == []
        reader.close()


def test_a_file_that_cannot_be_written_anew_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(_sqlite, "LOCK_SECONDS", 0.1)
    file = tmp_path / "ledger.sqlite"
    with Ledger.open(f"sqlite:///{file}", "autumn", create=True) as ledger:
        add(ledger, made_arms(np.random.default_rng(0), ["ann", "bob"]), 1)
        writer = sqlite3.connect(file, isolation_level=None)

        def lock(*_):
            writer.execute("BEGIN IMMEDIATE")

        discard = ledger._store.discard_old_pages
        monkeypatch.setattr(ledger._store, "discard_old_pages", lambda: (lock(), discard()))
        with pytest.raises(
            LedgerError, match=r"^all is erased, but old copies may still .* run this again: .* is locked"
        ):
            ledger.forget(["ann"])
        assert ledger.chosen_ids(1).tolist() == ["bob"]
        writer.close()
