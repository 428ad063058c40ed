"""Files that cannot be used, stores that cannot be opened, disks that are full: one sentence each, nothing changed."""

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from armful.campaigns import Campaign
from armful.campaigns.rounds import _lists
from armful.errors import LedgerError
from tests.campaigns.small import Clock, customers, make, opened, outcomes, run
from tests.cli.campaigns import Terminal

DAY = "2026-01-20"
REDDISH = "r\xf6tlich"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A campaign of two rounds: the outcomes of the first are known, and its window is closed on DAY."""
    folder, clock = make(tmp_path_factory.mktemp("bad") / "begun", choose="exclude = ['out.csv']"), Clock()
    write(folder / "out.csv", "id\nc3\n")
    with opened(folder, clock) as campaign:
        run(campaign, clock, 1)
        campaign.choose(folder / "customers.csv")
        clock.pass_days(10)
        campaign.policy()
    return folder


@pytest.fixture
def folder(begun, tmp_path):
    return shutil.copytree(begun, tmp_path / "autumn")


@pytest.fixture
def armful(capsys, monkeypatch):
    return Terminal(capsys, monkeypatch)


def content(folder):
    """Return all files of a campaign, the ledger as the rows of its tables."""
    files = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if not path.is_dir()}
    found = {name: path.read_bytes() for name, path in files.items() if not name.name.startswith("ledger.sqlite")}
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        found["ledger"] = list(connection.iterdump())
    connection.close()
    return found


def refused(armful, folder, *arguments):
    """Run a command that fails: one sentence, and nothing changed. Return the sentence."""
    before = content(folder)
    done = armful(arguments[0], folder, *arguments[1:], "--now", DAY)
    assert done.code == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("armful: ")
    assert done.stderr.count("\n") == 1
    assert content(folder) == before
    return done.stderr.removeprefix("armful: ").strip().replace(f"{folder}/", "")


def text():
    """Return the customers as CSV."""
    rows = customers().to_pylist()
    return "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n"


def changed(**columns):
    """Return the customers as a table with other columns."""
    table = customers()
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.drop_columns([name]) if values is None else table.set_column(at, name, pa.array(values))
    return table


def write(path, data):
    if isinstance(data, pa.Table):
        parquet.write_table(data, path)
    else:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


N = 400
CUSTOMERS = {
    "latin-1": ("c.csv", text().replace("north", REDDISH).encode("latin-1"), "c.csv is not UTF-8: save it as UTF-8"),
    "UTF-16": ("c.csv", text().encode("utf-16"), "c.csv is not UTF-8: save it as UTF-8"),
    "UTF-16 without a mark": ("c.csv", text().encode("utf-16-le"), "c.csv has a row of 1 values, and its header has 6"),
    "another separator": ("c.csv", text().replace(",", ";"), "c.csv looks separated by ';': set delimiter to ';'"),
    "no column of ids": ("c.csv", text().replace("id,", "ident,", 1), "c.csv has no column 'id'; its columns are"),
    "nothing": ("c.csv", b"", "c.csv is empty"),
    "a header alone": ("c.csv", text().splitlines()[0] + "\n", "c.csv holds no rows"),
    "zeros": ("c.csv", bytes(5000), "c.csv holds no rows"),
    "a row too short": ("c.csv", text() + "c999,20\n", "c.csv has a row of 2 values, and its header has 6: 'c999,20'"),
    "no file": ("c.csv", None, "c.csv does not exist, expected a file, or a directory of Parquet files"),
    "another kind of file": (
        "c.xlsx",
        b"PK\3\4",
        "c.xlsx is not a Parquet file; CSV files must end in .csv or .csv.gz",
    ),
    "an id twice": ("c.csv", text() + text().splitlines()[3] + "\n", "id 'c2' is in rows 3 and 401"),
    "an empty id": ("c.csv", text().replace("c7,", ",", 1), "every customer needs an id, and 'id' is empty in row 8"),
    "a long id": (
        "c.csv",
        text().replace("c7,", "c" * 501 + ",", 1),
        "ids have up to 500 characters, that of row 8 has",
    ),
    "ids of decimals": ("c.parquet", changed(id=np.arange(N) + 0.5), "ids must be text or whole numbers"),
    "ids of lists": ("c.parquet", changed(id=[[i] for i in range(N)]), "column 'id' should hold texts or numbers"),
    "a column of another type": (
        "c.parquet",
        changed(age=["old"] * N),
        "'age' should hold numbers, got text like 'old'",
    ),
    "words among numbers": (
        "c.csv",
        text().replace("c9,", "c9,un", 1),
        "column 'age' should hold numbers, got text like 'un",
    ),
    "numbers among words": ("c.parquet", changed(region=np.arange(N)), "'region' should hold text like 'east', got"),
    "a column that vanished": ("c.parquet", changed(age=None), "c.parquet has no column 'age'; its columns are"),
    "no rows": ("c.parquet", customers().slice(0, 0), "c.parquet holds no rows"),
    "too few": ("c.parquet", customers(30), "k = 40 is more than the 29 people who may be contacted"),
}
"""What is wrong with a file of customers: its name, its content, and the sentence."""


@pytest.mark.parametrize("case", CUSTOMERS)
def test_a_bad_file_of_customers_is_refused(armful, folder, tmp_path, case):
    name, data, sentence = CUSTOMERS[case]
    path = tmp_path / name
    if data is not None:
        write(path, data)
    assert sentence in refused(armful, folder, "choose", path).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    "case", [case for case, (_, data, _) in CUSTOMERS.items() if data is not None and case[:7] != "numbers"]
)
def test_a_bad_file_of_customers_is_refused_in_the_first_round(armful, tmp_path, case):
    name, data, _ = CUSTOMERS[case]
    folder = make(tmp_path / "autumn")
    with opened(folder, Clock()):
        pass
    refused(armful, folder, "choose", write(tmp_path / name, data))


@pytest.mark.parametrize("part", [0, 3, 8, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("command", ["choose", "learn"])
def test_a_truncated_parquet_file_is_refused(armful, folder, tmp_path, command, part):
    data = write(tmp_path / "whole.parquet", changed(cost=np.arange(N))).read_bytes()
    cut = write(tmp_path / "cut.parquet", data[: part if isinstance(part, int) else int(part * len(data))])
    assert "cut.parquet could not be read as Parquet: " in refused(armful, folder, command, cut)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("command", ["choose", "learn"])
def test_a_damaged_parquet_file_is_refused_or_read(armful, folder, tmp_path, command, seed):
    """Damage that changes nothing but values cannot be seen, as in any file."""
    data = bytearray(
        write(tmp_path / "c.parquet", customers().append_column("bought", pa.array(np.zeros(N)))).read_bytes()
    )
    rng = np.random.default_rng(seed)
    at = int(rng.integers(len(data) - 300))
    data[at : at + 300] = rng.bytes(300)
    done = armful(command, folder, write(tmp_path / "c.parquet", bytes(data)), "--now", DAY)
    assert done.code in (0, 2), done
    assert "Traceback" not in done.stderr


def test_a_folder_or_a_device_in_place_of_a_file_is_refused(armful, folder, tmp_path):
    for command in ("choose", "learn"):
        assert "is a directory without Parquet files" in refused(armful, folder, command, tmp_path)
        assert "/dev/null is not a Parquet file" in refused(armful, folder, command, "/dev/null")


OUTCOMES = {
    "a word": ("id,bought\nc1,yes\n", "'bought' must hold a number, row 1 has 'yes': write 1 for yes and 0 for no"),
    "a comma": (
        'id,bought\nc1,1\nc2,"1,5"\n',
        "'bought' must hold a number, row 2 has '1,5': write decimals with a point",
    ),
    "infinite": ("id,bought\nc1,inf\n", "rewards must be finite numbers, row 1 of 'bought' has inf"),
    "not a number": ("id,bought\nc1,nan\n", "rewards must be finite numbers, row 1 of 'bought' has nan"),
    "very large": ("id,bought\nc1,1e200\n", "rewards must be at most 1e+100 in size, row 1 of 'bought' has 1e+200"),
    "no ids": ("ident,bought\nc1,1\n", "o.csv has no column 'id'; its columns are 'ident', 'bought'"),
    "no rewards": (
        "id,visited\nc1,1\n",
        "o.csv has no column 'bought'; its columns are 'id', 'visited'; say which to use",
    ),
    "an empty id": ("id,bought\n,1\n", "every customer needs an id, and 'id' is empty in row 1"),
    "nothing": ("", "o.csv is empty"),
    "a header alone": ("id,bought\n", "o.csv holds no rows"),
    "latin-1": (f"id,bought\n{REDDISH},1\n".encode("latin-1"), "o.csv is not UTF-8: save it as UTF-8"),
    "UTF-16": ("id,bought\nc1,1\n".encode("utf-16"), "o.csv is not UTF-8: save it as UTF-8"),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_a_bad_file_of_outcomes_is_refused(armful, folder, tmp_path, case):
    data, sentence = OUTCOMES[case]
    path = write(tmp_path / "o.csv", data)
    assert sentence in refused(armful, folder, "learn", path).replace(f"{tmp_path}/", "")


def test_different_rewards_of_one_person_in_a_file_are_refused(armful, folder, tmp_path):
    with opened(folder, Clock()) as campaign:
        id = campaign.ledger.chosen_ids(2)[0]
    path = write(tmp_path / "o.csv", f"id,bought\n{id},0\n{id},1\n")
    assert f"'{id}' has the rewards 0 and 1 in round 2: keep one" in refused(armful, folder, "learn", path)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("--round", "two", "'more' must hold the number of a round, row 1 has 'two'"),
        ("--round", "", "every outcome needs a round, and 'more' is empty in row 1"),
        ("--round", "3", "the outcomes name round 3, and there are rounds 1 to 2"),
        (
            "--time",
            "Tuesday",
            "'more' must hold dates or times like 2026-03-31 or 2026-03-31 18:00, row 1 has 'Tuesday'",
        ),
        ("--time", "", "'more' must hold dates or times like 2026-03-31 or 2026-03-31 18:00, row 1 has ''"),
    ],
)
def test_bad_rounds_and_times_of_outcomes_are_refused(armful, folder, tmp_path, column, value, sentence):
    path = write(tmp_path / "o.csv", f"id,bought,more\nc1,1,{value}\n")
    assert refused(armful, folder, "learn", path, column, "more").startswith(sentence)


@pytest.mark.parametrize("kind", [[[1.0]], [{"a": 1}], [b"\xff"]])
def test_a_type_that_is_no_number_is_refused(armful, folder, tmp_path, kind):
    path = write(tmp_path / "o.parquet", pa.table({"id": ["c1"], "bought": kind}))
    assert "column 'bought' should hold texts or numbers, got " in refused(armful, folder, "learn", path)


LISTS = {
    "no ids": ("ident\nc1\n", "out.csv has no column 'id'; its columns are 'ident'"),
    "nothing": ("", "out.csv is empty"),
    "latin-1": (f"id\n{REDDISH}\n".encode("latin-1"), "out.csv is not UTF-8: save it as UTF-8"),
    "an empty id": ("id,why\nc1,asked\n,asked\n", "every customer needs an id, and 'id' is empty in row 2 of out.csv"),
}


@pytest.mark.parametrize("key", ["exclude", "require"])
@pytest.mark.parametrize("case", LISTS)
def test_a_bad_list_of_the_excluded_or_required_is_refused(armful, folder, case, key):
    data, sentence = LISTS[case]
    settings = folder / "campaign.toml"
    settings.write_text(settings.read_text().replace("exclude = ['out.csv']", f"{key} = ['out.csv']"))
    write(folder / "out.csv", data)
    assert sentence in refused(armful, folder, "choose", folder / "customers.csv")


def test_a_list_of_the_excluded_that_is_not_there_is_a_mistake_of_the_settings(armful, folder):
    (folder / "out.csv").unlink()
    done = armful("choose", folder, folder / "customers.csv")
    assert done.code == 2
    assert "choose.exclude" in done.stderr


def test_nobody_may_be_excluded(armful, folder):
    write(folder / "out.csv", "id\n")
    armful.works("choose", folder, folder / "customers.csv", "--now", DAY)


def test_a_list_cannot_be_written_in_place_of_a_folder_or_nowhere(armful, folder, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for out, sentence in {
        tmp_path: "is a folder; give the name of a file in it",
        tmp_path / "nowhere" / "list.csv": "there is no folder ",
        tmp_path / "file" / "list.csv": "there is no folder ",
        tmp_path / "loop": "is a symbolic link that points to itself: remove it",
        Path("/dev/full"): "/dev/full is a device, and only a regular file is replaced: give another name",
    }.items():
        assert sentence in refused(armful, folder, "choose", folder / "customers.csv", "--out", out)
        assert sentence in refused(armful, folder, "choose", folder / "customers.csv", "--out", out, "--dry-run")


def test_a_file_in_place_of_the_folder_of_lists_is_refused(armful, folder):
    shutil.rmtree(folder / "rounds")
    (folder / "rounds").touch()
    sentence = refused(armful, folder, "choose", folder / "customers.csv")
    assert sentence == "rounds is a file, and a folder is needed there for the lists: remove it"


def test_a_file_in_place_of_the_folder_for_work_is_refused(armful, folder):
    (folder / ".work").touch()
    assert refused(armful, folder, "choose", folder / "customers.csv") == ".work: File exists"


@pytest.mark.parametrize("what", ["rounds", "elsewhere"])
def test_a_folder_of_lists_that_may_not_be_written_to_is_refused(armful, folder, monkeypatch, what):
    """The tests may run as root, who may write everywhere: the system's answer is changed."""
    (folder / "elsewhere").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != what)
    out = folder / "elsewhere" / "list.csv"
    sentence = refused(armful, folder, "choose", folder / "customers.csv", "--out", out)
    assert sentence.startswith(f"no permission to write in {what}")


