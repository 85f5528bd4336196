"""A line or frame of JSON -> records.

The strict decoder reads what conforming exporters write. What it refuses is read again by the patient
one: Python's own parser, which takes lone surrogates, NaN and large integers, and a renaming of the
spellings seen in the wild (snake case, the old `instrumentationLibrary…` names, records without their
envelope). There a record that cannot be read is given up alone, not the line that holds it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from analytics.dialects.base import LINE, Record
from analytics.otlp import model, records
from analytics.otlp.records import Item, Unreadable, UnreadablePieceError

_export = msgspec.json.Decoder(model.Export).decode
_EXPORT = b'{"resource'  # how exporters begin a line
_ENVELOPES = ("resourceLogs", "resourceSpans", "resourceMetrics")


def line(piece: bytes) -> Record | None:
    """The record of a line that is an object and no OTLP; None also when it holds what must be cleaned."""
    if piece.startswith(_EXPORT):
        return None
    try:
        found = orjson.loads(piece)
    except orjson.JSONDecodeError:
        return None
    if isinstance(found, dict) and not _hints(found):
        return Record(source=LINE, name="", body=found)
    return None


def read(piece: bytes) -> Iterator[Item]:
    """Everything in one piece; UnreadablePieceError when it is none."""
    if (found := line(piece)) is not None:
        return iter((found,))
    try:
        export = _export(piece)
    except (msgspec.DecodeError, RecursionError):
        return _patient(piece)
    return records.items(export) if _regular(export) else _patient(piece)


def _regular(export: model.Export) -> bool:
    """Whether every part has the conforming names: an unknown spelling shows as a part that is missing."""
    groups = [*(export.resourceLogs or ()), *(export.resourceSpans or ()), *(export.resourceMetrics or ())]
    for group in groups:
        match group:
            case model.ResourceLogs(scopeLogs=list() as scopes):
                inner: list[Any] = [one.logRecords for one in scopes]
            case model.ResourceSpans(scopeSpans=list() as scopes):
                inner = [one.spans for one in scopes]
            case model.ResourceMetrics(scopeMetrics=list() as scopes):
                inner = [one.metrics for one in scopes]
            case _:
                return False
        if None in inner:
            return False
    return bool(groups)


def _patient(piece: bytes) -> Iterator[Item]:
    # A list with an element a line gives its brackets as lines, and a comma behind each element.
    text = piece.decode("utf-8", "replace").strip("\ufeff\x00 \t\r\n").removesuffix(",")
    if text in ("[", "]"):
        return iter(())
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadablePieceError(str(error)) from None
    return values(parsed)


def values(parsed: Any) -> Iterator[Item]:
    """Everything in one parsed JSON value: an export request, a bare record, a list of them, or a line."""
    if isinstance(parsed, list):
        for one in parsed:
            yield from values(one)
        return
    if not isinstance(parsed, dict):
        yield Unreadable(reason="JSON, but no object")
        return
    try:
        envelope = _enveloped(_renamed(parsed)) if _hints(parsed) else None
        if envelope is None:
            yield Record(source=LINE, name="", body=_cleaned(parsed))
            return
    except RecursionError:
        yield Unreadable(reason="nested too deep")
        return
    for name in _ENVELOPES:
        for group in _listed(envelope.get(name)):
            yield from _group(name, group)


_HINTS = {
    *_ENVELOPES, "scopeLogs", "scopeSpans", "scopeMetrics", "instrumentationLibraryLogs",
    "instrumentationLibrarySpans", "instrumentationLibraryMetrics", "startTimeUnixNano", "timeUnixNano",
    "observedTimeUnixNano", "sum", "gauge", "histogram",
}  # fmt: skip


def _hints(value: dict[str, Any]) -> bool:
    """Whether a key belongs to OTLP: other lines are not worth renaming."""
    if not _HINTS.isdisjoint(value):
        return True
    return "_" in "".join(value) and any("_" in key and _camel(key) in _HINTS for key in value)


# What writers that do not conform call the parts, and what the specification calls them.
_SPELLINGS = {
    "instrumentationLibraryLogs": "scopeLogs",
    "instrumentationLibrarySpans": "scopeSpans",
    "instrumentationLibraryMetrics": "scopeMetrics",
    "instrumentationLibrary": "scope",
}
_INTEGER_FIELDS = {
    "intValue", "asInt", "count", "timeUnixNano", "observedTimeUnixNano", "startTimeUnixNano",
    "endTimeUnixNano",
}  # fmt: skip


def _renamed(value: Any, name: str = "") -> Any:
    """The value under the specification's names, numbers in a form that JSON can carry, texts clean."""
    match value:
        case dict():
            out = {}
            for key, inner in value.items():
                camel = _camel(key)
                camel = _SPELLINGS.get(camel, camel)
                if inner is not None or camel == "value":
                    out[camel] = _renamed(inner, camel)
            return out
        case list():
            return [_renamed(one) for one in value]
        case str():
            return _clean(value)
        case float() if math.isnan(value) or math.isinf(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case float() if name in _INTEGER_FIELDS and value.is_integer():
            return int(value)
        case int() if not isinstance(value, bool):
            return value if -(2**63) <= value < 2**63 else str(value)
    return value


@lru_cache(maxsize=4096)
def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest) if head else key


