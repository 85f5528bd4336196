"""A slow, plain reader of turncap's telemetry: what the loader must come to, written from the contract.

It shares no code with the loader: the standard library's JSON, dicts and loops, one turn at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One event as one source told it."""

    name: str
    source: str
    at: int | None
    attributes: Attributes


def plain(value: dict[str, Any]) -> Any:
    """An OTLP value as a Python value."""
    for kind, found in value.items():
        if kind == "intValue":
            return int(found)
        if kind == "arrayValue":
            return [plain(one) for one in found.get("values", [])]
        return found
    return None


def attributes(record: dict[str, Any]) -> Attributes:
    """The attributes of a record, without turncap's prefix and without nulls."""
    pairs = {one["key"].removeprefix("turncap."): plain(one["value"]) for one in record["attributes"]}
    return {name: value for name, value in pairs.items() if value is not None}


def told(lines: Iterable[bytes]) -> list[Told]:
    """Every event of well-formed lines."""
    found = []
    for line in lines:
        message = json.loads(line)
        for group in message.get("resourceLogs", []):
            for scope in group["scopeLogs"]:
                for one in scope["logRecords"]:
                    found.append(Told(one["eventName"], "log", int(one["timeUnixNano"]), attributes(one)))
        for group in message.get("resourceSpans", []):
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    for one in span["events"]:
                        found.append(Told(one["name"], "span", int(one["timeUnixNano"]), attributes(one)))
                    own = {**attributes(span), "event.id": "span"}
                    found.append(Told("turncap.turn.ended", "turn", int(span["endTimeUnixNano"]), own))
    return [one for one in found if "turn.id" in one.attributes]


def merged(copies: Iterable[Told]) -> Attributes | None:
    """Copies of one event as one: a log's attribute wins over a span event's, that over the span's own."""
    out: Attributes = {}
    for one in sorted(copies, key=lambda copy: copy.source):
        out = {**one.attributes, **({} if one.at is None else {"at": one.at}), **out}
    return out or None


def turn(events: list[Told]) -> dict[str, Any]:
    """Everything that the tables say of one turn whose events these are."""

    def one(name: str) -> Attributes | None:
        return merged(event for event in events if event.name == f"turncap.{name}")

    def each(name: str, key: str) -> list[Attributes]:
        of_name = [event for event in events if event.name == f"turncap.{name}"]
        keys = sorted({event.attributes[key] for event in of_name})
        return [merged(e for e in of_name if e.attributes[key] == value) or {} for value in keys]

    started, ended = one("turn.started"), one("turn.ended")
    chunks = each("turn.calls", "chunk.index")
    halts = sorted(
        each("loop_detected", "event.id"), key=lambda halt: (halt["call.number"], halt["event.id"])
    )
    calls = _calls(chunks, halts)
    retries = [
        pair
        for chunk in chunks
        for pair in zip(chunk.get("retry.at", []), chunk.get("retry.total", []), strict=True)
    ]
    for call in calls.values():
        call["epoch"] = sum(at < call["n"] for at, _ in retries)
    enforced = [halt for halt in halts if halt["enforced"]]
    reached = list(
        zip(
            *(
                (ended or {}).get(f"milestones.{name}", [])
                for name in ("epoch", "k", "call", "batch_first_call")
            ),
            strict=True,
        )
    )
    least = max(
        [0, (ended or {}).get("calls", 0), max(calls, default=0), *(halt["call.number"] for halt in halts)]
    )
    settled = (ended or {}).get("settled", sum(len(chunk.get("settled.call", [])) for chunk in chunks))
    logs = any(event.source == "log" for event in events if event.name != "turncap.turn.labelled")
    known = (ended or {}).get("calls", max(calls, default=0))
    return {
        "has_started": started is not None,
        "has_ended": ended is not None,
        "mode": (started or {}).get("mode", halts[0].get("mode") if halts else None),
        "outcome": (ended or {}).get("outcome"),
        "calls": (ended or {}).get("calls"),
        "ran": (ended or {}).get("ran"),
        "halted_call": enforced[0]["call.number"] if enforced else None,
        "threshold": enforced[0]["threshold"] if enforced else None,
        "would_halt_call": halts[0]["call.number"] if halts else None,
        "chunks_seen": len(chunks),
        "least_calls": least,
        "grade": "spans-only" if not logs else "no-results" if known and settled == 0 else "exact",
        "rows": [calls[n] for n in sorted(calls)],
        "retries": [(place, at, total) for place, (at, total) in enumerate(retries, start=1)],
        "milestones": sorted(reached),
        "halts": [(halt["event.id"], halt["call.number"], halt["enforced"]) for halt in halts],
    }


def _calls(chunks: list[Attributes], halts: list[Attributes]) -> dict[int, dict[str, Any]]:
    """The numbered calls by number, chunk after chunk."""
    calls: dict[int, dict[str, Any]] = {}
    names: dict[int, tuple[str, str]] = {}
    for chunk in chunks:
        indexes, new = chunk.get("calls.tool", []), chunk.get("tools", [])
        for place, (name, kind) in enumerate(zip(new, chunk.get("tools.class", []), strict=True)):
            names.setdefault(max(indexes) - len(new) + 1 + place, (name, kind))
    for chunk in chunks:
        for place, key in enumerate(chunk.get("calls.key", [])):
            tool, tool_class = names.get(chunk["calls.tool"][place], (None, None))
            calls.setdefault(
                chunk["chunk.first_call"] + place,
                {
                    "n": chunk["chunk.first_call"] + place,
                    "key": _known(key),
                    "tool": tool,
                    "tool_class": tool_class,
                    "mutating": {1: True, 0: False}.get(chunk["calls.mutating"][place]),
                    "offset_ms": _known(chunk["calls.offset_ms"][place]),
                    "batch": chunk["calls.batch"][place],
                    "result": None,
                    "error": None,
                    "settled_after": None,
                    "settled_order": None,
                    "refused": False,
                },
            )
    order = 0
    for chunk in chunks:
        for place, n in enumerate(chunk.get("settled.call", [])):
            if n in calls and calls[n]["settled_order"] is None:
                calls[n]["result"] = _known(chunk["settled.result"][place])
                calls[n]["error"] = {1: True, 0: False}.get(chunk["settled.error"][place])
                calls[n]["settled_after"] = chunk["settled.after"][place]
                calls[n]["settled_order"] = order
            order += 1
    for halt in halts:
        causing = calls.get(halt["call.number"])
        if halt["enforced"] and causing is not None:
            for call in calls.values():
                call["refused"] = call["refused"] or call["batch"] == causing["batch"]
    return calls


def _known(value: int) -> int | None:
    return None if value == -1 else value
