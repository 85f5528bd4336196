"""One request's body as one OTLP/JSON line, and what it holds. Pure: bytes in, bytes out."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from guard.otlp_json import field_to_json, to_json

GZIP = 16 + zlib.MAX_WBITS
LARGE = 1 << 20  # bytes of a part that is written by its own parts
TOGETHER = 10_000  # messages
_POINTS = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
_SPACES = bytes.maketrans(b"\r\n", b"  ")


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A request that is answered with `status` and a message for the person who runs the exporter."""

    def __init__(self, status: HTTPStatus, message: str, *, close: bool = False) -> None:
        self.status = status
        self.message = message
        self.close = close  # the body was not read, so the connection cannot be used again
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One of the three: where it is posted, the file it goes to, its names in OTLP/JSON."""

    path: str
    stem: str
    request: type[Message]
    outer: str
    scopes: str
    items: str


SIGNALS = (
    Signal(
        path="/v1/logs",
        stem="logs",
        request=ExportLogsServiceRequest,
        outer="resourceLogs",
        scopes="scopeLogs",
        items="logRecords",
    ),
    Signal(
        path="/v1/traces",
        stem="traces",
        request=ExportTraceServiceRequest,
        outer="resourceSpans",
        scopes="scopeSpans",
        items="spans",
    ),
    Signal(
        path="/v1/metrics",
        stem="metrics",
        request=ExportMetricsServiceRequest,
        outer="resourceMetrics",
        scopes="scopeMetrics",
        items="metrics",
    ),
)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one request holds."""

    events: Counter[str] = field(default_factory=Counter)
    spans: int = 0
    points: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.events or self.spans or self.points)


def read_payload(
    signal: Signal, body: bytes, *, encoding: str, is_json: bool, limit: int
) -> tuple[bytes, Tally]:
    """(the line to write, what it holds); the line is empty where the request holds nothing.

    Raises Refused: 413 for more than `limit` bytes after decompression, 400 for what is no OTLP.
    """
    if encoding == "gzip":
        body = _gunzip(body, limit)
    if is_json:
        line, payload = _parse_json(body)
        tally = _count(signal, payload)
        return (b"" if tally.empty else line), tally
    try:
        request = signal.request.FromString(body)
    except DecodeError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no {signal.request.__name__}: {error}") from error
    tally = _count_message(signal, request)
    return (b"" if tally.empty else to_line(request)), tally


def to_line(message: Message, levels: int = 3) -> bytes:
    """A request as one line of OTLP/JSON, written part by part: `levels` of repeated messages deep.

    Resources, scopes and records are three, so that only one record at a time is held as a value, and
    of a record that is large only a part: as values it would take eighty times its bytes.
    """
    if levels <= 0 and message.ByteSize() <= LARGE:
        return orjson.dumps(to_json(message))
    pieces = []
    for part, value in message.ListFields():
        if part.message_type is None:
            inner = orjson.dumps(field_to_json(part, value))
        elif part.is_repeated:
            inner = b"[" + _joined(value, levels - 1) + b"]"
        else:
            inner = to_line(value, 0)
        pieces.append(b'"%s":%s' % (part.json_name.encode(), inner))
    return b"{" + b",".join(pieces) + b"}"


def _joined(messages: Sequence[Message], levels: int) -> bytes:
    """Messages with commas between, some at a time: a million small ones are dear as objects."""
    return b",".join(
        b",".join([to_line(message, levels) for message in messages[at : at + TOGETHER]])
        for at in range(0, len(messages), TOGETHER)
    )


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members of a gzip body."""
    out = bytearray()
    try:
        while body:
            member = zlib.decompressobj(GZIP)
            out += member.decompress(body, limit + 1 - len(out))
            if len(out) > limit:
                raise Refused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"more than {limit} bytes after gzip; make the exporter's batches smaller",
                )
            if not member.eof:
                raise Refused(HTTPStatus.BAD_REQUEST, "the gzip body ends too early")
            body = member.unused_data
    except zlib.error as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no gzip: {error}") from error
    return bytes(out)


def _parse_json(body: bytes) -> tuple[bytes, Any]:
    """(the body on one line, its value): it is written as it came, so that no number is rounded."""
    try:
        return body.translate(_SPACES), orjson.loads(body)
    except orjson.JSONDecodeError as error:
        reason = str(error)
    try:  # halves of a surrogate pair, which some writers let through and few readers take
        value = json.loads(body)
        line = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return line, orjson.loads(line)
    except (ValueError, RecursionError):
        raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {reason}") from None


def _count_message(signal: Signal, request: Any) -> Tally:
    tally = Tally()
    if signal.stem == "logs":
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                tally.events.update(
                    record.event_name or _named(record.attributes) for record in scope.log_records
                )
    elif signal.stem == "traces":
        tally.spans = sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans)
    else:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    data = metric.WhichOneof("data")
                    tally.points += len(getattr(metric, data).data_points) if data else 0
    return tally


def _named(attributes: Any) -> str:
    """The attribute by which older writers name an event."""
    return next((pair.value.string_value for pair in attributes if pair.key == "event.name"), "")


def _count(signal: Signal, payload: Any) -> Tally:
    tally = Tally()
    if not isinstance(payload, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, f"accepted: an object with {signal.outer}")
    if payload and signal.outer not in payload:
        found = ", ".join(sorted(map(str, payload))[:3])
        raise Refused(
            HTTPStatus.BAD_REQUEST, f"{signal.path} accepts an object with {signal.outer}; it has {found}"
        )
    for resource in _objects(payload, signal.outer):
        for scope in _objects(resource, signal.scopes):
            for item in _objects(scope, signal.items):
                if signal.stem == "logs":
                    tally.events[_event_name(item)] += 1
                elif signal.stem == "traces":
                    tally.spans += 1
                else:
                    tally.points += sum(
                        sum(1 for _ in _objects(data, "dataPoints"))
                        for data in (item.get(kind) for kind in _POINTS)
                        if isinstance(data, dict)
                    )
    return tally


def _objects(parent: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    items = parent.get(name)
    if items is None:
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: accepted: a list of objects")
    yield from items


def _event_name(record: dict[str, Any]) -> str:
    """The field, else the attribute by which older writers name an event."""
    name = record.get("eventName")
    if isinstance(name, str) and name:
        return name
    for attribute in _objects(record, "attributes"):
        if attribute.get("key") == "event.name":
            value = attribute.get("value")
            text = value.get("stringValue") if isinstance(value, dict) else None
            return text if isinstance(text, str) else ""
    return ""
