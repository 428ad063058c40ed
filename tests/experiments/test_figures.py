import itertools
import xml.etree.ElementTree as ET

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from armful.experiments import run_cells
from armful.experiments.figures import _apart, regret_by_round, regret_by_size, style_of
from tests.experiments.test_plan import TINY


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_labels_keep_their_order_and_their_distance(heights):
    places = _apart(sorted(heights), gap=0.05)
    assert len(places) == len(heights)
    assert all(b - a >= 0.05 - 1e-9 for a, b in itertools.pairwise(places))


def test_labels_that_do_not_touch_stay_where_they_are():
    np.testing.assert_allclose(_apart([0.1, 0.5, 0.9], gap=0.05), [0.1, 0.5, 0.9])


def test_what_is_drawn_is_what_was_measured_and_every_policy_is_named(tmp_path):
    results = run_cells(TINY.cells(), tmp_path / "cells")
    figure = regret_by_size(results, "slates")
    for line in figure.lines:
        mine = sorted((r.pulled, r.mean, r.stderr) for r in results if r.policy == line.name)
        assert list(zip(line.x, line.y, line.spread, strict=True)) == mine
    figure.save(tmp_path / "drawn", style_of(TINY.policies))
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    comments = (tmp_path / "drawn.svg").read_text()
    assert ET.fromstring(comments).tag.endswith("svg")
    assert "<!-- greedy -->" in comments
    assert "<!-- C2UCB -->" in comments


def test_the_curve_by_round_ends_at_the_total(tmp_path):
    results = run_cells(TINY.cells()[:2], tmp_path / "cells")
    for line, result in zip(regret_by_round(results, "x").lines, results, strict=True):
        assert len(line.x) == result.rounds
        assert abs(line.y[-1] - result.mean) < 1e-9
