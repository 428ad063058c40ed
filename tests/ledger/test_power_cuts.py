import copy
import shutil
import threading
from functools import partial

import numpy as np
import pytest

from armful.ledger import GroupCommit, Ledger, _sqlite
from armful.ledger._sqlite import SqliteStore
from armful.testing._made_decisions import decision_of, new_rewards
from armful.testing._made_rounds import NOON, add, made_arms
from tests.ledger import power_cuts

N_IMAGES = 400


def work(file, vfs, log):
    """Write rounds and rewards, forget people, close and open; return what is there after each acknowledgement.

    The log gets an entry for each: ("acknowledged", its number).
    """
    rng, truth, states = np.random.default_rng(0), {}, [None]

    def acknowledge():
        log.append(("acknowledged", len(states)))
        states.append(copy.deepcopy(truth))

    ledger = connected(file, vfs)
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
            ledger = connected(file, vfs)
    ledger.close()
    return states


def work_of_a_service(file, vfs, log):
    """Write decisions and rewards through a `GroupCommit`, many at a time; an acknowledgement is of a transaction."""
    rng, truth, states, answered = np.random.default_rng(0), {}, [None], threading.Semaphore(0)

    def acknowledge(pairs):
        log.append(("acknowledged", len(states)))
        for take, answer in pairs:
            take(answer)
        states.append(copy.deepcopy(truth))
        for _ in pairs:
            answered.release()

    def decided(decision, answer):
        truth[answer.number] = {row[0]: None for row in decision.rows}

    def rewarded(request, answer):
        assert answer.counts.new + answer.counts.repeated + answer.counts.corrected == len(request.rewards)
        for number, arm, reward in request.rewards:
            truth[number][arm] = reward

    ledger = connected(file, vfs)
    acknowledge([])
    for step in range(10):
        group = GroupCommit(ledger, acknowledge)
        known = [(number, arm) for number, arms in truth.items() for arm in arms]
        for _ in range(24):
            if known and rng.random() < 0.5:
                some = [known[i] for i in rng.choice(len(known), 4, replace=False)]
                request = new_rewards(*((number, arm, float(rng.random())) for number, arm in some))
                group.reward(request, partial(rewarded, request))
            else:
                ids = [f"p{i}" for i in rng.choice(200, 10, replace=False)]
                decision = decision_of(made_arms(rng, ids, n_features=16))
                group.decide(decision, partial(decided, decision))
        for _ in range(24):
            assert answered.acquire(timeout=300)
        group.close()
        if step in (3, 6):
            ledger.close()
            ledger = connected(file, vfs)
    ledger.close()
    return states


def connected(file, vfs):
    store = SqliteStore(str(file), create=True, connect=lambda: power_cuts.Connection(file, vfs))
    store.prepare(create=True)
    return Ledger._of_store(store, "autumn", create=True, settings="")


def what_is_there(ledger):
    block = ledger.block(1, ledger.last_number())
    found = {number: {} for number in block.numbers.tolist()}
    for i, arm, reward in zip(block.of_round, block.ids.tolist(), block.rewards.tolist(), strict=True):
        found[block.numbers[i]][arm] = None if np.isnan(reward) else reward
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
        add(ledger, made_arms(np.random.default_rng(1), ["a", "b"], n_features=16), number)
        ledger.add_rewards([number], ["b"], [1.0], NOON)
        if what_is_there(ledger) != {**found, number: {"a": None, "b": 1.0}}:
            return "the next round is not there"
    result = power_cuts.integrity(file)
    return None if result == "ok" else f"the file is damaged: {result}"


def problems(tmp_path, work):
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


WORKS = [work, work_of_a_service]


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_after_a_power_cut_all_that_was_acknowledged_is_there_and_nothing_half_done(tmp_path, work):
    found = list(problems(tmp_path, work))
    assert len(found) == N_IMAGES
    assert [problem for problem in found if problem] == []


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_the_simulation_sees_that_less_syncing_loses_what_was_acknowledged(tmp_path, monkeypatch, work):
    monkeypatch.setattr(_sqlite, "SYNCHRONOUS", ("NORMAL", 1))
    monkeypatch.setitem(_sqlite.PRAGMAS, "synchronous", "NORMAL")
    assert any(problem and "acknowledgements" in problem for problem in problems(tmp_path, work))
