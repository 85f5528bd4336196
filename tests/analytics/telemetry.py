"""turncap's own telemetry as exporters write it, built field by field from the contract.

Events are (name, time, attributes) with plain Python values; `log_line`, `span_line` and `metric_line`
encode them as one OTLP/JSON line each. `turn_events` says what a guard in shadow mode under the released
rule says of one bundled turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

START = 1_764_547_200_000_000_000
SOFT_CAP, STUCK_AT, BACKSTOP = 100, 6, 1000
POLICY_HASH = "5f3b1c6d9e8a7f00"
POLICY = {
    "turncap.policy.kind": "adaptive",
    "turncap.policy.hash": POLICY_HASH,
    "turncap.policy.soft_cap": SOFT_CAP,
    "turncap.policy.stuck_at": STUCK_AT,
    "turncap.policy.backstop": BACKSTOP,
    "turncap.policy.signal": "repeat",
}
RESOURCE = {"service.name": "agent", "telemetry.sdk.language": "python", "telemetry.sdk.version": "1.45.2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event as the guard emits it, before it is encoded."""

    name: str
    at: int
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def but(self, **changes: Any) -> Event:
        """A copy with attributes changed: `__` stands for a dot; None takes one away."""
        merged = {**self.attributes, **{f"turncap.{k.replace('__', '.')}": v for k, v in changes.items()}}
        return Event(
            name=self.name, at=self.at, attributes={k: v for k, v in merged.items() if v is not None}
        )


def turn_id(guard: str, seq: int) -> str:
    """The id of a guard's turn."""
    return f"{guard}-{seq}"


def event(name: str, guard: str, seq: int, ordinal: int | str, at: int, **attributes: Any) -> Event:
    """`turncap.<name>` with the attributes that every event has; `__` stands for a dot."""
    turn = turn_id(guard, seq)
    values = {
        "turncap.schema.version": 1,
        "turncap.event.id": f"{turn}/{ordinal}",
        "turncap.guard.id": guard,
        "turncap.turn.seq": seq,
        "turncap.turn.id": turn,
        **{f"turncap.{key.replace('__', '.')}": value for key, value in attributes.items()},
    }
    return Event(name=f"turncap.{name}", at=at, attributes={k: v for k, v in values.items() if v is not None})


