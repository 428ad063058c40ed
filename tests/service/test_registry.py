"""Registered arms: every process knows what the ledger keeps, and encodes it as if it came with the request."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.settings import parse_settings
from armful.ledger import Ledger
from armful.service.encoding import Encoder
from armful.service.registry import Registry

COLUMNS = """\
name = "shop"
id = "item"
policy.cap = 1.0
outcomes.reward = "click"
choose.k = 2
[features]
leave_out = ["region", "cost"]
[features.columns]
price = { kind = "number" }
brand = { kind = "category" }
country = { kind = "category" }
[service]
context = ["country"]
"""
READY = """\
name = "shop"
id = "item"
policy.cap = 1.0
outcomes.reward = "click"
choose.k = 2
features.ready = 2
features.leave_out = ["region"]
"""


@dataclass
class Arm:
    id: str
    columns: dict | None = None
    features: list | None = None


@pytest.fixture(scope="module")
def encoder():
    settings = parse_settings(COLUMNS, None)
    rows = {"price": [1.0, 2.0, 4.0], "brand": ["x", "y", "x"], "country": ["PT", "DE", "PT"]}
    return Encoder.of(settings, FeatureRecipe.fit(settings.features, [pa.record_batch(rows)]))


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite", "shop", create=True, settings="") as opened:
        yield opened


def put(ledger, registry, arms=(), withdraw=()):
    ledger.put_arms(registry.contents(arms, withdraw))
    registry.refresh()


def arm(id, price=1.0, brand="x", **more):
    return Arm(id, {"price": price, "brand": brand, **more})


PT = {"country": "PT"}


def test_registered_arms_are_encoded_like_those_of_a_request(ledger, encoder):
    registry, other = Registry(ledger, encoder), Registry(ledger, encoder)
    a, b, c = arm("a"), arm("b", 2.0, "y", region="north", cost=3), arm("c", None, "new")
    put(ledger, registry, [a, b])
    assert other.n_registered == 0
    assert other.refresh()
    assert not other.refresh()
    for each in (registry, other, Registry(ledger, encoder)):
        assert each.n_registered == 2
        for wanted in (["b", "a"], ["b", c, "a"], [c, Arm("a")], [c], [c, b], None):
            found = each.candidates(wanted, PT)
            arms = {"a": a, "b": b, "c": c}
            expected = [arms[id] for id in found.ids]
            assert list(found.ids) == [getattr(w, "id", w) for w in (wanted or ["a", "b"])]
            np.testing.assert_array_equal(found.X, encoder.encode(expected, PT))
            assert found.groups("region") == ["north" if id == "b" else "(none)" for id in found.ids]
        assert each.candidates(["b"], PT).costs("cost") == [3.0]


def test_an_arm_is_replaced_and_withdrawn(ledger, encoder):
    registry, other = Registry(ledger, encoder), Registry(ledger, encoder)
    put(ledger, registry, [arm("a"), arm("b"), arm("c")])
    other.refresh()
    put(ledger, registry, [arm("b", 4.0)], ["a", "never there"])
    other.refresh()
    for each in (registry, other):
        assert sorted(each.candidates(None, PT).ids) == ["b", "c"]
        np.testing.assert_array_equal(each.candidates(["b"], PT).X, encoder.encode([arm("b", 4.0)], PT))
        with pytest.raises(ValueError, match="arm 'a' is not registered: register it first, or send its columns"):
            each.candidates(["b", "a"], PT)


def test_an_arm_that_was_forgotten_is_gone(ledger, encoder):
    registry = Registry(ledger, encoder)
    put(ledger, registry, [arm("a"), arm("b")])
    ledger.forget(np.array(["a"]))
    registry.refresh()
    assert list(registry.candidates(None, PT).ids) == ["b"]


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 9)), max_size=4),
            st.sets(st.sampled_from("abcde"), max_size=2),
        ),
        max_size=6,
    ),
    st.sets(st.integers(0, 5)),
)
def test_after_any_changes_every_process_knows_the_same(encoder, tmp_path_factory, changes, seen):
    folder = tmp_path_factory.mktemp("ledger")
    with Ledger.open(f"sqlite:///{folder}/ledger.sqlite", "shop", create=True, settings="") as ledger:
        registry, other, expected = Registry(ledger, encoder), Registry(ledger, encoder), {}
        for i, (arms, withdraw) in enumerate(changes):
            new = {id: arm(id, price) for id, price in arms if id not in withdraw}
            put(ledger, registry, list(new.values()), sorted(withdraw))
            expected = {id: each for id, each in (expected | new).items() if id not in withdraw}
            if i in seen:
                other.refresh()
        other.refresh()
        for each in (registry, other):
            assert each.n_registered == len(expected)
            if expected:
                found = each.candidates(None, PT)
                assert sorted(found.ids) == sorted(expected)
                np.testing.assert_array_equal(found.X, encoder.encode([expected[id] for id in found.ids], PT))


def test_ready_features_are_kept_in_32_bits(ledger):
    encoder = Encoder.of(parse_settings(READY, None), None)
    registry = Registry(ledger, encoder)
    put(
        ledger,
        registry,
        [Arm("a", None, [0.1, 2.0]), Arm("b", {"region": "n"}, [1, 2]), Arm("c", {"x1": 3.0, "x2": 4})],
    )
    found = Registry(ledger, encoder).candidates(["c", "b", "a"], None)
    np.testing.assert_array_equal(found.X, np.array([[3.0, 4.0], [1.0, 2.0], [0.1, 2.0]], dtype=np.float32))
    assert found.groups("region") == ["(none)", "n", "(none)"]
    assert not found.X.flags.writeable or found.X.base is None


@pytest.mark.parametrize(
    ("arms", "withdraw", "sentence"),
    [
        ([arm("a"), arm("a")], [], "arm 'a' is there twice: give every one once"),
        ([arm("a")], ["a"], "arm 'a' is there twice: give every one once"),
        ([arm("a", "cheap")], [], "arm 'a': column 'price' must be a number, got the text 'cheap'"),
        ([Arm("a")], [], "arm 'a' has no columns"),
        ([arm(str(i)) for i in range(4)], [], "5 arms would be registered, and service.most_arms is 4: withdraw some"),
    ],
)
def test_arms_that_cannot_be_used_are_not_registered(ledger, encoder, arms, withdraw, sentence):
    registry = Registry(ledger, encoder, most=4)
    put(ledger, registry, [arm("first")])
    with pytest.raises(ValueError) as caught:
        registry.contents(arms, withdraw)
    assert str(caught.value) == sentence
    assert registry.contents([arm(str(i)) for i in range(4)], ["first"])


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (["a", "a"], "candidate 'a' is there twice: give every one once"),
        ([arm("a"), "a"], "candidate 'a' is there twice: give every one once"),
        ([Arm("z")], "arm 'z' is not registered: register it first, or send its columns or features"),
    ],
)
def test_candidates_that_cannot_be_used_are_named(ledger, encoder, wanted, sentence):
    registry = Registry(ledger, encoder)
    put(ledger, registry, [arm("a")])
    with pytest.raises(ValueError) as caught:
        registry.candidates(wanted, PT)
    assert str(caught.value) == sentence


def test_without_arms_there_are_no_candidates(ledger, encoder):
    with pytest.raises(ValueError, match="there are no candidates: the request has none, and no arm is registered"):
        Registry(ledger, encoder).candidates(None, PT)


def test_without_arms_that_can_be_used_it_is_said_why(ledger, encoder):
    ledger.put_arms([("c", b"from a later armful")])
    sentence = "the request has none, and 1 registered arm cannot be chosen; arm 'c' cannot be read"
    with pytest.raises(ValueError, match=sentence):
        Registry(ledger, encoder).candidates(None, PT)


def test_arms_that_later_settings_cannot_use_are_left_out_and_explained(ledger, encoder, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("armful"), "propagate", True)  # where caplog looks
    put(ledger, Registry(ledger, encoder), [arm("a"), arm("b", region="north")])
    ledger.put_arms([("c", b"from a later armful")])
    settings = parse_settings(COLUMNS, None)
    narrower = replace(settings, features=replace(settings.features, leave_out=()))
    registry = Registry(ledger, Encoder.of(narrower, encoder.recipe))
    assert list(registry.candidates(None, PT).ids) == ["a"]
    sentence = registry.unusable
    assert sentence.startswith("2 registered arms cannot be chosen; arm ")
    assert caplog.messages == [sentence]
    assert not registry.refresh()
    assert caplog.messages == [sentence]
    with pytest.raises(
        ValueError, match=r"arm 'b' is registered, and cannot be used any more: .* column 'region' is not"
    ):
        registry.candidates(["b"], PT)
    with pytest.raises(ValueError, match="arm 'c' cannot be read: another version of armful registered it"):
        registry.candidates(["c"], PT)
    put(ledger, registry, [arm("b")], ["c"])
    assert registry.unusable is None
    assert sorted(registry.candidates(None, PT).ids) == ["a", "b"]