def test_a_campaign_whose_folder_may_not_be_written_to_is_refused(armful, folder, monkeypatch):
    mkdir = Path.mkdir

    def refuse(path, *arguments, **options):
        if path.name == ".work":
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert refused(armful, folder, "choose", folder / "customers.csv") == ".work: Permission denied"


def test_a_list_that_cannot_be_written_is_written_by_the_next_command(armful, folder, monkeypatch):
    def no_space(path, data):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("armful.campaigns.rounds._lists.write_bytes", no_space)
        done = armful("choose", folder, folder / "customers.csv", "--now", DAY)
    assert done.code == 2
    path = folder / "rounds" / "003" / "chosen.csv"
    reason = f"{path}: No space left on device"
    assert done.stderr == f"armful: round 3 is recorded, but not its list: {reason}; run this again for the list\n"
    assert not path.exists()
    again = armful.works("choose", folder, folder / "customers.csv", "--now", DAY, "--json").json
    assert (again["number"], again["repeated"]) == (3, True)
    assert path.exists()


def test_a_copy_that_cannot_be_written_leaves_the_list(armful, folder, monkeypatch, tmp_path):
    write_bytes, out = _lists.write_bytes, tmp_path / "copy.csv"

    def full(path, data):
        if path == out:
            raise OSError(28, "No space left on device", str(path))
        write_bytes(path, data)

    monkeypatch.setattr(_lists, "write_bytes", full)
    done = armful("choose", folder, folder / "customers.csv", "--out", out, "--now", DAY)
    path = folder / "rounds" / "003" / "chosen.csv"
    there = f"round 3 is recorded, and its list is in {path}, but {out}: No space left on device"
    assert (done.code, done.stderr) == (2, f"armful: {there}\n")
    assert path.exists()


