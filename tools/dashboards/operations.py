"""Dashboard *operations*: is the guard on, what does it halt, how near are the caps, what does it cost."""

from __future__ import annotations

from collections.abc import Mapping

from guard import names
from tools.dashboards import catalog as c
from tools.dashboards.catalog import Metric, label
from tools.dashboards.limits import HALT_SHARE
from tools.dashboards.model import Dashboard, Override, Panel, Row, Target, Variable, datasource, link_to
from tools.dashboards.promql import PROCESS, TURN, grown, or_zero, select
from tools.dashboards.style import (
    LOG_LINES,
    THRESHOLD_COLOURS,
    bars,
    colours,
    limit_lines,
    link,
    prom,
    series,
    stat,
    table,
)

SAME_JOB = 'job=~"$job"'
UID = "turncap-operations"
HOUR, RANGE = "1h", "$__range"
ENFORCED = f'{label(names.ENFORCED)}="true"'
LET_RUN = f'{label(names.ENFORCED)}="false"'
HALTED = f'{label(names.OUTCOME)}="halted"'


def by(attribute: str) -> str:
    """A legend that shows one label's value."""
    return f"{{{{{label(attribute)}}}}}"


def share_halted(window: str, ago: tuple[str, str] | None = None) -> str:
    """Turns that an enforced halt ended, of all turns that ended, in a window."""
    halted = or_zero(grown(select(c.TURNS, TURN, HALTED), window, ago=ago))
    return f"({halted}) / {grown(select(c.TURNS, TURN), window, ago=ago)}"


def quantile(q: float, metric: Metric) -> str:
    """A quantile of the turns that ended in the hour before."""
    return f"histogram_quantile({q}, {grown(select(metric, TURN, suffix='_bucket'), HOUR, 'le')})"


def distribution(key: str, title: str, description: str, metric: Metric) -> Panel:
    """How many turns fell into each bucket, over the whole range."""
    counts = grown(select(metric, TURN, suffix="_bucket"), RANGE, "le")
    return bars(key, title, description, [prom(counts, "{{le}}", "buckets")], height=11)


def against_limits(
    key: str, title: str, description: str, metric: Metric, limits: Mapping[str, str]
) -> Panel:
    """Quantiles over time, with the limits in force as dashed lines."""
    chosen = select(c.POLICY_LIMIT, PROCESS, f'{label(names.METRIC_LIMIT)}=~"{"|".join(limits)}"')
    targets = [
        # rounded up: a share of a call is the interpolation's, not anyone's
        prom(f"ceil({quantile(0.5, metric)})", "half of the turns, at most"),
        prom(f"ceil({quantile(0.95, metric)})", "95 of 100, at most"),
        prom(f"ceil({quantile(0.99, metric)})", "99 of 100, at most"),
        prom(f"max by ({label(names.METRIC_LIMIT)}) ({chosen})", by(names.METRIC_LIMIT)),
    ]
    return series(
        key, title, description, targets, width=16, height=11, log=True, min=1, overrides=limit_lines(limits)
    )


ANSWER = [
    stat(
        "ops/guards",
        "Guards reporting now",
        "Processes whose guard reports, by mode and policy. `enforce` halts, `shadow` only records, `disabled` "
        "never halts. Nothing here means that no guard has reported for five minutes.",
        [
            prom(
                f"sum by ({label(names.MODE)}, {label(names.POLICY_KIND)}) ({select(c.GUARD_INFO, PROCESS)})",
                f"{by(names.MODE)}, {by(names.POLICY_KIND)}",
                "instant",
            )
        ],
        noValue="no guard reports",
    ),
    stat(
        "ops/turns",
        "Turns in this period",
        "Turns that began and turns that ended. One that began and never ended still runs, or its process died.",
        [
            prom(or_zero(grown(select(c.TURNS_STARTED, TURN), RANGE)), "started", "instant"),
            prom(or_zero(grown(select(c.TURNS, TURN), RANGE)), "ended", "instant"),
        ],
    ),
    stat(
        "ops/halts",
        "Halts in this period",
        "Enforced halts by the threshold that fired: `soft-stuck` (past the soft cap and repeating), `backstop` "
        "(past the last limit), `explicit-hard` (a fixed limit that you set); and `let run`: what shadow mode or "
        "a holdout would have halted.",
        [
            prom(or_zero(grown(select(c.HALTS, TURN, ENFORCED, f'{label(names.THRESHOLD)}="{name}"'), RANGE)), name,
                 "instant")
            for name in THRESHOLD_COLOURS
        ]
        + [prom(or_zero(grown(select(c.HALTS, TURN, LET_RUN), RANGE)), "let run", "instant")],
    ),
    stat(
        "ops/halted-share",
        "Share of turns halted",
        f"Turns that an enforced halt ended, of all that ended in this period. The alert fires above "
        f"{HALT_SHARE:.0%} over an hour. Whether those halts were right is the validation dashboard's question.",
        [prom(share_halted(RANGE), "halted", "instant")],
        unit="percentunit",
        names=False,
        decimals=1,
        noValue="no turn ended",
        mappings=[{"type": "special", "options": {"match": "nan", "result": {"text": "no turn ended"}}}],
        thresholds={
            "mode": "absolute",
            "steps": [{"color": "text", "value": None}, {"color": "orange", "value": HALT_SHARE}],
        },
        color={"mode": "thresholds"},
    ),
]  # fmt: skip

