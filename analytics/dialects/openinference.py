"""OpenInference spans: what Arize's instrumentations write for LangChain, the OpenAI Agents SDK and others.

The kind of a span is in `openinference.span.kind`. Only some of them name agents; where none does, the chain
at the top of the trace is the turn. LangChain's result holds the call's id: only its content is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.dialects.base import SPAN, Record, Seen
from analytics.dialects.facts import AGENT, STEP, WORKFLOW, seen, span_fields, trace_group
from analytics.dialects.values import argument_key, first, first_text, result_key, text, tool_message

_KIND = "openinference.span.kind"
_ROLES = {"AGENT": AGENT, "CHAIN": WORKFLOW}
AGENT_NAME = ("agent.name", "graph.node.name")
CALL_ID = ("tool.id", "tool_call.id", "tool.call.id")
ARGUMENTS = ("input.value", "tool_call.function.arguments")


class OpenInference:
    """Spans by the OpenInference conventions."""

    name = "openinference"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one span says."""
        kind = record.attributes.get(_KIND)
        if kind is None or record.source is not SPAN or not isinstance(kind, str):
            return None
        if not record.trace_id or not record.span_id:
            return ()
        values = record.attributes
        common: dict[str, Any] = {
            "product": self.name,
            "session": text(values.get("session.id")),
            **span_fields(record),
        }
        if kind.upper() == "TOOL":
            return [_call(record, common)]
        agent = first_text(values, AGENT_NAME)
        role = _ROLES.get(kind.upper(), STEP)
        if role == AGENT and agent is None:
            role = WORKFLOW
        common["role"] = role
        common["agent"] = agent if role == AGENT else None
        common["model"] = text(values.get("llm.model_name"))
        common["error"] = True if record.failed else None
        return [seen("node", trace_group(record.trace_id), record.span_id, record, record.at, common)]


def _call(record: Record, common: Mapping[str, Any]) -> Seen:
    values = record.attributes
    tool = text(values.get("tool.name")) or text(record.name)
    error = True if record.failed else False if record.at is not None else None
    result = values.get("output.value")
    if result is None and record.failed:
        raised = [event.attributes for event in record.events if event.name == "exception"]
        result = raised[0].get("exception.message") if raised else None
    data = {
        **common,
        "tool": tool,
        "key": argument_key(tool, first(values, ARGUMENTS)),
        "result": result_key(tool_message(result), error=error),
        "error": error,
        "call": first_text(values, CALL_ID),
    }
    return seen("call", trace_group(record.trace_id), record.span_id, record, record.at, data)