def test_a_store_of_a_newer_version_is_refused(armful, folder):
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute("UPDATE armful_ledger_version SET version_num = '9999'")
    connection.close()
    for arguments in (["choose", folder / "customers.csv"], ["learn", folder / "customers.csv"], ["status"]):
        assert "ledger.sqlite was written by a newer armful (schema 9999" in refused(armful, folder, *arguments)


def as_text(path):
    path.write_text("not a ledger" * 1000)


def as_folder(path):
    path.mkdir()


def as_link_to_nowhere(path):
    path.symlink_to(path.parent / "nowhere" / "ledger.sqlite")


def as_other_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (id TEXT)")
    connection.close()


@pytest.mark.parametrize("lists", [True, False], ids=["with lists", "without lists"])
@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (as_text, "is not a ledger: it is not an SQLite database; give another store"),
        (as_folder, "is a folder; give the name of a file in it"),
        (as_link_to_nowhere, "there is no folder "),
        (as_other_database, "is not a ledger: it holds other tables (customers); give another store"),
    ],
)
def test_a_store_that_is_something_else_is_refused_and_left_alone(armful, folder, make_it, sentence, lists):
    if not lists:
        shutil.rmtree(folder / "rounds")
    store = folder / "ledger.sqlite"
    store.unlink()
    make_it(store)
    before = (store.is_dir(), store.is_symlink(), store.is_file() and store.read_bytes(), sorted(folder.iterdir()))
    for arguments in (["choose", folder / "customers.csv"], ["learn", folder / "customers.csv"], ["status"]):
        done = armful(arguments[0], folder, *arguments[1:])
        assert done.code == 2, done
        lost = lists and make_it is as_link_to_nowhere
        assert ("has no campaign, not 'autumn'" if lost else sentence) in done.stderr
        assert done.stderr.count("\n") == 1
    assert before == (
        store.is_dir(),
        store.is_symlink(),
        store.is_file() and store.read_bytes(),
        sorted(folder.iterdir()),
    )


