"""What happened, as frozen values. `attributes` turns one into OpenTelemetry attributes by its field names.

Each field names its attribute once; None is left out; `at` is the time in nanoseconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar

from guard import names
from guard.policy import CapPolicy, Threshold

LONGEST = 128  # characters of any name in telemetry


def short(text: object) -> str | None:
    """`text` as telemetry may carry it: valid Unicode of at most 128 characters; None for None.

    A value that is no text is converted; one that cannot be converted is named by its type.
    """
    if text is None:
        return None
    try:
        plain = text if type(text) is str else str(text)
        return plain[:LONGEST].encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - foreign code runs here: a name is not worth a failed call
        return f"<{type(text).__name__}>"[:LONGEST]


def _attribute(name: str) -> Any:
    return field(metadata={"name": name})


def _optional(name: str) -> Any:
    return field(default=None, metadata={"name": name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries."""

    name: ClassVar[str]
    spans: ClassVar[bool] = False  # whether it goes to the span beside the log

    at: int
    event_id: str | None = _optional(names.EVENT_ID)
    guard_id: str | None = _optional(names.GUARD_ID)
    turn_seq: int | None = _optional(names.TURN_SEQ)
    turn_id: str | None = _optional(names.TURN_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller(Event):
    """Whose turn it is, where the caller said so."""

    conversation_id: str | None = _optional(names.CONVERSATION_ID)
    agent_name: str | None = _optional(names.AGENT_NAME)
    model: str | None = _optional(names.REQUEST_MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Caller):
    """A turn began."""

    name = names.TURN_STARTED
    policy: CapPolicy
    mode: str = _attribute(names.MODE)
    holdout_rate: float | None = _optional(names.HOLDOUT_RATE)
    cluster_id: str | None = _optional(names.CLUSTER_ID)
    parent_id: str | None = _optional(names.TURN_PARENT_ID)
    resumed_from: str | None = _optional(names.TURN_RESUMED_FROM)
    continues: str | None = _optional(names.TURN_CONTINUES)
    sample: str | None = _optional(names.SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsObserved(Event):
    """A chunk of calls, and what settled since the previous one. The lists of a group are parallel."""

    name = names.TURN_CALLS
    index: int = _attribute(names.CHUNK_INDEX)
    first_call: int = _attribute(names.CHUNK_FIRST_CALL)  # of the next call, in a chunk without calls
    tools: tuple[str, ...] | None = _optional(names.TOOLS)
    tool_classes: tuple[str, ...] | None = _optional(names.TOOLS_CLASS)
    keys: tuple[int, ...] | None = _optional(names.CALLS_KEY)
    tool_of: tuple[int, ...] | None = _optional(names.CALLS_TOOL)
    mutating: tuple[int, ...] | None = _optional(names.CALLS_MUTATING)
    offsets_ms: tuple[int, ...] | None = _optional(names.CALLS_OFFSET_MS)
    batches: tuple[int, ...] | None = _optional(names.CALLS_BATCH)
    settled_call: tuple[int, ...] | None = _optional(names.SETTLED_CALL)
    settled_result: tuple[int, ...] | None = _optional(names.SETTLED_RESULT)
    settled_error: tuple[int, ...] | None = _optional(names.SETTLED_ERROR)
    settled_after: tuple[int, ...] | None = _optional(names.SETTLED_AFTER)
    retry_at: tuple[int, ...] | None = _optional(names.RETRY_AT)
    retry_total: tuple[int, ...] | None = _optional(names.RETRY_TOTAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The level of every signal; None is unknown."""

    repeat: int | None = _optional(names.LEVEL_REPEAT)
    recent_repeat: int | None = _optional(names.LEVEL_RECENT_REPEAT)
    novelty_repeat: int | None = _optional(names.LEVEL_NOVELTY_REPEAT)
    same_result_repeat: int | None = _optional(names.LEVEL_SAME_RESULT_REPEAT)
    no_progress: int | None = _optional(names.LEVEL_NO_PROGRESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftCapCrossed(Event):
    """The total passed the soft cap for the first time."""

    name = names.SOFT_CAP_CROSSED
    spans = True
    levels: Levels
    total: int = _attribute(names.TOTAL)
    stuck: bool = _attribute(names.STUCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDetectedEvent(Caller):
    """A threshold was reached: which, and with what numbers. At most one a threshold and turn."""

    name = names.LOOP_DETECTED
    spans = True
    policy: CapPolicy
    levels: Levels
    threshold: Threshold = _attribute(names.THRESHOLD)
    mode: str = _attribute(names.MODE)
    enforced: bool = _attribute(names.ENFORCED)
    explored: bool | None = _optional(names.EXPLORED)
    holdout_rate: float | None = _optional(names.HOLDOUT_RATE)
    call_number: int = _attribute(names.CALL_NUMBER)
    total: int = _attribute(names.TOTAL)
    signal: str | None = _optional(names.SIGNAL)
    level: int | None = _optional(names.LEVEL)
    limit: int | None = _optional(names.LIMIT)
    repeat_count: int = _attribute(names.REPEAT_COUNT)
    repeat_tool: str | None = _optional(names.REPEAT_TOOL)
    repeat_digest: str | None = _optional(names.REPEAT_DIGEST)
    repeat_first_call: int | None = _optional(names.REPEAT_FIRST_CALL)
    repeat_last_call: int | None = _optional(names.REPEAT_LAST_CALL)
    distinct_keys: int = _attribute(names.DISTINCT_KEYS)
    name_streak_max: int = _attribute(names.NAME_STREAK_MAX)
    also: tuple[str, ...] | None = _optional(names.ALSO)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnExtended(Event):
    """A person lifted a halt."""

    name = names.TURN_EXTENDED
    granted: int = _attribute(names.GRANTED)
    by: str | None = _optional(names.BY)
    total: int = _attribute(names.TOTAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Caller):
    """A turn ended: its final counts and milestones."""

    name = names.TURN_ENDED
    spans = True
    outcome: str = _attribute(names.OUTCOME)
    calls: int = _attribute(names.CALLS)
    ran: int = _attribute(names.RAN)
    total: int = _attribute(names.TOTAL)
    refused: int = _attribute(names.REFUSED)
    settled: int = _attribute(names.SETTLED)
    errors: int = _attribute(names.ERRORS)
    distinct_keys: int = _attribute(names.DISTINCT_KEYS)
    repeat_count: int = _attribute(names.REPEAT_COUNT)
    name_streak_max: int = _attribute(names.NAME_STREAK_MAX)
    milestones_k: tuple[int, ...] | None = _optional(names.MILESTONES_K)
    milestones_call: tuple[int, ...] | None = _optional(names.MILESTONES_CALL)
    milestones_epoch: tuple[int, ...] | None = _optional(names.MILESTONES_EPOCH)
    milestones_batch_first_call: tuple[int, ...] | None = _optional(names.MILESTONES_BATCH_FIRST_CALL)
    batches: int = _attribute(names.BATCHES)
    retries: int = _attribute(names.RETRIES)
    keys_forgotten: int = _attribute(names.KEYS_FORGOTTEN)
    chunks_sent: int = _attribute(names.CHUNKS_SENT)
    chunks_on_span: int = _attribute(names.CHUNKS_ON_SPAN)
    candidates: tuple[str, ...] | None = _optional(names.CANDIDATES)
    candidates_halt_call: tuple[int, ...] | None = _optional(names.CANDIDATES_HALT_CALL)
    duration_ms: float | None = _optional(names.DURATION_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLabelled(Event):
    """Ground truth about a turn; None is unknown."""

    name = names.TURN_LABELLED
    label_id: str = _attribute(names.LABEL_ID)
    stuck: bool | None = _optional(names.STUCK)
    productive: bool | None = _optional(names.PRODUCTIVE)
    kind: str | None = _optional(names.KIND)
    task_outcome: str | None = _optional(names.TASK_OUTCOME)
    by: str = _attribute(names.BY)
    judge_version: str | None = _optional(names.JUDGE_VERSION)
    stratum: str | None = _optional(names.STRATUM)
    probability: float | None = _optional(names.PROBABILITY)


@cache
def _named(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.metadata["name"]) for f in fields(kind) if "name" in f.metadata)


def attributes(event: Event) -> dict[str, Any]:
    """The event's attributes: bool, int, float, str, or a tuple of one of them; what is None is absent."""
    found: dict[str, Any] = {names.SCHEMA: names.SCHEMA_VERSION}
    for source in (event, getattr(event, "levels", None)):
        if source is not None:
            kind: Any = type(source)
            for name, attribute in _named(kind):
                value = getattr(source, name)
                if value is not None:
                    found[attribute] = str(value) if isinstance(value, str) else value
    policy = getattr(event, "policy", None)
    if policy is not None:
        found |= policy_attributes(policy)
    return found


def policy_attributes(policy: CapPolicy) -> dict[str, Any]:
    """A policy as attributes; what does not apply to its kind is absent."""
    found: dict[str, Any] = {
        names.POLICY_KIND: str(policy.kind),
        names.POLICY_HASH: policy.hash,
        names.POLICY_SOFT_CAP: policy.soft_cap,
        names.POLICY_STUCK_AT: policy.stuck_at,
        names.POLICY_BACKSTOP: policy.backstop,
        names.POLICY_HARD_CAP: policy.hard_cap,
        names.POLICY_SIGNAL: policy.signal,
    }
    return {name: value for name, value in found.items() if value is not None}
