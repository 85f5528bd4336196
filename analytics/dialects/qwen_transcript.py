"""Qwen Code's session files: ~/.qwen/projects/<project>/chats/<session>.jsonl.

One JSON object a line; messages are in the parts of the Gemini interface. A line of type `user` is a prompt
unless its subtype says that it was put in while a turn ran or by the program itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from analytics.dialects.base import LINE, Record, Seen
from analytics.dialects.facts import seen, session_group
from analytics.dialects.gemini import QWEN, VOLATILE
from analytics.dialects.values import argument_key, nanoseconds, result_key, text

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})


class QwenTranscript:
    """Lines of Qwen Code's session files."""

    name = "qwen-code-transcript"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one line says."""
        line = record.body
        if record.source is not LINE or not isinstance(line, dict):
            return None
        kind, session, message = line.get("type"), text(line.get("sessionId")), line.get("message")
        if not isinstance(kind, str) or kind not in _TYPES or session is None:
            return None
        if kind == "system":
            return () if "subtype" in line else None
        if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
            return None
        parts = [part for part in message["parts"] if isinstance(part, dict)]
        return _line(record, line, session, parts)


def _line(
    record: Record, line: Mapping[str, Any], session: str, parts: Sequence[Mapping[str, Any]]
) -> Sequence[Seen]:
    at = nanoseconds(line.get("timestamp"))
    uuid = text(line.get("uuid")) or str(record.offset)

    def one(kind: str, number: int, **data: Any) -> Seen:
        where = {"product": QWEN.name, "session": session, "seq": record.offset + number}
        return seen(kind, session_group(session), f"{uuid}:{number}", record, at, {**where, **data})

    if line["type"] == "user":
        return [one("prompt", 0, key=uuid)] if parts and line.get("subtype") is None else ()
    if line["type"] == "tool_result":
        told = line.get("toolCallResult")
        status = told.get("status") if isinstance(told, dict) else None
        error = None if status is None else status != "success"
        return [
            one("result", number, **_result(part["functionResponse"], error))
            for number, part in enumerate(parts)
            if isinstance(part.get("functionResponse"), dict)
        ]
    found = []
    for number, part in enumerate(parts):
        call = part.get("functionCall")
        if isinstance(call, dict):
            tool = text(call.get("name"))
            key = argument_key(tool, call.get("args", {}))
            model = text(line.get("model"))
            found.append(
                one("call", number, tool=tool, key=key, call=text(call.get("id")), batch=uuid, model=model)
            )
    if not found and any("text" in part and not part.get("thought") for part in parts):
        found.append(one("end", 0, outcome="completed"))
    return found


def _result(answer: Mapping[str, Any], error: bool | None) -> dict[str, Any]:
    response = answer.get("response")
    content: Any = response
    if isinstance(response, dict):
        content = response.get("output", response.get("error", response))
    if not isinstance(content, str) and content is not None:
        try:
            content = orjson.dumps(content).decode()
        except TypeError:
            content = None
    return {
        "call": text(answer.get("id")),
        "result": result_key(content, error=error, volatile=VOLATILE),
        "error": error,
    }
