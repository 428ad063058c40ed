"""Figures: first a plain record of what is drawn, then the drawing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, NullLocator
from scipy.optimize import isotonic_regression

from armful.checks import FloatArray, IntArray
from armful.experiments.results import Result
from armful.files._atomic_file import write_bytes

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which people with any kind of colour vision tell apart."""
MARKERS = "osD^vPX*h"
DASHES = ("-", "--", ":", "-.")
LONGEST_NAME, LONGEST_TITLE = 30, 70
"""In characters. Longer ones would leave the lines no room, and lose their middle."""


@dataclass(frozen=True)
class Line:
    """A named line with error bars: `spread`, one standard error. A reference is what the others are compared with."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float]
    is_reference: bool = False


@dataclass(frozen=True)
class Figure:
    """Title, labels and lines of a figure."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_y: bool = True

    def save(self, path: Path, styles: dict[str, int]) -> None:
        """Draw to `path.png` and `path.svg`."""
        canvas = Canvas(figsize=(7.0, 4.6), layout="constrained", dpi=150)
        FigureCanvasAgg(canvas)
        draw(self, canvas.subplots(), styles)
        for ending, metadata in (("png", {}), ("svg", {"Date": None})):
            drawn = BytesIO()
            canvas.savefig(drawn, format=ending, metadata=metadata)
            write_bytes(Path(f"{path}.{ending}"), drawn.getvalue())


def style_of(policies: Iterable[str]) -> dict[str, int]:
    """Return a style for each policy, the same in all figures of a report."""
    return {policy: i for i, policy in enumerate(dict.fromkeys(policies))}


def regret_by_size(results: Sequence[Result], title: str) -> Figure:
    """Return the figure of regret against the number of arms pulled, a line for each policy."""
    pulled = "arms pulled, kT" if all(r.pulled == r.k * r.rounds for r in results) else "arms pulled"
    lines = []
    for policy in dict.fromkeys(result.policy for result in results):
        x, y, spread = zip(*sorted((r.pulled, r.mean, r.stderr) for r in results if r.policy == policy), strict=True)
        lines.append(Line(policy, x, y, spread))
    return Figure(title, pulled, "regret", lines)


def regret_by_round(results: Sequence[Result], title: str) -> Figure:
    """Return the figure of cumulative regret after each round, a line for each policy."""
    lines = [Line(r.policy, list(range(1, r.rounds + 1)), r.curve, r.curve_stderr) for r in results]
    return Figure(title, "round", "regret so far", lines)


def draw(figure: Figure, axes: Axes, styles: dict[str, int]) -> None:
    """Draw on `axes`, references first, with each line's name at its right end."""
    for line in sorted(figure.lines, key=lambda line: not line.is_reference):
        _draw_line(line, axes, styles[line.name])
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    axes.set_title(shortened(figure.title, LONGEST_TITLE), fontsize=11, parse_math=False)
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _scale(figure, axes)
    _label_ends(figure, axes, styles)


