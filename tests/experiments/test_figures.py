import itertools
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text

from armful.experiments import run_cells
from armful.experiments._figures import (
    PALETTE,
    Figure,
    Line,
    _apart,
    _marked,
    draw,
    ink,
    regret_by_round,
    regret_by_size,
    round_numbers,
    style_of,
)
from tests.experiments.test_plan import TINY

SIZES = [80, 320, 1280]


def drawn(lines, **options):
    """The axes with these lines on them, laid out as in the file."""
    canvas = Canvas(figsize=(8.2, 4.8), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots()
    draw(Figure("title", "x", "y", lines, **options), axes, style_of(line.name for line in lines))
    canvas.draw_without_rendering()
    return axes


@given(st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=18))
def test_labels_keep_their_order_and_their_distance_within_the_axes(heights):
    moved = _apart(np.sort(heights), gap=0.055)
    assert len(moved) == len(heights)
    assert all(b - a >= 0.055 - 1e-9 for a, b in itertools.pairwise(moved))
    assert min(moved) > 0
    assert max(moved) < 1


def test_labels_that_do_not_touch_stay_where_they_are():
    np.testing.assert_allclose(_apart(np.array([0.1, 0.5, 0.9]), gap=0.05), [0.1, 0.5, 0.9])


def test_long_names_leave_most_of_the_figure_to_the_lines():
    names = ["n" * 300, "o" * 300, "short"]
    canvas = Canvas(figsize=(7.0, 4.6), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots()
    lines = [Line(name, SIZES, [1.0, 100.0, 5.0], [0.1] * 3) for name in names]
    draw(Figure("e" * 300, "x", "y", lines), axes, style_of(names))
    canvas.draw_without_rendering()
    assert axes.get_window_extent().width > 0.35 * canvas.bbox.width
    assert axes.title.get_window_extent().width < canvas.bbox.width
    assert sorted(len(text.get_text()) for text in axes.texts) == [5, 30, 30]


@pytest.mark.parametrize("ends", [[5.0] * 9, [1.0] * 9, [100.0] * 9, [5.0], list(range(1, 25))])
def test_every_name_is_to_the_right_of_the_axes_and_not_below_or_above_them(ends):
    axes = drawn([Line(f"policy {i}", SIZES, [1.0, 100.0, end], [0.1] * 3) for i, end in enumerate(ends)])
    box = axes.get_window_extent()
    names = sorted((Text.get_window_extent(name) for name in axes.texts), key=lambda name: name.y0)
    assert len(names) == len(ends)
    assert all(box.x1 < name.x0 and name.x1 <= axes.figure.bbox.x1 for name in names)
    assert box.y0 <= names[0].y0
    assert names[-1].y1 <= box.y1
    assert all((a.y0 + a.y1) / 2 < b.y0 for a, b in itertools.pairwise(names))


@pytest.mark.parametrize("colour", PALETTE)
def test_names_are_dark_enough_to_read(colour):
    """4.5 is the contrast that WCAG 2 asks of small letters."""
    parts = np.array([ink(colour), to_rgb("white")])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    letters, paper = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    assert paper / letters > 4.5


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e9), st.booleans(), st.sampled_from([6, 8]))
@example(low=9.44, ratio=15.03, log=False, most=6)
def test_ticks_are_a_few_round_numbers_of_the_range(low, ratio, log, most):
    high = low * ratio
    ticks = round_numbers(low, high, log=log, most=most)
    assert 3 <= len(ticks) <= most + 1
    assert ticks == sorted(set(ticks))
    assert low <= ticks[0]
    assert ticks[-1] <= high
    digits = 1 if ratio > 12 else 4
    assert all(tick == pytest.approx(float(f"{tick:.{digits}g}"), rel=1e-9) for tick in ticks if log)


@pytest.mark.parametrize("ratio", [1.1, 2, 4, 12, 100, 1e4])
def test_labels_on_a_log_axis_are_three_to_seven_and_do_not_touch(ratio):
    axes = drawn([Line(f"policy {i}", [80, 320], [30, 30 * ratio**i], [1, 1]) for i in range(2)])
    assert axes.get_yscale() == "log"
    assert len(axes.yaxis.get_minorticklocs()) == 0
    labels = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert 3 <= len(labels) <= 7
    assert all(a.y1 < b.y0 for a, b in itertools.pairwise(labels))
    assert axes.get_ylim()[0] <= axes.get_yticks()[0]
    assert axes.get_yticks()[-1] <= axes.get_ylim()[1]


