"""Parts of figures, as plotly takes them; colours are names of roles, for which report.js has palettes."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from armful.campaigns._results import Coefficient
from armful.campaigns.report._data import Mean, RoundLine

Figure = dict[str, Any]

MOST_DATES = 12
"""Rounds up to which the axis has their dates too."""

LONGEST_NAME = 30


def short(name: str) -> str:
    """Return a name of the user's that fits beside an axis, as text in which plotly finds no mark-up.

    Examples
    --------
    >>> short("<b>bold</b>"), short("a very long name of something or another")
    ('&lt;b&gt;bold&lt;/b&gt;', 'a very long na…hing or another')
    """
    half = LONGEST_NAME // 2
    cut = name if len(name) <= LONGEST_NAME else f"{name[: half - 1].rstrip()}…{name[-half:].lstrip()}"
    return escape(cut, quote=False)


def distinct(names: Iterable[str]) -> list[str]:
    """Return names for an axis, on which equal ones would be one place: those that are cut alike get a number."""
    seen: dict[str, int] = {}
    result = []
    for name in map(short, names):
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def dots(names: list[str], values: list[float], ends: list[tuple[float, float, float]] | None, x: str) -> Figure:
    """Return a point for each name, from the bottom up, with an interval if its ends are given."""
    labels = distinct(names)
    trace: Figure = {
        "x": values,
        "y": labels,
        "mode": "markers",
        "marker": {"color": "accent", "size": 9},
        "hovertemplate": "%{y}: %{x:+.4g}<extra></extra>",
    }
    if ends is not None:
        trace["error_x"] = error_bars(ends, "accent")
    figure = figure_of([trace], x={"title": {"text": x}}, y="")
    figure["layout"]["shapes"] = [line_at("x", 0.0)]
    return by_name(figure, len(labels))


def by_name(figure: Figure, n: int) -> Figure:
    """Return a figure as high as n names beside it need."""
    figure["layout"]["yaxis"] |= {"type": "category", "automargin": True, "showgrid": False, "ticks": ""}
    figure["layout"]["height"] = 90 + figure["layout"]["margin"]["t"] + 26 * n
    return figure


def figure_of(traces: list[Figure], x: Figure, y: str) -> Figure:
    """Return a figure with a legend where there is more than one thing to tell apart.

    x: what is special of the axis. y: the title of the other.
    """
    has_legend = len([trace for trace in traces if trace.get("showlegend", True)]) > 1
    axis = {"fixedrange": True, "gridcolor": "grid", "linecolor": "grid", "zeroline": False, "automargin": True}
    layout = {
        "height": 380,
        "margin": {"l": 56, "r": 16, "t": 44 if has_legend else 12, "b": 52},
        "paper_bgcolor": "clear",
        "plot_bgcolor": "clear",
        "font": {"color": "ink", "size": 13, "family": "system-ui, sans-serif"},
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "card", "bordercolor": "grid", "font": {"color": "ink"}},
        "showlegend": has_legend,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "xanchor": "left",
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "xaxis": {**axis, "showgrid": False, **x},
        "yaxis": {**axis, "title": {"text": y}},
    }
    return {"data": [{"type": "scatter", **trace} for trace in traces], "layout": layout}


def round_axis(rounds: Sequence[RoundLine]) -> Figure:
    """Return an axis of rounds, with their dates if there are few."""
    axis: Figure = {"title": {"text": "round"}}
    numbers = [each.number for each in rounds]
    if not 0 < len(numbers) <= MOST_DATES:
        return axis
    words = [f"{each.number}<br>{each.chosen_at.day} {each.chosen_at:%b}" for each in rounds]
    return {**axis, "tickvals": numbers, "ticktext": words, "range": [numbers[0] - 0.6, numbers[-1] + 0.6]}


def ends_of(each: Mean | Coefficient) -> tuple[float, float, float]:
    """Return the lower end of an interval, its value and its upper end."""
    return each.low, each.value, each.high


def error_bars(ends: list[tuple[float, float, float]], colour: str) -> Figure:
    """Return error bars from the lower end of each interval, its value and its upper end."""
    sizes = {
        "array": numbers(high - value for _, value, high in ends),
        "arrayminus": numbers(value - low for low, value, _ in ends),
    }
    return {"type": "data", "symmetric": False, **sizes, "color": colour, "thickness": 1.5, "width": 4}


def band(x: list[int], low: Sequence[float | None], high: Sequence[float | None], colour: str) -> list[Figure]:
    """Return two traces, a line that is not seen and one above it that fills what is between them."""
    hidden = {"x": x, "mode": "lines", "line": {"width": 0, "color": "clear"}, "hoverinfo": "skip"}
    filled = {"fill": "tonexty", "fillcolor": colour, "line": {"width": 0, "color": colour}}
    return [{**hidden, "y": numbers(low), "showlegend": False}, {**hidden, "y": numbers(high), **filled}]


def line_at(axis: str, value: float) -> Figure:
    """Return a line across the whole figure, where the axis `"x"` or `"y"` has a value."""
    other = "x" if axis == "y" else "y"
    return {
        "type": "line",
        f"{axis}0": value,
        f"{axis}1": value,
        f"{other}ref": "paper",
        f"{other}0": 0,
        f"{other}1": 1,
        "line": {"color": "neutral", "width": 1},
        "layer": "below",
    }


def numbers(values: Iterable[float | None]) -> list[float | None]:
    """Return values as JSON has them: None where there is no number."""
    return [None if value is None or not math.isfinite(value) else float(value) for value in values]
