"""OTLP protobuf messages as OTLP/JSON values.

The mapping of the OTLP specification: lowerCamelCase names, trace and span ids in hexadecimal, 64-bit
integers as strings, enums as numbers, other bytes in base64, default values left out. (protobuf's own
`json_format` writes ids in base64 and enums as names, which is not OTLP/JSON, and is several times slower.)
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

_IDS = {"trace_id", "span_id", "parent_span_id"}
_INT64 = {
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_SFIXED64,
}

# Field number -> (JSON name, how to convert one value or None for "as it is", repeated)
_Plan = dict[int, tuple[str, Callable[[Any], Any] | None, bool]]


def to_json(message: Message) -> dict[str, Any]:
    """The message as the value that `orjson.dumps` writes as OTLP/JSON."""
    return _convert(message, _plan(message.DESCRIPTOR))


def field_to_json(field: FieldDescriptor, value: Any) -> Any:
    """One field's value as `to_json` has it."""
    _, convert, repeated = _plan(field.containing_type)[field.number]
    if convert is None:
        return list(value) if repeated else value
    return [convert(item) for item in value] if repeated else convert(value)


def _any_value(value: AnyValue) -> dict[str, Any]:
    """The same as `to_json`, faster: most of a payload is made of these."""
    kind = value.WhichOneof("value")
    if kind == "int_value":
        return {"intValue": str(value.int_value)}
    if kind == "string_value":
        return {"stringValue": value.string_value}
    if kind == "array_value":
        return {"arrayValue": {"values": [_any_value(item) for item in value.array_value.values]}}
    return _convert(value, _plan(AnyValue.DESCRIPTOR))


def _convert(message: Message, plan: _Plan) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field, value in message.ListFields():
        name, convert, repeated = plan[field.number]
        if repeated:
            out[name] = list(value) if convert is None else [convert(item) for item in value]
        else:
            out[name] = value if convert is None else convert(value)
    return out


@cache
def _plan(descriptor: Descriptor) -> _Plan:
    return {
        field.number: (field.json_name, _converter(field), field.is_repeated) for field in descriptor.fields
    }


def _converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _any_value if field.message_type is AnyValue.DESCRIPTOR else to_json
    if field.type in _INT64:
        return str
    if field.type in {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}:
        return _double
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes.hex if field.name in _IDS else _base64
    return None


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
