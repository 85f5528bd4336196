"""Codex CLI's session files: ~/.codex/sessions/<date>/rollout-<time>-<session>.jsonl.

One JSON object a line: {timestamp, type, payload}. The session is in the first line and in the file's name.
A turn runs from `task_started` to `task_complete` or `turn_aborted`; in older files it begins with the
`user_message` event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from analytics.dialects.base import LINE, Record, Seen, identity
from analytics.dialects.codex import PRODUCT, VOLATILE, failed
from analytics.dialects.facts import seen, session_group
from analytics.dialects.values import argument_key, nanoseconds, result_key, text

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_SESSION = re.compile(r"rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ENDS = {"task_complete": "completed", "turn_aborted": "aborted", "error": "errored"}
_EVENTS = {"task_started": "prompt", "user_message": "prompt", **dict.fromkeys(_ENDS, "end")}


class CodexRollout:
    """Lines of Codex CLI's session files."""

    name = "codex-rollout"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one line says."""
        line = record.body
        if record.source is not LINE or not isinstance(line, dict):
            return None
        payload, kind = line.get("payload"), line.get("type")
        if not isinstance(payload, dict) or not isinstance(kind, str) or "timestamp" not in line:
            return None
        if kind not in _TYPES:
            return () if _session_of(record.path) else None
        return _line(record, line, kind, payload)


@lru_cache(maxsize=64)
def _session_of(path: str) -> str | None:
    """The session that a file's name tells."""
    named = _SESSION.search(path)
    return named[1] if named else None


def _line(record: Record, line: Mapping[str, Any], kind: str, payload: Mapping[str, Any]) -> Sequence[Seen]:
    inner = text(payload.get("type")) or ""
    data: dict[str, Any]
    if kind == "response_item" and inner in _CALLS:
        what, data = "call", _call(line, inner, payload)
    elif kind == "response_item" and inner in _OUTPUTS:
        what, data = "result", _result(payload)
    elif kind == "event_msg" and inner in _EVENTS:
        what, data = _EVENTS[inner], _event(record, inner, payload)
    elif kind == "turn_context":
        what, data = "node", {"turn": text(payload.get("turn_id")), "model": text(payload.get("model"))}
    else:
        return ()
    session = _session_of(record.path) or f"file:{identity(record.path)}"
    data["product"], data["session"], data["seq"] = PRODUCT, session, record.offset
    at = nanoseconds(line.get("timestamp"))
    return [seen(what, session_group(session), str(record.offset), record, at, data)]


def _event(record: Record, inner: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    if inner == "user_message":
        return {"key": str(record.offset), "weak": True}
    turn = text(payload.get("turn_id"))
    if inner in _ENDS:
        return {"turn": turn, "outcome": _ENDS[inner]}
    attribution = payload.get("turn_attribution")
    parent = text(attribution.get("parent_turn_id")) if isinstance(attribution, dict) else None
    return {"turn": turn, "key": str(record.offset), "steers": True, "parent_turn": parent}


def _call(line: Mapping[str, Any], inner: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    tool = text(payload.get("name")) or ("local_shell" if inner == "local_shell_call" else None)
    about = payload.get("internal_chat_message_metadata_passthrough")
    turn = text(about.get("turn_id")) if isinstance(about, dict) else None
    reply = line.get("metadata")
    sampled = text(reply.get("sampled_through_sequence")) if isinstance(reply, dict) else None
    return {
        "tool": tool,
        "key": argument_key(tool, payload.get(_CALLS[inner])),
        "call": text(payload.get("call_id")),
        "turn": turn,
        "batch": f"{turn}:{sampled}" if sampled else None,
    }


def _result(payload: Mapping[str, Any]) -> dict[str, Any]:
    output, success = _output(payload.get("output"))
    error = failed(output, success)
    result = result_key(output, error=error, volatile=VOLATILE)
    return {"call": text(payload.get("call_id")), "result": result, "error": error}


def _output(output: Any) -> tuple[str | None, bool | None]:
    """(text, success) of a result in any of the forms it has had."""
    success = None
    if isinstance(output, dict):
        success = output.get("success") if isinstance(output.get("success"), bool) else None
        output = output.get("content", output.get("output"))
    if isinstance(output, str) or output is None:
        return output, success
    try:
        return orjson.dumps(output).decode(), success
    except TypeError:
        return None, success
