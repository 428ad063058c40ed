"""The figures of a report."""

import math

from armful.campaigns.report._data import ReportData
from armful.campaigns.report._drawing import (
    Figure,
    band,
    by_name,
    distinct,
    dots,
    ends_of,
    error_bars,
    figure_of,
    line_at,
    numbers,
    round_axis,
    short,
)

MOST_COEFFICIENTS = 25
MOST_GROUPS = 40

RARE = 0.05
"""A chance below this is called a surprise."""


def rewards(data: ReportData) -> Figure:
    """Return the mean reward of each closed round, chosen against holdout, with intervals."""
    rounds = [each for each in data.rounds if each.closed]
    x, hover = [each.number for each in rounds], "round %{x}: %{y:.4g}<extra>%{fullData.name}</extra>"
    chosen = {
        "x": x,
        "y": numbers(each.chosen.value for each in rounds),
        "error_y": error_bars([ends_of(each.chosen) for each in rounds], "accent"),
        "name": "chosen",
        "mode": "lines+markers",
        "line": {"color": "accent", "width": 3},
        "marker": {"color": "accent", "size": 9},
        "hovertemplate": hover,
    }
    holdout = {
        **chosen,
        "y": numbers(each.holdout.value for each in rounds),
        "error_y": error_bars([ends_of(each.holdout) for each in rounds], "neutral"),
        "name": "holdout",
        "line": {"color": "neutral", "width": 2, "dash": "dash"},
        "marker": {"color": "neutral", "size": 8, "symbol": "square-open"},
    }
    traces = [holdout, chosen] if any(each.holdout.n for each in rounds) else [chosen]
    return figure_of(traces, x=round_axis(rounds), y=f"{short(data.reward)} per contact")


def lift(data: ReportData) -> Figure:
    """Return the lift per contact over all rounds so far, with both bands."""
    x = list(data.lift_rounds)
    bands = [
        band(x, [each.anytime_low for each in data.lifts], [each.anytime_high for each in data.lifts], "faint"),
        band(x, [each.low for each in data.lifts], [each.high for each in data.lifts], "soft"),
    ]
    names = ("95 %, however often you look", "95 %, if you look once")
    for (_, filled), name in zip(bands, names, strict=True):
        filled["name"] = name
    line = {
        "x": x,
        "y": numbers(each.per_contact for each in data.lifts),
        "name": "lift per contact",
        "mode": "lines+markers",
        "line": {"color": "accent", "width": 3},
        "marker": {"color": "accent", "size": 8},
        "hovertemplate": "after round %{x}: %{y:+.4g}<extra></extra>",
    }
    closed = [each for each in data.rounds if each.number in set(data.lift_rounds)]
    figure = figure_of([*bands[0], *bands[1], line], x=round_axis(closed), y="lift per contact")
    figure["layout"]["shapes"] = [line_at("y", 0.0)]
    return figure


def exploration(data: ReportData) -> Figure:
    """Return the share of exploration in each round."""
    rounds = [each for each in data.rounds if math.isfinite(each.exploring)]
    trace = {
        "type": "bar",
        "x": [each.number for each in rounds],
        "y": numbers(each.exploring for each in rounds),
        "name": "exploration",
        "marker": {"color": "accent"},
        "hovertemplate": "round %{x}: %{y:.1%}<extra></extra>",
    }
    figure = figure_of([trace], x=round_axis(rounds), y="share of the chosen")
    figure["layout"]["yaxis"] |= {"tickformat": ".0%", "rangemode": "tozero"}
    return figure


def certificate(data: ReportData) -> Figure:
    """Return the bound on the loss per contact, beside the reward per contact."""
    found = data.certificate
    assert found is not None
    x = [each.number for each in data.rounds]
    bound = {
        "x": x,
        "y": [lost / max(contacts, 1) for lost, contacts in zip(found.lost, found.contacts, strict=True)],
        "name": "lost per contact, at most",
        "mode": "lines+markers",
        "line": {"color": "warm", "width": 3},
        "marker": {"color": "warm", "size": 8, "symbol": "diamond"},
        "hovertemplate": "after round %{x}: at most %{y:.4g}<extra></extra>",
    }
    earned = {
        "x": [each.number for each in data.rounds if each.closed],
        "y": numbers(each.chosen.value for each in data.rounds if each.closed),
        "name": "earned per contact",
        "mode": "lines+markers",
        "line": {"color": "neutral", "width": 2, "dash": "dash"},
        "marker": {"color": "neutral", "size": 8, "symbol": "square-open"},
        "hovertemplate": "round %{x}: %{y:.4g}<extra></extra>",
    }
    figure = figure_of([earned, bound], x=round_axis(data.rounds), y=f"{short(data.reward)} per contact")
    figure["layout"]["yaxis"]["rangemode"] = "tozero"
    return figure


