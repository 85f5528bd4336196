"""The wire, in literals: what a receiver gets of every event, span and metric."""

from __future__ import annotations

import re
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from guard import CapPolicy, ToolCall
from tests.guard.contract import EVENTS, EVERY, HARD_ONLY, MAX_REPEAT, METRICS, TOOL_CALLS
from tests.guard.receiving import Event, ManualClock, Receiver, Span

START = 1_764_547_200_000_000_000
INFO, WARN = (9, "INFO"), (13, "WARN")

TO_SPANS = {"turncap.loop_detected", "turncap.soft_cap.crossed", "turncap.turn.ended"}
ONLY_WITHOUT_LOGS = {"turncap.turn.started", "turncap.turn.calls"}


def everything(receiver: Receiver, **settings: Any) -> None:
    """One turn in which everything happens, and its label; then one of a hard policy."""
    clock = ManualClock(START)
    guard = receiver.guard(
        soft_cap=4,
        stuck_at=3,
        backstop=8,
        agent_name="coder",
        model="m-1",
        clock=clock,
        candidates=[CapPolicy.hard(2)],
        **settings,
    )
    guard.id = "00112233aabbccdd"
    parent = guard.start_turn()
    turn = guard.start_turn(
        conversation_id="c-1",
        user="somebody",
        parent=parent,
        resumed_from="old-1",
        continues="old-2",
        sample="length-limited",
    )
    clock.second = 0.25
    for n, key in enumerate("abaa", start=1):
        turn.settle(
            turn.admit("Bash" if key == "a" else "Edit", {"k": key}, str(n)), result=f"r{key}", error=None
        )
    clock.second = 1.5
    turn.settle(turn.admit_batch([ToolCall("custom", {"k": 1}, "x", True)])[0], error="no")
    turn.extend(2, "ann")
    turn.retry()
    for key in "ccccccccc":
        turn.admit("Read", {"k": key})
    clock.second = 2.0
    turn.end()
    guard.label(
        turn.id,
        by="judge",
        stuck=True,
        productive=False,
        kind="stuck",
        task_outcome="reward0",
        label_id="L1",
        judge_version="3",
        stratum="halted",
        probability=0.25,
    )
    with receiver.guard(max_tool_calls=1, **settings).turn() as hard:
        hard.admit("a")
        hard.admit("b")
    with receiver.guard(soft_cap=1, stuck_at=1, backstop=1, mode="shadow", **settings).turn() as shadow:
        shadow.admit("a")
        shadow.admit("b")


def of(receiver: Receiver, name: str) -> list[Event]:
    return [event for event in receiver.logs if event.name == name]


@pytest.fixture(scope="module")
def received() -> Receiver:
    """Everything, over all three signals."""
    receiver = Receiver()
    everything(receiver)
    return receiver


def test_every_event_of_the_contract_comes_and_no_other(received: Receiver) -> None:
    assert {event.name for event in received.logs} == set(EVENTS)


@pytest.mark.parametrize("name", list(EVENTS))
def test_names_and_types_of_every_attribute(received: Receiver, name: str) -> None:
    seen: dict[str, str] = {}
    for event in of(received, name):
        for attribute, kind in event.types.items():
            assert seen.setdefault(attribute, kind) == kind
    wanted = EVENTS[name]
    if "turncap.policy.kind" in wanted:
        wanted = wanted | HARD_ONLY
    assert seen == wanted


@pytest.mark.parametrize("name", list(EVENTS))
def test_what_every_event_carries(received: Receiver, name: str) -> None:
    for event in of(received, name):
        values = event.attributes
        assert values["turncap.schema.version"] == 1
        assert values["turncap.turn.id"] == f"{values['turncap.guard.id']}-{values['turncap.turn.seq']}"
        assert event.severity == (WARN if name == "turncap.loop_detected" else INFO)
        assert event.at >= START
        if name == "turncap.turn.labelled":
            assert values["turncap.event.id"] == f"{values['turncap.turn.id']}/label/L1"
        else:
            assert re.fullmatch(re.escape(values["turncap.turn.id"]) + r"/\d+", values["turncap.event.id"])
            assert (len(event.trace_id), len(event.span_id)) == (32, 16)


