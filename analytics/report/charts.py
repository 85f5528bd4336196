"""Charts as static SVG to stand inside a page: the same bytes for the same numbers.

Colours are written as the page's own variables, so that a chart follows light, dark and print.
Each chart comes twice, wide and narrow; the page shows the one that fits.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from analytics.report.value import Counts, survival

# Stand-ins that Matplotlib can draw with, and the page's variables that replace them.
INK, SOFT, LINE, ACCENT, WARN = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line", ACCENT: "--accent", WARN: "--warn"}
WIDE_TICKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000)
NARROW_TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000)
WIDE, NARROW = (7.2, 3.3), (3.6, 3.0)  # inches; 96 page pixels each


Draw = Callable[[Axes, bool], None]  # the second argument: wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart as SVG text for wide and narrow screens; `alt` says in words what it shows."""

    wide: str
    narrow: str
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A limit on the x axis and what is written at it."""

    at: int
    text: str


def survival_chart(name: str, counts: Counts, marks: Sequence[Mark], *, x: str, y: str, alt: str) -> Chart:
    """Share of turns that reach each number, on two logarithmic axes, with the limits marked."""
    numbers, shares = survival(counts)
    total = sum(turns for _, turns in counts)
    left, right = min(1, numbers[0]), max([numbers[-1], *(mark.at for mark in marks)]) * 1.35

    def draw(axes: Axes, wide: bool) -> None:
        axes.step([*numbers, numbers[-1]], [*shares, 0.5 / total], where="post", color=ACCENT, linewidth=2)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(0.5 / total, 1.3)
        ticks = [tick for tick in (WIDE_TICKS if wide else NARROW_TICKS) if tick <= right]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: _percent(share)))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        _mark(axes, marks, left, right)

    return _chart(name, draw, alt)


def _mark(axes: Axes, marks: Sequence[Mark], left: float, right: float) -> None:
    """A dashed line at each limit, its words above the chart, each on a line of its own."""
    for height, mark in enumerate(marks):
        across = math.log(mark.at / left) / math.log(right / left)
        side = "left" if across < 0.2 else "right" if across > 0.6 else "center"
        axes.axvline(mark.at, color=WARN, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            mark.text, (across, 1), (0, 3 + 11 * height), ha=side, va="bottom", color=WARN,
            xycoords="axes fraction", textcoords="offset points",
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _chart(name: str, draw: Draw, alt: str) -> Chart:
    return Chart(
        wide=_svg(f"{name}-wide", draw, WIDE, alt), narrow=_svg(f"{name}-narrow", draw, NARROW, alt), alt=alt
    )


def _svg(salt: str, draw: Draw, size: tuple[float, float], alt: str) -> str:
    with _style(salt):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        draw(axes, size == WIDE)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for stand_in, variable in VARIABLES.items():
        text = text.replace(stand_in, f"var({variable})")
    # The page's own typeface, at the size Matplotlib laid out.
    text = re.sub(r"font-family: [^;]+", "font-family: var(--sans)", text)
    # A style element would hold for the whole page, and several charts would share these ids.
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", text)
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{html.escape(alt)}">{rest}'


@contextmanager
def _style(salt: str) -> Iterator[None]:
    with mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": salt,
            "font.size": 9,
            "axes.linewidth": 0.8,
            "text.color": INK,
            "axes.labelcolor": INK,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "axes.edgecolor": SOFT,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
        }
    ):
        yield
