"""Eight days of two services: real guards play the bundled real turns, and what their metrics read is kept.

Only the clock is made up: a picture of the dashboards needs days, and nobody wants to wait for them.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from guard import ToolCallGuard
from tests.analytics.evidence_db import evidence_rows
from tools.dashboards.catalog import OWN, label

STEP = 240  # seconds between two exports
DAYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process of the picture."""

    job: str
    instance: str
    agent: str
    settings: Mapping[str, Any]
    hourly: float  # turns an hour at noon; a fifth of it at midnight


SERVICES = (
    Service(job="acme/agents", instance="agents-1", agent="coder", settings={}, hourly=70),
    Service(
        job="acme/canary",
        instance="canary-1",
        agent="reviewer",
        settings={"mode": "shadow", "soft_cap": 50},
        hourly=12,
    ),
)


def openmetrics(until: float) -> str:
    """The services' metrics of the days before `until`, as promtool reads them."""
    lines: dict[str, list[str]] = defaultdict(list)
    rows = evidence_rows()
    for number, service in enumerate(SERVICES):
        chance = random.Random(number)
        reader = InMemoryMetricReader()
        guard = ToolCallGuard(
            meter_provider=MeterProvider([reader]),
            agent_name=service.agent,
            model="recorded",
            **service.settings,
        )
        at = until - DAYS * 86_400
        while at <= until:
            share = 0.6 - 0.4 * math.cos(2 * math.pi * (at % 86_400) / 86_400)
            mean = service.hourly * share * STEP / 3600
            for _ in range(int(mean) + (chance.random() < mean % 1)):
                play(guard, chance.choice(rows))
            for family, line in _samples(reader, service, at):
                lines[family].append(line)
            at += STEP
    text = []
    for metric in OWN.values():
        family = metric.prometheus.removesuffix("_total")
        text += [f"# TYPE {family} {metric.kind}", *lines[family]]
    return "\n".join([*text, "# EOF", ""])


def play(guard: ToolCallGuard, row: Mapping[str, Any]) -> None:
    """One recorded turn through a guard, until it is halted."""
    with guard.turn() as turn:
        for n, key in enumerate(row["key"]):
            verdict = turn.admit(row["tool"][n], {"key": key}, mutating=bool(row["mutating"][n]))
            if verdict.halted:
                return
            turn.settle(verdict, result=str(row["result_norm"][n]), error=row["error"][n] or None)


def _samples(reader: InMemoryMetricReader, service: Service, at: float) -> Iterator[tuple[str, str]]:
    data = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
        known = OWN[metric.name]
        family = known.prometheus.removesuffix("_total")
        for point in metric.data.data_points:
            labels = {label(name): str(value) for name, value in (point.attributes or {}).items()}
            labels = {
                name: {"True": "true", "False": "false"}.get(value, value) for name, value in labels.items()
            }
            labels |= {"job": service.job, "instance": service.instance}
            if isinstance(point, HistogramDataPoint):
                yield from _buckets(family, labels, point, at)
            elif isinstance(point, NumberDataPoint):
                yield family, f"{known.prometheus}{_text(labels)} {point.value} {at:.3f}"


def _buckets(
    family: str, labels: Mapping[str, str], point: HistogramDataPoint, at: float
) -> Iterator[tuple[str, str]]:
    total = 0
    bounds: Sequence[float] = [*point.explicit_bounds, math.inf]
    for bound, count in zip(bounds, point.bucket_counts, strict=True):
        total += count
        edge = "+Inf" if math.isinf(bound) else repr(float(bound))
        yield family, f"{family}_bucket{_text({**labels, 'le': edge})} {total} {at:.3f}"
    yield family, f"{family}_sum{_text(labels)} {point.sum} {at:.3f}"
    yield family, f"{family}_count{_text(labels)} {point.count} {at:.3f}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