@pytest.mark.parametrize("change", ['name = "fall"', 'store = "sqlite:///other.sqlite"'])
def test_a_campaign_cannot_be_renamed_or_moved_to_another_store_by_its_settings(armful, folder, change):
    settings = folder / "campaign.toml"
    key = change.partition(" ")[0]
    lines = [change if line.startswith(key) else line for line in settings.read_text().splitlines()]
    settings.write_text("\n".join(lines) + "\n")
    sentence = refused(armful, folder, "choose", folder / "customers.csv")
    assert "rounds holds the lists of a campaign, and the store of campaign.toml has " in sentence
    assert "set name and store back to what they were" in sentence
    assert not (folder / "other.sqlite").exists()


def test_a_ledger_that_was_lost_is_not_begun_anew_beside_its_lists(armful, folder):
    (folder / "ledger.sqlite").unlink()
    done = armful("choose", folder, folder / "customers.csv")
    assert done.code == 2
    assert "the store of campaign.toml has no campaign, not 'autumn'" in done.stderr
    assert not (folder / "ledger.sqlite").exists()
    shutil.rmtree(folder / "rounds")
    assert armful.works("choose", folder, folder / "customers.csv", "--json").json["number"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [4096, 60], ids=["pages", "a few bytes"])
def test_a_damaged_ledger_is_one_sentence(folder, size, tmp_path):
    """Damage in values that are not read, or that could be right, is not seen."""
    clock = Clock()
    clock.pass_days(40)
    with opened(folder, clock) as campaign:
        campaign.status()
        table = outcomes(campaign, 1).append_column("week", pa.array([1] * 40))
    whole, sentences = (folder / "ledger.sqlite").read_bytes(), []
    for seed in range(25):
        rng = np.random.default_rng([size, seed])
        damaged = shutil.copytree(folder, tmp_path / f"damaged {seed}")
        data = bytearray(whole)
        for at in rng.integers(len(data) // size, size=3) * size:
            data[at : at + size] = rng.bytes(size)
        (damaged / "ledger.sqlite").write_bytes(bytes(data))
        for act in (
            lambda campaign: campaign.status(),
            lambda campaign: campaign.learn(table, round="week"),
            lambda campaign: campaign.choose(customers()),
        ):
            try:
                with opened(damaged, clock) as campaign:
                    act(campaign)
            except ValueError as error:
                sentences.append(str(error))
    assert len(sentences) > 0
    assert not any("\n" in sentence for sentence in sentences)


def test_a_campaign_without_settings_says_how_to_begin(armful, tmp_path):
    done = armful("choose", tmp_path, tmp_path / "customers.csv")
    assert done.code == 2
    assert f"`armful init {tmp_path} --from customers.csv` writes one" in done.stderr


def test_the_clock_needs_a_time_zone(folder):
    with (
        Campaign.open(folder, now=lambda: Clock()().replace(tzinfo=None)) as campaign,
        pytest.raises(ValueError, match="now must return a time with a time zone, got 2026-01-01 12:00:00"),
    ):
        campaign.choose(folder / "customers.csv")


def test_a_round_whose_list_another_command_is_writing_is_not_given_away(folder, monkeypatch):
    with opened(folder, Clock()) as one, opened(folder, Clock()) as other:
        add_round, sentences = one.ledger.add_round, []

        def meanwhile(**values):
            info = add_round(**values)
            with pytest.raises(LedgerError) as refused:
                other.choose(customers())
            sentences.append(str(refused.value))
            return info

        monkeypatch.setattr(one.ledger, "add_round", meanwhile)
        assert one.choose(customers()).number == 3
        assert sentences == ["round 3 is being chosen by another command: wait until it has ended"]
        assert other.choose(customers()).number == 4
