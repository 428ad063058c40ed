"""The commands of the decision service: what they print, and how they refuse."""

import json
import re
import socket
from pathlib import Path

import pytest

from armful.ledger import Ledger
from armful.service import keys, serving
from tests.cli.campaigns import Terminal

NAME = socket.gethostname()
SETTINGS = """
name = "autumn"
id = "item"
choose.k = 2
policy.cap = 1.0
outcomes.reward = "bought"
features.ready = 3
holdout.share = 0
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "autumn").mkdir()
    (tmp_path / "autumn" / "campaign.toml").write_text(SETTINGS)
    return tmp_path / "autumn"


@pytest.fixture
def armful(folder, tmp_path, capsys, monkeypatch):
    """Runs a command beside a campaign with ready features."""
    monkeypatch.chdir(tmp_path)
    return Terminal(capsys, monkeypatch)


def refused(armful, *arguments):
    done = armful(*arguments)
    assert (done.code, done.stdout) == (2, ""), done
    assert re.fullmatch(r"armful: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.removeprefix("armful: ").rstrip("\n")


def test_a_campaign_with_rounds_of_lists_is_served_only_if_its_settings_say_so(armful, folder):
    (folder / "items.csv").write_text("item,x1,x2,x3\na,1,0,0\nb,0,1,0\nc,0,0,1\n", encoding="utf-8")
    armful.works("choose", "autumn", folder / "items.csv")
    sentence = "has rounds of lists, whose report would end with the first decision of a service: look at it by"
    assert sentence in refused(armful, "serve", "autumn", "--port", "0")
    armful.works("status", "autumn")


def test_check_says_what_a_service_needs_and_shows_no_password(armful, folder):
    settings, path = (folder / "campaign.toml").read_text(encoding="utf-8"), folder / "campaign.toml"
    assert armful.works("check", "autumn", "--json").json["notes"] == []
    path.write_text(
        f'store = "postgresql://ann:secret@host/database"\nsource = "gone.csv"\n{settings}[service]\n', "utf-8"
    )
    note = "gone.csv is not there, and its columns are needed when autumn is first served"
    assert f"note: {note}\n" in armful.works("check", "autumn").stdout
    checked = armful.works("check", "autumn", "--json")
    assert checked.json["notes"] == [note]
    assert "secret" not in checked.stdout


# -- keys --------------------------------------------------------------------------------------------


def test_a_key_is_printed_once_and_only_its_hash_is_kept(armful, folder):
    done = armful("key", "create", "autumn", "--role", "reward", "--role", "decide", "--label", "shop")
    secret = done.stdout.strip()
    assert done.code == 0
    assert keys.key_id(secret)
    assert "not shown again. It may decide and reward" in done.stderr
    with Ledger.open(f"sqlite:///{folder / 'ledger.sqlite'}", "autumn") as ledger:
        info, kept = ledger.find_key(keys.key_id(secret))
    assert keys.matches(secret, kept)
    assert (info.roles, info.label, info.expires_at) == (("decide", "reward"), "shop", None)
    everything = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert secret.rpartition("_")[2].encode() not in everything


def test_keys_are_listed_without_their_secrets_and_revoked(armful):
    assert "there is no key" in armful.works("key", "list", "autumn").stdout
    made = armful.works("key", "create", "autumn", "--role", "read", "--expires", "90d", "--json").json
    other = armful.works("key", "create", "autumn", "--role", "read", "--json").json
    listed = armful.works("key", "list", "autumn").stdout
    assert made["id"] in listed
    assert "until 2" in listed
    assert made["key"].rpartition("_")[2] not in listed
    assert "revoked" not in listed
    assert made["id"] in armful.works("key", "revoke", "autumn", made["id"]).stdout
    assert armful.works("key", "revoke", "autumn", other["key"], "--json").json == {"id": other["id"], "revoked": True}
    assert armful.works("key", "list", "autumn").stdout.count("revoked 2") == 2
    rows = armful.works("key", "list", "autumn", "--json").json["keys"]
    assert [(row["id"], row["roles"], bool(row["revoked_at"])) for row in rows] == [
        (made["id"], ["read"], True),
        (other["id"], ["read"], True),
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["create", "autumn"], r"give --role, which may be repeated: decide, reward, read"),
        (["create", "autumn", "--role", "rule"], r"a role must be one of decide, reward, read, got 'rule'"),
        (
            ["create", "autumn", "--role", "read", "--expires", "soon"],
            r"--expires takes a time like 30s, 10m, 12h or 90d, got 'soon'",
        ),
        (["create", "autumn", "--role", "read", "--expires", "0d"], r"--expires takes .*it must be longer than 0.*"),
        (["revoke", "autumn", "nobody"], r"there is no key with this id; the campaign has none"),
        (["list", "winter"], r".*winter.*campaign\.toml.*"),
    ],
)
def test_what_is_no_key_is_refused(armful, arguments, sentence):
    assert re.fullmatch(sentence, refused(armful, "key", *arguments))


def test_keys_without_a_command_name_the_help(armful):
    assert refused(armful, "key") == "Missing command; try armful key --help"


def test_the_help_of_keys_does_not_promise_that_the_dashboard_needs_one(armful):
    said = " ".join(armful("key", "create", "--help").stdout.split())
    assert "service answers requests with a key only. The dashboard can still be read without one" in said


def test_a_key_that_is_not_there_is_not_repeated(armful):
    _, secret, _ = keys.new_key()
    assert secret not in refused(armful, "key", "revoke", "autumn", secret)


# -- serve -------------------------------------------------------------------------------------------


def test_a_port_in_use_is_refused(armful):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused(armful, "serve", "autumn", "--port", port)
        said_by_demo = refused(armful, "demo", "--serve", "--port", port, "--out", "try")
    assert said == f"127.0.0.1:{port} is in use by another program; give another port by --port, or 0 for a free one"
    assert said_by_demo == said
    assert not Path("try").exists()


def test_everybody_is_not_served_without_a_key(armful, folder):
    sentence = "0.0.0.0 can be reached from other machines, and autumn has no key: make one by `armful key create`, "
    assert refused(armful, "serve", "autumn", "--port", "0", "--host", "0.0.0.0").startswith(sentence)
    made = armful.works("key", "create", "autumn", "--role", "read", "--json").json
    armful.works("key", "revoke", "autumn", made["id"])
    assert refused(armful, "serve", "autumn", "--port", "0", "--host", "0.0.0.0").startswith(sentence)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://0.0.0.0:8000", f"http://localhost:8000, and for other machines at the name of this one, {NAME}"),
        ("http://[::]:8000", f"http://localhost:8000, and for other machines at the name of this one, {NAME}"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(armful, monkeypatch, url, expected):
    def serve(*_, when_ready, **__):
        when_ready(serving.Running(url=url, processes={}))
        return 0

    monkeypatch.setattr(serving, "serve", serve)
    assert armful.works("serve", "autumn").stdout == f"autumn is served at {expected}; Ctrl-C ends it\n"
    assert armful.works("serve", "autumn", "--json").json["url"] == expected.partition(",")[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["winter"], r"winter.*campaign\.toml does not exist; `armful init winter .*\(with --kind service, .*\)"),
        (["autumn", "--host", "nowhere.invalid"], r"nowhere\.invalid is no address of this machine \(.*\); give one.*"),
        (["autumn", "--host", "192.0.2.1"], r"192\.0\.2\.1:0 is no address of this machine; give one by --host"),
        (["autumn", "--update-every", "30"], r"--update-every takes a time like 30s.*, got '30'"),
        (["autumn", "--workers", "0"], r".*--workers.*"),
        (["autumn", "--port", "70000"], r".*--port.*"),
    ],
)
def test_what_cannot_be_served_is_refused(armful, arguments, sentence):
    assert re.fullmatch(sentence, refused(armful, "serve", "--port", "0", *arguments))


def test_settings_with_mistakes_are_listed(armful, folder):
    (folder / "campaign.toml").write_text(SETTINGS.replace("choose.k = 2", "choose.k = 0"))
    done = armful("serve", "autumn", "--port", "0", "--json")
    assert done.code == 2
    assert "has 1 mistake" in done.stderr
    assert len(done.json["problems"]) == 1


def test_features_without_a_source_are_refused(armful, folder):
    settings = SETTINGS.replace("features.ready = 3", 'features.columns.age.kind = "number"')
    (folder / "campaign.toml").write_text(settings)
    assert refused(armful, "serve", "autumn", "--port", "0").startswith("autumn has no source to work out its features")
    (folder / "campaign.toml").write_text('source = "gone.csv"\n' + settings)
    assert "gone.csv" in refused(armful, "serve", "autumn", "--port", "0")


def test_the_dashboard_of_nothing_is_refused(armful, tmp_path):
    assert "campaign.toml" in refused(armful, "dashboard", "winter", "--port", "0")
    assert "no ledger" in refused(armful, "dashboard", f"sqlite:///{tmp_path}/gone.sqlite", "--port", "0")


def test_compacting_gives_back_space_beside_who_uses_the_store(armful, folder):
    armful.works("key", "list", "autumn")
    file = folder / "ledger.sqlite"
    with Ledger.open(f"sqlite:///{file}", "autumn") as ledger:
        ledger.put_arms([(f"arm {i}", bytes(1000)) for i in range(1000)])
        ledger.forget([f"arm {i}" for i in range(500)])
        ledger.put_arms([(f"arm {i}", None) for i in range(500, 1000)])  # the file keeps their space
        done = armful.works("compact", "autumn", "--json").json
        assert done["bytes_before"] - done["bytes_after"] > 400_000
        assert done["bytes_after"] == ledger.size() == file.stat().st_size
        assert len(ledger.arms_since(0)[1]) == 500
    assert re.fullmatch(
        r"the store of autumn takes [\d.]+ kB, before it took [\d.]+ kB\n", armful.works("compact", "autumn").stdout
    )
    assert "does not exist" in refused(armful, "compact", "gone")


@pytest.mark.parametrize(
    "command", [["serve"], ["dashboard"], ["compact"], ["key", "create"], ["key", "list"], ["key", "revoke"]]
)
def test_help_has_an_example(armful, command):
    assert f"Example: armful {' '.join(command)} autumn" in armful.works(*command, "--help").stdout


def test_json_errors_are_objects(armful):
    done = armful("key", "revoke", "autumn", "nobody", "--json")
    assert (done.code, json.loads(done.stdout)["error"][:12]) == (2, "there is no ")


def test_the_seconds_and_the_port_of_a_demo_are_those_of_a_service(armful):
    assert refused(armful, "demo", "--seconds", "3") == "--seconds is for --serve: without it the demo ends by itself"
    assert refused(armful, "demo", "--port", "0") == "--port is for --serve: without it the demo serves nothing"
    assert "Example: armful demo --serve" in armful.works("demo", "--help").stdout
