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
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from analytics.report.trend import Group
from analytics.report.value import Counts, survival

# Stand-ins that Matplotlib can draw with, and the page's variables that replace them.
INK, SOFT, LINE, ACCENT, WARN = "#010101", "#020202", "#030303", "#040404", "#050505"
# From much cheaper than what runs, over equal, to much dearer.
SHADES = ("#060606", "#070707", "#080808", "#090909", "#0a0a0a", "#0b0b0b", "#0c0c0c")
VARIABLES = {
    INK: "--ink", SOFT: "--soft", LINE: "--line", ACCENT: "--accent", WARN: "--warn",
    **{shade: f"--shade{number}" for number, shade in enumerate(SHADES)},
}  # fmt: skip
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One policy of the grid; costs in calls."""

    k: int
    soft_cap: int
    text: str
    cost: float
    running_cost: float
    runs: bool


def grid_chart(name: str, cells: Sequence[Cell], *, alt: str) -> Chart:
    """K down, S across; shaded by cost against what runs, which is framed."""
    levels, caps = sorted({cell.k for cell in cells}), sorted({cell.soft_cap for cell in cells})

    def draw(axes: Axes, wide: bool) -> None:
        for cell in cells:
            x, y = caps.index(cell.soft_cap), levels.index(cell.k)
            axes.add_patch(
                Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=_shade(cell), edgecolor="none")
            )
            axes.text(x, y, cell.text, ha="center", va="center", fontsize=9 if wide else 7.5, color=INK)
        for cell in cells:
            if cell.runs:
                x, y = caps.index(cell.soft_cap), levels.index(cell.k)
                axes.add_patch(
                    Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, fill=False, edgecolor=INK, linewidth=2)
                )
        axes.set_xlim(-0.5, len(caps) - 0.5)
        axes.set_ylim(len(levels) - 0.5, -0.5)
        axes.set_xticks(range(len(caps)), [f"{cap:,}" for cap in caps])
        axes.set_yticks(range(len(levels)), [f"{level:,}" for level in levels])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.grid(False)
        axes.set_xlabel("soft cap S")
        axes.set_ylabel("stuck at K")

    return _chart(name, draw, alt)


def _shade(cell: Cell) -> str:
    """By the ratio of costs: each shade is a doubling; the middle one within a tenth."""
    ratio = math.log2((cell.cost + 1) / (cell.running_cost + 1))
    step = 0 if abs(ratio) < math.log2(1.1) else math.copysign(min(3, 1 + int(abs(ratio))), ratio)
    return SHADES[3 + int(step)]


def trend_chart(name: str, weeks: Sequence[Group], *, alt: str) -> Chart:
    """Two shares a week with their intervals."""

    def draw(axes: Axes, wide: bool) -> None:
        places = range(len(weeks))
        for shares, colour, text in (
            ([week.long for week in weeks], ACCENT, "past the soft cap"),
            ([week.halted for week in weeks], WARN, "reached a threshold"),
        ):
            middle = [math.nan if share.estimate is None else 100 * share.estimate for share in shares]
            axes.fill_between(
                places, [100 * share.low for share in shares], [100 * share.high for share in shares],
                color=colour, alpha=0.18, linewidth=0,
            )  # fmt: skip
            axes.plot(places, middle, color=colour, linewidth=2, marker="o", markersize=3.5, label=text)
        step = max(1, -(-len(weeks) // (8 if wide else 3)))
        axes.set_xticks(places[::step], [week.name for week in weeks[::step]])
        axes.set_ylim(bottom=0)
        axes.set_ylabel("per cent of turns")
        axes.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2 if wide else 1, borderaxespad=0
        )

    return _chart(name, draw, alt)


def survival_chart(name: str, counts: Counts, marks: Sequence[Mark], *, x: str, y: str, alt: str) -> Chart:
    """Share of turns that reach each number, on two logarithmic axes, with the limits marked."""
    numbers, shares = survival(counts)
    total = sum(turns for _, turns in counts)
    right = max([numbers[-1], *(mark.at for mark in marks)]) * 1.35

    def draw(axes: Axes, wide: bool) -> None:
        line = [1, *numbers, numbers[-1]], [1, *shares, 0.5 / total]  # every turn reaches 1
        axes.step(*line, where="post", color=ACCENT, linewidth=2)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, right)
        axes.set_ylim(0.5 / total, 1.3)
        ticks = [tick for tick in (WIDE_TICKS if wide else NARROW_TICKS) if tick <= right]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: _percent(share)))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        _mark(axes, marks, right)

    return _chart(name, draw, alt)


def _mark(axes: Axes, marks: Sequence[Mark], right: float) -> None:
    """A dashed line at each limit, its words above the chart, each on a line of its own."""
    for height, mark in enumerate(marks):
        across = math.log(mark.at) / math.log(right)
        side = "left" if across < 0.2 else "right" if across > 0.6 else "center"
        axes.axvline(mark.at, color=WARN, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            mark.text, (across, 1), (0, 3 + 11 * height), ha=side, va="bottom", color=WARN,
            xycoords="axes fraction", textcoords="offset points",
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"


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
