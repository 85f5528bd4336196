"""Prometheus rules: the recorded hours that alerts compare, and the alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from guard import names
from tools.dashboards import catalog as c
from tools.dashboards import limits
from tools.dashboards.catalog import label
from tools.dashboards.operations import OPERATIONS
from tools.dashboards.promql import grown, select
from tools.dashboards.validation import VALIDATION

RUNBOOKS = "runbooks.md"
HALTED = f'{label(names.OUTCOME)}="halted"'
ENFORCED = f'{label(names.ENFORCED)}="true"'
BACKSTOP = f'{label(names.THRESHOLD)}="backstop"'
GUARDS = f"count by (job) ({select(c.GUARD_INFO)})"

_ENDED = grown(select(c.TURNS), "1h", "job")
RECORDED = {
    "job:turncap_turns_started:grown30m": grown(select(c.TURNS_STARTED), "30m", "job"),
    "job:turncap_turns:grown30m": grown(select(c.TURNS), "30m", "job"),
    "job:turncap_turns:grown1h": _ENDED,
    # zero where turns ended and nothing was halted, so that a mean over a day counts the quiet hours
    "job:turncap_turns_halted:grown1h": f"{grown(select(c.TURNS, HALTED), '1h', 'job')}\n  or 0 * {_ENDED}",
    "job:turncap_halts_enforced:grown1h": f"{grown(select(c.HALTS, ENFORCED), '1h', 'job')}\n  or 0 * {_ENDED}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert; `panel` is the key of the panel that shows its quantity, `wait` is Prometheus' `for`."""

    name: str
    expr: str
    wait: str
    severity: str
    summary: str
    panel: str
    keep: str = ""

    def to_rule(self) -> dict[str, Any]:
        dashboard = OPERATIONS if self.panel.startswith("ops/") else VALIDATION
        (panel,) = (each for each in dashboard.panels() if each.key == self.panel)
        rule: dict[str, Any] = {"alert": self.name, "expr": self.expr, "for": self.wait}
        if self.keep:
            rule["keep_firing_for"] = self.keep
        return rule | {
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "runbook_url": f"{RUNBOOKS}#{self.name.lower()}",
                "dashboard": f"/d/{dashboard.uid}?viewPanel={panel.id}",
                "__dashboardUid__": dashboard.uid,
                "__panelId__": str(panel.id),
            },
        }


def _changed(gauge: str, by: str) -> str:
    """The gauge's groups whose value is not what it was a quarter of an hour before."""
    return f"max by ({by}) ({gauge}) != max by ({by}) ({gauge} offset 15m)"


_LIMITS = select(c.POLICY_LIMIT)
_MODES = f"count by (job, {label(names.MODE)}, {label(names.POLICY_KIND)}, {label(names.SIGNAL)}) ({select(c.GUARD_INFO)})"
_MODES_BEFORE = _MODES.replace(select(c.GUARD_INFO), f"{select(c.GUARD_INFO)} offset 15m")
_LOST_SDK = [grown(select(metric, 'error_type!=""'), "15m", "job, error_type") for metric, _ in c.SDK_LOST]
_LOST_COLLECTOR = [grown(select(metric), "15m", "job") for metric, _, _ in c.COLLECTOR_LOST]