HALTS = [
    series(
        "ops/halts-hourly",
        "Halts in the hour before, by threshold",
        "Each point counts the enforced halts of the hour before it.",
        [prom(grown(select(c.HALTS, TURN, ENFORCED), HOUR, label(names.THRESHOLD)), by(names.THRESHOLD))],
        stacked=True,
        decimals=0,
        overrides=colours(THRESHOLD_COLOURS),
        noValue="none",
    ),
    series(
        "ops/share-usual",
        "Share of turns halted: now, a day and a week before",
        "The same hour of the day before and of the week before is what usual means here. The dashed line is "
        "where the alert fires.",
        [
            prom(share_halted(HOUR), "this hour"),
            prom(share_halted(HOUR, ("1d", "25h")), "a day before"),
            prom(share_halted(HOUR, ("1w", "169h")), "a week before"),
            prom(f"vector({HALT_SHARE})", "alert above"),
        ],
        unit="percentunit",
        overrides=colours({"this hour": "orange", "a day before": "blue", "a week before": "text"})
        + limit_lines({"alert above": "red"}),
    ),
    series(
        "ops/outcomes",
        "How turns ended",
        "Turns that ended in the hour before each point: `completed` by themselves, `halted` by the guard, "
        "`aborted` by a person or a signal, `errored` by an exception.",
        [prom(grown(select(c.TURNS, TURN), HOUR, label(names.OUTCOME)), by(names.OUTCOME))],
        stacked=True,
        decimals=0,
        overrides=colours({"completed": "green", "halted": "orange", "aborted": "blue", "errored": "red"}),
    ),
    bars(
        "ops/halts-by-agent",
        "Halts by agent and model",
        "The ten with the most enforced halts in this period. Empty where nothing was halted.",
        [
            prom(
                f"topk(10, {grown(select(c.HALTS, TURN, ENFORCED), RANGE, f'{label(names.AGENT_NAME)}, {label(names.REQUEST_MODEL)}')}) > 0",
                f"{by(names.AGENT_NAME)} on {by(names.REQUEST_MODEL)}",
                "instant",
            )
        ],
        width=12,
        noValue="none",
    ),
    series(
        "ops/crossings",
        "Turns past the soft cap: repeating or not",
        "Turns that passed the soft cap in the hour before each point. `stuck: true`: the stuck signal held, so an "
        "enforcing guard halts the turn; `stuck: false`: it keeps doing new things and may run to the backstop.",
        [prom(grown(select(c.CROSSINGS, TURN), HOUR, label(names.STUCK)), f"stuck: {by(names.STUCK)}")],
        width=12,
        stacked=True,
        decimals=0,
        overrides=colours({"stuck: true": "orange", "stuck: false": "green"}),
        noValue="none",
    ),
]

