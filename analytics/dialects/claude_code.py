"""Claude Code's telemetry: its log events, and the spans of its tracing beta.

`claude_transcript` reads its session files.

Logs carry a call's arguments only with OTEL_LOG_TOOL_DETAILS=1 and never its result, spans neither. Without
tool details every call of an MCP server goes by the one name `mcp_tool`. `prompt.id` is the turn; a
sub-agent's calls bear the prompt of the turn that started it and differ by the span they were logged in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.dialects.base import LINE, LOG, Record, Seen
from analytics.dialects.facts import AGENT, STEP, cluster, seen, session_group, span_fields
from analytics.dialects.values import (
    argument_key,
    begun,
    boolean,
    decoded,
    first_text,
    nanoseconds,
    text,
    whole,
)

PRODUCT = "claude-code"
_SCOPE = "com.anthropic.claude_code"
_PREFIX = "claude_code."
_EVENTS = {"user_prompt": "prompt", "tool_result": "call", "tool_decision": "asked", "api_request": "node"}
_MAIN_LOOP = ("repl_main_thread", "sdk")  # who asked: requests for titles, summaries, sub-agents are others
_SPANS = {"interaction": AGENT, "tool": "call", "tool.execution": STEP, "llm_request": STEP}


class ClaudeCode:
    """Logs and spans of Claude Code."""

    name = PRODUCT

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one log record or span says."""
        if not (record.scope.startswith(_SCOPE) or record.name.startswith(_PREFIX)):
            return None
        if record.source is LINE:
            return None
        session = text(record.attributes.get("session.id"))
        if session is None:
            return ()
        return _log(record, session) if record.source is LOG else _span(record, session)


def _log(record: Record, session: str) -> Sequence[Seen]:
    values = record.attributes
    event = str(values.get("event.name") or record.body or record.name).removeprefix(_PREFIX)
    kind = _EVENTS.get(event)
    if kind is None:
        return ()
    if kind == "node" and not str(values.get("query_source")).startswith(_MAIN_LOOP):
        return ()
    at = record.at or nanoseconds(values.get("event.timestamp"))
    turn, user = text(values.get("prompt.id")), text(values.get("user.id"))
    data: dict[str, Any] = {
        "product": PRODUCT,
        "session": session,
        "turn": turn,
        "cluster": cluster(user) if user else None,
    }
    group = session_group(session)
    if kind == "node":
        data["model"] = model = text(values.get("model"))
        return [seen(kind, group, f"{turn}:{model}", record, None, data)]
    data["seq"] = seq = whole(values.get("event.sequence")) or 0
    if kind == "prompt":
        data["within"] = record.span_id or None
        return [seen(kind, group, turn or str(at), record, at, data)]
    data["tool"] = tool = _tool_name(record)
    data["call"] = call = text(values.get("tool_use_id"))
    if kind == "call":
        success = boolean(values.get("success"))
        data["key"] = argument_key(tool, values.get("tool_input"))
        data["error"] = None if success is None else not success
        data["start"] = begun(at, values.get("duration_ms"))
        data["end"] = at
        data["within"] = record.span_id or None
    return [seen(kind, group, call or f"{at}:{tool}:{seq}", record, at, data)]


def _tool_name(record: Record) -> str | None:
    """The name; an MCP tool's own name where tool details are on."""
    name = text(record.attributes.get("tool_name"))
    if name == "mcp_tool":
        details = decoded(record.attributes.get("tool_parameters"))
        if isinstance(details, dict):
            server, tool = text(details.get("mcp_server_name")), text(details.get("mcp_tool_name"))
            if server and tool:
                return f"mcp__{server}__{tool}"
    return name


def _span(record: Record, session: str) -> Sequence[Seen]:
    values = record.attributes
    role = _SPANS.get(str(values.get("span.type") or record.name.removeprefix(_PREFIX)))
    if role is None:
        return ()
    group = session_group(session)
    data = {"product": PRODUCT, "session": session, **span_fields(record)}
    if role == "call":
        agent = text(values.get("agent_id"))
        data["tool"] = _tool_name(record)
        data["call"] = first_text(values, ("tool_use_id", "gen_ai.tool.call.id"))
        data["turn"] = f"agent:{agent}" if agent else None
        return [seen("call", group, record.span_id, record, record.at, data)]
    data["role"] = role
    data["model"] = first_text(values, ("gen_ai.request.model", "model"))
    found = [seen("node", group, record.span_id, record, record.at, data)]
    success = boolean(values.get("success"))
    if success is not None and str(values.get("span.type")) == "tool.execution":
        told = {"parent": record.parent_id, "error": not success}
        found.append(seen("result", group, record.span_id, record, record.at, told))
    return found
