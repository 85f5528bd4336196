"""A WeeklyReport as JSON, Markdown and one self-contained HTML page."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from analytics.errors import InputError
from analytics.false_stuck import RULES
from analytics.policy_words import halts_at
from analytics.report import verdict_words, words
from analytics.report.charts import Cell, Chart, Mark, grid_chart, survival_chart, trend_chart
from analytics.report.document import document
from analytics.report.strip import letter, strip_of, strip_svg
from analytics.report.turn import TurnView
from analytics.report.turn_policies import TurnPolicies
from analytics.report.value import WeeklyReport


def write_report(report: WeeklyReport, folder: Path) -> dict[str, Path]:
    """Write report.html, report.md and report.json into `folder`; the paths by suffix."""
    texts = (("html", to_html(report)), ("md", to_markdown(report)), ("json", to_json(report)))
    return {suffix: _write(folder / f"report.{suffix}", text) for suffix, text in texts}


def write_page(turn: TurnView, found: TurnPolicies, folder: Path) -> Path:
    """Write the page of one turn into `folder`; its path."""
    return _write(folder / f"turn-{quote(turn.turn_id, safe='')[:100]}.html", turn_page(turn, found))


def _write(path: Path, text: str) -> Path:
    """Write a whole file or none: a reader never sees half a report."""
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give --out another folder") from None
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)  # interrupted, or the disk is full
    return path


def to_json(report: WeeklyReport) -> str:
    """The whole value, one section a line; report.schema.json says what each holds."""
    lines = (
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in document(report).items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def to_markdown(report: WeeklyReport) -> str:
    """For a pull request or a chat: the same figures, no picture."""
    return _environment(html=False).get_template("report.md.j2").render(r=report)


def to_html(report: WeeklyReport) -> str:
    """One file that opens anywhere and fetches nothing."""
    return _environment(html=True).get_template("report.html.j2").render(r=report, charts=charts(report))


def turn_page(turn: TurnView, found: TurnPolicies) -> str:
    """One turn as a page of its own."""
    return (
        _environment(html=True).get_template("turn.html.j2").render(t=turn, found=found, drawn=strip_of(turn))
    )


def charts(report: WeeklyReport) -> dict[str, Chart]:
    """The charts that there are numbers for, by name: calls, repeats, grid, trend."""
    policy = report.policy
    found = {}
    if report.length.counts:
        found["calls"] = survival_chart(
            "calls",
            report.length.counts,
            _marks(
                (policy.soft_cap, "soft cap S"),
                (policy.backstop, "backstop H"),
                (policy.hard_cap, "hard cap N"),
            ),
            x="calls in a turn",
            y="share of turns with at least that many",
            alt=words.calls_alt(report),
        )
    if report.repeats.counts:
        found["repeats"] = survival_chart(
            "repeats",
            report.repeats.counts,
            _marks((policy.stuck_at, "stuck at K")),
            x="largest repeat of one call in a turn",
            y="share of turns with at least that many",
            alt=words.repeats_alt(report),
        )
    if report.grid:
        found["grid"] = grid_chart("grid", _cells(report), alt=words.grid_alt(report))
    if len(report.trend.weeks) > 1:
        found["trend"] = trend_chart("trend", report.trend.weeks, alt=words.trend_alt(report))
    return found


def _cells(report: WeeklyReport) -> list[Cell]:
    running = report.decision.running
    return [
        Cell(
            k=one.policy.stuck_at or 0,
            soft_cap=one.policy.soft_cap or 0,
            text=f"{one.stuck:,}/{one.others:,}" + ("" if one.badge == "exact" else "*"),
            cost=one.cost,
            running_cost=running.cost,
            runs=one.policy == running.policy,
        )
        for one in report.grid
    ]


def _marks(*limits: tuple[int | None, str]) -> list[Mark]:
    """The limits that there are; a soft cap of 0 stands nowhere on a logarithmic axis."""
    return [Mark(at=at, text=f"{text} = {at:,}") for at, text in limits if at]


def _environment(*, html: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("analytics.report", "templates"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(n=words.number, pct=words.percent, cell=_cell, markdown=_markdown)
    environment.globals.update(
        words=words,
        say=verdict_words,
        strip_svg=strip_svg,
        strip_of=strip_of,
        halts_at=halts_at,
        letter=letter,
        rules=RULES,
    )
    return environment


def _cell(value: object) -> str:
    """Text that cannot break a Markdown table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def _markdown(text: str) -> str:
    """Text whose characters mean themselves in Markdown."""
    return re.sub(r"([\\`*_<|])", r"\\\1", text)
