"""Gemini CLI and Qwen Code, one family: their log events.

`gemini_session` and `qwen_transcript` read their session files.

Arguments are there where prompts are logged (Gemini CLI) or always (Qwen Code); results never are, only their
length. There is no call id. `prompt_id` names the turn, but without a terminal it is the session's id, the
same for every prompt: a `user_prompt` event begins a turn in any case. A sub-agent's prompt id is
`<agent>#<number of its reply>`. Gemini CLI's spans have no turn and repeat what its logs say: left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analytics.dialects.base import LOG, SPAN, Record, Seen
from analytics.dialects.facts import cluster, content_id, seen, session_group
from analytics.dialects.values import Volatile, argument_key, begun, boolean, nanoseconds, text

_EVENTS = {"user_prompt": "prompt", "tool_call": "call", "api_response": "node"}
# What a shell command's output ends with, another number each time.
VOLATILE = Volatile(re.compile(r"^Process Group PGID: \d+$", re.MULTILINE), ("Process Group PGID: ",))
_OF_AGENT = re.compile(r"^(.*[^#])#\d+$")


def group_of(session: str) -> str:
    """The group of a session by the part of its id that is in its file's name."""
    return session_group(f"gemini:{session[:8]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One product: its name, and the prefix of its events."""

    name: str
    prefix: str
    scope: str

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one log record says."""
        if record.source is SPAN:
            return () if record.scope == self.scope else None
        event = record.attributes.get("event.name") or record.name
        if record.source is not LOG or not isinstance(event, str):
            return None
        if not event.startswith(self.prefix):
            return () if record.scope == self.scope else None
        kind = _EVENTS.get(event.removeprefix(self.prefix))
        session = text(record.attributes.get("session.id"))
        if kind is None or session is None:
            return ()
        return self._seen(record, kind, session)

    def _seen(self, record: Record, kind: str, session: str) -> Sequence[Seen]:
        values = record.attributes
        at = record.at or nanoseconds(values.get("event.timestamp"))
        installation = text(values.get("installation.id"))
        turn = text(values.get("prompt_id"))
        data: dict[str, Any] = {
            "product": self.name,
            "session": session,
            "cluster": cluster(installation) if installation else None,
        }
        group = group_of(session) if self is GEMINI else session_group(session)
        if kind == "prompt":
            data["turn"] = turn
            return [seen(kind, group, f"{turn}:{at}", record, at, data)]
        agent = _OF_AGENT.match(turn) if turn is not None else None
        if agent is not None:
            turn = None
        thread = f"agent:{agent[1]}" if agent is not None else None
        data["turn"], data["thread"] = turn, thread
        if kind == "node":
            data["model"] = model = text(values.get("model"))
            return [seen(kind, group, f"{turn}:{thread}:{model}", record, None, data)]
        success = boolean(values.get("success"))
        data["tool"] = tool = text(values.get("function_name"))
        data["key"] = argument_key(tool, values.get("function_args"))
        data["error"] = None if success is None else not success
        data["start"] = begun(at, values.get("duration_ms"))
        data["end"] = at
        data["batch"] = text(values.get("response_id"))
        return [seen(kind, group, content_id(record), record, at, data)]


GEMINI = Family(name="gemini-cli", prefix="gemini_cli.", scope="gemini-cli")
QWEN = Family(name="qwen-code", prefix="qwen-code.", scope="qwen-code")
