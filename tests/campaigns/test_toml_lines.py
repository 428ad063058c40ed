"""The lines of keys, against a plain search and against tomllib's own reading of the text."""

import tomllib
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armful.campaigns.settings._toml_lines import key_lines
from armful.campaigns.settings._toml_text import shown, toml_key, toml_list, toml_string

DOCUMENT = '''\
# [not.a.table]
name = "a # no comment"  # one
"quoted.key" = 'x = 1'
'literal key' = """
[still.text]
key = 1 \\""" ""\\"
""" # the end""
dotted.one.two = 2026-01-01 07:32:00 # with a blank
dotted.one.three = [ [1, 2], # rows
  [3,
   4,
  ], { a = 1, b.c = "}" } ]
tight=[{x=1},{y=[]}]

[table]
k = 1_000
[ spaced . "out" ]  # blanks
x = true

[[rows]]
a = 1
  [rows.inner]
  b = 2
  [[rows.inner.deep]]
  c = 3
  [[rows.inner.deep]]
  c = 4
[[rows]]
a = \'\'\'''two quotes\'\'\'\'\'
[implied.parent]
z = inf
'''

EXPECTED = {
    ("name",): 2,
    ("quoted.key",): 3,
    ("literal key",): 4,
    ("dotted",): 8,
    ("dotted", "one"): 8,
    ("dotted", "one", "two"): 8,
    ("dotted", "one", "three"): 9,
    ("dotted", "one", "three", 0): 9,
    ("dotted", "one", "three", 0, 0): 9,
    ("dotted", "one", "three", 0, 1): 9,
    ("dotted", "one", "three", 1): 10,
    ("dotted", "one", "three", 1, 0): 10,
    ("dotted", "one", "three", 1, 1): 11,
    ("dotted", "one", "three", 2): 12,
    ("dotted", "one", "three", 2, "a"): 12,
    ("dotted", "one", "three", 2, "b"): 12,
    ("dotted", "one", "three", 2, "b", "c"): 12,
    ("tight",): 13,
    ("tight", 0): 13,
    ("tight", 0, "x"): 13,
    ("tight", 1): 13,
    ("tight", 1, "y"): 13,
    ("table",): 15,
    ("table", "k"): 16,
    ("spaced",): 17,
    ("spaced", "out"): 17,
    ("spaced", "out", "x"): 18,
    ("rows",): 20,
    ("rows", 0): 20,
    ("rows", 0, "a"): 21,
    ("rows", 0, "inner"): 22,
    ("rows", 0, "inner", "b"): 23,
    ("rows", 0, "inner", "deep"): 24,
    ("rows", 0, "inner", "deep", 0): 24,
    ("rows", 0, "inner", "deep", 0, "c"): 25,
    ("rows", 0, "inner", "deep", 1): 26,
    ("rows", 0, "inner", "deep", 1, "c"): 27,
    ("rows", 1): 28,
    ("rows", 1, "a"): 29,
    ("implied",): 30,
    ("implied", "parent"): 30,
    ("implied", "parent", "z"): 31,
}


def paths(value, path=()):
    """Yield the path of everything in a parsed document."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*path, key))


def test_every_form_of_key_has_its_line():
    assert key_lines(DOCUMENT) == EXPECTED
    assert set(paths(tomllib.loads(DOCUMENT))) == set(EXPECTED)


def test_a_table_that_is_declared_later_has_the_line_of_its_header():
    assert key_lines("[a.b]\nx = 1\n[a]\ny = 2")["a",] == 3


def test_windows_line_ends_count_once():
    assert key_lines("a = 1\r\nb = [\r\n1,\r\n]\r\nc = 3\r\n") == {("a",): 1, ("b",): 2, ("b", 0): 3, ("c",): 5}


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), KEYS, st.dates(date(1970, 1, 1))),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def written(value, draw):
    """Return a value as TOML, with lists on one line or several."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_key(key)} = {written(each, draw)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        space = draw(st.sampled_from(["", " ", "\n", " # ] = [\n", "\r\n\t"]))
        return "[" + space + ",".join(written(each, draw) + space for each in value) + "]"
    return toml_string(value) if isinstance(value, str) else str(value).lower()


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=3))
def test_every_value_of_a_document_has_a_line_on_which_its_key_stands(data, top, table):
    # A key of the table may not be one of the top, so the table has a name that no key has.
    lines = [f"{toml_key(key)} = {written(value, data.draw)}" for key, value in top.items()]
    lines += ["# comment", "[the-only-table]"]
    lines += [f"{toml_key(key)} = {written(value, data.draw)}" for key, value in table.items()]
    text = "\n".join(lines)
    assert tomllib.loads(text) == {**top, "the-only-table": table}
    found = key_lines(text)
    assert set(found) == set(paths(tomllib.loads(text)))
    for path, line in found.items():
        if isinstance(path[-1], str):
            assert toml_key(path[-1]) in text.split("\n")[line - 1]


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(KEYS, max_size=4))
def test_texts_are_written_so_that_they_are_read_back_from_one_line(texts):
    assert tomllib.loads(f"x = {toml_list(texts)}")["x"] == texts
    assert len(toml_list(texts).splitlines()) == 1
    for text in texts:
        assert tomllib.loads(f"{toml_key(text)} = 1") == {text: 1}


def test_values_are_shown_short_and_without_passwords():
    assert shown("x" * 99) == '"' + "x" * 60 + '..."'
    assert shown(16**5000) == "a number of very many digits"
    assert shown("postgresql://me:se@cret@host/x") == '"postgresql://me:***@host/x"'
    assert [shown(each) for each in (True, 2, 0.5, [1], {}, date(2026, 1, 2))] == [
        "true",
        "2",
        "0.5",
        "a list",
        "a table",
        "2026-01-02",
    ]
