"""OTLP's JSON messages as typed structures, so that a line is decoded and checked in one pass.

Only what the loader needs is declared; anything else in a line is skipped without being built. Lists of
numbers are most of turncap's bytes and come as an object a number: they stay raw here and are read by
`values.array`. 64-bit integers are strings by the specification and numbers from many writers: both are
taken.
"""

from __future__ import annotations

import msgspec

NONE = msgspec.Raw(b"null")
Integer = str | int | None
Number = float | str | None


class _Message(msgspec.Struct, gc=False):
    """A message; none is part of a reference cycle, so the garbage collector need not see it."""


class AnyValue(_Message):
    """One value: at most one field is set; none is null. Lists and maps stay raw until they are wanted."""

    stringValue: str | None = None  # noqa: N815 - the wire's names
    intValue: Integer = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    doubleValue: Number = None  # noqa: N815
    arrayValue: msgspec.Raw = NONE  # noqa: N815
    kvlistValue: msgspec.Raw = NONE  # noqa: N815
    bytesValue: str | None = None  # noqa: N815


class KeyValue(_Message):
    """One attribute."""

    key: str = ""
    value: AnyValue | None = None


class ArrayValue(_Message):
    """A list of values."""

    values: list[AnyValue] | None = None


class KeyValueList(_Message):
    """A map of values, as OTLP writes it."""

    values: list[KeyValue] | None = None


class Resource(_Message):
    """What produced the telemetry."""

    attributes: list[KeyValue] | None = None


class Scope(_Message):
    """The instrumentation library."""

    name: str | None = None
    version: str | None = None


class LogRecord(_Message):
    """One log record; an event is one with a name."""

    timeUnixNano: Integer = None  # noqa: N815
    observedTimeUnixNano: Integer = None  # noqa: N815
    eventName: str | None = None  # noqa: N815
    body: AnyValue | None = None
    attributes: list[KeyValue] | None = None
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815


class ScopeLogs(_Message):
    """The log records of one library."""

    scope: Scope | None = None
    logRecords: list[LogRecord] | None = None  # noqa: N815


class ResourceLogs(_Message):
    """The log records of one resource."""

    resource: Resource | None = None
    scopeLogs: list[ScopeLogs] | None = None  # noqa: N815


class Status(_Message):
    """A span's status: 0 unset, 1 ok, 2 error, or the names of these."""

    code: str | int | None = None


class SpanEvent(_Message):
    """One event of a span."""

    timeUnixNano: Integer = None  # noqa: N815
    name: str | None = None
    attributes: list[KeyValue] | None = None


class Span(_Message):
    """One span."""

    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str | None = None
    startTimeUnixNano: Integer = None  # noqa: N815
    endTimeUnixNano: Integer = None  # noqa: N815
    attributes: list[KeyValue] | None = None
    events: list[SpanEvent] | None = None
    status: Status | None = None


class ScopeSpans(_Message):
    """The spans of one library."""

    scope: Scope | None = None
    spans: list[Span] | None = None


class ResourceSpans(_Message):
    """The spans of one resource."""

    resource: Resource | None = None
    scopeSpans: list[ScopeSpans] | None = None  # noqa: N815


class DataPoint(_Message):
    """One number of a sum or gauge, or the count and sum of a histogram."""

    attributes: list[KeyValue] | None = None
    startTimeUnixNano: Integer = None  # noqa: N815
    timeUnixNano: Integer = None  # noqa: N815
    asInt: Integer = None  # noqa: N815
    asDouble: Number = None  # noqa: N815
    count: Integer = None
    sum: Number = None


class Points(_Message):
    """The data of one metric; temporality 1 or its name is delta, 2 cumulative, absent a gauge."""

    dataPoints: list[DataPoint] | None = None  # noqa: N815
    aggregationTemporality: str | int | None = None  # noqa: N815
    isMonotonic: bool | None = None  # noqa: N815


class Metric(_Message):
    """One metric."""

    name: str | None = None
    sum: Points | None = None
    gauge: Points | None = None
    histogram: Points | None = None


class ScopeMetrics(_Message):
    """The metrics of one library."""

    scope: Scope | None = None
    metrics: list[Metric] | None = None


class ResourceMetrics(_Message):
    """The metrics of one resource."""

    resource: Resource | None = None
    scopeMetrics: list[ScopeMetrics] | None = None  # noqa: N815


class Export(_Message):
    """One export request of any signal: a line of a file."""

    resourceLogs: list[ResourceLogs] | None = None  # noqa: N815
    resourceSpans: list[ResourceSpans] | None = None  # noqa: N815
    resourceMetrics: list[ResourceMetrics] | None = None  # noqa: N815
