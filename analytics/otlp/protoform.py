"""A protobuf message -> records. The message does not say which signal it holds: its first record does."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from analytics.otlp import jsonform
from analytics.otlp.framing import varint
from analytics.otlp.records import Item, UnreadablePieceError
from guard.otlp_json import to_json

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def read(piece: bytes) -> Iterator[Item]:
    """Everything in one message; UnreadablePieceError when it is none."""
    try:
        kind = _signal(piece)
        if kind is None:
            return iter(())
        message = kind()
        message.ParseFromString(piece)
        return jsonform.read(orjson.dumps(to_json(message)))
    except (DecodeError, ValueError, orjson.JSONEncodeError) as error:
        raise UnreadablePieceError(str(error) or "cannot be parsed") from None


def _signal(piece: bytes) -> type[Message] | None:
    """The kind of message by the wire types of its first record; None when it holds no record."""
    for _, _, resource in _fields(piece, want=1):
        for _, _, scope in _fields(resource, want=2):
            for _, _, record in _fields(scope, want=2):
                kinds = {number: wire for number, wire, _ in _fields(record)}
                if kinds.get(7) == _FIXED64:  # a span's start
                    return TracesData
                if (
                    _FIXED64 in (kinds.get(1), kinds.get(11)) or kinds.get(2) == _VARINT
                ):  # a log's times, severity
                    return LogsData
                if any(kinds.get(data) == _BYTES for data in (5, 7, 9, 10, 11)):  # a metric's data
                    return LogsData if kinds.get(6) == _BYTES else MetricsData
                return LogsData
    return None


def _fields(data: bytes, want: int | None = None) -> Iterator[tuple[int, int, bytes]]:
    """(number, wire type, bytes of a length-delimited field) of a message's fields."""
    at = 0
    while at < len(data):
        tag = varint(data, at)
        if tag is None:
            raise UnreadablePieceError("a field is cut short")
        number, wire = tag[0] >> 3, tag[0] & 7
        at, body = tag[1], b""
        if wire == _BYTES:
            length = varint(data, at)
            if length is None or length[1] + length[0] > len(data):
                raise UnreadablePieceError("a field is longer than the message")
            body = data[length[1] : length[1] + length[0]]
            at = length[1] + length[0]
        elif wire == _VARINT:
            value = varint(data, at)
            if value is None:
                raise UnreadablePieceError("a field is cut short")
            at = value[1]
        elif wire in (1, 5):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise UnreadablePieceError(f"wire type {wire} does not exist")
        if want in (None, number):
            yield number, wire, body