def test_sizes_that_all_policies_share_are_the_ticks():
    axes = drawn([Line("a", SIZES, [1, 2, 3], [0] * 3), Line("b", SIZES, [2, 3, 4], [0] * 3)])
    assert list(axes.get_xticks()) == SIZES
    assert [label.get_text() for label in axes.get_xticklabels()] == ["80", "320", "1,280"]


@pytest.mark.parametrize("n_policies", [1, 2, 9])
def test_where_policies_pull_different_numbers_of_arms_the_ticks_are_round(n_policies):
    lines = [Line(f"policy {i}", [187.2 + i / 3, 971.4 + i], [3 + i, 9 + i], [1, 1]) for i in range(n_policies)]
    assert list(drawn(lines).get_xticks()) == [200, 300, 500, 700, 1000]


def test_a_single_size_stands_in_the_middle():
    assert drawn([Line("a", [80], [3], [1]), Line("b", [80], [4], [1])]).get_xlim() == (40, 160)


def test_sizes_too_close_to_each_other_are_not_ticks():
    axes = drawn([Line("a", [250, 260, 4000], [1, 2, 3], [0] * 3)])
    labels = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert len(labels) >= 3
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(labels))


def test_a_reference_is_drawn_first_and_has_no_markers():
    lines = [Line("mine", SIZES, [1, 5, 5], [1] * 3), Line("reference", SIZES, [5, 5, 5], [1] * 3, is_reference=True)]
    first, *others = drawn(lines, log_y=False).lines
    assert list(first.get_ydata()) == [5, 5, 5]
    assert first.get_color() == PALETTE[1]
    assert {line.get_color() for line in others} == {PALETTE[0]}
    assert first.get_marker() == "None"


def test_of_many_rounds_a_few_have_a_marker_and_an_error_bar():
    rounds = list(range(1, 201))
    lines = [Line(f"policy {i}", rounds, [(i + 1) * t for t in rounds], [0.1] * 200) for i in range(9)]
    axes = drawn(lines)
    curves = [line for line in axes.lines if line.get_linestyle() != "None"]
    assert [list(curve.get_xdata()) for curve in curves] == [rounds] * 9
    assert all(len(bars.get_segments()) <= 7 for bars in axes.collections)
    looks = {(c.get_color(), c.get_linestyle()) for c in curves}
    assert len(looks) == 9


@given(st.integers(1, 3000), st.integers(0, 20))
def test_marked_points_are_points_and_of_few_points_all(n_points, style):
    marked = _marked(n_points, style)
    assert marked[0] >= 0
    assert marked[-1] < n_points
    assert len(marked) == n_points if n_points <= 10 else 3 <= len(marked) <= 7


@pytest.mark.parametrize(
    ("x", "y", "spread", "scale"),
    [
        ([20], [12.6], [float("nan")], "log"),
        ([20], [0.0], [float("nan")], "linear"),
        ([20, 80], [0.0, 0.0], [0.0, 0.0], "linear"),
        ([20, 80], [-3.0, 2.0], [1.0, 1.0], "linear"),
        ([20, 80], [5.0, 5.0], [0.0, 0.0], "log"),
        ([0, 80], [1.0, 3.0], [0.1, 0.1], "log"),
    ],
)
def test_one_policy_one_size_and_regret_that_is_not_positive_can_be_drawn(x, y, spread, scale):
    axes = drawn([Line("only", x, y, spread)])
    assert axes.get_yscale() == scale
    assert axes.get_xscale() == ("log" if min(x) > 0 else "linear")
    for ticks, limits in ((axes.get_xticks(), axes.get_xlim()), (axes.get_yticks(), axes.get_ylim())):
        assert len([tick for tick in ticks if limits[0] <= tick <= limits[1]]) >= 2
    assert axes.get_ylim()[0] <= min(y)
    assert max(y) <= axes.get_ylim()[1]


def test_an_error_bar_that_reaches_down_to_zero_does_not_flatten_the_rest():
    axes = drawn([Line("a", [20, 80], [3.0, 8.0], [2.999999, 9.0]), Line("b", [20, 80], [1.0, 3.0], [0.1, 1.0])])
    assert axes.get_ylim()[0] == 0.5
    assert axes.get_ylim()[1] > 17


def test_what_is_drawn_is_what_was_measured_and_every_policy_is_named(tmp_path):
    results = run_cells(TINY.cells(), tmp_path / "cells")
    figure = regret_by_size(results, "slates")
    assert figure.x_label == "arms pulled, kT"
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


def test_arms_pulled_are_not_called_kT_where_they_are_not(tmp_path):
    first, *others = run_cells(TINY.cells()[:2], tmp_path / "cells")
    assert regret_by_size([replace(first, pulled=first.pulled - 0.5), *others], "x").x_label == "arms pulled"
