"""The commands of a campaign on small files: what they print, what they write, and how they end."""

import io
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from armful.campaigns.lift import Lift
from armful.cli._campaign_output import Reported, summary
from tests.cli.campaigns import Terminal, day, read_rows, write_customers, write_outcomes, write_rows


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A campaign with one round whose outcomes came: its folder, its customers and outcomes.csv beside it."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        capture = _NoCapture()
        armful = Terminal(capture, patch)
        write_customers(folder / "customers.csv")
        armful.works("init", "autumn", "--from", "customers.csv", "--reward", "bought", "--k", "20")
        armful.works("choose", "autumn", "customers.csv", "--now", day(0))
        write_outcomes(folder / "outcomes.csv", folder / "autumn" / "rounds" / "001" / "chosen.csv")
        armful.works("learn", "autumn", "outcomes.csv", "--now", day(1))
    return folder


class _NoCapture:
    def readouterr(self):
        return "", ""


@pytest.fixture
def armful(tmp_path, capsys, monkeypatch):
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Terminal(capsys, monkeypatch)


@pytest.fixture
def begun(prepared, armful, tmp_path):
    """Runs a command beside a copy of the prepared campaign."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return armful


def last_line(done):
    return done.stdout.rstrip("\n").split("\n")[-1]


def test_init_writes_settings_explains_them_and_names_the_next_step(armful, tmp_path):
    write_customers(tmp_path / "customers.csv")
    done = armful.works("init", "autumn", "--from", "customers.csv")
    assert (tmp_path / "autumn" / "campaign.toml").exists()
    assert "id: customer_id" in done.stdout
    assert "please decide:" in done.stdout, "the reward is in no file yet"
    assert last_line(done) == "next: armful check autumn"


def test_check_says_that_settings_are_valid_and_what_they_are(begun):
    done = begun.works("check", "autumn")
    assert "are valid" in done.stdout
    assert "column bought, within 14 days" in done.stdout
    assert last_line(done) == "next: armful plan autumn"
    assert begun.works("check", "autumn", "--json").json["k"] == 20


def test_a_service_is_begun_from_features_or_a_file_and_checked(armful, tmp_path):
    done = armful.works("init", "shop", "--kind", "service", "--features", "20", "--k", "3")
    assert "20 ready features" in done.stdout
    assert last_line(done) == "next: armful check shop"
    done = armful.works("check", "shop")
    for words in ("items in a slate", "20: x1, x2, x3, ...", "2 % of each slate at random", "every 30 seconds"):
        assert words in done.stdout
    assert last_line(done) == "next: armful serve shop"
    write_customers(tmp_path / "items.csv")
    options = ["--kind", "service", "--from", "items.csv", "--id", "customer_id", "--context", "region"]
    done = armful.works("init", "other", *options)
    assert "context, which comes once with a request: region" in done.stdout
    path = tmp_path / "other" / "campaign.toml"
    weights = "[1.0, 0.5, 0.4, 0.3, 0.2]"
    path.write_text(path.read_text().replace("[service]\n", f"[service]\npositions = {weights}\n"))
    assert "looked at with the weights 1, 0.5, 0.4, 0.3, 0.2" in armful.works("check", "other").stdout
    found = armful.works("check", "other", "--json").json["service"]
    assert [found["context"], found["positions"]] == [["region"], [1.0, 0.5, 0.4, 0.3, 0.2]]
    assert found["update_every_seconds"] == 30


def test_check_lists_every_mistake_with_its_line(begun, tmp_path):
    path = tmp_path / "autumn" / "campaign.toml"
    path.write_text(path.read_text().replace("k = 20", "k = 0").replace('window = "14 days"', 'windw = "14 days"'))
    done = begun("check", "autumn", "--json")
    assert done.code == 2
    lines = done.stderr.splitlines()
    assert lines[0] == f"armful: {Path('autumn', 'campaign.toml')} has 2 mistakes:"
    assert "choose.k must be a whole number" in lines[1]
    assert "did you mean window?" in lines[2]
    assert done.json["problems"] == [line.strip() for line in lines[1:]]


def test_plan_says_what_the_campaign_can_show(begun):
    done = begun.works("plan", "autumn", "--rounds", "3", "--every", "14", "--base-rate", "0.2")
    assert "- 3 rounds of 20 contacts among 300 customers" in done.stdout
    assert last_line(done) == "next: armful choose autumn customers.csv"
    planned = begun.works("plan", "autumn", "--rounds", "3", "--every", "14", "--base-rate", "0.2", "--json").json
    assert [planned["rounds"], len(planned["per_round"]), planned["base_rate"]] == [3, 3, 0.2]


def test_choose_records_a_round_and_writes_its_list(begun, tmp_path):
    done = begun.works("choose", "autumn", "customers.csv", "--now", day(20), "--out", "copy.csv")
    path = tmp_path / "autumn" / "rounds" / "002" / "chosen.csv"
    rows = read_rows(path)
    assert "round 2: 20 to contact, out of 300 customers" in done.stdout
    assert str(Path("autumn", "rounds", "002", "chosen.csv")) in done.stdout
    assert [list(rows[0])[:6], len(rows)] == [["id", "rank", "predicted", "bonus", "capped", "share"], 20]
    assert read_rows(tmp_path / "copy.csv") == rows
    assert last_line(done) == "next: armful learn autumn outcomes.csv"


def test_a_dry_run_records_nothing_and_names_the_command_that_does(begun, tmp_path):
    done = begun.works("choose", "autumn", "customers.csv", "--dry-run", "--key", "week 2", "--now", day(9))
    assert last_line(done) == f"next: armful choose autumn customers.csv --key 'week 2' --now {day(9)}"
    assert not (tmp_path / "autumn" / "rounds" / "002").exists()
    assert len(begun.works("status", "autumn", "--json").json["rounds"]) == 1


def test_the_same_key_gives_the_same_round(begun, tmp_path):
    first = begun.works("choose", "autumn", "customers.csv", "--key", "w2", "--json").json
    rows = read_rows(tmp_path / "autumn" / "rounds" / "002" / "chosen.csv")
    again = begun.works("choose", "autumn", "customers.csv", "--key", "w2", "--json").json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["number"] == again["number"] == 2
    assert read_rows(tmp_path / "autumn" / "rounds" / "002" / "chosen.csv") == rows
    assert "as chosen before with this key" in begun.works("choose", "autumn", "customers.csv", "--key", "w2").stdout


def test_names_of_groups_are_not_taken_for_markup(begun, tmp_path):
    path = tmp_path / "autumn" / "campaign.toml"
    path.write_text(path.read_text() + '\n[[choose.quotas]]\ncolumn = "region"\nat_least = 0.1\n')
    done = begun.works("choose", "autumn", "customers.csv")
    assert "[bold]east" in done.stdout


def test_learn_counts_what_is_new_known_corrected_and_strange(begun, tmp_path):
    rows = read_rows(tmp_path / "outcomes.csv")
    rows[0]["bought"] = str(1 - int(rows[0]["bought"]))
    ids = [row["customer_id"] for row in rows]
    chosen = {row["id"] for row in read_rows(tmp_path / "autumn" / "rounds" / "001" / "chosen.csv")}
    stranger = next(f"c{i}" for i in range(300) if f"c{i}" not in chosen)
    columns = {"customer_id": [*ids, stranger], "bought": [*(row["bought"] for row in rows), 1]}
    write_rows(tmp_path / "more.csv", columns)
    learned = begun.works("learn", "autumn", "more.csv", "--now", day(2), "--json").json
    counts = {name: learned[name] for name in ("n_rows", "matched", "new", "repeated", "corrected", "never_chosen")}
    assert counts == {"n_rows": 21, "matched": 20, "new": 0, "repeated": 19, "corrected": 1, "never_chosen": 1}
    done = begun.works("learn", "autumn", "more.csv", "--now", day(2))
    assert "of people on no list" in done.stdout
    assert "none has closed yet" in done.stdout
    assert last_line(done) == "next: armful status autumn"
    assert "the model has learned round 1" in begun.works("learn", "autumn", "more.csv", "--now", day(15)).stdout


def test_learn_takes_columns_of_other_names(begun, tmp_path):
    rows = read_rows(tmp_path / "outcomes.csv")
    columns = {"who": [row["customer_id"] for row in rows], "y": [1] * 20, "n": [1] * 20, "at": [day(1)] * 20}
    write_rows(tmp_path / "other.csv", columns)
    done = begun.works(
        *("learn", "autumn", "other.csv", "--id", "who", "--reward", "y", "--round", "n", "--time", "at"),
        *("--now", day(2), "--json"),
    )
    assert done.json["matched"] == 20


def test_status_lists_rounds_and_what_the_model_believes(begun):
    done = begun.works("status", "autumn", "--now", day(15))
    assert done.stdout.startswith("autumn: 1 round, 20 outcomes learned, 0 outstanding\n")
    assert "closed" in done.stdout
    assert "region: south" in done.stdout
    assert last_line(done) == "next: armful report autumn"
    status = begun.works("status", "autumn", "--now", day(15), "--json").json
    assert [status["name"], status["n_observations"], len(status["rounds"])] == ["autumn", 20, 1]


def test_status_before_the_first_round_names_choose(armful, tmp_path):
    write_customers(tmp_path / "customers.csv")
    armful.works("init", "autumn", "--from", "customers.csv", "--k", "20")
    done = armful.works("status", "autumn")
    assert "no round has been chosen yet" in done.stdout
    assert last_line(done) == "next: armful choose autumn customers.csv"


def test_a_lift_is_printed_with_what_it_is_compared_with(capsys):
    lift = Lift(sentence="+12 % (95 % CI 4 .. 21)", level=0.95, per_contact=0.1)
    summary(Reported(report=Path("report.html"), lift=lift))
    assert capsys.readouterr().out.startswith("against the holdout: +12 % (95 % CI 4 .. 21).\n")


def test_report_says_whether_it_worked_and_where_the_page_is(begun, tmp_path):
    done = begun.works("report", "autumn", "--now", day(15))
    assert done.stdout.startswith("No lift can be given yet: the outcomes of ")
    assert f"the report: {Path('autumn', 'report.html')}" in done.stdout
    assert (tmp_path / "autumn" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert last_line(done) == "next: armful choose autumn customers.csv"
    reported = begun.works("report", "autumn", "--now", day(15), "--out", "here.html", "--json").json
    assert (reported["report"], "sentence" in reported["lift"]) == ("here.html", True)
    assert (tmp_path / "here.html").exists()


def test_forget_erases_a_person_everywhere(begun, tmp_path):
    path = tmp_path / "autumn" / "rounds" / "001" / "chosen.csv"
    first, second = (row["id"] for row in read_rows(path)[:2])
    forgotten = begun.works("forget", "autumn", "--id", first, "--id", second, "--yes", "--json").json
    assert (forgotten["n_people"], forgotten["rounds"]) == (2, [1])
    assert {row["id"] for row in read_rows(path)}.isdisjoint({first, second})
    with sqlite3.connect(tmp_path / "autumn" / "ledger.sqlite") as store:
        assert store.execute("select count(*) from chosen where arm in (?, ?)", (first, second)).fetchone() == (0,)
    store.close()
    assert begun.works("status", "autumn", "--now", day(15), "--json").json["n_observations"] == 18
    assert "nobody with such an id" in begun.works("forget", "autumn", "--id", first).stdout


@pytest.mark.parametrize(("answer", "n_people"), [("y\n", 0), ("n\n", 1)])
def test_forget_asks_at_a_terminal(begun, tmp_path, monkeypatch, answer, n_people):
    class Keyboard(io.StringIO):
        def isatty(self):
            return True

    path = tmp_path / "autumn" / "rounds" / "001" / "chosen.csv"
    first = read_rows(path)[0]["id"]
    monkeypatch.setattr("sys.stdin", Keyboard(answer))
    done = begun("forget", "autumn", "--id", first)
    assert f"Erase {first} from autumn for good?" in done.stderr
    assert sum(row["id"] == first for row in read_rows(path)) == n_people
    assert done.code == (2 if n_people else 0)


def test_a_store_is_named_by_its_address(begun, tmp_path):
    url = f"sqlite:///{(tmp_path / 'autumn' / 'ledger.sqlite').as_posix()}"
    assert begun.works("status", url, "--json").json["name"] == "autumn"
    assert begun.works("status", url, "--campaign", "autumn", "--json").json["name"] == "autumn"
    assert begun.works("check", url, "--json").json["name"] == "autumn"
    done = begun("status", url, "--campaign", "winter")
    assert (done.code, "autumn" in done.stderr) == (2, True)


NOT_A_DATE = "--now takes a date like 2026-03-01"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["init", "new", "--from", "missing.csv"], "missing.csv"),
        (["init", "autumn", "--from", "customers.csv"], "campaign.toml is there already"),
        (["init", "new", "--from", "empty.csv"], "empty.csv"),
        (["init", "outcomes.csv", "--from", "customers.csv"], "is a file"),
        (["init", "new", "--from", "customers.csv", "--k", "0"], "k must be"),
        (["init", "new"], "give your customers by --from FILE"),
        (["init", "new", "--kind", "servce"], "--kind is campaign or service, got 'servce'"),
        (["init", "new", "--kind", "service"], "give items or past impressions by --from FILE, or ready features by"),
        (["init", "", "--from", "customers.csv"], "the folder of a campaign needs a name, got an empty one"),
        (["init", "", "--kind", "service", "--features", "3"], "the folder of a campaign needs a name, got an empty"),
        (["init", "new", "--from", "customers.csv", "--features", "3"], "--features is for --kind service"),
        (["init", "new", "--from", "customers.csv", "--context", "region"], "--context is for --kind service"),
        (["check", "missing"], "does not exist; `armful init missing"),
        (["plan", "missing"], "does not exist; `armful init missing"),
        (["choose", "missing", "customers.csv"], "does not exist; `armful init missing"),
        (["choose", "autumn", "missing.csv"], "missing.csv"),
        (["choose", "autumn", "empty.csv"], "empty.csv"),
        (["choose", "autumn", "outcomes.csv"], "'region'"),
        (["choose", "autumn", "customers.csv", "--now", "soon"], NOT_A_DATE),
        (["choose", "autumn", "customers.csv", "--key", ""], "--key must not be empty"),
        (["learn", "autumn", "missing.csv"], "missing.csv"),
        (["learn", "autumn", "customers.csv"], "'bought'"),
        (["learn", "autumn", "outcomes.csv", "--reward", "customer_id"], "customer_id"),
        (["status", "missing"], "does not exist; `armful init missing"),
        (["status", "autumn", "--now", "2026-13-01"], NOT_A_DATE),
        (["status", "sqlite:///nowhere.sqlite"], "nowhere.sqlite"),
        (["status", "autumn", "--campaign", "winter"], "autumn holds the campaign 'autumn', not 'winter'"),
        (["check", "autumn", "--campaign", "winter"], "autumn holds the campaign 'autumn', not 'winter'"),
        (["status", "autmn"], "does not exist; did you mean autumn? `armful init autmn"),
        (["choose", "customers.csv", "autumn"], "customers.csv is a file, expected the folder of a campaign"),
        (["report", "missing"], "does not exist; `armful init missing"),
        (["forget", "autumn"], "Missing option '--id'; try armful forget --help"),
        (["demo", "--out", "autumn"], "autumn is there already"),
        (["choose", "autumn", "customers.csv", "--quietly"], "--quietly"),
        (["chose", "autumn", "customers.csv"], "No such command 'chose'"),
    ],
)
def test_a_mistake_gets_one_sentence_and_code_2(begun, tmp_path, arguments, sentence):
    (tmp_path / "empty.csv").touch()
    done = begun(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("armful: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    for_scripts = begun(*arguments, "--json")
    assert for_scripts.code == 2
    assert f"armful: {for_scripts.json['error']}\n" == for_scripts.stderr == done.stderr


def test_an_interrupt_gets_one_sentence(begun, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("armful.campaigns.Campaign.choose", interrupted)
    done = begun("choose", "autumn", "customers.csv")
    assert (done.code, done.stdout) == (130, "")
    assert done.stderr == "armful: stopped; nothing is half done, and armful status says what is kept\n"


def test_help_of_each_command_has_an_example_and_speaks_of_customers(armful):
    for command in ("init", "check", "plan", "choose", "learn", "status", "report", "forget", "demo"):
        done = armful.works(command, "--help")
        assert f"Example: armful {command} " in done.stdout
        assert "--json" in done.stdout
        assert " arm" not in done.stdout.replace("armful", "")


def test_without_a_command_all_are_listed_in_the_order_of_their_use(armful):
    listed = armful.works().stdout
    order = ["init", "check", "plan", "choose", "learn", "status", "report", "forget", "demo", "reproduce", "compare"]
    assert re.findall(rf"^\W+({'|'.join(order)}) ", listed, re.MULTILINE) == order
