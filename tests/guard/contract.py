"""The contract's tables of events and metrics, in literals: what a receiver must get."""

from __future__ import annotations

EVERY = {
    "turncap.schema.version": "int",
    "turncap.event.id": "string",
    "turncap.guard.id": "string",
    "turncap.turn.seq": "int",
    "turncap.turn.id": "string",
}
CALLER = {
    "gen_ai.conversation.id": "string",
    "gen_ai.agent.name": "string",
    "gen_ai.request.model": "string",
}
POLICY = {
    "turncap.policy.kind": "string",
    "turncap.policy.hash": "string",
    "turncap.policy.soft_cap": "int",
    "turncap.policy.stuck_at": "int",
    "turncap.policy.backstop": "int",
    "turncap.policy.signal": "string",
}
LEVELS = {
    "turncap.level.repeat": "int",
    "turncap.level.recent_repeat": "int",
    "turncap.level.novelty_repeat": "int",
    "turncap.level.same_result_repeat": "int",
    "turncap.level.no_progress": "int",
}
EVENTS: dict[str, dict[str, str]] = {
    "turncap.turn.started": EVERY
    | CALLER
    | POLICY
    | {
        "turncap.mode": "string",
        "turncap.holdout.rate": "double",
        "turncap.cluster.id": "string",
        "turncap.turn.parent_id": "string",
        "turncap.turn.resumed_from": "string",
        "turncap.turn.continues": "string",
        "turncap.sample": "string",
    },
    "turncap.turn.calls": EVERY
    | {
        "turncap.chunk.index": "int",
        "turncap.chunk.first_call": "int",
        "turncap.tools": "string[]",
        "turncap.tools.class": "string[]",
        "turncap.calls.key": "int[]",
        "turncap.calls.tool": "int[]",
        "turncap.calls.mutating": "int[]",
        "turncap.calls.offset_ms": "int[]",
        "turncap.calls.batch": "int[]",
        "turncap.settled.call": "int[]",
        "turncap.settled.result": "int[]",
        "turncap.settled.error": "int[]",
        "turncap.settled.after": "int[]",
        "turncap.retry.at": "int[]",
        "turncap.retry.total": "int[]",
    },
    "turncap.soft_cap.crossed": EVERY | LEVELS | {"turncap.total": "int", "turncap.stuck": "boolean"},
    "turncap.loop_detected": EVERY
    | CALLER
    | POLICY
    | LEVELS
    | {
        "turncap.threshold": "string",
        "turncap.mode": "string",
        "turncap.enforced": "boolean",
        "turncap.explored": "boolean",
        "turncap.holdout.rate": "double",
        "turncap.call.number": "int",
        "turncap.total": "int",
        "turncap.signal": "string",
        "turncap.level": "int",
        "turncap.limit": "int",
        "turncap.repeat.count": "int",
        "turncap.repeat.tool": "string",
        "turncap.repeat.digest": "string",
        "turncap.repeat.first_call": "int",
        "turncap.repeat.last_call": "int",
        "turncap.distinct_keys": "int",
        "turncap.name_streak.max": "int",
        "turncap.also": "string[]",
    },
    "turncap.turn.extended": EVERY
    | {"turncap.granted": "int", "turncap.by": "string", "turncap.total": "int"},
    "turncap.turn.ended": EVERY
    | CALLER
    | {
        "turncap.outcome": "string",
        "turncap.calls": "int",
        "turncap.ran": "int",
        "turncap.total": "int",
        "turncap.refused": "int",
        "turncap.settled": "int",
        "turncap.errors": "int",
        "turncap.distinct_keys": "int",
        "turncap.repeat.count": "int",
        "turncap.name_streak.max": "int",
        "turncap.milestones.k": "int[]",
        "turncap.milestones.call": "int[]",
        "turncap.milestones.epoch": "int[]",
        "turncap.milestones.batch_first_call": "int[]",
        "turncap.batches": "int",
        "turncap.retries": "int",
        "turncap.keys_forgotten": "int",
        "turncap.chunks.sent": "int",
        "turncap.chunks.on_span": "int",
        "turncap.candidates": "string[]",
        "turncap.candidates.halt_call": "int[]",
        "turncap.duration_ms": "double",
    },
    "turncap.turn.labelled": EVERY
    | {
        "turncap.label.id": "string",
        "turncap.stuck": "boolean",
        "turncap.productive": "boolean",
        "turncap.kind": "string",
        "turncap.task_outcome": "string",
        "turncap.by": "string",
        "turncap.judge.version": "string",
        "turncap.stratum": "string",
        "turncap.probability": "double",
    },
}
# Instead of an adaptive policy's own numbers, a hard policy has this one.
HARD_ONLY = {"turncap.policy.hard_cap": "int"}

TOOL_CALLS = [1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000]
MAX_REPEAT = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100]
METRICS: list[tuple[str, str, str, set[str]]] = [
    ("turncap.turns.started", "sum", "{turn}", set()),
    ("turncap.turns", "sum", "{turn}", {"turncap.outcome", "turncap.mode", "turncap.policy.kind"}),
    ("turncap.halts", "sum", "{halt}", {"turncap.threshold", "turncap.enforced"}),
    ("turncap.soft_cap.crossings", "sum", "{turn}", {"turncap.stuck"}),
    ("turncap.calls", "sum", "{call}", set()),
    ("turncap.calls.refused", "sum", "{call}", set()),
    ("turncap.turn.tool_calls", "histogram", "{call}", set()),
    ("turncap.turn.max_repeat", "histogram", "{call}", set()),
    ("turncap.turn.guard_time", "histogram", "s", set()),
    ("turncap.errors", "sum", "{error}", {"turncap.kind"}),
    ("turncap.policy.limit", "gauge", "{call}", {"turncap.limit"}),
    (
        "turncap.guard.info",
        "gauge",
        "{guard}",
        {"turncap.mode", "turncap.policy.kind", "turncap.signal", "turncap.version"},
    ),
]
