"""OTLP messages -> `Record` and `Point` values: one walk, whatever the file's encoding was."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from analytics.dialects.base import LOG, SPAN, Record, SpanEvent
from analytics.otlp import model
from analytics.otlp.values import any_value, attributes, double, integer

_FAILED = {1: False, 2: True, "STATUS_CODE_OK": False, "STATUS_CODE_ERROR": True}
_DELTA = (1, "1", "AGGREGATION_TEMPORALITY_DELTA")
_UNREADABLE = (ValueError, RecursionError, msgspec.DecodeError)
_NAME_LENGTH = 256  # a body longer than this is text, not an event's name


class UnreadablePieceError(ValueError):
    """A line or frame that is neither JSON nor protobuf; the message says why."""


@dataclass(slots=True, kw_only=True)
class Point:
    """One data point of a sum or a gauge, or the count of a histogram (`<name>.count`, and `.sum`)."""

    metric: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    started_at: int
    at: int
    value: float
    delta: bool


@dataclass(slots=True, kw_only=True)
class Unreadable:
    """A record that could not be read, inside a piece that could."""

    reason: str


Item = Record | Point | Unreadable


def items(export: model.Export) -> Iterator[Item]:
    """Everything in one export request, in its order."""
    for logs in export.resourceLogs or ():
        resource, problem = _resource(logs.resource)
        yield from problem
        for scope_logs in logs.scopeLogs or ():
            scope, version = _scope(scope_logs.scope)
            for log in scope_logs.logRecords or ():
                try:
                    yield log_record(log, resource, scope, version)
                except _UNREADABLE as error:
                    yield Unreadable(reason=f"log record: {error}")
    for traces in export.resourceSpans or ():
        resource, problem = _resource(traces.resource)
        yield from problem
        for scope_spans in traces.scopeSpans or ():
            scope, version = _scope(scope_spans.scope)
            for one in scope_spans.spans or ():
                try:
                    yield span_record(one, resource, scope, version)
                except _UNREADABLE as error:
                    yield Unreadable(reason=f"span: {error}")
    for metrics in export.resourceMetrics or ():
        resource, problem = _resource(metrics.resource)
        yield from problem
        for scope_metrics in metrics.scopeMetrics or ():
            for metric in scope_metrics.metrics or ():
                try:
                    yield from points(metric, resource)
                except _UNREADABLE as error:
                    yield Unreadable(reason=f"metric: {error}")


def log_record(log: model.LogRecord, resource: dict[str, Any], scope: str, version: str) -> Record:
    """A log record; its event name is the field, else the attribute `event.name`, else a short text body."""
    values = attributes(log.attributes)
    body = any_value(log.body)
    name = log.eventName or values.get("event.name") or body
    return Record(
        source=LOG,
        name=name if isinstance(name, str) and len(name) <= _NAME_LENGTH else "",
        attributes=values,
        resource=resource,
        scope=scope,
        scope_version=version,
        trace_id=hexadecimal(log.traceId),
        span_id=hexadecimal(log.spanId),
        at=integer(log.timeUnixNano) or integer(log.observedTimeUnixNano) or None,
        body=body,
    )


def span_record(one: model.Span, resource: dict[str, Any], scope: str, version: str) -> Record:
    """A span with its events."""
    return Record(
        source=SPAN,
        name=one.name or "",
        attributes=attributes(one.attributes),
        resource=resource,
        scope=scope,
        scope_version=version,
        trace_id=hexadecimal(one.traceId),
        span_id=hexadecimal(one.spanId),
        parent_id=hexadecimal(one.parentSpanId),
        started_at=integer(one.startTimeUnixNano) or None,
        at=integer(one.endTimeUnixNano) or None,
        failed=_FAILED.get(one.status.code) if one.status and one.status.code is not None else None,
        events=[_event(event) for event in one.events] if one.events else (),
    )


def _event(event: model.SpanEvent) -> SpanEvent:
    at = integer(event.timeUnixNano) or None
    return SpanEvent(name=event.name or "", at=at, attributes=attributes(event.attributes))


def points(metric: model.Metric, resource: dict[str, Any]) -> Iterator[Point]:
    """The points of one metric: a histogram gives its count and its sum."""
    name = metric.name or ""
    for kind in (metric.sum, metric.gauge, metric.histogram):
        if kind is None:
            continue
        delta = kind.aggregationTemporality in _DELTA
        for point in kind.dataPoints or ():
            values: dict[str, float | int | None]
            if kind is metric.histogram:
                values = {f"{name}.count": integer(point.count) or 0, f"{name}.sum": double(point.sum)}
            else:
                whole = integer(point.asInt)
                values = {name: double(point.asDouble) if whole is None else whole}
            for metric_name, value in values.items():
                if value is not None:
                    yield Point(
                        metric=metric_name,
                        attributes=attributes(point.attributes),
                        resource=resource,
                        started_at=integer(point.startTimeUnixNano) or 0,
                        at=integer(point.timeUnixNano) or 0,
                        value=float(value),
                        delta=delta,
                    )


def hexadecimal(value: str | None) -> str:
    """A trace or span id in lower-case hexadecimal; some writers send base64 (24 or 12 characters)."""
    if not value:
        return ""
    if len(value) in (24, 12):
        try:
            value = base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value.lower()
    return value.lower() if value.strip("0") else ""


def _resource(resource: model.Resource | None) -> tuple[dict[str, Any], list[Unreadable]]:
    try:
        return attributes(resource.attributes) if resource else {}, []
    except _UNREADABLE as error:
        return {}, [Unreadable(reason=f"resource: {error}")]


def _scope(scope: model.Scope | None) -> tuple[str, str]:
    return (scope.name or "", scope.version or "") if scope else ("", "")
