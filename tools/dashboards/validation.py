"""Dashboard *validation*: are the thresholds right? Weekly, from the published snapshot."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import duckdb

from analytics.dashboards import expand
from tools.dashboards.model import Dashboard, Override, Panel, Row, Target, Variable, link_to
from tools.dashboards.style import bars, colours, column, columns, duck, link, series, stat, table

UID, JSON_UID = "turncap-validation", "turncap-validation-json"
TO_TURN = link("Show this turn", "/d/turncap-turn?var-turn_id=${__value.raw}&${duckdb_datasource:queryparam}")
TO_TURN_BARE = link("Show this turn", "/d/turncap-turn?var-turn_id=${__value.raw}")
WORDS = {"validated": "green", "too low": "red", "too high": "red", "insufficient evidence": "yellow"}
WORD_MAPPING = [
    {"type": "value", "options": {word: {"text": word, "color": colour, "index": n}}}
    for n, (word, colour) in enumerate(WORDS.items())
]
STATE_MAPPING = [
    {"type": "value", "options": {state: {"text": state, "color": colour, "index": n}}}
    for n, (state, colour) in enumerate({"green": "green", "amber": "orange", "red": "red"}.items())
]
COLOURED_TEXT = {"custom.cellOptions": {"type": "color-text"}, "mappings": WORD_MAPPING}
SHARE = {"unit": "percentunit", "decimals": 2}

BAND = [
    columns("(low|high).*", **{"custom.lineWidth": 1, "custom.lineStyle": {"fill": "dot", "dash": [2, 6]}})
]

VERDICTS = [
    table(
        "val/verdicts",
        "What the data say of each threshold",
        "`verdict` is what the data prove at this look; `lean` is what the point estimate alone would say, and is no "
        "verdict. Each row is one rate that the verdict rests on, between `low` and `high`, against what is accepted. "
        "FDR: of the halts, the share that hit a turn that was not stuck. FHR: of the turns that were not stuck, the "
        "share that was halted.",
        duck("""
SELECT question, running AS "running at", verdict, lean, rate, estimate, low, high, tolerance AS "accepted up to", reason
FROM report_verdicts"""),
        height=9,
        overrides=[
            column("verdict", **COLOURED_TEXT, **{"custom.width": 170}),
            column("lean", **COLOURED_TEXT, **{"custom.width": 170}),
            column("question", **{"custom.width": 130}),
            column("rate", **{"custom.width": 160}),
            column("running at", **{"custom.width": 100, "custom.align": "left"}),
            column("reason", **{"custom.width": 480}),
            *(column(name, **SHARE, **{"custom.width": 110, "custom.align": "left"}) for name in ("estimate", "low", "high", "accepted up to")),
        ],
        noValue="published without a report: turncap snapshot --report report.json",
    ),
    stat(
        "val/fresh",
        "How fresh are these data?",
        "When the newest turn began, and when files were last read. The alert fires when the snapshot is more than "
        "eight days old.",
        [duck("SELECT epoch_ms(newest_turn) AS \"newest turn\", epoch_ms(loaded) AS \"last load\" FROM freshness")],
        unit="dateTimeFromNow",
        width=8,
        height=4,
        all_fields=True,
    ),
    stat(
        "val/complete",
        "How complete are they?",
        "Turns known; of these, turns that began and whose end was never seen; records that could not be read; halts "
        "that nobody has read yet, which keeps a verdict waiting.",
        [
            duck("""
SELECT turns, not_ended AS "never ended", rejects AS "records rejected", halts_unread AS "halts unread"
FROM freshness""")
        ],
        width=16,
        height=4,
        all_fields=True,
    ),
    table(
        "val/gates",
        "Are the data good enough to judge?",
        "A gate that is not green blocks the questions beside it: their verdict is insufficient evidence until it is.",
        duck("""
SELECT gate, state, what, coalesce(nullif(blocks, ''), 'none') AS "questions it would block" FROM report_gates
ORDER BY list_position(['red', 'amber', 'green', 'not applicable'], state), gate"""),
        height=9,
        overrides=[
            column("gate", **{"custom.width": 170}),
            column("state", **COLOURED_TEXT | {"mappings": STATE_MAPPING, "custom.width": 110}),
            column("what", **{"custom.width": 720}),
        ],
        noValue="published without a report",
    ),
]  # fmt: skip

WEEKS = [
    series(
        "val/trend",
        "Share of turns halted, by week",
        "Turns that are or would be halted. The line is the week's share; the dotted lines bound what it may be given how few turns there are.",
        [
            duck(
                """