def coefficients(data: ReportData) -> Figure:
    """Return the largest coefficients with their intervals."""
    some = list(reversed(data.coefficients[:MOST_COEFFICIENTS]))
    values = [each.value for each in some]
    ends = [ends_of(each) for each in some]
    return dots([each.name for each in some], values, ends, x=f"change of {short(data.reward)}")


def calibration(data: ReportData) -> Figure:
    """Return the observed against the predicted rewards, with the line on which they are equal."""
    x = [each.predicted for each in data.calibration]
    observed = [each.observed for each in data.calibration]
    ends = [min([*x, *(each.value for each in observed)]), max([*x, *(each.value for each in observed)])]
    equal = {
        "x": ends,
        "y": ends,
        "mode": "lines",
        "name": "as predicted",
        "line": {"color": "neutral", "width": 2, "dash": "dash"},
        "hoverinfo": "skip",
    }
    points = {
        "x": x,
        "y": [each.value for each in observed],
        "error_y": error_bars([ends_of(each) for each in observed], "accent"),
        "mode": "markers",
        "name": "observed",
        "marker": {"color": "accent", "size": 10},
        "hovertemplate": "predicted %{x:.4g}, observed %{y:.4g}<extra></extra>",
    }
    reward = short(data.reward)
    return figure_of([equal, points], x={"title": {"text": f"predicted {reward}"}}, y=f"observed {reward}")


def quota(data: ReportData, i: int) -> Figure:
    """Return the contacts of each group in the last round, of the largest ones, with the bounds of a quota."""
    largest = sorted(data.quotas[i].groups, key=lambda each: -each.counts[-1])[:MOST_GROUPS]
    groups = sorted(largest, key=lambda each: each.name, reverse=True)
    names = distinct([each.name for each in groups])
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": [each.counts[-1] for each in groups],
        "name": f"contacts in round {data.rounds[-1].number}",
        "marker": {"color": "accent"},
        "width": 0.55,
        "hovertemplate": "%{y}: %{x:,} contacts<extra></extra>",
    }
    marks = [
        {
            "y": names,
            "x": [getattr(each, bound) for each in groups],
            "name": words,
            "mode": "markers",
            "marker": {"color": colour, "size": 24, "symbol": "line-ns-open", "line": {"color": colour, "width": 3}},
            "hovertemplate": f"%{{y}}: {words} %{{x:,}}<extra></extra>",
        }
        for bound, words, colour in (("at_least", "at least", "ink"), ("at_most", "at most", "warm"))
        if any(getattr(each, bound) is not None for each in groups)
    ]
    figure = figure_of([bars, *marks], x={"title": {"text": "contacts"}, "rangemode": "tozero"}, y="")
    return by_name(figure, len(names))


def surprises(data: ReportData) -> Figure:
    """Return how far the outcomes of groups are from the predictions, in standard errors."""
    some = list(reversed(data.groups))
    distances = [each.distance for each in some]
    figure = dots([each.name for each in some], distances, None, x="standard errors")
    figure["data"][0]["marker"]["symbol"] = ["circle" if each.chance < RARE else "circle-open" for each in some]
    return figure


def outstanding(data: ReportData) -> Figure:
    """Return what became of the contacts of each round."""
    kinds = (
        ("came", "outcome came", "accent", ""),
        ("assumed", "counted as no outcome", "soft", "/"),
        ("outstanding", "outstanding", "grid", "."),
        ("unknown", "unknown for good", "neutral", "x"),
    )
    traces = [
        {
            "type": "bar",
            "x": [each.number for each in data.rounds],
            "y": [getattr(each, kind) for each in data.rounds],
            "name": words,
            "marker": {
                "color": colour,
                "pattern": {"shape": shape, "fillmode": "overlay", "fgcolor": "ink", "fgopacity": 0.45, "size": 7},
            },
            "hovertemplate": f"round %{{x}}: %{{y:,}} {words}<extra></extra>",
        }
        for kind, words, colour, shape in kinds
        if any(getattr(each, kind) for each in data.rounds)
    ]
    figure = figure_of(traces, x=round_axis(data.rounds), y="contacts")
    figure["layout"]["barmode"] = "stack"
    return figure