def any_value(value: Any) -> dict[str, Any]:
    """A Python value as an OTLP/JSON AnyValue, 64-bit integers as strings."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [any_value(one) for one in value]}}
        case Mapping():
            return {"kvlistValue": {"values": key_values(value)}}
        case None:
            return {}
    raise TypeError(type(value))


def key_values(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them: a list, not a map."""
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def _dump(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def log_record(one: Event, trace_id: str = "", span_id: str = "") -> dict[str, Any]:
    """One log record."""
    record: dict[str, Any] = {
        "timeUnixNano": str(one.at),
        "observedTimeUnixNano": str(one.at + 1000),
        "severityNumber": 13 if one.name == "turncap.loop_detected" else 9,
        "attributes": key_values(one.attributes),
        "eventName": one.name,
    }
    if trace_id:
        record |= {"flags": 3, "traceId": trace_id, "spanId": span_id}
    return record


def log_line(
    events: Iterable[Event], resource: Mapping[str, Any] = RESOURCE, version: str = "0.1.0"
) -> bytes:
    """One export request of log records as a line."""
    scope = {"scope": {"name": "turncap", "version": version}, "logRecords": [log_record(e) for e in events]}
    resource_logs = {"resource": {"attributes": key_values(resource)}, "scopeLogs": [scope]}
    return _dump({"resourceLogs": [resource_logs]})


def span(events: Sequence[Event], number: int, attributes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One `turncap.turn` span that carries `events`."""
    ids = ("turncap.turn.id", "turncap.guard.id", "turncap.turn.seq")
    own = {name: events[0].attributes[name] for name in ids} if events else {}
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "flags": 256,
        "name": "turncap.turn",
        "kind": 1,
        "startTimeUnixNano": str(events[0].at if events else START),
        "endTimeUnixNano": str(events[-1].at if events else START),
        "attributes": key_values({**own, **(attributes or {})}),
        "events": [
            {"timeUnixNano": str(e.at), "name": e.name, "attributes": key_values(e.attributes)}
            for e in events
        ],
        "status": {},
    }


def span_line(
    spans: Sequence[Mapping[str, Any]], resource: Mapping[str, Any] = RESOURCE, version: str = "0.1.0"
) -> bytes:
    """One export request of spans as a line."""
    scope = {"scope": {"name": "turncap", "version": version}, "spans": list(spans)}
    resource_spans = {"resource": {"attributes": key_values(resource)}, "scopeSpans": [scope]}
    return _dump({"resourceSpans": [resource_spans]})


def counter(
    name: str,
    points: Sequence[tuple[Mapping[str, Any], float]],
    *,
    at: int,
    since: int = START,
    delta: bool = False,
) -> dict[str, Any]:
    """One counter with its points (attributes, value)."""
    return {
        "name": name,
        "unit": "{call}",
        "sum": {
            "dataPoints": [
                {
                    "attributes": key_values(attributes),
                    "startTimeUnixNano": str(since),
                    "timeUnixNano": str(at),
                    **({"asInt": str(value)} if isinstance(value, int) else {"asDouble": value}),
                }
                for attributes, value in points
            ],
            "aggregationTemporality": 1 if delta else 2,
            "isMonotonic": True,
        },
    }


def metric_line(metrics: Sequence[Mapping[str, Any]], resource: Mapping[str, Any] = RESOURCE) -> bytes:
    """One export request of metrics as a line."""
    scope = {"scope": {"name": "turncap", "version": "0.1.0"}, "metrics": list(metrics)}
    return _dump(
        {"resourceMetrics": [{"resource": {"attributes": key_values(resource)}, "scopeMetrics": [scope]}]}
    )


def turn_events(row: Mapping[str, Any], guard: str, seq: int, start: int = START) -> list[Event]:
    """What the guard says of one bundled turn (a line of the evidence), in the order it says it."""
    keys: list[int] = row["key"]
    calls, gaps = len(keys), row["gap_s"]
    ordinal = iter(range(1, 1_000_000))
    offsets, elapsed = [], 0.0
    for n in range(calls):
        elapsed += 0.0 if gaps is None else (gaps[n] or 0.0)
        offsets.append(-1 if gaps is None else round(elapsed * 1000))

    def at(n: int) -> int:
        return start + max(offsets[n - 1], 0) * 1_000_000 if n else start

    events = [
        event(
            "turn.started",
            guard,
            seq,
            next(ordinal),
            start,
            mode="shadow",
            holdout__rate=0.0,
            cluster__id=row["session"],
            sample="length-limited" if row["length_limited"] else None,
        )
    ]
    events[0] = Event(
        name=events[0].name,
        at=start,
        attributes={
            **events[0].attributes,
            **POLICY,
            "gen_ai.agent.name": row["source"],
            "gen_ai.conversation.id": row["session"],
        },
    )
    tools = list(dict.fromkeys(row["tool"]))
    pairs: dict[tuple[int, int, int], int] = {}
    results = [
        pairs.setdefault((k, r, e), len(pairs))
        for k, r, e in zip(keys, row["result_norm"], row["error"], strict=True)
    ]
    counts: dict[int, int] = {}
    firsts: dict[int, int] = {}
    halted = None
    for n, key in enumerate(keys, start=1):
        counts[key] = counts.get(key, 0) + 1
        firsts.setdefault(counts[key], n)
        if halted is None and n > SOFT_CAP and STUCK_AT in firsts:
            halted = n
    named: set[str] = set()
    chunk = 0
    first = 1
    while first <= calls:
        size = 50 if first <= 1000 else 500
        part = slice(first - 1, min(first - 1 + size, calls))
        numbers = list(range(first, part.stop + 1))
        new = [t for t in dict.fromkeys(row["tool"][part]) if t not in named]
        named.update(new)
        events.append(
            event(
                "turn.calls",
                guard,
                seq,
                next(ordinal),
                at(part.stop),
                chunk__index=chunk,
                chunk__first_call=first,
                tools=new,
                tools__class=["unknown"] * len(new),
                calls__key=keys[part],
                calls__tool=[tools.index(t) for t in row["tool"][part]],
                calls__mutating=[int(m) for m in row["mutating"][part]],
                calls__offset_ms=offsets[part],
                calls__batch=numbers,
                settled__call=numbers,
                settled__result=results[part],
                settled__error=[int(e) for e in row["error"][part]],
                settled__after=numbers,
            )
        )
        if first <= SOFT_CAP + 1 <= part.stop:
            events.append(
                event(
                    "soft_cap.crossed",
                    guard,
                    seq,
                    next(ordinal),
                    at(SOFT_CAP + 1),
                    total=SOFT_CAP + 1,
                    stuck=halted == SOFT_CAP + 1,
                    level__repeat=max(counts.values()),
                )
            )
        if halted is not None and first <= halted <= part.stop:
            so_far = keys[:halted]
            worst = max(dict.fromkeys(so_far), key=so_far.count)
            where = [n for n, k in enumerate(so_far, start=1) if k == worst]
            detected = event(
                "loop_detected",
                guard,
                seq,
                next(ordinal),
                at(halted),
                threshold="soft-stuck",
                mode="shadow",
                enforced=False,
                holdout__rate=0.0,
                call__number=halted,
                total=halted,
                signal="repeat",
                level=len(where),
                limit=SOFT_CAP,
                repeat__count=len(where),
                repeat__tool=row["tool"][where[0] - 1],
                repeat__digest="0" * 32,
                repeat__first_call=where[0],
                repeat__last_call=where[-1],
                distinct_keys=len(set(so_far)),
                name_streak__max=1,
                level__repeat=len(where),
            )
            events.append(
                Event(name=detected.name, at=detected.at, attributes={**detected.attributes, **POLICY})
            )
        chunk, first = chunk + 1, part.stop + 1
    reached = {k: n for k, n in firsts.items() if 2 <= k <= 64}
    events.append(
        event(
            "turn.ended",
            guard,
            seq,
            next(ordinal),
            at(calls),
            outcome="completed",
            calls=calls,
            ran=calls,
            total=calls,
            refused=0,
            settled=calls,
            errors=sum(row["error"]),
            distinct_keys=len(counts),
            repeat__count=max(counts.values()),
            name_streak__max=1,
            milestones__k=list(reached),
            milestones__call=list(reached.values()),
            milestones__epoch=[0] * len(reached),
            milestones__batch_first_call=list(reached.values()),
            batches=calls,
            retries=0,
            keys_forgotten=0,
            chunks__sent=chunk,
            chunks__on_span=0,
            candidates=["adaptive signal=no_progress soft_cap=0 stuck_at=8 backstop=1000"],
            candidates__halt_call=[-1],
            duration_ms=None if gaps is None else elapsed * 1000,
        )
    )
    return events


def small_turn() -> list[Event]:
    """A turn of two batches, a retry, results that come late, and an enforced halt of the third batch."""
    return [
        event("turn.started", "h", 7, 1, START, mode="enforce", policy__kind="adaptive", policy__hash="ab",
              policy__soft_cap=2, policy__stuck_at=2, policy__backstop=20, policy__signal="repeat"),
        event("turn.calls", "h", 7, 2, START + 5, chunk__index=0, chunk__first_call=1, tools=["read", "edit"],
              tools__class=["read", "edit"], calls__key=[0, 1, 0], calls__tool=[0, 1, 0],
              calls__mutating=[0, 1, -1], calls__offset_ms=[0, -1, 20], calls__batch=[1, 1, 2],
              settled__call=[2], settled__result=[0], settled__error=[1], settled__after=[2],
              retry__at=[2], retry__total=[0]),
        event("turn.calls", "h", 7, 3, START + 6, chunk__index=1, chunk__first_call=4, tools=["shell"],
              tools__class=["shell"], calls__key=[2, 2], calls__tool=[2, 0], calls__mutating=[-1, 0],
              calls__offset_ms=[30, 30], calls__batch=[3, 3], settled__call=[3, 1], settled__result=[1, -1],
              settled__error=[0, 0], settled__after=[3, 3]),
        event("loop_detected", "h", 7, 4, START + 6, threshold="soft-stuck", mode="enforce", enforced=True,
              call__number=5, total=3, signal="repeat", level=2, limit=2),
        event("turn.ended", "h", 7, 5, START + 7, outcome="halted", calls=5, ran=3, total=3, refused=2,
              settled=3, errors=1, distinct_keys=3, repeat__count=2, milestones__k=[2, 2],
              milestones__call=[3, 5], milestones__epoch=[0, 1], milestones__batch_first_call=[3, 4],
              batches=3, retries=1, keys_forgotten=0, chunks__sent=2, chunks__on_span=0),
    ]  # fmt: skip
