"""Codex CLI's log events, and its spans where nothing else was exported. `codex_rollout` reads its files.

Logs carry arguments and output in full. They have no turn: a `codex.user_prompt` begins one. In the field
for the event's name stands a place in its source code; the attribute `event.name` has the name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from analytics.dialects.base import LOG, SPAN, Record, Seen
from analytics.dialects.facts import content_id, seen, session_group, span_fields
from analytics.dialects.values import (
    Volatile,
    argument_key,
    begun,
    boolean,
    nanoseconds,
    result_key,
    text,
    whole,
)

PRODUCT = "codex"
_PREFIX = "codex."
_EVENTS = {
    "codex.user_prompt": "prompt",
    "codex.tool_result": "call",
    "codex.tool_decision": "asked",
}
# What Codex adds to a command's output that differs from one run of it to the next.
VOLATILE = Volatile(
    re.compile(r"^Chunk ID: .*\n|^Wall time: .*\n|\"duration_seconds\": ?[\d.]+", re.MULTILINE),
    ("Chunk ID: ", "Wall time: ", '"duration_seconds":'),
)
_REFUSED = ("unsupported call:", "failed to parse function arguments")
_BEGIN = 2000  # characters of an output among which its exit code stands
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)|\"exit_code\": ?(-?\d+)", re.MULTILINE)


def failed(output: object, success: bool | None) -> bool | None:
    """Whether a call failed: by its flag, or by the exit code of the command it ran."""
    if success is False:
        return True
    if isinstance(output, str):
        if output.startswith(_REFUSED):
            return True
        told = output.find("xit", 0, _BEGIN)  # the code stands in this line or behind it
        code = _EXIT.search(output, output.rfind("\n", 0, told) + 1, _BEGIN) if told >= 0 else None
        if code is not None:
            return (code[1] or code[2]) != "0"
    return None if success is None else not success


class Codex:
    """Logs and spans of Codex CLI."""

    name = PRODUCT

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one log record or span says."""
        if record.source is LOG:
            event = record.attributes.get("event.name") or record.name
            return _log(record, event) if isinstance(event, str) and event.startswith(_PREFIX) else None
        target = record.attributes.get("target")
        if target is None or record.source is not SPAN or not str(target).startswith("codex_"):
            return None
        return _span(record)


def _log(record: Record, event: str) -> Sequence[Seen]:
    values = record.attributes
    session, kind = text(values.get("conversation.id")), _EVENTS.get(event)
    if session is None or kind is None:
        return ()
    at = record.at or nanoseconds(values.get("event.timestamp"))
    group = session_group(session)
    data: dict[str, Any] = {"product": PRODUCT, "session": session, "model": text(values.get("model"))}
    if kind == "prompt":
        data["key"] = str(at)
        return [seen(kind, group, str(at), record, at, data)]
    data["tool"] = tool = text(values.get("tool_name"))
    data["call"] = call = text(values.get("call_id"))
    if kind == "call":
        output = values.get("output")
        error = failed(output, boolean(values.get("success")))
        cut = boolean(values.get("output_truncated"))
        data["key"] = argument_key(tool, values.get("arguments"))
        data["result"] = None if cut else result_key(output, error=error, volatile=VOLATILE)
        data["error"] = error
        data["seq"] = whole(values.get("tool_result_seq")) or 0
        data["start"] = begun(at, values.get("duration_ms"))
        data["end"] = at
    return [seen(kind, group, call or content_id(record), record, at, data)]


def _span(record: Record) -> Sequence[Seen]:
    """The span that dispatches a call: its name, its turn, no more."""
    values = record.attributes
    session, turn = text(values.get("conversation.id")), text(values.get("turn.id"))
    tool, call = text(values.get("tool_name")), text(values.get("call_id"))
    if session is None or turn is None or tool is None or call is None:
        return ()
    data = {"product": PRODUCT, "session": session, "tool": tool, "call": call, "turn": turn}
    data |= span_fields(record)
    return [seen("call", session_group(session), record.span_id, record, record.at, data)]
