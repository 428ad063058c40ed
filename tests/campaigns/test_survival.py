"""Commands that are killed at any moment: what was acknowledged is there, nothing is half done, the next one works."""

import random
import shutil
import sqlite3

import pytest
from pyarrow import csv

from armful.ledger import Ledger
from tests.campaigns.commands import Commands
from tests.campaigns.small import customers, make

READS = ("SELECT", "PRAGMA", "BEGIN ", "ROLLBACK", "open campaign.toml", "open customers.csv", "open outcomes.csv")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def commands():
    with Commands() as commands:
        yield commands


def day(n):
    return f"2026-01-{n:02d}T12:00"


def choose(commands, folder, n, **options):
    return commands("choose", folder, folder / "customers.csv", "--now", day(n), **options)


def learn(commands, folder, n, **options):
    return commands("learn", folder, folder / "outcomes.csv", "--round", "week", "--now", day(n), **options)


def write_outcomes(folder, numbers):
    """Write an outcome for everybody on the lists of some rounds; it is another one for every person."""
    with Ledger.open(f"sqlite:///{folder}/ledger.sqlite", "autumn") as ledger:
        rows = [f"{id},{n},{int(id[1:]) / 100}" for n in numbers for id in ledger.chosen_ids(n).tolist()]
    (folder / "outcomes.csv").write_text("\n".join(["id,week,bought", *rows]) + "\n")


def moments(events):
    """Return the events before which a command is killed: all that change something, of long series only a few."""
    kinds = [event[:24] for event in events]
    in_series = [0 < i < len(kinds) - 1 and kinds[i - 1] == kind == kinds[i + 1] for i, kind in enumerate(kinds)]
    return [i for i, kind in enumerate(kinds) if not kind.startswith(READS) and (i % 13 == 0 or not in_series[i])]