ALERTS = (
    Alert(
        name="TurncapHaltShareHigh",
        expr=f"job:turncap_turns_halted:grown1h / job:turncap_turns:grown1h > {limits.HALT_SHARE}\n"
        f"  and job:turncap_turns:grown1h >= {limits.HALT_SHARE_TURNS}",
        wait="15m",
        keep="10m",
        severity="warning",
        summary="{{ $labels.job }}: {{ $value | humanizePercentage }} of the turns of the last hour were halted",
        panel="ops/share-usual",
    ),
    Alert(
        name="TurncapHaltsAboveUsual",
        expr="job:turncap_halts_enforced:grown1h\n"
        f"  > {limits.HALTS_FACTOR} * avg_over_time(job:turncap_halts_enforced:grown1h[1d] offset 1h)\n"
        f"  and job:turncap_halts_enforced:grown1h >= {limits.HALTS_LEAST}",
        wait="15m",
        keep="10m",
        severity="warning",
        summary="{{ $labels.job }}: {{ $value | humanize }} halts in the last hour, "
        f"more than {limits.HALTS_FACTOR} times the mean hour of the day before",
        panel="ops/halts-hourly",
    ),
    Alert(
        name="TurncapBackstopHit",
        expr=f"{grown(select(c.HALTS, BACKSTOP, ENFORCED), '15m', 'job')} > 0",
        wait="0m",
        severity="warning",
        summary="{{ $labels.job }}: a turn ran to the last limit and was halted there",
        panel="ops/halts",
    ),
    Alert(
        name="TurncapTurnsDoNotEnd",
        expr=f"job:turncap_turns_started:grown30m >= {limits.SILENT_TURNS}\n"
        "  unless job:turncap_turns:grown30m > 0",
        wait="15m",
        severity="warning",
        summary="{{ $labels.job }}: {{ $value | humanize }} turns began in half an hour and none ended",
        panel="ops/unended",
    ),
    Alert(
        name="TurncapGuardGone",
        expr=f"count by (job) (last_over_time({select(c.GUARD_INFO)}[6h]))\n  unless {GUARDS}",
        wait="10m",
        severity="critical",
        summary="{{ $labels.job }}: no guard reports any more",
        panel="ops/guards",
    ),
    Alert(
        name="TurncapGuardFaults",
        expr=f"{grown(select(c.ERRORS), '1h', f'job, {label(names.METRIC_KIND)}')} >= {limits.ERRORS_HOURLY}",
        wait="5m",
        severity="warning",
        summary="{{ $labels.job }}: {{ $value | humanize }} faults of kind {{ $labels."
        + label(names.METRIC_KIND)
        + " }} in the last hour were passed over",
        panel="ops/errors",
    ),
    Alert(
        name="TurncapModeChanged",
        expr=f"({_MODES}\n  unless {_MODES_BEFORE})\n"
        f"  and on (job) count by (job) ({select(c.GUARD_INFO)} offset 15m)",
        wait="0m",
        severity="info",
        summary="{{ $labels.job }}: guards now run in mode {{ $labels."
        + label(names.MODE)
        + " }}, policy {{ $labels."
        + label(names.POLICY_KIND)
        + " }}",
        panel="ops/versions",
    ),
    Alert(
        name="TurncapLimitChanged",
        expr=_changed(_LIMITS, f"job, {label(names.METRIC_LIMIT)}"),
        wait="0m",
        severity="info",
        summary="{{ $labels.job }}: {{ $labels."
        + label(names.METRIC_LIMIT)
        + " }} is now {{ $value | humanize }}",
        panel="ops/limits",
    ),
    Alert(
        name="TurncapTelemetryLostInProcess",
        expr="\n  or ".join(f"{each} > 0" for each in _LOST_SDK),
        wait="5m",
        severity="warning",
        summary="{{ $labels.job }}: the SDK gave up {{ $value | humanize }} records ({{ $labels.error_type }})",
        panel="ops/lost-sdk",
    ),
    Alert(
        name="TurncapTelemetryLostInCollector",
        expr="\n  or ".join(f"{each} > 0" for each in _LOST_COLLECTOR),
        wait="5m",
        severity="warning",
        summary="The Collector {{ $labels.job }} refused or failed to pass on {{ $value | humanize }} records",
        panel="ops/lost-collector",
    ),
    Alert(
        name="TurncapLossUnknown",
        expr=f"count({select(c.GUARD_INFO)}) unless on () (\n"
        f"  count({select(c.COLLECTOR_UPTIME)}) or count({select(c.SDK_LOST[0][0])})\n)",
        wait="30m",
        severity="info",
        summary="Neither the SDK's nor the Collector's own metrics are here, so nobody would see telemetry lost",
        panel="ops/lost-collector",
    ),
    Alert(
        name="TurncapNamesNotTranslated",
        expr=f'count({{__name__="{names.M_GUARD_INFO}"}})',
        wait="5m",
        severity="warning",
        summary="Metrics arrive with dots in their names; dashboards and alerts read the translated names only",
        panel="ops/guards",
    ),
    Alert(
        name="TurncapSnapshotStale",
        expr=f"time() - {select(c.SNAPSHOT_PUBLISHED)} > {limits.SNAPSHOT_DAYS} * 86400",
        wait="1h",
        severity="warning",
        summary="The snapshot that the validation dashboard reads is {{ $value | humanizeDuration }} old",
        panel="val/fresh",
    ),
    Alert(
        name="TurncapVerdictWorsened",
        expr=f"{select(c.VERDICT_RANK)} < max_over_time({select(c.VERDICT_RANK)}[8d])",
        wait="0m",
        severity="warning",
        summary="The verdict on {{ $labels.question }} is worse than it was last week",
        panel="val/verdicts",
    ),
)


class _Dumper(yaml.SafeDumper):
    """Several lines as a block, so that a query reads as it was written."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def to_yaml() -> dict[str, str]:
    """The rule files by name."""
    recorded = [{"record": name, "expr": expr} for name, expr in RECORDED.items()]
    files = {
        "turncap.rules.yml": [{"name": "turncap-hours", "interval": "1m", "rules": recorded}],
        "turncap.alerts.yml": [{"name": "turncap", "rules": [alert.to_rule() for alert in ALERTS]}],
    }
    head = "# Generated by `make dashboards`; change tools/dashboards/rules.py.\n"
    return {
        name: head + yaml.dump({"groups": groups}, Dumper=_Dumper, sort_keys=False, width=1000)
        for name, groups in files.items()
    }
