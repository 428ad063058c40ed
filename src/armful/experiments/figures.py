"""Figures: first what is drawn, a plain record, then the drawing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from armful.experiments.results import Result

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which people with any kind of colour vision tell apart."""
MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Line:
    """A named line with error bars: `spread`, one standard error."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float]


@dataclass(frozen=True)
class Figure:
    """What is drawn."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_y: bool = True

    def save(self, path: Path, styles: dict[str, int]) -> None:
        """Draw to `path.png` and `path.svg`."""
        canvas = Canvas(figsize=(8.2, 4.8), layout="constrained", dpi=150)
        FigureCanvasAgg(canvas)
        draw(self, canvas.subplots(), styles)
        canvas.savefig(f"{path}.png")
        canvas.savefig(f"{path}.svg", metadata={"Date": None})


def style_of(policies: Iterable[str]) -> dict[str, int]:
    """A style for each policy, the same in all figures of a report."""
    return {policy: i for i, policy in enumerate(dict.fromkeys(policies))}


def regret_by_size(results: Sequence[Result], title: str) -> Figure:
    """Regret against the number of arms pulled, a line for each policy."""
    return Figure(
        title,
        "arms pulled, kT",
        "regret",
        _lines(results, lambda r: (r.pulled, r.mean, r.stderr)),
    )


def regret_by_round(results: Sequence[Result], title: str) -> Figure:
    """Cumulative regret after each round, a line for each policy."""
    lines = [Line(r.policy, list(range(1, r.rounds + 1)), r.curve, r.curve_stderr) for r in results]
    return Figure(title, "round", "regret so far", lines)


def _lines(results: Sequence[Result], point: Callable[[Result], tuple[float, float, float]]) -> list[Line]:
    lines = []
    for policy in dict.fromkeys(result.policy for result in results):
        points = sorted(point(result) for result in results if result.policy == policy)
        x, y, spread = (list(column) for column in zip(*points, strict=True))
        lines.append(Line(policy, x, y, spread))
    return lines


def draw(figure: Figure, axes: Axes, styles: dict[str, int]) -> None:
    """Draw on `axes`, with each line's name at its right end."""
    for line in figure.lines:
        i = styles[line.name]
        axes.errorbar(
            line.x,
            line.y,
            yerr=np.nan_to_num(line.spread),
            color=PALETTE[i % len(PALETTE)],
            marker=MARKERS[i % len(MARKERS)],
            linestyle="-" if i < len(PALETTE) else "--",
            markersize=5,
            linewidth=1.6,
            capsize=2.5,
        )
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    axes.title.set_fontsize(11)
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _log_axes(figure, axes)
    _label_ends(figure, axes, styles)


def _log_axes(figure: Figure, axes: Axes) -> None:
    if figure.log_y and all(y > 0 for line in figure.lines for y in line.y):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xscale("log")
    ticks = sorted({x for line in figure.lines for x in line.x})
    if len(ticks) > 10:
        ticks = [tick for tick in ticks if tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) or tick == ticks[-1]]
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _label_ends(figure: Figure, axes: Axes, styles: dict[str, int]) -> None:
    """Names beside the ends of the lines, moved apart where they would overlap."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    to_axes = axes.transAxes.inverted()
    ends = []
    for line in figure.lines:
        x, y = to_axes.transform(axes.transData.transform((line.x[-1], line.y[-1])))
        ends.append((y, x, line.name))
    ends.sort()
    places = _apart([y for y, _, _ in ends], gap=0.055)
    for (y, x, name), place in zip(ends, places, strict=True):
        colour = PALETTE[styles[name] % len(PALETTE)]
        arrow: dict[str, Any] = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2}
        arrow["relpos"] = (0, 0.5)  # from the middle of the name's left side, so that it crosses no other name
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(1.05, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
            va="center",
            arrowprops=arrow,
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Rising heights moved as little as needed to be `gap` apart: neighbours that touch move as one block."""
    blocks: list[tuple[float, int]] = []  # (middle, number of labels)
    for height in heights:
        middle, size = height, 1
        while blocks and middle - gap * size / 2 < blocks[-1][0] + gap * blocks[-1][1] / 2:
            other, count = blocks.pop()
            middle, size = (middle * size + other * count) / (size + count), size + count
        blocks.append((middle, size))
    return [middle + gap * (i - (size - 1) / 2) for middle, size in blocks for i in range(size)]