def _clean(text: str) -> str:
    """The text with lone surrogates replaced: they are no characters, and nothing can store them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _cleaned(value: Any) -> Any:
    match value:
        case dict():
            return {_clean(str(key)): _cleaned(inner) for key, inner in value.items()}
        case list():
            return [_cleaned(one) for one in value]
        case str():
            return _clean(value)
    return value


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _enveloped(value: dict[str, Any]) -> dict[str, Any] | None:
    """The value as an export request, a bare part put into its envelope; None when it is no OTLP."""
    if any(name in value for name in _ENVELOPES):
        return value
    for inner, outer in (("scopeLogs", 0), ("scopeSpans", 1), ("scopeMetrics", 2)):
        if inner in value:
            return {_ENVELOPES[outer]: [value]}
    around = {"resource": value.get("resource"), "scope": value.get("scope")}
    if {"traceId", "spanId", "startTimeUnixNano"} <= value.keys():
        scoped: dict[str, Any] = {"scopeSpans": [{"scope": around["scope"], "spans": [value]}]}
        return {"resourceSpans": [{"resource": around["resource"], **scoped}]}
    if value.keys() & {"timeUnixNano", "observedTimeUnixNano"} and value.keys() & {"attributes", "body"}:
        scoped = {"scopeLogs": [{"scope": around["scope"], "logRecords": [value]}]}
        return {"resourceLogs": [{"resource": around["resource"], **scoped}]}
    if "name" in value and any(isinstance(value.get(kind), dict) for kind in ("sum", "gauge", "histogram")):
        scoped = {"scopeMetrics": [{"scope": around["scope"], "metrics": [value]}]}
        return {"resourceMetrics": [{"resource": around["resource"], **scoped}]}
    return None


_PARTS: dict[str, tuple[str, str, str]] = {
    "resourceLogs": ("scopeLogs", "logRecords", "log record"),
    "resourceSpans": ("scopeSpans", "spans", "span"),
    "resourceMetrics": ("scopeMetrics", "metrics", "metric"),
}


def _group(name: str, group: Any) -> Iterator[Item]:
    """The records of one resource, each decoded alone."""
    scopes, members, word = _PARTS[name]
    if not isinstance(group, dict):
        yield Unreadable(reason=f"{name} holds something that is no object")
        return
    for scope in _listed(group.get(scopes)):
        if not isinstance(scope, dict):
            yield Unreadable(reason=f"{scopes} holds something that is no object")
            continue
        for one in _listed(scope.get(members)):
            alone = {
                name: [{"resource": _object(group.get("resource")),
                        scopes: [{"scope": _object(scope.get("scope")), members: [one]}]}]
            }  # fmt: skip
            try:
                export = _export(msgspec.json.encode(alone))
            except (msgspec.DecodeError, ValueError, RecursionError, OverflowError) as error:
                yield Unreadable(reason=f"{word}: {error}")
                continue
            yield from records.items(export)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
