"""What notebooks show: a database's report as frames, turns as pictures, and thresholds to slide.

Pictures are SVG that stands alone, so that a committed notebook can be read on the web.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from analytics.database import open_database
from analytics.decision import Costed
from analytics.errors import InputError
from analytics.recording import Label
from analytics.replay import Replay
from analytics.report import verdict_words, words
from analytics.report.build import build_report
from analytics.report.render import charts
from analytics.report.strip import ROW, Strip, letter, strip_of, strip_svg
from analytics.report.turn import build_turn, find_turn
from analytics.report.turn_policies import turn_policies
from analytics.report.value import WeeklyReport
from analytics.validation.settings import read_settings
from guard.policy import SIGNALS, CapPolicy

DEMO = Path("build/demo")  # where `make demo` leaves the bundled turns
STATIC = "TURNCAP_STATIC"  # set: sliders are drawn once, as a picture, even where widgets work
CAPTION = 18  # pixels for the words above a strip


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG that Jupyter and the web show; `text` says in words what is on it."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text


def open_turns(database: Path | str | None = None) -> duckdb.DuckDBPyConnection:
    """Open a database; None stands for the bundled turns, which are sent through the demo when needed."""
    if database is not None:
        return open_database(database)
    root = next(
        (up for up in (Path.cwd(), *Path.cwd().parents) if (up / "pyproject.toml").is_file()), Path.cwd()
    )
    folder = root / DEMO
    if not (folder / "turns.duckdb").is_file():
        from analytics.cli import main

        main(["demo", "--out", str(folder)])
    return open_database(folder / "turns.duckdb")


def report_of(connection: duckdb.DuckDBPyConnection) -> WeeklyReport:
    """The report over everything, by the settings that come with turncap."""
    return build_report(connection, read_settings())


def waterfall(report: WeeklyReport) -> pd.DataFrame:
    """Turns left after each step, and left out by it."""
    return pd.DataFrame([asdict(step) for step in report.waterfall]).set_index("name")


def gates(report: WeeklyReport) -> pd.DataFrame:
    """Each gate of data quality with its state and what was counted."""
    rows = [{"gate": gate.name, "state": str(gate.state), "counted": gate.text} for gate in report.gates]
    return pd.DataFrame(rows).set_index("gate")


def verdicts(report: WeeklyReport) -> pd.DataFrame:
    """The words, with the rate that comes first and its one-sided bounds."""
    return pd.DataFrame([
        {
            "threshold": f"{verdict_words.threshold_name(one)} = {one.running}",
            "verdict": str(one.word),
            "leaning": "" if one.lean in (None, one.word) else str(one.lean),
            "rate": one.first.name,
            "events": verdict_words.events(one.first),
            "low": one.first.low,
            "high": one.first.high,
            "accepted": one.tolerances[0],
        }
        for one in report.verdicts
    ]).set_index("threshold")  # fmt: skip


def grid(report: WeeklyReport, column: str = "cost") -> pd.DataFrame:
    """A field of every K (rows) and S (columns) at the running signal and backstop; see `Costed`."""
    return pd.DataFrame([_cell(one, column) for one in report.grid]).pivot(
        index="stuck at", columns="soft cap", values=column
    )


def _cell(one: Costed, column: str) -> dict[str, object]:
    return {"stuck at": one.policy.stuck_at, "soft cap": one.policy.soft_cap, column: getattr(one, column)}


def signals(report: WeeklyReport) -> pd.DataFrame:
    """The signals side by side: a row a signal and K, a column a soft cap."""
    rows = [
        {"signal": one.signal, "K": one.k, "S": f"S = {one.soft_cap}", "cell": words.side(one)}
        for one in report.signals
    ]
    order = pd.MultiIndex.from_tuples(dict.fromkeys((one.signal, one.k) for one in report.signals))
    wide = pd.DataFrame(rows).pivot(index=["signal", "K"], columns="S", values="cell")
    return wide.reindex(order.set_names(["signal", "K"]))[list(dict.fromkeys(row["S"] for row in rows))]


def kinds(report: WeeklyReport) -> pd.DataFrame:
    """Turns of each kind in both populations that look stuck: as judged at the call, and seen whole."""
    rows = [
        {
            "population": one.population,
            "kind": one.kind or "calls not recorded",
            "turns": one.turns,
            "seen whole": one.whole,
            "labels that agree": f"{one.labelled_agree} of {one.labelled}",
        }
        for one in report.false_stuck
    ]
    return pd.DataFrame(rows).set_index(["population", "kind"])


def examples(report: WeeklyReport, kind: str, most: int = 5) -> Picture:
    """Turns of one kind among all in which some call is made K times."""
    found = [one for one in report.examples if (one.population, one.kind) == ("repeated", kind)]
    return stacked([(words.example(one), one.strip) for one in found[:most]])


def repeats(connection: duckdb.DuckDBPyConnection, turn_id: str) -> pd.DataFrame:
    """The calls that one turn made more than once."""
    turn = build_turn(connection, find_turn(connection, turn_id))
    rows = [
        {
            "call": letter(one.rank), "tool": one.tool, "times": one.times, "first": one.first_call,
            "last": one.last_call, "results": one.results, "failed": one.errors,
        }
        for one in turn.repeats
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("call") if rows else pd.DataFrame()


def signals_of(connection: duckdb.DuckDBPyConnection, turn_id: str) -> pd.DataFrame:
    """What each signal says of one turn, and where it would halt it."""
    found = turn_policies(connection, build_turn(connection, find_turn(connection, turn_id)))
    heads = list(words.signal_heads(found))
    return pd.DataFrame(words.signal_rows(found), columns=heads).set_index(heads[0])


def unknown(connection: duckdb.DuckDBPyConnection, turn_id: str) -> tuple[str, ...]:
    """What cannot be known of one turn."""
    return turn_policies(connection, build_turn(connection, find_turn(connection, turn_id))).unknown


def chart(report: WeeklyReport, name: str) -> Picture:
    """One chart of the report: calls, repeats, grid or trend."""
    found = charts(report)[name]
    return Picture(standalone(found.wide), found.alt)


def strips(connection: duckdb.DuckDBPyConnection, turns: Iterable[str]) -> Picture:
    """Turns as strips, each under its words."""
    drawn = []
    for turn_id in turns:
        turn = build_turn(connection, find_turn(connection, turn_id))
        label = {True: "labelled stuck", False: "labelled not stuck", None: "not read"}[turn.stuck]
        drawn.append((f"{words.strip_alt(turn)} {label[0].upper()}{label[1:]}.", strip_of(turn)))
    return stacked(drawn)


def stacked(drawn: Sequence[tuple[str, Strip]]) -> Picture:
    """Strips below each other, each under its caption."""
    if not drawn:
        drawn = [("No such turn was seen.", Strip(turn_id="", ranks=(), failed=(), changes=(), halts=()))]
    parts, y = [], 0
    for caption, strip in drawn:
        height = -(-len(strip.ranks) // 50) * ROW + 4
        svg = strip_svg(strip, alt=caption).replace(
            "<svg ", f'<svg y="{y + CAPTION}" width="601" height="{height}" ', 1
        )
        svg = re.sub(r' style="max-width:\d+px"', ' preserveAspectRatio="xMinYMin"', svg)
        parts.append(f'<text class="caption" x="1" y="{y + 12}">{html.escape(caption)}</text>{svg}')
        y += CAPTION + height + 8
    text = "\n".join(caption for caption, _ in drawn)
    body = "".join(parts)
    return Picture(
        standalone(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 603 {y}" width="603">{body}</svg>'),
        text,
    )


def standalone(svg: str) -> str:
    """An SVG of a page with the page's light colours and rules inside it."""
    head, rest = svg.split(">", 1)
    if "xmlns=" not in head:
        head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    ground = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    return _resolved(f"{head}><style>{_strip_rules()}</style>{ground}{rest}")


