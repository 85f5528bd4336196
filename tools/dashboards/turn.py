"""Dashboard *one turn*: its calls so that repetition is visible, its events and its trace."""

from __future__ import annotations

from tools.dashboards.model import Dashboard, Panel, Row, Target, Variable, link_to
from tools.dashboards.style import LOG_LINES, bars, colours, column, duck, limit_lines, stat, table

UID = "turncap-turn"
TURN_ID = "turn_id = ${turn_id:sqlstring}"
POINTS = {
    "show": "points",
    "pointSize": {"fixed": 7},
    "pointShape": "circle",
    "fillOpacity": 60,
    "axisBorderShow": True,
}
LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}

SUMMARY = [
    stat(
        "turn/summary",
        "How the turn went",
        "How it ended, how many calls it asked for, how often its most repeated call was made, how many calls were "
        "refused, and which threshold fired (or would have).",
        [
            duck(f"""
SELECT coalesce(outcome, 'still open') AS "ended", calls AS "calls", max_repeat AS "largest repeat", refused AS "refused",
    coalesce(halted_by, would_halt_threshold || ' (let run)', 'none') AS "threshold",
    coalesce(halted_call, would_halt_call) AS "at call"
FROM seen_turns WHERE {TURN_ID}""")
        ],
        width=16,
        all_fields=True,
        noValue="no such turn in the snapshot",
    ),
    stat(
        "turn/limits",
        "Limits in force for it",
        "The policy of this turn: past the soft cap it is halted when one call was made `stuck at` times, and at the "
        "last limit whatever it does.",
        [
            duck(f"""
SELECT soft_cap AS "soft cap", stuck_at AS "stuck at", last_limit AS "last limit" FROM seen_turns WHERE {TURN_ID}""")
        ],
        width=8,
        all_fields=True,
        noValue="not known",
    ),
]

REPETITION = [
    Panel(
        key="turn/calls-by-key",
        title="What each call asked for: a rising line is new work, a level one repeats",
        description="One point a call. The height is the number of the request (same tool, same arguments) in order of "
        "first appearance: points that climb are new requests, points on one height repeat an old one.",
        kind="xychart",
        unit="none",
        width=12,
        height=10,
        targets=[
            duck(f"""
SELECT n AS "call", CASE WHEN asked = 1 THEN key END AS "new request", CASE WHEN asked > 1 THEN key END AS "repeats an earlier one"
FROM call_steps WHERE {TURN_ID} ORDER BY n""")
        ],
        options={
            "mapping": "manual",
            "series": [
                {
                    "frame": {"matcher": {"id": "byIndex", "options": 0}},
                    "x": {"matcher": {"id": "byName", "options": "call"}},
                    "y": {"matcher": {"id": "byName", "options": name}},
                }
                for name in ("new request", "repeats an earlier one")
            ],
            "legend": LEGEND,
            "tooltip": {"mode": "single", "sort": "none"},
        },
        custom=POINTS,
        defaults={"decimals": 0},
        overrides=colours({"new request": "green", "repeats an earlier one": "orange"}),
    ),
    Panel(
        key="turn/levels",
        title="How stuck it looked, call by call",
        description="`most repeated` counts the most repeated request so far (signal `repeat`); `nothing new` counts the "
        "settled calls since one brought a result never seen (signal `no_progress`). The dashed line is `stuck at`; it "
        "halts only past the soft cap.",
        kind="trend",
        unit="none",
        width=12,
        height=10,
        targets=[
            duck(f"""
SELECT n AS "call", most_repeated AS "most repeated", nothing_new AS "nothing new", stuck_at AS "stuck at"
FROM call_steps JOIN seen_turns USING (turn_id) WHERE {TURN_ID} ORDER BY n""")
        ],
        options={"xField": "call", "legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
        custom={"lineWidth": 2, "fillOpacity": 0, "showPoints": "never", "spanNulls": True},
        defaults={"min": 0, "decimals": 0},
        overrides=[
            *colours({"most repeated": "orange", "nothing new": "blue"}),
            *limit_lines({"stuck at": "red"}),
        ],
    ),
    bars(
        "turn/most-repeated",
        "The requests made most often",
        "Each bar is one request (same tool, same arguments), named by its tool and its number in this turn.",
        [
            duck(f"""
SELECT coalesce(any_value(tool), 'unknown tool') || ' #' || key AS request, count(*) AS times
FROM call_steps WHERE {TURN_ID} AND key IS NOT NULL GROUP BY key ORDER BY times DESC, key LIMIT 12""")
        ],
        width=8,
        height=12,
        rows=True,
    ),
    table(
        "turn/calls",
        "Its calls, one by one",
        "`request` and `result` are numbers in order of first appearance in this turn: the same number is the same "
        "thing. No argument and no result text is ever recorded.",
        duck(f"""
SELECT n AS "call", seconds AS "after", tool, key AS "request", asked AS "asked before", result,
    nothing_new AS "nothing new", error, refused, mutating AS "changes things", epoch AS "retry"
FROM (SELECT * REPLACE (asked - 1 AS asked) FROM call_steps WHERE {TURN_ID}) ORDER BY n"""),
        width=16,
        height=12,
        overrides=[
            column("after", unit="s", **{"custom.width": 90, "custom.align": "left"}),
            column("tool", **{"custom.width": 130}),
            *(
                column(name, **{"custom.width": 95, "custom.align": "left"})
                for name in (
                    "call",
                    "request",
                    "asked before",
                    "result",
                    "nothing new",
                    "error",
                    "refused",
                    "changes things",
                    "retry",
                )
            ),
        ],
    ),
]

EVENTS = [
    Panel(
        key="turn/events",
        title="Its events, in order",
        defaults={"noValue": "no event of this turn in Loki"},
        description="Everything that the guard said of this turn: start, chunks of calls, soft cap, halts, end, labels.",
        kind="logs",
        unit="none",
        width=14,
        height=9,
        targets=[
            Target(
                source="loki",
                query='{service_name=~".+"} | turncap_turn_id = `${turn_id}` | line_format `{{.event_name}} {{.turncap_outcome}}'
                "{{.turncap_threshold}} {{.turncap_mode}}`",
            )
        ],
        options=LOG_LINES | {"sortOrder": "Ascending"},
    ),
    Panel(
        key="turn/trace",
        title="Its trace",
        description="The span `turncap.turn` of this turn; open it to see the turn among the spans of the agent.",
        kind="table",
        unit="none",
        width=10,
        height=9,
        targets=[Target(source="tempo", query='{ name = "turncap.turn" && span.turncap.turn.id = "${turn_id}" }')],
        options={"showHeader": True, "cellHeight": "sm"},
        defaults={"noValue": "no trace of this turn was kept"},
    ),
]  # fmt: skip

ONE_TURN = Dashboard(
    uid=UID,
    title="turncap: one turn",
    description="One turn: its calls so that repetition is visible, its events and its trace.",
    sources=("duckdb", "loki", "tempo"),
    variables=[
        Variable(
            name="turn_id", label="Turn id", description="As `turncap turn` and every event name it", text=""
        )
    ],
    rows=[
        Row(key="summary", title="What became of it?", panels=SUMMARY),
        Row(key="repetition", title="Did it repeat itself?", panels=REPETITION),
        Row(key="events", title="What was recorded of it?", panels=EVENTS),
    ],
    period="now-7d",
    links=[
        link_to("turncap-operations", "Operations"),
        link_to("turncap-validation", "Are the thresholds right?"),
    ],
)
