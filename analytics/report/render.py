"""A WeeklyReport as JSON, Markdown and one self-contained HTML page."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from analytics.report import words
from analytics.report.charts import Chart, Mark, survival_chart
from analytics.report.value import SCHEMA, WeeklyReport


def write_report(report: WeeklyReport, folder: Path) -> dict[str, Path]:
    """Write report.html, report.md and report.json into `folder`; the paths by suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for suffix, text in (("html", to_html(report)), ("md", to_markdown(report)), ("json", to_json(report))):
        path = folder / f"report.{suffix}"
        fresh = path.with_suffix(f".{suffix}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)  # a reader never sees half a report
        written[suffix] = path
    return written


def to_json(report: WeeklyReport) -> str:
    """The whole value; `schema` is the version of its shape."""
    return json.dumps({"schema": SCHEMA, **asdict(report)}, indent=1, ensure_ascii=False) + "\n"


def to_markdown(report: WeeklyReport) -> str:
    """For a pull request or a chat: the same figures, no picture."""
    return _environment(html=False).get_template("report.md.j2").render(r=report)


def to_html(report: WeeklyReport) -> str:
    """One file that opens anywhere and fetches nothing."""
    return _environment(html=True).get_template("report.html.j2").render(r=report, charts=_charts(report))


def _charts(report: WeeklyReport) -> dict[str, Chart]:
    policy = report.policy
    charts = {}
    if report.length.counts:
        charts["calls"] = survival_chart(
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
        charts["repeats"] = survival_chart(
            "repeats",
            report.repeats.counts,
            _marks((policy.stuck_at, "stuck at K")),
            x="largest repeat of one call in a turn",
            y="share of turns with at least that many",
            alt=words.repeats_alt(report),
        )
    return charts


def _marks(*limits: tuple[int | None, str]) -> list[Mark]:
    return [Mark(at=at, text=f"{text} = {at:,}") for at, text in limits if at is not None]


def _environment(*, html: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("analytics.report", "templates"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(n=words.number, pct=words.percent, cell=_cell)
    environment.globals.update(words=words)
    return environment


def _cell(value: object) -> str:
    """Text that cannot break a Markdown table."""
    return str(value).replace("|", "\\|").replace("\n", " ")
