"""A small, plain reader of the payloads in tests/data/dialects, and what the dialects make of them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from analytics.dialects import DIALECTS, base
from analytics.dialects.assemble import assemble
from analytics.dialects.base import DialectTurn, Record, Source, SpanEvent, StoredSeen, row

DATA = Path(__file__).parents[2] / "data" / "dialects"


def value(wire: dict[str, Any] | None) -> Any:
    if not wire:
        return None
    ((kind, inner),) = wire.items()
    if kind == "intValue":
        return int(inner)
    if kind == "arrayValue":
        return [value(item) for item in inner.get("values", [])]
    if kind == "kvlistValue":
        return attributes(inner.get("values", []))
    return base64.b64decode(inner) if kind == "bytesValue" else inner


def attributes(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: value(pair.get("value")) for pair in pairs}


def records(path: Path) -> Iterator[Record]:
    """Every record of one file, OTLP/JSON lines or other JSON lines, also gzip."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    offset = 0
    for text in data.splitlines(keepends=True):
        line = json.loads(text)
        if not {"resourceLogs", "resourceSpans", "resourceMetrics"} & line.keys():
            yield Record(source=Source.LINE, name="", body=line, path=str(path), offset=offset)
        offset += len(text)
        for outer in line.get("resourceLogs", []) + line.get("resourceSpans", []):
            resource = attributes(outer.get("resource", {}).get("attributes", []))
            for inner in outer.get("scopeLogs", []) + outer.get("scopeSpans", []):
                scope = inner.get("scope", {})
                for one in inner.get("logRecords", []):
                    yield log_record(one, resource, scope)
                for one in inner.get("spans", []):
                    yield span_record(one, resource, scope)


def log_record(one: dict[str, Any], resource: dict[str, Any], scope: dict[str, Any]) -> Record:
    values = attributes(one.get("attributes", []))
    body = value(one.get("body"))
    name = one.get("eventName") or values.get("event.name") or body
    return Record(
        source=Source.LOG,
        name=name if isinstance(name, str) else "",
        attributes=values,
        resource=resource,
        scope=scope.get("name", ""),
        trace_id=one.get("traceId", ""),
        span_id=one.get("spanId", ""),
        at=int(one.get("timeUnixNano") or one.get("observedTimeUnixNano") or 0) or None,
        body=body,
    )


def span_record(one: dict[str, Any], resource: dict[str, Any], scope: dict[str, Any]) -> Record:
    return Record(
        source=Source.SPAN,
        name=one.get("name", ""),
        attributes=attributes(one.get("attributes", [])),
        resource=resource,
        scope=scope.get("name", ""),
        trace_id=one.get("traceId", ""),
        span_id=one.get("spanId", ""),
        parent_id=one.get("parentSpanId", ""),
        started_at=int(one.get("startTimeUnixNano", 0)) or None,
        at=int(one.get("endTimeUnixNano", 0)) or None,
        failed={1: False, 2: True}.get(one.get("status", {}).get("code")),
        events=[
            SpanEvent(
                name=event.get("name", ""),
                at=int(event.get("timeUnixNano", 0)) or None,
                attributes=attributes(event.get("attributes", [])),
            )
            for event in one.get("events", [])
        ],
    )


def kept(found: Iterable[Record]) -> list[tuple[Any, ...]]:
    """The rows of `raw_seen` that the loader keeps of records, each natural key once."""
    rows = {}
    for record in found:
        for dialect in DIALECTS:
            seen = dialect.recognise(record)
            if seen is not None:
                for one in seen:
                    told = row(dialect.name, one)
                    rows[told[:3]] = told
                break
    return [rows[key] for key in sorted(rows)]


def stored(found: Iterable[Record]) -> dict[str, list[StoredSeen]]:
    """What is assembled of records: everything seen, by group."""
    rows = [(group, *told) for group, _, *told in kept(found)]
    return {group: base.stored(list(ones)) for group, ones in groupby(rows, key=itemgetter(0))}


def turns(*paths: Path) -> list[DialectTurn]:
    """All turns of some files, oldest first."""
    groups = stored([record for path in paths for record in records(path)])
    found = [turn for seen in groups.values() for turn in assemble(seen)]
    return sorted(found, key=lambda turn: (turn.started_at or 0, turn.turn_id))


def summary(turn: DialectTurn) -> dict[str, Any]:
    """A turn in few words, for golden files: no times, no random ids."""
    return {
        "dialect": turn.dialect,
        "grade": turn.grade,
        "outcome": turn.outcome,
        "agent": turn.agent,
        "model": turn.model,
        "child": turn.parent_id is not None,
        "calls": [
            [call.tool, call.key, call.result, call.error, call.batch, call.settled_after, call.settled_order]
            for call in turn.calls
        ],
    }


def cases() -> dict[str, list[Path]]:
    """Every payload alone, and all that one program wrote together."""
    found: dict[str, list[Path]] = {}
    for path in sorted(DATA.glob("*.jsonl.gz")):
        product, kind = path.name.split(".")[:2]
        found[f"{product} {kind.split('-')[0]}"] = [path]
        found.setdefault(f"{product} together", []).append(path)
    return {name: paths for name, paths in found.items() if "together" not in name or len(paths) > 1}
