import copy
import shutil

import numpy as np
import pytest

from armful.ledger import Ledger, _sqlite
from armful.ledger._sqlite import SqliteStore
from armful.testing._made_rounds import NOON, add, made_arms
from tests.ledger import power_cuts

N_IMAGES = 400


def work(file, vfs, log):
    """Write rounds and rewards, forget people, close and open; return what is there after each acknowledgement.

    The log gets an entry for each: ("acknowledged", its number).
    """
    rng, truth, states = np.random.default_rng(0), {}, [None]

    def connected():
        store = SqliteStore(str(file), create=True, connect=lambda: power_cuts.Connection(file, vfs))
        store.prepare(create=True)
        return Ledger._of_store(store, "autumn", create=True, settings="")

    def acknowledge():
        log.append(("acknowledged", len(states)))
        states.append(copy.deepcopy(truth))

    ledger = connected()
    acknowledge()
    for number in range(1, 13):
        ids = [f"p{i}" for i in rng.choice(200, 60, replace=False)]
        add(ledger, made_arms(rng, ids, n_features=16), number)
        truth[number] = dict.fromkeys(ids)
        acknowledge()
        for of_round in (number, rng.integers(1, number + 1)):
            some, rewards = rng.choice(list(truth[of_round]), 25, replace=False).tolist(), rng.random(25)
            ledger.add_rewards([of_round] * 25, some, rewards, NOON)
            truth[of_round].update(zip(some, rewards.tolist(), strict=True))
            acknowledge()
        if number == 6:
            gone = ids[:3]
            ledger.forget(gone)
            truth = {n: {arm: r for arm, r in arms.items() if arm not in gone} for n, arms in truth.items()}
            acknowledge()
        if number in (4, 8):
            ledger.close()
            ledger = connected()
    ledger.close()
    return states


def what_is_there(ledger):
    found = {}
    for info in ledger.rounds():
        outcomes = ledger.outcomes(info.number)
        rewards = [None if np.isnan(reward) else reward for reward in outcomes.rewards.tolist()]
        found[info.number] = dict(zip(outcomes.ids.tolist(), rewards, strict=True))
    return found


def problem_after(image, acknowledged, states, folder):
    """Return what is wrong with a disk after a power cut; None if nothing is."""
    folder.mkdir()
    for name, contents in image.items():
        (folder / name.rpartition("/")[2]).write_bytes(contents)
    file = folder / "ledger.sqlite"
    with Ledger.open(f"sqlite:///{file}", "autumn", create=acknowledged == 0) as ledger:
        found = what_is_there(ledger)
        if found not in [state or {} for state in states[acknowledged : acknowledged + 2]]:
            return f"after {acknowledged} acknowledgements there are {len(found)} rounds: {found}"
        number = len(found) + 1
        add(ledger, made_arms(np.random.default_rng(1), ["a", "b"]), number)
        ledger.add_rewards([number], ["b"], [1.0], NOON)
        if what_is_there(ledger) != {**found, number: {"a": None, "b": 1.0}}:
            return "the next round is not there"
    result = power_cuts.integrity(file)
    return None if result == "ok" else f"the file is damaged: {result}"


def problems(tmp_path):
    """Yield what is wrong after each of many power cuts; None where nothing is."""
    log = []
    vfs = power_cuts.RecordingVFS("recording", log)
    (tmp_path / "work").mkdir()
    states = work(tmp_path / "work" / "ledger.sqlite", "recording", log)
    vfs.unregister()
    moments = [entry[1] if entry[0] == "acknowledged" else 0 for entry in log]
    acknowledged = [0, *np.maximum.accumulate(moments).tolist()]
    for i, (moment, image) in enumerate(power_cuts.images(log, N_IMAGES, np.random.default_rng(2))):
        folder = tmp_path / str(i)
        try:
            yield problem_after(image, acknowledged[moment], states, folder)
        except ValueError as error:
            yield str(error)
        shutil.rmtree(folder)


@pytest.mark.slow
def test_after_a_power_cut_all_that_was_acknowledged_is_there_and_nothing_half_done(tmp_path):
    found = list(problems(tmp_path))
    assert len(found) == N_IMAGES
    assert [problem for problem in found if problem] == []


@pytest.mark.slow
def test_the_simulation_sees_that_less_syncing_loses_what_was_acknowledged(tmp_path, monkeypatch):
    monkeypatch.setattr(_sqlite, "SYNCHRONOUS", ("NORMAL", 1))
    monkeypatch.setitem(_sqlite.PRAGMAS, "synchronous", "NORMAL")
    assert any(problem and "acknowledgements" in problem for problem in problems(tmp_path))