def _resolved(text: str) -> str:
    light = re.search(r":root \{(.*?)\}", _css(), re.DOTALL)
    values = dict(re.findall(r"(--[\w-]+): ([^;]+);", light[1] if light else ""))
    return re.sub(r"var\((--[\w-]+)\)", lambda found: values[found[1]].replace('"', "'"), text)


def _strip_rules() -> str:
    rules = [rule.replace(".strip ", "") for rule in re.findall(r"\.strip \.[^{]+\{[^}]+\}", _css())]
    letters = "svg.strip text { font: 600 9px monospace; text-anchor: middle; fill: #14171a; }"
    return letters + ".caption { font: 12px sans-serif; fill: var(--ink); }" + "".join(rules)


@cache
def _css() -> str:
    return files("analytics.report").joinpath("templates", "report.css").read_text(encoding="utf-8")


class Thresholds:
    """The recorded turns under any thresholds: who would be halted, and what that would save and cost."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.replay = Replay.of(connection)

    def halted(
        self, *, signal: str = "repeat", stuck_at: int = 6, soft_cap: int = 100, backstop: int = 1000
    ) -> pd.DataFrame:
        """One row a turn that is halted for certain: its label, calls, halting call and calls after it."""
        policy = CapPolicy.adaptive(
            signal=signal, stuck_at=stuck_at, soft_cap=soft_cap, backstop=max(backstop, soft_cap, 1)
        )
        halts, turns = self.replay.halts(policy), self.replay.turns
        at = np.flatnonzero(halts.halted)
        names = {Label.STUCK: "stuck", Label.NOT_STUCK: "not stuck", Label.UNREAD: "not read"}
        return pd.DataFrame({
            "turn_id": turns.turn_id[at],
            "label": [names[Label(one)] for one in turns.label[at]],
            "calls": turns.calls[at],
            "halted_at": halts.high[at],
            "calls_after": turns.calls[at] - halts.high[at] + 1,
        })  # fmt: skip

    def one_to_look_at(self) -> str:
        """The turn that the released rule halts with most calls after it; else the most repetitive one."""
        halted, turns = self.halted(), self.replay.turns
        if len(halted):
            return str(halted["turn_id"].iloc[int(halted["calls_after"].argmax())])
        if not len(turns):
            raise InputError("the database has no turn; load telemetry with turncap load")
        return str(turns.turn_id[np.lexsort((turns.calls, turns.max_repeat))[-1]])

    def totals(self, **thresholds: int | str) -> pd.DataFrame:
        """Turns halted and calls from the halting call on, by label."""
        found = self.halted(**thresholds)  # type: ignore[arg-type]
        order = ["stuck", "not stuck", "not read"]
        groups = found.groupby("label")["calls_after"]
        sums = pd.DataFrame({"turns": groups.count(), "calls": groups.sum()})
        return sums.reindex(order, fill_value=0)

    def picture(self, most: int = 5, **thresholds: int | str) -> Picture:
        """The totals in words, and up to `most` halted turns that are not labelled stuck, drawn."""
        found = self.halted(**thresholds)  # type: ignore[arg-type]
        wrong = found[found["label"] != "stuck"].sort_values(
            ["calls_after", "turn_id"], ascending=[False, True]
        )
        drawn = []
        for row in wrong.head(most).itertuples():
            strip = strip_of(build_turn(self.connection, str(row.turn_id)))
            strip = Strip(
                turn_id=strip.turn_id, ranks=strip.ranks, failed=strip.failed, changes=strip.changes,
                halts=(int(str(row.halted_at)),),
            )  # fmt: skip
            drawn.append((f"{row.label}, halted at call {row.halted_at} of {row.calls}", strip))
        sums = self.totals(**thresholds)
        turns, calls = sums["turns"].tolist(), sums["calls"].tolist()  # stuck first
        said = (
            f"{turns[0]:,} stuck turns halted, {calls[0]:,} calls saved; "
            f"{sum(turns[1:]):,} others halted, {sum(calls[1:]):,} calls cut"
        )
        picture = stacked(drawn)
        return Picture(picture.svg, f"{said}\n{picture.text}")


def sliders(thresholds: Thresholds) -> Any:
    """S, K, H and the signal to slide in Jupyter; one picture at the released values anywhere else."""
    try:
        if os.environ.get(STATIC):
            raise ImportError
        widgets = import_module("ipywidgets")
    except ImportError:
        return thresholds.picture()

    def show(signal: str, stuck_at: int, soft_cap: int, backstop: int) -> Picture:
        picture = thresholds.picture(signal=signal, stuck_at=stuck_at, soft_cap=soft_cap, backstop=backstop)
        print(picture.text.splitlines()[0])
        return picture

    slider = partial(widgets.IntSlider, continuous_update=False)
    return widgets.interactive(
        show,
        signal=widgets.Dropdown(options=list(SIGNALS), value="repeat"),
        stuck_at=slider(value=6, min=2, max=30, description="K"),
        soft_cap=slider(value=100, min=0, max=300, step=5, description="S"),
        backstop=slider(value=1000, min=50, max=2000, step=50, description="H"),
    )
