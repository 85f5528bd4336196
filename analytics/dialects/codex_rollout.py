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

from analytics.dialects.base import Record, Seen, Source, identity
from analytics.dialects.codex import PRODUCT, VOLATILE, failed
from analytics.dialects.facts import seen, session_group
from analytics.dialects.values import argument_key, nanoseconds, result_key, text

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_SESSION = re.compile(r"rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ENDS = {"task_complete": "completed", "turn_aborted": "aborted", "error": "errored"}
_TOLD = frozenset({"task_started", "user_message", *_ENDS, *_CALLS, *_OUTPUTS})


class CodexRollout:
    """Lines of Codex CLI's session files."""

    name = "codex-rollout"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one line says."""
        line = record.body
        if record.source is not Source.LINE or not isinstance(line, dict):
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
    session = _session_of(record.path)
    if session is None and kind == "session_meta":
        session = text(payload.get("id"))
    if session is None:
        session = f"file:{identity(record.path)}"
    inner = text(payload.get("type")) or ""
    if inner not in _TOLD and kind != "turn_context":
        return ()
    at = nanoseconds(line.get("timestamp"))
    common: dict[str, Any] = {"product": PRODUCT, "session": session, "seq": record.offset}

    def one(what: str, **data: Any) -> list[Seen]:
        return [seen(what, session_group(session), str(record.offset), record, at, **common, **data)]

    if kind == "turn_context":
        return one("node", turn=text(payload.get("turn_id")), model=text(payload.get("model")))
    if kind == "event_msg":
        turn = text(payload.get("turn_id"))
        if inner == "task_started":
            attribution = payload.get("turn_attribution")
            parent = text(attribution.get("parent_turn_id")) if isinstance(attribution, Mapping) else None
            return one("prompt", turn=turn, key=str(record.offset), steers=True, parent_turn=parent)
        if inner == "user_message":
            return one("prompt", key=str(record.offset), weak=True)
        if inner in _ENDS:
            return one("end", turn=turn, outcome=_ENDS[inner])
    if kind == "response_item" and inner in _CALLS:
        tool = text(payload.get("name")) or ("local_shell" if inner == "local_shell_call" else None)
        about = payload.get("internal_chat_message_metadata_passthrough")
        turn = text(about.get("turn_id")) if isinstance(about, Mapping) else None
        reply = line.get("metadata")
        sampled = text(reply.get("sampled_through_sequence")) if isinstance(reply, Mapping) else None
        return one(
            "call",
            tool=tool,
            key=argument_key(tool, payload.get(_CALLS[inner])),
            call=text(payload.get("call_id")),
            turn=turn,
            batch=f"{turn}:{sampled}" if sampled else None,
        )
    if kind == "response_item" and inner in _OUTPUTS:
        output, success = _output(payload.get("output"))
        error = failed(output, success)
        return one(
            "result",
            call=text(payload.get("call_id")),
            result=result_key(output, error=error, volatile=VOLATILE),
            error=error,
        )
    return ()


def _output(output: Any) -> tuple[str | None, bool | None]:
    """(text, success) of a result in any of the forms it has had."""
    success = None
    if isinstance(output, Mapping):
        success = output.get("success") if isinstance(output.get("success"), bool) else None
        output = output.get("content", output.get("output"))
    if isinstance(output, str) or output is None:
        return output, success
    try:
        return orjson.dumps(output).decode(), success
    except TypeError:
        return None, success
