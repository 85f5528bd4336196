"""OTLP attribute values -> plain Python values.

A list becomes a list, a map a dict (the last of equal keys wins), null None. Integers may be strings or
numbers, doubles may be the words NaN, Infinity and -Infinity. An attribute's integer that passes 64 bits
stays text, so that nothing takes it for one. What cannot be read raises ValueError.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from analytics.otlp import model


class Integers(list[int]):
    """A list of integers of at most 64 bits, and of nothing else: who knows the type need not look inside."""

    __slots__ = ()


class Texts(list[str]):
    """A list of texts, and of nothing else."""

    __slots__ = ()


class Empty(list[Any]):
    """A list of nothing, which may stand for either."""

    __slots__ = ()


LEAST, MOST = -(2**63), 2**63 - 1

_whole_numbers = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=LEAST, le=MOST)]]).decode
_array_value = msgspec.json.Decoder(model.ArrayValue).decode
_key_value_list = msgspec.json.Decoder(model.KeyValueList).decode

_HEAD, _GLUE, _TAIL = b'{"values":[{"intValue":"', b'"},{"intValue":"', b'"}]}'


def integer(value: model.Integer) -> int | None:
    """A 64-bit integer, by the specification a string; ValueError when it is longer or none."""
    if value is None:
        return None
    number = int(value)
    if not LEAST <= number <= MOST:
        raise ValueError(f"{value!r} passes 64 bits")
    return number


def _attribute_integer(value: str | int) -> int | str:
    number = int(value)
    return number if LEAST <= number <= MOST else str(number)


def double(value: model.Number) -> float | None:
    """A double; `float` knows the specification's words for what is no number."""
    return value if value is None or type(value) is float else float(value)


def array(raw: bytes) -> list[Any]:
    """A list. Whole numbers in the form every exporter writes are stripped of their wrapping in one go."""
    if raw.startswith(_HEAD) and raw.endswith(_TAIL):
        body = raw[len(_HEAD) : -len(_TAIL)]
        bare = body.replace(_GLUE, b",")
        try:
            numbers = _whole_numbers(b"[" + bare + b"]")
        except msgspec.DecodeError:
            pass
        else:
            # As many as there was glue to replace: else a comma stood inside one of the texts.
            if (len(numbers) - 1) * (len(_GLUE) - 1) == len(body) - len(bare):
                return Integers(numbers)
    found = [any_value(one) for one in _array_value(raw).values or ()]
    kinds = set(map(type, found))
    if not kinds:
        return Empty()
    return Texts(found) if kinds == {str} else found


def any_value(value: model.AnyValue | None) -> Any:
    """One value of whatever kind."""
    if value is None:
        return None
    if value.stringValue is not None:
        return value.stringValue
    if value.intValue is not None:
        return _attribute_integer(value.intValue)
    if value.boolValue is not None:
        return value.boolValue
    if value.doubleValue is not None:
        return double(value.doubleValue)
    if value.arrayValue is not model.NONE and (raw := bytes(value.arrayValue)) != b"null":
        return array(raw)
    if value.kvlistValue is not model.NONE and (raw := bytes(value.kvlistValue)) != b"null":
        return attributes(_key_value_list(raw).values)
    if value.bytesValue is not None:
        return base64.b64decode(value.bytesValue)
    return None


def attributes(pairs: Sequence[model.KeyValue] | None) -> dict[str, Any]:
    """Attributes as a dict. Every attribute of a file goes through here: the frequent kinds come first."""
    out: dict[str, Any] = {}
    for pair in pairs or ():
        value = pair.value
        if value is None:
            continue
        if (text := value.stringValue) is not None:
            out[pair.key] = text
        elif (number := value.intValue) is not None:
            short = type(number) is str and len(number) < 19
            out[pair.key] = int(number) if short else _attribute_integer(number)
        elif (raw := value.arrayValue) is not model.NONE and (found := bytes(raw)) != b"null":
            out[pair.key] = array(found)
        else:
            out[pair.key] = any_value(value)
    return out
