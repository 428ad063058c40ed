"""The campaign's files of ids are read again when they change, and a bad one changes nothing."""

import logging
import os
from datetime import timedelta

import pytest

from armful.campaigns import read_settings
from armful.service import _id_files
from armful.service._id_files import IdFiles
from tests.service.running import until
from tests.service.small_service import features, make_campaign, request_of, serving

FILES = 'choose.exclude = ["opted-out.csv", "closed.csv"]\nchoose.require = ["pinned.csv"]\n'


def write(folder, name, *ids):
    """Replace a file as a careful program does."""
    new = folder / "new"
    new.write_text("\n".join(["item", *ids, ""]), encoding="utf-8")
    os.replace(new, folder / name)


@pytest.fixture
def folder(tmp_path):
    folder = make_campaign(tmp_path / "autumn", FILES)
    write(folder, "opted-out.csv", "a0")
    write(folder, "closed.csv")
    write(folder, "pinned.csv", "a9")
    return folder


@pytest.fixture
def files(folder, monkeypatch):
    monkeypatch.setattr(logging.getLogger("armful"), "propagate", True)  # where caplog looks
    return IdFiles(read_settings(folder / "campaign.toml"))


def ids(files):
    return list(files.exclude), list(files.require)


def test_files_are_read_again_when_they_change_and_only_then(folder, files, monkeypatch):
    assert ids(files) == (["a0"], ["a9"])
    with monkeypatch.context() as nothing_is_read:
        nothing_is_read.setattr(_id_files, "read_id_files", None)
        assert not files.refresh()
    write(folder, "closed.csv", "a1", "a2")
    assert files.refresh()
    assert ids(files) == (["a0", "a1", "a2"], ["a9"])
    write(folder, "pinned.csv")
    assert files.refresh()
    assert ids(files) == (["a0", "a1", "a2"], [])
    write(folder, "pinned.csv")
    assert not files.refresh()  # another file with the same ids


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_cannot_be_read_is_logged_once_and_changes_nothing(folder, files, caplog, monkeypatch, is_gone):
    if is_gone:
        (folder / "opted-out.csv").unlink()
    else:
        (folder / "opted-out.csv").write_text("customer\na1\n", encoding="utf-8")
    with caplog.at_level(logging.ERROR, "armful"):
        assert not files.refresh()
        with monkeypatch.context() as later:
            if not is_gone:  # what cannot be parsed is not parsed again at every look
                later.setattr(files, "_read", None)
            assert not files.refresh()
    assert len(caplog.messages) == 1
    assert "opted-out.csv" in caplog.messages[0]
    assert "goes on with the ids that it read before" in caplog.messages[0]
    assert ids(files) == (["a0"], ["a9"])
    write(folder, "opted-out.csv", "a5")
    assert files.refresh()
    assert ids(files) == (["a5"], ["a9"])


def test_a_file_that_is_missing_again_is_logged_again(folder, files, caplog):
    """As when the folder of another machine goes away and comes back."""
    path = folder / "opted-out.csv"
    with caplog.at_level(logging.ERROR, "armful"):
        for _ in range(2):
            path.rename(folder / "away")
            assert not files.refresh()
            (folder / "away").rename(path)
            assert not files.refresh()
    assert len(caplog.messages) == 2
    assert ids(files) == (["a0"], ["a9"])


def test_a_file_that_the_system_refuses_is_read_as_soon_as_it_allows_it(folder, files, caplog, monkeypatch):
    """The permission of a file can be given without another change of it; the test may run as somebody who has all."""

    def refuse(names, settings):
        raise PermissionError(13, "no permission to read opted-out.csv")

    write(folder, "opted-out.csv", "a1")
    with caplog.at_level(logging.ERROR, "armful"), monkeypatch.context() as refused:
        refused.setattr(_id_files, "read_id_files", refuse)
        assert not files.refresh()
        assert not files.refresh()
    assert len(caplog.messages) == 1
    assert ids(files) == (["a0"], ["a9"])
    assert files.refresh()
    assert ids(files) == (["a1"], ["a9"])


def test_a_file_that_is_being_written_is_read_when_it_is_complete(folder, files, monkeypatch):
    read, path = _id_files.read_id_files, folder / "opted-out.csv"

    def read_while_it_grows(names, settings):
        found = list(read(names, settings))
        with path.open("a", encoding="utf-8") as file:
            file.write("a2\n")
        return found

    write(folder, "opted-out.csv", "a1")
    with monkeypatch.context() as growing:
        growing.setattr(_id_files, "read_id_files", read_while_it_grows)
        assert not files.refresh()
    assert ids(files) == (["a0"], ["a9"])
    assert files.refresh()
    assert list(files.exclude)[:2] == ["a1", "a2"]


def test_a_running_service_goes_by_the_new_files(folder):
    request = request_of(features(10), constraint={"k": 8})
    with serving(folder, poll_every=timedelta(milliseconds=10)) as service:

        def chosen():
            return {arm["id"] for arm in service.post("/v1/decisions", request).json()["chosen"]}

        before = chosen()
        assert "a0" not in before
        assert "a9" in before
        write(folder, "opted-out.csv", "a9", "a8")
        everybody = {f"a{i}" for i in range(8)}
        until(lambda: chosen() == everybody, "the new file was used")
