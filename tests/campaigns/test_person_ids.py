import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armful.campaigns.holdout import uniforms
from armful.campaigns.reading import _person_ids
from armful.campaigns.reading._person_ids import IdSet, refuse_repeated, short_keys, uniforms_of_texts

IDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), max_size=20)
ASCII = st.lists(st.text("abc 019-", min_size=1), max_size=20)


@settings(deadline=None)
@given(ids=IDS | ASCII, begin=st.integers(0, 5))
def test_numbers_of_arrow_texts_are_those_of_arrays(ids, begin):
    texts = pa.array(ids, type=pa.string()).slice(begin)
    np.testing.assert_array_equal(
        uniforms_of_texts(texts, "autumn"), uniforms(np.array(ids[begin:], dtype=np.str_), "autumn")
    )


@settings(deadline=None)
@given(known=IDS | ASCII, asked=IDS | ASCII)
def test_a_set_holds_what_was_put_in(known, asked):
    ids = IdSet([np.array(known, dtype=np.str_)], "autumn")
    texts = pa.array([*asked, *known], type=pa.string())
    held = ids.holds(texts, uniforms_of_texts(texts, "autumn"))
    assert held.tolist() == [text in known for text in [*asked, *known]]


def test_ids_with_the_same_number_are_told_apart():
    ids = IdSet([np.array(["anna"])], "autumn")
    assert not ids.holds(pa.array(["bert"]), uniforms(["anna"], "autumn")).any()
    refuse_repeated(pa.chunked_array([["anna", "bert"]]), np.array([7, 7], dtype=np.uint32), "id")


def test_a_repeated_id_is_named_with_its_rows():
    texts = pa.chunked_array([["anna", "bert"], ["cleo", "anna"]])
    with pytest.raises(ValueError, match="id 'anna' is in rows 1 and 4"):
        refuse_repeated(texts, short_keys(uniforms(["anna", "bert", "cleo", "anna"], "autumn")), "id")


@pytest.mark.parametrize("compared", [1, 50_000])
@pytest.mark.parametrize("repeated", [False, True])
def test_a_repeated_id_is_found_among_ids_that_share_a_key(monkeypatch, compared, repeated):
    monkeypatch.setattr(_person_ids, "COMPARED", compared)
    ids = [f"C{i}" for i in range(300)]
    keys = (np.arange(300) % 40 * 100_000_000).astype(np.uint32)
    if repeated:
        ids[250], keys[250] = ids[17], keys[17]
        with pytest.raises(ValueError, match="id 'C17' is in rows 18 and 251"):
            refuse_repeated(pa.chunked_array([ids]), keys, "id")
    else:
        refuse_repeated(pa.chunked_array([ids]), keys, "id")