def _draw_line(line: Line, axes: Axes, style: int) -> None:
    colour = PALETTE[style % len(PALETTE)]
    dashes = DASHES[style // len(PALETTE) % len(DASHES)]
    axes.plot(line.x, line.y, color=colour, linestyle=dashes, linewidth=1.6)
    x, y, spread = (np.asarray(column, dtype=float) for column in (line.x, line.y, line.spread))
    if line.is_reference:
        axes.fill_between(x, y - spread, y + spread, color=colour, alpha=0.12, linewidth=0)
        return
    at = _marked(len(x), style)
    marker = MARKERS[style % len(MARKERS)]
    axes.errorbar(x[at], y[at], spread[at], color=colour, fmt=marker, markersize=5, elinewidth=1.2, capsize=2.5)


def _marked(n_points: int, style: int) -> IntArray:
    """Return the points with a marker and an error bar: all of a few, some of many, different ones for each style."""
    if n_points <= 10:
        return np.arange(n_points)
    fractions = (np.arange(7) + style % len(MARKERS) / len(MARKERS)) / 7
    return np.unique((n_points**fractions).astype(int)) - 1


def _scale(figure: Figure, axes: Axes) -> None:
    """Set log axes where everything is positive, with ticks at round numbers."""
    x = [value for line in figure.lines for value in line.x]
    y = [height for line in figure.lines for height in (*line.y, *np.add(line.y, np.nan_to_num(line.spread)))]
    log_x, log_y = min(x) > 0, figure.log_y and min(y) > 0
    axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    if log_x and min(x) == max(x):
        axes.set_xlim(x[0] / 2, x[0] * 2)
    bottom, top = axes.get_ylim()
    if log_y:  # an error bar that reaches down to zero must not flatten everything else
        axes.set_ylim(max(bottom, min(y) / 2), min(top, max(y) * 2))
    ticks_x = _data_ticks(x) or round_numbers(*axes.get_xlim(), log=log_x, most=8)
    ticks_y = round_numbers(*axes.get_ylim(), log=log_y, most=6)
    for axis, ticks in ((axes.xaxis, ticks_x), (axes.yaxis, ticks_y)):
        axis.set_ticks(ticks, labels=[f"{tick:,.10g}" for tick in ticks])
        axis.set_minor_locator(NullLocator())


def _data_ticks(values: Sequence[float]) -> list[float]:
    """Return the values themselves if they are few, short to write and apart on a log axis; else none."""
    own = sorted(set(values))
    if not 2 <= len(own) <= 8 or own[0] <= 0 or any(value % 1 and value != float(f"{value:.2g}") for value in own):
        return []
    logs = np.log(own)
    return own if np.diff(logs).min() > 0.08 * (logs[-1] - logs[0]) else []


def round_numbers(low: float, high: float, *, log: bool, most: int) -> list[float]:
    """Return at least three round numbers between low and high, and hardly ever more than `most`.

    Examples
    --------
    >>> round_numbers(0.8, 250, log=True, most=8), round_numbers(130, 190, log=True, most=6)
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0], [130.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0])
    """
    if log:
        exponents = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        for digits in ("12357", "125", "13", "1"):
            ticks = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
            ticks = [tick for tick in ticks if low <= tick <= high]
            if len(ticks) <= most:
                break
        if len(ticks) >= 3:
            return ticks[:: math.ceil(len(ticks) / most)]
    even = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=3).tick_values(low, high)
    return [float(tick) + 0.0 for tick in even if low <= tick <= high]  # -0.0 becomes 0.0


def _label_ends(figure: Figure, axes: Axes, styles: dict[str, int]) -> None:
    """Write names next to the ends of the lines, moved apart where they would overlap."""
    lines = sorted(figure.lines, key=lambda line: line.y[-1])
    heights = (axes.transData - axes.transAxes).transform([(line.x[-1], line.y[-1]) for line in lines])[:, 1]
    for line, height in zip(lines, _apart(heights, gap=0.062), strict=True):
        colour = PALETTE[styles[line.name] % len(PALETTE)]
        arrow: dict[str, Any] = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2}
        arrow["relpos"] = (0, 0.5)  # from the middle of the name's left side, so that it crosses no other name
        axes.annotate(
            shortened(line.name, LONGEST_NAME),
            xy=(line.x[-1], line.y[-1]),
            xytext=(1.05, height),
            textcoords="axes fraction",
            color=ink(colour),
            fontsize=10,
            va="center",
            parse_math=False,  # a $ in a name is a $
            arrowprops=arrow,
        )


def shortened(name: str, most: int) -> str:
    """Return a name without its middle if it has more than `most` characters.

    Examples
    --------
    >>> shortened("CappedC2UCB", 30), shortened("CappedC2UCB-with-noise-estimated-online-v2", 20)
    ('CappedC2UCB', 'CappedC2UC…online-v2')
    """
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def ink(colour: str) -> tuple[float, float, float]:
    """Return the colour, darkened for small letters on white."""
    red, green, blue = (0.6 * part for part in to_rgb(colour))
    return red, green, blue


def _apart(heights: FloatArray, gap: float) -> FloatArray:
    """Return rising heights moved as little as needed to be `gap` apart, or closer where the axes have no room."""
    steps = min(gap, 0.95 / max(1, len(heights) - 1)) * np.arange(len(heights))
    level = isotonic_regression(heights - steps).x
    return np.clip(level, 0.025, 0.975 - steps[-1]) + steps
