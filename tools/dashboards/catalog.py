"""Every metric that a query may name, and what Prometheus calls it.

turncap's own come from the guard's contract; the pipeline's (SDK, Collector) are those that tell of loss.
Names follow the default translation of Prometheus' OTLP receiver: dots become underscores, a unit in
braces leaves no trace, seconds and `_total` are appended. Dashboards serve that spelling alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import yaml

from guard import names

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One instrument as its source declares it; `attributes` are what a query may group or filter by."""

    name: str
    kind: Kind
    unit: str
    attributes: tuple[str, ...]

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, without a histogram's `_bucket`, `_sum`, `_count`."""
        units = {"s": "_seconds", "By": "_bytes"}
        stem = label(self.name) + units.get(self.unit, "")
        return f"{stem}_total" if self.kind == "counter" and not stem.endswith("_total") else stem

    def series(self) -> Iterator[str]:
        """Every series name that the metric makes."""
        if self.kind != "histogram":
            yield self.prometheus
            return
        for suffix in ("_bucket", "_sum", "_count"):
            yield self.prometheus + suffix


def label(attribute: str) -> str:
    """What Prometheus calls an attribute."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


def _registered() -> dict[str, Metric]:
    """The guard's metrics as its registry declares them."""
    registry = yaml.safe_load(files("guard").joinpath("registry.yaml").read_text(encoding="utf-8"))
    return {
        group["metric_name"]: Metric(
            name=group["metric_name"],
            kind=group["instrument"],
            unit=group["unit"],
            attributes=tuple(each.get("ref") or each["id"] for each in group["attributes"]),
        )
        for group in registry["groups"]
        if group["type"] == "metric"
    }


OWN = _registered()
TURNS_STARTED, TURNS, HALTS = OWN[names.M_TURNS_STARTED], OWN[names.M_TURNS], OWN[names.M_HALTS]
CROSSINGS, CALLS, REFUSED = OWN[names.M_SOFT_CAP_CROSSINGS], OWN[names.M_CALLS], OWN[names.M_CALLS_REFUSED]
TOOL_CALLS, MAX_REPEAT = OWN[names.M_TOOL_CALLS], OWN[names.M_MAX_REPEAT]
GUARD_TIME, ERRORS = OWN[names.M_GUARD_TIME], OWN[names.M_ERRORS]
POLICY_LIMIT, GUARD_INFO = OWN[names.M_POLICY_LIMIT], OWN[names.M_GUARD_INFO]


def _sdk(signal: str, stage: str, verb: str) -> Metric:
    unit = "{log_record}" if signal == "log" else "{span}"
    return Metric(
        name=f"otel.sdk.{stage}.{signal}.{verb}",
        kind="counter",
        unit=unit,
        attributes=("error.type", "otel.component.name", "otel.component.type"),
    )


# (counter, what it counts): the SDK's own, with error.type set where a record was given up
SDK_LOST = tuple(
    (_sdk(signal, stage, verb), f"{signal}s {word}")
    for signal in ("log", "span")
    for stage, verb, word in (("processor", "processed", "dropped"), ("exporter", "exported", "not sent"))
)


def _collector(name: str, *attributes: str) -> Metric:
    return Metric(name=f"otelcol_{name}", kind="counter", unit="{record}", attributes=attributes)


# (counter, the attribute that names the component, what it counts): the Collector's own
COLLECTOR_LOST = tuple(
    (_collector(f"{part}_{verb}_{what}", part), part, f"{word} {what.replace('_', ' ')}")
    for what in ("log_records", "spans", "metric_points")
    for part, verb, word in (
        ("receiver", "refused", "refused"),
        ("exporter", "send_failed", "failed"),
        ("exporter", "enqueue_failed", "no room for"),
    )
)
COLLECTOR_UPTIME = Metric(name="otelcol_process_uptime", kind="counter", unit="s", attributes=())

# What `turncap dashboards textfile` writes of a published snapshot
SNAPSHOT_PUBLISHED = Metric(
    name="turncap_snapshot_published_timestamp", kind="gauge", unit="s", attributes=()
)
SNAPSHOT_NEWEST = Metric(name="turncap_snapshot_newest_turn_timestamp", kind="gauge", unit="s", attributes=())
VERDICT_RANK = Metric(name="turncap_verdict_rank", kind="gauge", unit="", attributes=("question",))
SNAPSHOT = (SNAPSHOT_PUBLISHED, SNAPSHOT_NEWEST, VERDICT_RANK)

FOREIGN = (
    *(metric for metric, _ in SDK_LOST),
    *(metric for metric, _, _ in COLLECTOR_LOST),
    COLLECTOR_UPTIME,
    *SNAPSHOT,
)
