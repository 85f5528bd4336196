"""Spans as a JavaScript SDK holds them, one object a line: what Copilot CLI's file exporter writes.

It is no OTLP: times are pairs of seconds and nanoseconds, attributes a map, a status is counted from 0.
A span is put into neutral form here and read as one that came over the wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.dialects.base import LINE, SPAN, Record, Seen, SpanEvent
from analytics.dialects.genai import GenAi
from analytics.dialects.values import fitting

_WIRE = GenAi()
_FAILED = {1: False, 2: True}
_OTHERS = ("metric", "log", "event")


class SdkLines:
    """Spans, one JSON object of the SDK's a line."""

    name = "sdk-lines"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What the span on one line says."""
        line = record.body
        if record.source is not LINE or not isinstance(line, dict):
            return None
        kind, scope = line.get("type"), _scope(line)
        if kind in _OTHERS and scope:
            return ()
        started, ended = _time(line.get("startTime")), _time(line.get("endTime"))
        trace, span = line.get("traceId"), line.get("spanId")
        if started is None or not isinstance(trace, str) or not isinstance(span, str):
            return None
        return _WIRE.recognise(
            Record(
                source=SPAN,
                name=str(line.get("name", "")),
                attributes=_mapping(line.get("attributes")),
                resource=_mapping(_mapping(line.get("resource")).get("attributes")),
                scope=scope,
                trace_id=trace,
                span_id=span,
                parent_id=str(line.get("parentSpanId") or ""),
                started_at=started,
                at=ended,
                failed=_status(line.get("status")),
                events=tuple(_events(line.get("events"))),
            )
        )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _scope(line: Mapping[str, Any]) -> str:
    for key in ("instrumentationScope", "instrumentationLibrary", "scope"):
        name = _mapping(line.get(key)).get("name")
        if isinstance(name, str):
            return name
    return ""


def _time(pair: Any) -> int | None:
    """[seconds, nanoseconds] -> nanoseconds since 1970."""
    if isinstance(pair, Sequence) and len(pair) == 2 and all(type(part) is int for part in pair):
        return fitting(int(pair[0]) * 1_000_000_000 + int(pair[1]))
    return None


def _status(status: Any) -> bool | None:
    code = _mapping(status).get("code")
    return _FAILED.get(code) if isinstance(code, int) else None


def _events(events: Any) -> list[SpanEvent]:
    return [
        SpanEvent(
            name=str(event.get("name", "")),
            at=_time(event.get("time")),
            attributes=_mapping(event.get("attributes")),
        )
        for event in (events if isinstance(events, list) else ())
        if isinstance(event, dict)
    ]
