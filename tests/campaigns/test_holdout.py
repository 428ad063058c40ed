import os
import subprocess
import sys
from hashlib import blake2b

import numpy as np
import pytest
from scipy import stats

from armful.campaigns.holdout import HOLDOUT, NO_CONTACT, share_of, uniforms

ALARM = 1e-6

FAMILIES = {
    "counting up": np.arange(200_000).astype(str),
    "counting up, padded": np.char.zfill(np.arange(200_000).astype(str), 9),
    "even numbers with a letter": np.char.add("c", (2 * np.arange(200_000)).astype(str)),
    "addresses": np.char.add(np.arange(200_000).astype(str), "@example.com"),
    "letters beyond ASCII": np.array([chr(945 + i % 24) + chr(0x4E00 + i // 24) for i in range(200_000)]),
}


def plain_uniform(text, key):
    """The formula of the docstring, with Python's whole numbers."""
    stream = b"".join(blake2b(key.encode(), digest_size=64, salt=bytes([i] + [0] * 15)).digest() for i in range(9))
    a = [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(72)]
    z = (a[0] + sum(a[i + 1] * ord(letter) for i, letter in enumerate(text))) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return ((z ^ (z >> 31)) >> 11) / 2**53


def test_the_hash_is_the_formula_in_python_integers():
    ids = ["", "a", "anna", "4711", "Zoë", "顧客", "x" * 60, "b\x00c", "\U0001f600"]
    for key in ("autumn", "höst"):
        assert uniforms(ids, key).tolist() == [plain_uniform(each, key) for each in ids]


def test_shares_are_the_same_in_every_version():
    """These numbers may never change: people would change their share in the middle of a campaign."""
    assert uniforms(["anna", "bert", "4711"], "autumn").tolist() == [
        0.7110165124584416,
        0.8857499647866592,
        0.534241360617863,
    ]
    assert share_of([str(i) for i in range(12)], "autumn", holdout=0.3, no_contact=0.3).tolist() == [
        0,
        0,
        1,
        1,
        2,
        1,
        1,
        2,
        0,
        1,
        1,
        2,
    ]


@pytest.mark.slow
def test_shares_do_not_depend_on_the_hash_seed_of_python():
    code = "from armful.campaigns.holdout import uniforms; print(uniforms(['a', 'b'], 'c').tolist())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{uniforms(['a', 'b'], 'c').tolist()}\n"}


def test_a_share_does_not_depend_on_the_other_ids_or_their_order():
    ids = FAMILIES["addresses"][:100_000]
    together = uniforms(ids, "autumn")
    assert np.array_equal(uniforms(ids[::-1], "autumn"), together[::-1])
    longer = np.append(ids[:5], "x" * 70)
    assert np.array_equal(uniforms(longer, "autumn")[:5], together[:5])


@pytest.mark.parametrize(
    "ids",
    [
        ["7", "12", "500"],
        [7, 12, 500],
        np.array(["7", "12", "500"], dtype=">U3"),
        np.array(["7", "12", "500"], dtype=object),
        np.array(["7", "-", "12", "-", "500"])[::2],
    ],
    ids=["list", "whole numbers", "other byte order", "objects", "strides"],
)
def test_ids_of_any_kind_of_array_are_the_same_people(ids):
    assert np.array_equal(uniforms(ids, "autumn"), uniforms(["7", "12", "500"], "autumn"))


def test_no_ids_have_no_shares():
    assert share_of([], "autumn", holdout=0.5).shape == (0,)


@pytest.mark.parametrize("family", FAMILIES)
def test_shares_are_uniform_and_independent_of_other_campaigns_and_of_the_neighbour(family):
    """False-alarm rate: 1e-6 for each of three tests of five families; the hash is fixed, so all or never."""
    ids, cells = FAMILIES[family], 32
    autumn, spring = (np.floor(uniforms(ids, key) * cells).astype(int) for key in ("autumn", "spring"))
    assert stats.chisquare(np.bincount(autumn, minlength=cells)).pvalue > ALARM
    for other in (spring, np.roll(autumn, 1)):
        table = np.zeros((cells, cells))
        np.add.at(table, (autumn, other), 1)
        assert stats.chisquare(table.ravel()).pvalue > ALARM


def test_campaigns_with_similar_names_have_independent_shares():
    """False-alarm rate: 1e-6 for each of 10 pairs."""
    ids = FAMILIES["counting up"]
    keys = ["autumn", "autumn1", "autumn2", "Autumn", "autumn "]
    held = {key: share_of(ids, key, holdout=0.2) == HOLDOUT for key in keys}
    for i, one in enumerate(keys):
        for other in keys[:i]:
            assert stats.binomtest(int((held[one] & held[other]).sum()), ids.size, 0.04).pvalue > ALARM


def test_a_larger_share_keeps_its_people_and_moves_nobody_of_the_other():
    ids = FAMILIES["counting up"]
    small, large = (share_of(ids, "autumn", holdout=share, no_contact=0.1) for share in (0.05, 0.2))
    assert np.all(large[small == HOLDOUT] == HOLDOUT)
    assert np.array_equal(small == NO_CONTACT, large == NO_CONTACT)
    more = share_of(ids, "autumn", holdout=0.05, no_contact=0.3)
    assert np.array_equal(more == HOLDOUT, small == HOLDOUT)
    assert np.all(more[small == NO_CONTACT] == NO_CONTACT)


def test_without_shares_everybody_is_chosen_from():
    assert not share_of(FAMILIES["counting up"], "autumn", holdout=0.0).any()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"ids": ["a"], "holdout": 0.6, "no_contact": 0.4}, "must leave somebody to choose from, got 0.6 and 0.4"),
        ({"ids": ["a"], "holdout": 1.5}, "holdout must be from 0 to 1, got 1.5"),
        ({"ids": ["a"], "holdout": 0.1, "no_contact": -0.1}, "no_contact must be from 0 to 1, got -0.1"),
        ({"ids": [1.5], "holdout": 0.1}, "ids must be text, got an array of float64"),
        ({"ids": [["a"]], "holdout": 0.1}, r"one id for each person, got an array of shape \(1, 1\)"),
    ],
)
def test_bad_shares_and_ids_are_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        share_of(arguments.pop("ids"), "autumn", **arguments)