def standing(commands, folder, acknowledged=0):
    """Return what the next command sees, after checks that all is whole and nothing is left behind."""
    status = commands("status", folder, "--now", day(28)).json
    numbers = [each["number"] for each in status["rounds"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= acknowledged
    assert {each["n"] for each in status["rounds"]} <= {40}
    with Ledger.open(f"sqlite:///{folder}/ledger.sqlite", "autumn") as ledger:
        for path in folder.glob("rounds/*/chosen.csv"):
            ids = [line.split(",")[0].strip('"') for line in path.read_text().splitlines()]
            assert ids == ["id", *ledger.chosen_ids(int(path.parent.name)).tolist()]
    left = [path for path in folder.rglob("*") if path.name == ".work" or path.suffix == ".part"]
    assert left == []
    return status


@pytest.mark.parametrize("before", [0, 2], ids=["the first round", "a later round"])
def test_choose_may_be_killed_before_any_step(commands, tmp_path, before):
    """What it was about to choose is chosen by the next command, or was recorded and is given by it."""
    template = make(tmp_path / "template")
    for number in range(before):
        choose(commands, template, 1 + number).json  # noqa: B018 - it succeeds
    reference = shutil.copytree(template, tmp_path / "reference")
    done = choose(commands, reference, 10)
    assert done.json["number"] == before + 1
    chosen = f"rounds/{before + 1:03d}/chosen.csv"
    seen = set()
    for i in moments(done.events):
        folder = shutil.copytree(template, tmp_path / f"killed-before-{i}")
        killed = choose(commands, folder, 10, kill_before=i)
        assert killed.code == -9, killed
        assert killed.stdout == ""
        listed = (folder / chosen).exists()
        recorded = len(standing(commands, folder)["rounds"]) == before + 1
        assert recorded or not listed
        again = choose(commands, folder, 10).json
        assert again["repeated"] == (recorded and not listed)
        assert again["number"] == before + 1 + listed
        assert (folder / chosen).read_bytes() == (reference / chosen).read_bytes()
        seen.add((recorded, listed))
        shutil.rmtree(folder)
    assert seen == {(False, False), (True, False), (True, True)}


def test_learn_may_be_killed_before_any_step(commands, tmp_path):
    """All outcomes of the file are known or none, and once it is learned again the model is that of one run."""
    template = make(tmp_path / "template")
    for number in (1, 2):
        choose(commands, template, number).json  # noqa: B018
    write_outcomes(template, (1, 2))
    reference = shutil.copytree(template, tmp_path / "reference")
    done = learn(commands, reference, 20)
    assert done.json["new"] == 80
    expected, seen = standing(commands, reference), set()
    for i in moments(done.events):
        folder = shutil.copytree(template, tmp_path / f"killed-before-{i}")
        killed = learn(commands, folder, 20, kill_before=i)
        assert killed.code == -9, killed
        came = [each["came"] for each in standing(commands, folder)["rounds"]]
        assert came in ([0, 0], [40, 40])
        again = learn(commands, folder, 20).json
        assert (again["new"], again["repeated"]) == ((80, 0) if came == [0, 0] else (0, 80))
        status = standing(commands, folder)
        assert status["rounds"] == expected["rounds"]
        for ours, theirs in zip(status["coefficients"], expected["coefficients"], strict=True):
            assert ours["name"] == theirs["name"]
            assert ours["value"] == pytest.approx(theirs["value"], rel=1e-9, abs=1e-12)
        seen.add(came[0])
        shutil.rmtree(folder)
    assert seen == {0, 40}


def rows(folder):
    """Return the rows of a campaign's store; without snapshots, which can be made again."""
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        found = [line for line in connection.iterdump() if not line.startswith('INSERT INTO "snapshots"')]
    connection.close()
    return found


@pytest.mark.parametrize(("command", "n"), [(choose, 400), (choose, 20_000), (learn, 400)])
def test_a_full_disk_is_one_sentence_and_changes_nothing(commands, tmp_path, command, n):
    """A file does not fit that the command writes: with many customers their features, with few the ledger."""
    folder = make(tmp_path / "campaign")
    for number in (1, 2):
        choose(commands, folder, number).json  # noqa: B018
    write_outcomes(folder, (1, 2))
    csv.write_csv(customers(n), folder / "customers.csv")
    size = (folder / "ledger.sqlite").stat().st_size
    before, files, sentences = rows(folder), sorted(folder.rglob("*")), []
    for largest in (2000, 20_000, 33_000, size - 1, size, size + 5000, 2 * size, 100 * size):
        done = command(commands, folder, 20, largest_file=largest)
        if done.code == 0:
            break
        sentences.append(done.sentence)
        assert rows(folder) == before
        assert sorted(folder.rglob("*")) == files
    assert len(sentences) >= 2
    assert ("customers.features" in sentences[-1]) == (n == 20_000)
    assert done.code == 0
    standing(commands, folder, acknowledged=2)


def test_two_that_choose_at_once_choose_two_rounds_or_one_is_told(commands, tmp_path):
    folder, acknowledged = make(tmp_path / "campaign"), 0
    for i in range(6):
        both = commands.several([("choose", folder, folder / "customers.csv", "--now", day(1 + i))] * 2)
        numbers = sorted(done.json["number"] for done in both if done.code == 0)
        assert numbers == list(range(acknowledged + 1, acknowledged + 1 + len(numbers)))
        assert not any(done.json["repeated"] for done in both if done.code == 0)
        for done in both:
            if done.code:
                assert " by another command" in done.sentence
        acknowledged += len(numbers)
        assert len(standing(commands, folder)["rounds"]) == acknowledged
    assert acknowledged >= 6


def test_the_same_file_learned_twice_at_once_counts_once(commands, tmp_path):
    folder = make(tmp_path / "campaign")
    for i in range(4):
        choose(commands, folder, 1 + i).json  # noqa: B018
        write_outcomes(folder, [1 + i])
        file = ("learn", folder, folder / "outcomes.csv", "--round", "week", "--now", day(1 + i))
        both = [done.json for done in commands.several([file, file])]
        assert sorted(done["new"] for done in both) == [0, 40]
        assert sum(done["repeated"] for done in both) == 40
        assert [each["came"] for each in standing(commands, folder)["rounds"]] == [40] * (1 + i)


def test_choosing_and_learning_at_once_loses_nothing(commands, tmp_path):
    folder = make(tmp_path / "campaign")
    choose(commands, folder, 1).json  # noqa: B018
    for i in range(1, 5):
        write_outcomes(folder, [i])
        chosen, learned = commands.several(
            [
                ("choose", folder, folder / "customers.csv", "--now", day(1 + i)),
                ("learn", folder, folder / "outcomes.csv", "--round", "week", "--now", day(1 + i)),
            ]
        )
        assert chosen.json["number"] == 1 + i
        assert learned.json["new"] == 40
        assert [each["came"] for each in standing(commands, folder)["rounds"]] == [40] * i + [0]


def test_commands_may_be_killed_at_random_times(commands, tmp_path):
    """Rounds are chosen and learned; each command is killed at a random time, then run to its end."""
    folder = make(tmp_path / "campaign")
    rng, acknowledged, n = random.Random(0), 0, 15
    for i in range(n):
        delay = 1.5 * (i + rng.random()) / n  # seconds: about as long as a command takes on a busy machine
        killed = choose(commands, folder, 1 + i, kill_after=delay)
        acknowledged += killed.code == 0
        seen = len(standing(commands, folder, acknowledged)["rounds"])
        done = choose(commands, folder, 1 + i).json
        assert done["number"] == seen if done["repeated"] else seen + 1
        acknowledged = done["number"]
        write_outcomes(folder, range(1, acknowledged + 1))
        killed = learn(commands, folder, 1 + i, kill_after=delay)
        came = [each["came"] for each in standing(commands, folder, acknowledged)["rounds"]]
        assert came[-1] in ((40,) if killed.code == 0 else (0, 40))
        done = learn(commands, folder, 1 + i).json
        assert done["new"] + done["repeated"] == 40 * acknowledged
        assert done["corrected"] == 0
    came = [each["came"] for each in standing(commands, folder, acknowledged)["rounds"]]
    assert came == [40] * acknowledged
