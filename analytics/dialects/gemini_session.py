"""Gemini CLI's session files: ~/.gemini/tmp/<project>/chats/session-<time>-<first part of the id>.jsonl.

One JSON object a line: a head with the session's id, messages, and changes (`$set`). A message is written
again when its calls are done: a call and its result are two things seen. Only the head has the whole id;
the first eight characters of it are in the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from analytics.dialects.base import LINE, Record, Seen
from analytics.dialects.facts import seen
from analytics.dialects.gemini import GEMINI, VOLATILE, group_of
from analytics.dialects.values import argument_key, nanoseconds, result_key, text

_FILE = re.compile(r"session-[^/]*-([0-9a-f]{8})\.jsonl")
_MESSAGES = frozenset({"user", "gemini", "info", "error", "warning"})
_DONE = frozenset({"success", "error", "cancelled"})


class GeminiSession:
    """Lines of Gemini CLI's session files."""

    name = "gemini-cli-session"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one line says."""
        line = record.body
        if record.source is not LINE or not isinstance(line, dict):
            return None
        short = _session_of(record.path)
        if short is None:
            return None
        whole = text(line.get("sessionId"))
        if whole is not None and "projectHash" in line:
            about = {"session": short, "whole": whole}
            return [seen("session", group_of(short), whole, record, None, about)]
        if "$set" in line or "$rewindTo" in line:
            return ()
        kind, identifier = line.get("type"), text(line.get("id"))
        if not isinstance(kind, str) or kind not in _MESSAGES or identifier is None:
            return None
        at = nanoseconds(line.get("timestamp"))
        common = {"product": GEMINI.name, "session": short}
        if kind == "user":
            prompt = _has_text(line.get("content"))
            found = seen("prompt", group_of(short), identifier, record, at, {"key": identifier, **common})
            return [found] if prompt else ()
        if kind != "gemini":
            return ()
        return _reply(record, line, identifier, at, common)


@lru_cache(maxsize=64)
def _session_of(path: str) -> str | None:
    """The part of its session's id that a file's name tells."""
    named = _FILE.search(path)
    return named[1] if named else None


def _reply(
    record: Record, line: Mapping[str, Any], identifier: str, at: int | None, common: Mapping[str, Any]
) -> Sequence[Seen]:
    group = group_of(common["session"])
    found: list[Seen] = []
    calls = line.get("toolCalls")
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        tool, call_id = text(call.get("name")), text(call.get("id"))
        own = f"{identifier}:{call_id or number}"
        about = {
            "tool": tool,
            "key": argument_key(tool, call.get("args", {})),
            "call": own,
            "seq": number,
            "batch": identifier,
            "model": text(line.get("model")),
        }
        found.append(seen("call", group, own, record, at, {**common, **about}))
        status = call.get("status")
        if isinstance(status, str) and status in _DONE:
            error = status != "success"
            result = result_key(_content(call.get("result")), error=error, volatile=VOLATILE)
            ended = nanoseconds(call.get("timestamp")) or at
            answer = {"call": own, "result": result, "error": error, "seq": number}
            found.append(seen("result", group, own, record, ended, {**common, **answer}))
    if not found and isinstance(line.get("content"), str) and line["content"]:
        found.append(seen("end", group, identifier, record, at, {"outcome": "completed", **common}))
    return found


def _has_text(content: Any) -> bool:
    """Whether a user's message is written by a person, and not the results of calls."""
    if isinstance(content, str):
        return bool(content)
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return any("text" in part for part in parts) and not any("functionResponse" in part for part in parts)


def _content(result: Any) -> str | None:
    """The text of a call's result."""
    parts = result if isinstance(result, list) else [result]
    for part in parts:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            content = response.get("output", response.get("error", response))
            if isinstance(content, str):
                return content
            try:
                return orjson.dumps(content).decode()
            except TypeError:
                return None
    return None