SELECT week_start AS time, estimate, low, high FROM report_trend
WHERE $__timeFilter(week_start) ORDER BY week_start""",
                over_time=True,
            )
        ],
        unit="percentunit",
        overrides=BAND,
        noValue="published without a report",
    ),
    series(
        "val/estimates",
        "What each weekly look estimated",
        "Question by question (`turncap report --week`), the estimate between its bounds. A bound "
        "that moves across the accepted share changes the verdict. Each look is written once.",
        [
            duck(
                """
SELECT week_start AS time, question, estimate, low, high FROM verdict_history
WHERE $__timeFilter(week_start) ORDER BY week_start""",
                over_time=True,
            )
        ],
        unit="percentunit",
        overrides=BAND,
        noValue="no weekly look yet",
    ),
    series(
        "val/weekly-halts",
        "Halts by week, and what readers said",
        "Halts and would-be halts. `not stuck` are wrong halts: the turn was doing its work. `unread` halts have no label, so they can be "
        "either: read them first.",
        [
            duck(
                """
SELECT week AS time, halts_stuck AS "stuck", halts_not_stuck AS "not stuck", halts_unread AS "unread"
FROM weekly_halts WHERE $__timeFilter(week) ORDER BY week""",
                over_time=True,
            )
        ],
        stacked=True,
        decimals=0,
        overrides=colours({"stuck": "green", "not stuck": "red", "unread": "text"}),
    ),
]

TURN_COLUMNS = [
    column("turn", links=[TO_TURN], **{"custom.width": 290}),
    column("started", unit="dateTimeAsIso", **{"custom.width": 170}),
    column("agent", **{"custom.width": 150}),
    *(
        column(name, **{"custom.width": 105, "custom.align": "left"})
        for name in ("calls", "largest repeat", "soft cap", "stuck at", "last limit", "at call")
    ),
]

PATTERN = [
    bars(
        "val/kinds-halted",
        "What the halted turns were doing",
        "Turns that were or would have been halted, by what their calls up to the halt look like. `re-run cycle` is the known "
        "false-stuck pattern (the same build or test again after each fix), `polling` waits for something.",
        [
            duck(
                "SELECT kind, turns FROM report_kinds WHERE population = 'halted' AND turns > 0 ORDER BY turns DESC, kind"
            )
        ],
        width=6,
        rows=True,
        noValue="no halt, or published without a report",
    ),
    bars(
        "val/kinds-repeating",
        "What all repeating turns were doing",
        "All turns in which some call was made as often as the stuck threshold, halted or not, by the whole turn.",
        [
            duck(
                "SELECT kind, whole AS turns FROM report_kinds WHERE population = 'repeated' AND whole > 0 ORDER BY whole DESC, kind"
            )
        ],
        width=6,
        rows=True,
        noValue="none, or published without a report",
    ),
    table(
        "val/to-read",
        "Halts to read next",
        "Halted and would-be halted turns without a label, newest first: each one moves the verdict. Follow the turn "
        "id, look, then say what it was with `turncap label`.",
        duck("""
SELECT turn_id AS turn, started, agent, model, would_halt_threshold AS "threshold", would_halt_call AS "at call",
    max_repeat AS "largest repeat", calls
FROM seen_turns WHERE would_halt_call IS NOT NULL AND stuck IS NULL
ORDER BY started DESC NULLS LAST, turn_id LIMIT 20"""),
        width=12,
        height=8,
        overrides=[*TURN_COLUMNS],
        noValue="every halt has been read",
    ),
]

SIGNALS = [
    table(
        "val/signals",
        "What other signals and thresholds would have done to the same turns",
        "Replayed by the guard's own code, the last limit held. Beside each zero stands of how many turns; a signal is "
        "recommended only where every kind of turn that it is known to hurt has been seen (`not seen` lists the others). "
        "`saved`: calls in stuck turns after the halt. `cut`: the same in all other turns.",
        duck("""
SELECT signal, k AS "stuck at", soft_cap AS "soft cap", stuck_caught AS "stuck caught", stuck_turns AS "of stuck",
    others_halted AS "others halted", other_turns AS "of others", calls_saved AS "calls saved", calls_cut AS "calls cut",
    badge, coalesce(nullif(unseen, ''), 'none') AS "not seen"
