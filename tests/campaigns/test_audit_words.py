"""An audit speaks of rounds and people only by its vocabulary, so that a service can be spoken of in other words."""

import ast
import re
from pathlib import Path

import pytest

from armful.campaigns import audit

MODULES = ("__init__.py", "_model.py", "_rewards.py", "_shocks.py")


def texts(path):
    """All texts of a module that are not docstrings, those with values in them without these."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]


@pytest.mark.parametrize("module", MODULES)
def test_no_sentence_has_a_word_of_one_kind_of_campaign_in_it(module):
    found = texts(Path(audit.__file__).with_name(module))
    own = re.compile(r"\b(rounds?|people|persons?|contacts?|customers?|whom?|decisions?|arms?|units?)\b", re.IGNORECASE)
    assert [each for each in found if own.search(each)] == []
    assert any("outcomes" in each for each in found)