NEARNESS = [
    distribution(
        "ops/calls-buckets",
        "Turns by number of tool calls",
        "How many turns of this period made up to that many tool calls, and more than the bar before.",
        c.TOOL_CALLS,
    ),
    against_limits(
        "ops/calls-quantiles",
        "Tool calls a turn, against the limits",
        "Turns that ended in the hour before. Past `soft_cap` a turn runs on only while it does not repeat itself; "
        "`backstop` ends every turn. A line that touches a dashed one: that limit is in use. Logarithmic.",
        c.TOOL_CALLS,
        {"soft_cap": "orange", "backstop": "red", "hard_cap": "purple"},
    ),
    distribution(
        "ops/repeat-buckets",
        "Turns by largest repeat",
        "How many turns of this period asked for one and the same call (same tool, same arguments) up to that "
        "often, and more often than the bar before.",
        c.MAX_REPEAT,
    ),
    against_limits(
        "ops/repeat-quantiles",
        "Largest repeat a turn, against the stuck threshold",
        "How often the most repeated call of a turn was made. `stuck_at` counts only past the soft cap, so turns "
        "above the line are common and mostly harmless. Logarithmic.",
        c.MAX_REPEAT,
        {"stuck_at": "orange"},
    ),
]

COST = [
    series(
        "ops/guard-time",
        "Time the guard took, a call and a turn",
        "Time inside the guard, in turns that ended in the hour before. Logarithmic.",
        [
            prom(
                f"{grown(select(c.GUARD_TIME, TURN, suffix='_sum'), HOUR)} / {grown(select(c.CALLS, TURN), HOUR)}",
                "a call, mean",
            ),
            prom(quantile(0.95, c.GUARD_TIME), "a turn, 95 of 100 at most"),
        ],
        unit="s",
        log=True,
    ),
    series(
        "ops/errors",
        "Faults inside the guard, by kind",
        "Faults that the guard swallowed in the hour before: it allowed the call, so a guard with faults protects "
        "less. Zero is normal.",
        [
            prom(or_zero(grown(select(c.ERRORS, PROCESS), HOUR)), "all kinds"),
            prom(grown(select(c.ERRORS, PROCESS), HOUR, label(names.METRIC_KIND)), by(names.METRIC_KIND)),
        ],
        decimals=0,
    ),
    series(
        "ops/unended",
        "Turns that began and have not ended",
        "Started minus ended turns of the processes that report. It hovers around the number of turns at work; a "
        "steady climb means that ends are lost or that agents hang.",
        [
            prom(
                f"sum({select(c.TURNS_STARTED, TURN)}) - ({or_zero(f'sum({select(c.TURNS, TURN)})')})",
                "begun, not ended",
            )
        ],
        decimals=0,
    ),
    series(
        "ops/calls",
        "Tool calls asked about and refused",
        "In turns that ended in the hour before each point.",
        [
            prom(grown(select(c.CALLS, TURN), HOUR), "asked about"),
            prom(or_zero(grown(select(c.REFUSED, TURN), HOUR)), "refused"),
        ],
        decimals=0,
        overrides=colours({"asked about": "blue", "refused": "orange"}),
    ),
    series(
        "ops/lost-sdk",
        "Telemetry lost in the agent's process",
        "Records that the OpenTelemetry SDK gave up in the hour before, by reason. Known only where the processes "
        "run with OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED=true: an empty panel means unknown, a line at zero none.",
        [
            prom(grown(select(metric, PROCESS, 'error_type!=""'), HOUR, "error_type"),
                 f"{what}: {{{{error_type}}}}")
            for metric, what in c.SDK_LOST
        ]
        + [prom(f"0 * {grown(select(c.SDK_LOST[0][0], PROCESS), HOUR)}", "reported")],
        decimals=0,
        noValue="unknown",
    ),
    series(
        "ops/lost-collector",
        "Telemetry lost in the Collector",
        "Records that the Collector refused or failed to pass on in the hour before. Known only where Prometheus "
        "scrapes the Collector's own metrics: an empty panel means unknown, a line at zero means none.",
        [
            prom(grown(select(metric), HOUR, component), f"{what}: {{{{{component}}}}}")
            for metric, component, what in c.COLLECTOR_LOST
        ]
        + [prom(f"0 * sum({select(c.COLLECTOR_UPTIME)})", "reported")],
        decimals=0,
        noValue="unknown",
    ),
]  # fmt: skip

