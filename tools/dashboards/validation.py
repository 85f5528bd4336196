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
COLOURED_TEXT = {"custom.cellOptions": {"type": "color-text"}, "mappings": WORD_MAPPING}
SHARE = {"unit": "percentunit", "decimals": 2}

VERDICTS = [
    table(
        "val/verdicts",
        "What the data say of each threshold, at the last weekly look",
        "One row a question: is the limit too low, too high, validated, or is there not enough evidence to say? "
        "`estimate` is the share that the question is about (see the weekly report), between `low` and `high`. "
        "Empty until `turncap report --week` has run once.",
        duck("""
SELECT question, scope, verdict, estimate, low, high, look AS "look of 13", week
FROM verdict_history
QUALIFY row_number() OVER (PARTITION BY question, scope ORDER BY week_start DESC) = 1
ORDER BY question, scope"""),
        width=14,
        height=7,
        overrides=[column("verdict", **COLOURED_TEXT), *(column(name, **SHARE) for name in ("estimate", "low", "high"))],
        noValue="no weekly look yet",
    ),
    stat(
        "val/fresh",
        "How fresh are these data?",
        "When the newest turn began, and when files were last read. The alert fires when the snapshot is more than "
        "eight days old.",
        [duck("SELECT epoch_ms(newest_turn) AS \"newest turn\", epoch_ms(loaded) AS \"last load\" FROM freshness")],
        unit="dateTimeFromNow",
        width=10,
        height=3,
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
        width=10,
        height=4,
        all_fields=True,
    ),
]  # fmt: skip

WEEKS = [
    series(
        "val/estimates",
        "The estimate of each question, by weekly look, with its interval",
        "The line is the estimate, the thin lines are its lower and upper bound at that look. A bound that moves "
        "across the tolerance changes the verdict.",
        [
            duck(
                """
SELECT week_start AS time, question, estimate, low, high FROM verdict_history
WHERE $__timeFilter(week_start) ORDER BY week_start""",
                over_time=True,
            )
        ],
        unit="percentunit",
        width=12,
        height=9,
        overrides=[
            columns(
                "(low|high) .*",
                **{"custom.lineWidth": 1, "custom.lineStyle": {"fill": "dot", "dash": [2, 6]}},
            )
        ],
        noValue="no weekly look yet",
    ),
    series(
        "val/weekly-halts",
        "Halts and would-be halts by week, by what a reader said of them",
        "`not stuck` are wrong halts: the turn was doing its work. `unread` halts have no label, so they can be "
        "either: read them first.",
        [
            duck(
                """
SELECT week AS time, halts_stuck AS "stuck", halts_not_stuck AS "not stuck", halts_unread AS "unread"
FROM weekly_halts WHERE $__timeFilter(week) ORDER BY week""",
                over_time=True,
            )
        ],
        width=12,
        height=9,
        stacked=True,
        decimals=0,
        overrides=colours({"stuck": "green", "not stuck": "red", "unread": "text"}),
    ),
]

PATTERN = [
    bars(
        "val/kinds-halted",
        "What the halted turns were doing",
        "Turns that were or would have been halted, by the kind that a reader gave: `rerun` is the known false-stuck "
        "pattern (the same build or test again after each fix), `poll` waits for something.",
        [
            duck(
                "SELECT kind, turns FROM labelled_kinds WHERE population LIKE 'halted%' ORDER BY turns DESC, kind"
            )
        ],
        width=6,
        rows=True,
    ),
    bars(
        "val/kinds-repeating",
        "What all repeating turns were doing",
        "All turns in which some call was made as often as the stuck threshold, halted or not, by kind.",
        [
            duck(
                "SELECT kind, turns FROM labelled_kinds WHERE population LIKE 'some%' ORDER BY turns DESC, kind"
            )
        ],
        width=6,
        rows=True,
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
        overrides=[column("turn", links=[TO_TURN]), column("started", unit="dateTimeAsIso")],
        noValue="every halt has been read",
    ),
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
        overrides=[column("turn", links=[TO_TURN]), column("started", unit="dateTimeAsIso")],
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