FROM report_signals ORDER BY stuck_caught - others_halted DESC, calls_saved DESC, signal, k, soft_cap"""),
        height=11,
        overrides=[
            column("signal", **{"custom.width": 180}),
            *(
                column(name, **{"custom.width": 115, "custom.align": "left"})
                for name in (
                    "stuck at",
                    "soft cap",
                    "stuck caught",
                    "of stuck",
                    "others halted",
                    "of others",
                    "calls saved",
                    "calls cut",
                )
            ),
        ],
        noValue="published without a report",
    )
]

NEAREST = [
    table(
        "val/nearest",
        "The turns that came nearest to a limit",
        "The longest and the most repetitive turns of this period: what the caps will meet next.",
        duck("""
SELECT turn_id AS turn, started, agent, model, outcome, calls, max_repeat AS "largest repeat",
    soft_cap AS "soft cap", stuck_at AS "stuck at", last_limit AS "last limit", halted_by AS "halted by", kind
FROM seen_turns WHERE $__timeFilter(started) AND calls > 0
ORDER BY greatest(coalesce(calls / nullif(soft_cap, 0), 0), coalesce(max_repeat / stuck_at, 0)) DESC, turn_id LIMIT 25"""),
        overrides=[*TURN_COLUMNS],
    )
]

VALIDATION = Dashboard(
    uid=UID,
    title="turncap: are the thresholds right?",
    description="The weekly verdicts on the thresholds, what the halted turns were doing, and how fresh the data are. "
    "Reads the snapshot that `turncap snapshot` publishes.",
    sources=("duckdb",),
    variables=[],
    rows=[
        Row(key="verdicts", title="What do the data say now?", panels=VERDICTS),
        Row(key="weeks", title="How did it change from week to week?", panels=WEEKS),
        Row(key="pattern", title="What were the repeating turns doing?", panels=PATTERN),
        Row(key="signals", title="Would another signal do better?", panels=SIGNALS),
        Row(key="nearest", title="What will the caps meet next?", panels=NEAREST),
    ],
    period="now-12w",
    links=[link_to("turncap-operations", "Operations"), link_to("turncap-turn", "One turn")],
)


INFINITY_TYPES = {"TIMESTAMP": "timestamp", "BOOLEAN": "boolean", "VARCHAR": "string"}


def _columns(query: str) -> dict[str, str]:
    """The names and Infinity types of a query's columns, as DuckDB gives them over empty tables."""
    with duckdb.connect() as connection:
        for script in ("schema.sql", "views.sql"):
            connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
        described = connection.execute(f"DESCRIBE {expand(query)}").fetchall()
    return {name: INFINITY_TYPES.get(kind, "number") for name, kind, *_ in described}


def _from_json(panel: Panel) -> Panel:
    """The same panel over the files that `turncap dashboards json` writes."""
    (target,) = panel.targets
    url = f"${{json_base}}/{panel.key.removeprefix('val/')}.json"
    source = Target(source="infinity", query=url, columns=_columns(target.query))
    wide = [{"id": "prepareTimeSeries", "options": {"format": "multi"}}] if target.shape == "range" else []
    overrides = [_without_duckdb(override) for override in panel.overrides]
    return replace(
        panel, key=f"json/{panel.key}", targets=[source], transformations=wide, overrides=overrides
    )


def _without_duckdb(override: Override) -> Override:
    """Links to the turn take no data source along that this dashboard does not have."""
    if override.properties.get("links") != [TO_TURN]:
        return override
    return replace(override, properties={**override.properties, "links": [TO_TURN_BARE]})


VALIDATION_JSON = replace(
    VALIDATION,
    uid=JSON_UID,
    title="turncap: are the thresholds right? (JSON files)",
    description=f"{VALIDATION.description} This one reads JSON files by the Infinity plugin, for where the DuckDB "
    "plugin cannot run.",
    sources=("infinity",),
    variables=[
        Variable(
            name="json_base",
            label="Address of the JSON files",
            description="Where the files of `turncap dashboards json` are served, without a slash at the end",
            text="http://localhost:8000",
        )
    ],
    rows=[replace(row, panels=[_from_json(panel) for panel in row.panels]) for row in VALIDATION.rows],
)