def test_event_ids_are_unique_and_ordinals_have_no_gap(received: Receiver) -> None:
    ids = [event.attributes["turncap.event.id"] for event in received.logs]
    assert len(set(ids)) == len(ids)
    turn = [name for name in ids if name.startswith("00112233aabbccdd-2/") and "label" not in name]
    assert turn == [f"00112233aabbccdd-2/{n}" for n in range(len(turn))]


def test_values_of_the_events_of_one_turn(received: Receiver) -> None:
    def values(name: str, place: int = 0) -> dict[str, Any]:
        found = [e for e in of(received, name) if e.attributes["turncap.turn.seq"] == 2]
        return {
            key.removeprefix("turncap."): value
            for key, value in found[place].attributes.items()
            if key not in EVERY
        }

    policy = {
        "policy.kind": "adaptive",
        "policy.hash": CapPolicy.adaptive(soft_cap=4, stuck_at=3, backstop=8).hash,
        "policy.soft_cap": 4,
        "policy.stuck_at": 3,
        "policy.backstop": 8,
        "policy.signal": "repeat",
    }
    who = {
        "gen_ai.conversation.id": "c-1",
        "gen_ai.agent.name": "coder",
        "gen_ai.request.model": "m-1",
    }
    started = values("turncap.turn.started")
    assert re.fullmatch("[0-9a-f]{16}", started.pop("cluster.id"))
    assert started == policy | who | {
        "mode": "enforce",
        "holdout.rate": 0.0,
        "turn.parent_id": "00112233aabbccdd-1",
        "turn.resumed_from": "old-1",
        "turn.continues": "old-2",
        "sample": "length-limited",
    }
    assert values("turncap.soft_cap.crossed") == {
        "total": 5,
        "stuck": True,
        "level.repeat": 3,
        "level.recent_repeat": 1,
        "level.novelty_repeat": 1,
        "level.same_result_repeat": 0,
        "level.no_progress": 2,
    }
    halt = values("turncap.loop_detected")
    assert re.fullmatch("[0-9a-f]{32}", halt.pop("repeat.digest"))
    assert halt == policy | who | {
        "threshold": "soft-stuck",
        "mode": "enforce",
        "enforced": True,
        "explored": False,
        "holdout.rate": 0.0,
        "call.number": 5,
        "total": 5,
        "signal": "repeat",
        "level": 3,
        "limit": 4,
        "repeat.count": 3,
        "repeat.tool": "Bash",
        "repeat.first_call": 1,
        "repeat.last_call": 4,
        "distinct_keys": 3,
        "name_streak.max": 2,
        "level.repeat": 3,
        "level.recent_repeat": 1,
        "level.novelty_repeat": 1,
        "level.same_result_repeat": 0,
        "level.no_progress": 2,
    }
    assert values("turncap.turn.extended") == {"granted": 2, "by": "ann", "total": 5}
    assert values("turncap.turn.calls") == {
        "chunk.index": 0,
        "chunk.first_call": 1,
        "tools": ["Bash", "Edit", "custom", "Read"],
        "tools.class": ["shell", "edit", "", "read"],
        "calls.key": [0, 1, 0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3],
        "calls.tool": [0, 1, 0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3],
        "calls.mutating": [-1, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        "calls.offset_ms": [250] * 4 + [1500] * 9,
        "calls.batch": list(range(1, 14)),
        "settled.call": [1, 2, 3, 4],
        "settled.result": [0, 1, 0, 0],
        "settled.error": [0, 0, 0, 0],
        "settled.after": [1, 2, 3, 4],
        "retry.at": [5],
        "retry.total": [0],
    }
    ended = values("turncap.turn.ended")
    assert ended == who | {
        "outcome": "halted",
        "calls": 13,
        "ran": 11,
        "total": 8,
        "refused": 3,
        "settled": 4,
        "errors": 0,
        "distinct_keys": 4,
        "repeat.count": 8,
        "name_streak.max": 8,
        "milestones.k": [2, 3],
        "milestones.call": [3, 4],
        "milestones.epoch": [0, 0],
        "milestones.batch_first_call": [3, 4],
        "batches": 13,
        "retries": 1,
        "keys_forgotten": 0,
        "chunks.sent": 1,
        "chunks.on_span": 0,
        "candidates": ["hard hard_cap=2"],
        "candidates.halt_call": [3],
        "duration_ms": 2000.0,
    }
    assert values("turncap.turn.labelled") == {
        "label.id": "L1",
        "by": "judge",
        "stuck": True,
        "productive": False,
        "kind": "stuck",
        "task_outcome": "reward0",
        "judge.version": "3",
        "stratum": "halted",
        "probability": 0.25,
    }


# Spans


def test_the_span_of_a_turn(received: Receiver) -> None:
    span = span_of(received)
    assert (span.name, span.kind, span.status) == ("turncap.turn", 1, 2)  # internal, error
    assert (span.start, span.end) == (START, START + 2_000_000_000)
    assert {name: (span.types[name], value) for name, value in span.attributes.items()} == {
        "turncap.guard.id": ("string", "00112233aabbccdd"),
        "turncap.turn.seq": ("int", 2),
        "turncap.turn.id": ("string", "00112233aabbccdd-2"),
        "turncap.mode": ("string", "enforce"),
        "turncap.policy.kind": ("string", "adaptive"),
        "turncap.policy.hash": ("string", CapPolicy.adaptive(soft_cap=4, stuck_at=3, backstop=8).hash),
        "gen_ai.conversation.id": ("string", "c-1"),
        "gen_ai.agent.name": ("string", "coder"),
        "gen_ai.request.model": ("string", "m-1"),
        "turncap.outcome": ("string", "halted"),
        "turncap.threshold": ("string", "backstop"),
        "turncap.calls": ("int", 13),
        "turncap.ran": ("int", 11),
        "turncap.total": ("int", 8),
        "turncap.refused": ("int", 3),
        "turncap.settled": ("int", 4),
        "turncap.errors": ("int", 0),
        "turncap.distinct_keys": ("int", 4),
        "turncap.repeat.count": ("int", 8),
        "turncap.chunks.sent": ("int", 1),
        "turncap.chunks.on_span": ("int", 0),
    }


def test_a_span_is_an_error_only_for_an_enforced_halt() -> None:
    receiver = Receiver()
    guard = receiver.guard(max_tool_calls=1, mode="shadow")
    with guard.turn() as turn:
        turn.admit("a")
        turn.admit("b")
    with pytest.raises(ValueError, match="no"), guard.turn():
        raise ValueError("no")
    assert [(span.status, span.attributes["turncap.outcome"]) for span in receiver.spans] == [
        (0, "completed"),
        (0, "errored"),
    ]
    assert all("turncap.threshold" not in span.attributes for span in receiver.spans)


def test_blocks_make_a_trace_and_events_lie_in_it() -> None:
    receiver = Receiver()
    guard = receiver.guard()
    with guard.turn(), guard.turn():
        pass
    child, parent = receiver.spans
    assert (child.trace_id, child.parent_id) == (parent.trace_id, parent.span_id)
    for event in receiver.logs:
        span = parent if event.attributes["turncap.turn.seq"] == 1 else child
        assert (event.trace_id, event.span_id) == (span.trace_id, span.span_id)


def span_of(receiver: Receiver, seq: int = 2) -> Span:
    (found,) = [
        span
        for span in receiver.spans
        if span.name == "turncap.turn" and span.attributes["turncap.turn.seq"] == seq
    ]
    return found


ROUTES: list[tuple[str, tuple[str, ...], str, set[str], set[str]]] = [
    ("both signals, both", ("logs", "traces"), "both", set(EVENTS), TO_SPANS),
    ("both signals, logs", ("logs", "traces"), "logs", set(EVENTS), set()),
    ("both signals, spans", ("logs", "traces"), "spans", set(), set(EVENTS) - {"turncap.turn.labelled"}),
    ("traces alone", ("traces",), "both", set(), set(EVENTS) - {"turncap.turn.labelled"}),
    ("traces alone, logs wanted", ("traces",), "logs", set(), set()),
    ("logs alone", ("logs",), "both", set(EVENTS), set()),
]


@pytest.mark.parametrize(
    ("signals", "events", "logged", "on_span"), [row[1:] for row in ROUTES], ids=[row[0] for row in ROUTES]
)
def test_where_events_go(signals: tuple[str, ...], events: str, logged: set[str], on_span: set[str]) -> None:
    receiver = Receiver(*signals, "metrics")
    everything(receiver, events=events)
    assert {event.name for event in receiver.logs} == logged
    if "traces" in signals:
        assert {event.name for event in span_of(receiver).events} == on_span
        labels = [span for span in receiver.spans if span.name == "turncap.label"]
        assert len(labels) == (("logs" not in signals and events != "logs") or events == "spans")
        for span in labels:
            assert (span.start, span.kind) == (span.end, 1)
            assert span.types == EVENTS["turncap.turn.labelled"]
    assert {p["turncap.outcome"] for p, _ in receiver.points("turncap.turns")} == {
        "halted",
        "completed",
    }


def test_a_copy_on_the_span_is_the_log_records_twin(received: Receiver) -> None:
    logs = {event.attributes["turncap.event.id"]: event for event in received.logs}
    copies = [event for span in received.spans for event in span.events]
    assert {event.name for event in copies} == TO_SPANS
    for copy in copies:
        twin = logs[copy.attributes["turncap.event.id"]]
        assert (copy.name, copy.at, copy.attributes) == (twin.name, twin.at, twin.attributes)
        assert copy.types == twin.types


def test_with_traces_only_nothing_that_matters_is_missing() -> None:
    full, traces = Receiver(), Receiver("traces")
    everything(full)
    everything(traces)
    wanted = [e for e in full.logs if e.attributes["turncap.turn.id"] == "00112233aabbccdd-2"]
    found = {event.attributes["turncap.event.id"]: event for event in span_of(traces).events}
    for event in wanted:
        if event.name == "turncap.turn.labelled":
            continue
        values = found[event.attributes["turncap.event.id"]].attributes
        random = {"turncap.cluster.id", "turncap.repeat.digest", "turncap.chunks.on_span"}
        assert {k: v for k, v in values.items() if k not in random} == {
            k: v for k, v in event.attributes.items() if k not in random
        }
    assert found[wanted[-2].attributes["turncap.event.id"]].attributes["turncap.chunks.on_span"] == 1


def test_past_60_chunks_the_span_gets_no_more_and_says_so() -> None:
    receiver = Receiver("traces")
    turn = receiver.guard(max_tool_calls=0).start_turn()
    for n in range(40_000):
        turn.admit("tool", {"n": n % 5})
    turn.end()
    (span,) = receiver.spans
    chunks = [event for event in span.events if event.name == "turncap.turn.calls"]
    (ended,) = [event for event in span.events if event.name == "turncap.turn.ended"]
    assert [chunk.attributes["turncap.chunk.index"] for chunk in chunks] == list(range(60))
    assert ended.attributes["turncap.chunks.on_span"] == 60
    assert ended.attributes["turncap.chunks.sent"] > 60
    assert not receiver.dropped


def test_without_providers_it_works_and_emits_nothing() -> None:
    from guard import ToolCallGuard

    guard = ToolCallGuard(max_tool_calls=1)
    with guard.turn() as turn:
        assert turn.admit("a").allowed
        assert turn.admit("b").halted
    assert turn.outcome == "halted"
    assert guard.label(turn.id, by="user", stuck=False)
    assert guard.faults == {}


# Metrics

WHO = {"gen_ai.agent.name": "coder", "gen_ai.request.model": "m-1"}


@pytest.fixture(scope="module")
def metered() -> Receiver:
    """Two turns of one guard, one halted, and one fault."""
    receiver = Receiver("metrics")
    guard = receiver.guard(soft_cap=2, stuck_at=3, backstop=9, agent_name="coder", model="m-1")
    for keys in ("aaa", "ab"):
        turn = guard.start_turn()
        for key in keys:
            turn.admit("tool", {"k": key})
        turn.admit("tool", {"k": "z"}) if keys == "aaa" else None
        turn.end()
    turn.settle("nobody")
    receiver.kept = guard  # type: ignore[attr-defined]  # gauges report guards that live
    return receiver


@pytest.mark.parametrize(("name", "kind", "unit", "own"), METRICS, ids=[row[0] for row in METRICS])
def test_kind_unit_and_attributes_of_every_metric(
    metered: Receiver, name: str, kind: str, unit: str, own: set[str]
) -> None:
    metric = metered.metrics[name]
    assert (metric.WhichOneof("data"), metric.unit) == (kind, unit)
    if kind == "sum":
        assert metric.sum.is_monotonic
        assert metric.sum.aggregation_temporality == (
            AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        )
    points = metered.points(name)
    assert points
    for attributes, _ in points:
        assert set(attributes) == own | set(WHO)
        assert {key: attributes[key] for key in WHO} == WHO
    assert metric.description


def test_no_other_metric(metered: Receiver) -> None:
    assert set(metered.metrics) == {row[0] for row in METRICS}


def test_what_the_metrics_count(metered: Receiver) -> None:
    def points(name: str) -> list[Any]:
        return [
            (*(value for key, value in sorted(attributes.items()) if key not in WHO), count)
            for attributes, count in metered.points(name)
        ]

    assert points("turncap.turns.started") == [(2,)]
    assert sorted(points("turncap.turns")) == [
        ("enforce", "completed", "adaptive", 1),
        ("enforce", "halted", "adaptive", 1),
    ]
    assert points("turncap.halts") == [(True, "soft-stuck", 1)]
    assert points("turncap.soft_cap.crossings") == [(True, 1)]
    assert points("turncap.calls") == [(5,)]
    assert points("turncap.calls.refused") == [(2,)]
    assert points("turncap.turn.guard_time") == [(2,)]
    assert points("turncap.errors") == [("settled_after_end", 1)]
    assert sorted(points("turncap.policy.limit")) == [("backstop", 9), ("soft_cap", 2), ("stuck_at", 3)]
    assert [value for *_, value in points("turncap.guard.info")] == [1]


@pytest.mark.parametrize(
    ("name", "bounds", "values"),
    [
        ("turncap.turn.tool_calls", TOOL_CALLS, {2: 1, 5: 1}),
        ("turncap.turn.max_repeat", MAX_REPEAT, {1: 1, 3: 1}),
    ],
)
def test_buckets(metered: Receiver, name: str, bounds: list[int], values: dict[int, int]) -> None:
    (point,) = metered.metrics[name].histogram.data_points
    assert list(point.explicit_bounds) == bounds
    counts = {bound: count for bound, count in zip(bounds, point.bucket_counts, strict=False) if count}
    assert counts == values


def test_metrics_tell_at_most_50_agents_and_models_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from guard import telemetry

    monkeypatch.setattr(telemetry, "_agents", telemetry._Few())
    receiver = Receiver("metrics")
    guard = receiver.guard()
    for n in range(60):
        guard.start_turn(agent_name=f"agent-{n}").end()
    agents = [attributes["gen_ai.agent.name"] for attributes, _ in receiver.points("turncap.turns")]
    assert len(agents) == 51
    assert ("other", 10) in [(a["gen_ai.agent.name"], n) for a, n in receiver.points("turncap.turns")]


def test_nothing_is_recorded_per_call() -> None:
    receiver = Receiver("metrics")
    turn = receiver.guard().start_turn()
    before = {name for name in receiver.metrics if receiver.points(name)}
    for n in range(90):
        turn.settle(turn.admit("tool", {"n": n}), result="r")
    assert {name for name in receiver.metrics if receiver.points(name)} == before


def test_the_scope_is_turncap_at_its_version(received: Receiver) -> None:
    from importlib.metadata import version

    assert {(name, number) for name, number, _ in received.scopes} == {("turncap", version("turncap"))}