IN_FORCE = [
    series(
        "ops/limits",
        "Limits in force",
        "The largest and smallest value of each limit over the reporting processes: two lines of one limit mean "
        "that not all processes run the same policy. Logarithmic.",
        [
            prom(
                f"{how} by ({label(names.METRIC_LIMIT)}) ({select(c.POLICY_LIMIT, PROCESS)})",
                f"{by(names.METRIC_LIMIT)}, {word}",
            )
            for how, word in (("max", "largest"), ("min", "smallest"))
        ],
        width=12,
        log=True,
        stepped=True,
    ),
    table(
        "ops/versions",
        "What is running",
        "Processes by guard version, mode, policy and signal, now.",
        prom(
            f"sum by ({', '.join(map(label, (names.METRIC_VERSION, names.MODE, names.POLICY_KIND, names.SIGNAL)))}) "
            f"({select(c.GUARD_INFO, PROCESS)})",
            shape="table",
        ),
        width=12,
        height=8,
        transformations=[
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": {},
                    "renameByName": {
                        label(names.METRIC_VERSION): "version",
                        label(names.MODE): "mode",
                        label(names.POLICY_KIND): "policy",
                        label(names.SIGNAL): "signal",
                        "Value": "processes",
                    },
                },
            }
        ],
    ),
]

EVENTS = [
    Panel(
        key="ops/halt-events",
        title="Halts and would-be halts, newest first",
        description="One line a `turncap.loop_detected` event. Open a line and follow its turn id to see the turn.",
        kind="logs",
        unit="none",
        width=24,
        height=9,
        targets=[
            Target(
                source="loki",
                query='{service_name=~".+"} | turncap_threshold != "" | turncap_call_number != "" | line_format '
                "`{{.turncap_threshold}} at call {{.turncap_call_number}}: {{.turncap_repeat_tool}} asked for "
                "{{.turncap_repeat_count}} times, enforced {{.turncap_enforced}}, turn {{.turncap_turn_id}}`",
            )
        ],
        options=LOG_LINES | {"sortOrder": "Descending"},
        overrides=[
            Override(
                field="turncap_turn_id",
                properties={
                    "links": [
                        link("Show this turn", "/d/turncap-turn?${__url_time_range}&var-turn_id=${__value.raw}"
                             "&${loki_datasource:queryparam}")
                    ]
                },
            )
        ],
    )
]  # fmt: skip

_LIMIT = select(c.POLICY_LIMIT, PROCESS)
OPERATIONS = Dashboard(
    uid=UID,
    title="turncap: operations",
    description="Is the guard on and in which mode, what does it halt, is that more than usual, how near do turns "
    "come to the caps, and what does the guard itself cost and lose.",
    sources=("prometheus", "loki"),
    variables=[
        Variable(
            name="job",
            label="Service",
            description="Services whose guard reports",
            values_of=("prometheus", f"label_values({select(c.GUARD_INFO)}, job)"),
        ),
        Variable(
            name="instance",
            label="Process",
            description="Processes of these services",
            values_of=("prometheus", f"label_values({select(c.GUARD_INFO, SAME_JOB)}, instance)"),
        ),
        Variable(
            name="agent",
            label="Agent",
            description="Agents, where the caller names them",
            values_of=("prometheus", f"label_values({select(c.TURNS, SAME_JOB)}, {label(names.AGENT_NAME)})"),
        ),
        Variable(
            name="model",
            label="Model",
            description="Models, where the caller names them",
            values_of=(
                "prometheus",
                f"label_values({select(c.TURNS, SAME_JOB)}, {label(names.REQUEST_MODEL)})",
            ),
        ),
    ],
    rows=[
        Row(key="answer", title="Is the guard on, and what did it do?", panels=ANSWER),
        Row(key="halts", title="What did it halt, and is that more than usual?", panels=HALTS),
        Row(key="nearness", title="How near do turns come to the caps?", panels=NEARNESS),
        Row(key="cost", title="What does the guard itself cost and lose?", panels=COST),
        Row(key="policy", title="Which limits are in force, and since when?", panels=IN_FORCE),
        Row(key="events", title="Which turns were halted?", panels=EVENTS),
    ],
    period="now-6h",
    refresh="1m",
    annotations=[
        {
            "name": "A limit changed",
            "datasource": datasource("prometheus"),
            "enable": True,
            "hide": False,
            "iconColor": "purple",
            "expr": f"max by ({label(names.METRIC_LIMIT)}) ({_LIMIT}) != max by ({label(names.METRIC_LIMIT)}) ({_LIMIT} offset 10m)",
            "step": "1m",
            "titleFormat": "limit changed",
            "textFormat": f"{by(names.METRIC_LIMIT)} is not what it was ten minutes before",
        }
    ],
    links=[link_to("turncap-validation", "Are the thresholds right?"), link_to("turncap-turn", "One turn")],
)
