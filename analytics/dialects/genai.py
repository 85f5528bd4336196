"""Spans by OpenTelemetry's GenAI conventions, and by what came before them and beside them.

One table for Pydantic AI, Strands, Google ADK, Microsoft Agent Framework, Copilot, the contrib
instrumentations, Logfire, LangSmith, OpenLLMetry and the Model Context Protocol: they differ in names, and
each has a trap of its own. The tool span has no conversation by the conventions: it comes from the run above.
Arguments and results are there only where somebody switched content capture on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from analytics.dialects.base import LOG, SPAN, Record, Seen, SpanEvent, Value
from analytics.dialects.facts import AGENT, STEP, WORKFLOW, seen, span_fields, trace_group
from analytics.dialects.values import (
    PLACEHOLDERS,
    Volatile,
    argument_key,
    decoded,
    first,
    first_text,
    result_key,
    text,
    tool_message,
    whole,
)

# Scope's beginning -> product. What is not here is `genai`.
PRODUCTS = {
    "pydantic-ai": "pydantic-ai",
    "strands.": "strands",
    "gcp.vertex.agent": "google-adk",
    "google.adk": "google-adk",
    "agent_framework": "agent-framework",
    "copilot-chat": "copilot",
    "github.copilot": "copilot",
    "langsmith": "langsmith",
    "logfire.": "logfire",
    "opentelemetry.instrumentation.langchain": "openllmetry",
    "traceloop": "openllmetry",
}
# What a product adds to a result that differs from one call to the next.
VOLATILE = {"copilot": Volatile(re.compile(r"<shellId: \d+ "), ("<shellId: ",))}
_RUNS = {  # gen_ai.operation.name -> role
    "invoke_agent": AGENT,
    "invoke_workflow": WORKFLOW,
    "execute_event_loop_cycle": STEP,
    "chat": STEP,
    "generate_content": STEP,
    "text_completion": STEP,
    "plan": STEP,
}
_KINDS = {"agent": AGENT, "workflow": WORKFLOW, "chain": WORKFLOW, "llm": STEP, "task": STEP}
_NAMES = {"agent run": AGENT, "invocation": WORKFLOW, "call_llm": STEP, "running tools": STEP}

TOOL = ("gen_ai.tool.name", "traceloop.entity.name", "mcp.tool.name", "tool_name")
ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",  # Pydantic AI's format 2
    "traceloop.entity.input",
    "input",  # Logfire's own instrumentation of the OpenAI Agents SDK
)
RESULT = ("gen_ai.tool.call.result", "tool_response", "traceloop.entity.output", "output")
ADK_ARGUMENTS, ADK_RESULT = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"
LANGSMITH_ARGUMENTS, LANGSMITH_RESULT = "gen_ai.prompt", "gen_ai.completion"
CALL_ID = ("gen_ai.tool.call.id", "gen_ai.tool.call_id")
SESSION = (
    "session.id",
    "gen_ai.conversation.id",
    "conversation.id",
    "copilot_chat.chat_session_id",
    "gcp.vertex.agent.session_id",
    "langsmith.metadata.thread_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
)
TURN = ("turn.id", "gcp.vertex.agent.invocation_id")
AGENT_NAME = ("gen_ai.agent.name", "agent_name", "traceloop.entity.name", "name")
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "model_name")
_LOGS = ("copilot_chat.",)  # logs that repeat what the spans say, without session or id

_MERGED = "(merged tools)"  # Google ADK's span about several calls at once, each of which has its own
_HIDDEN = PLACEHOLDERS | {"{}"}  # Google ADK, for what was not captured
_HIDDEN_RESULTS = _HIDDEN | {'{"result": "<not specified>"}'}  # and for a call that raised


class GenAi:
    """Spans of whoever follows the GenAI conventions, more or less."""

    name = "genai"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What one span says."""
        if record.source is LOG:
            event = record.attributes.get("event.name") or record.name
            return () if isinstance(event, str) and event.startswith(_LOGS) else None
        if record.source is not SPAN or not record.trace_id or not record.span_id:
            return None
        if record.attributes.get("logfire.span_type") == "pending_span":
            return ()  # announces a span that will be written when it ends
        if _is_tool(record):
            return _call(record)
        role = _role(record)
        return None if role is None else [_node(record, role)]


@lru_cache(maxsize=1024)
def product_of(scope: str) -> str:
    """The product by the instrumentation's name."""
    for beginning, product in PRODUCTS.items():
        if scope.startswith(beginning):
            return product
    return "genai"


def _is_tool(record: Record) -> bool:
    values = record.attributes
    return (
        values.get("gen_ai.operation.name") == "execute_tool"
        or values.get("mcp.method.name") == "tools/call"
        or values.get("traceloop.span.kind") == "tool"
        or values.get("langsmith.span.kind") == "tool"
        or record.name.startswith(("execute_tool ", "running tool: ", "anthropic.tool_use "))
        or record.name == "running tool"
        or (record.name.startswith("Function: ") and record.scope.startswith(("logfire", "pydantic")))
    )


def _role(record: Record) -> str | None:
    """What a span that is no call is: None for what has nothing to do with agents."""
    values = record.attributes
    operation = values.get("gen_ai.operation.name")
    if isinstance(operation, str) and _RUNS.get(operation, STEP) != STEP:
        return _RUNS[operation]
    for kind in ("traceloop.span.kind", "langsmith.span.kind"):
        if isinstance(values.get(kind), str):
            return _KINDS.get(values[kind], STEP)
    if isinstance(operation, str):
        return STEP
    known = product_of(record.scope) != "genai"
    if known and record.name in _NAMES:
        return _NAMES[record.name]
    if record.name.startswith("invoke_agent") or (known and record.name.startswith("Agent run: ")):
        return AGENT
    known = known or "mcp.method.name" in values
    return STEP if known or any(name.startswith("gen_ai.") for name in values) else None


def _common(record: Record) -> dict[str, Any]:
    data = span_fields(record)
    data["product"] = product_of(record.scope)
    data["session"] = first_text(record.attributes, SESSION)
    return data


def _node(record: Record, role: str) -> Seen:
    values = record.attributes
    data = _common(record)
    data["role"] = role
    data["model"] = first_text(values, MODEL)
    if role != STEP:
        data["turn"] = first_text(values, TURN)
    if role == AGENT:
        data["agent"] = first_text(values, AGENT_NAME)
    if "event_loop.cycle_id" in values:
        data["batch"] = text(values["event_loop.cycle_id"])
    if record.failed:
        data["error"] = True
    return seen("node", trace_group(record.trace_id), record.span_id, record, record.at, data)


def _call(record: Record) -> Sequence[Seen]:
    values = record.attributes
    tool = first_text(values, TOOL) or _name_after_prefix(record.name)
    if tool == "{name}":
        tool = text(values.get("name"))  # Logfire's span names are templates
    if tool == _MERGED:
        return ()
    error = _failed(record)
    data = _common(record)
    data["turn"] = first_text(values, TURN)
    data["tool"] = tool
    data["key"] = argument_key(tool, _arguments(record))
    data["result"] = result_key(_result(record), error=error, volatile=VOLATILE.get(data["product"]))
    data["error"] = error
    data["call"] = first_text(values, CALL_ID)
    if "mcp.method.name" in values:
        data["carrier"] = True
    return [seen("call", trace_group(record.trace_id), record.span_id, record, record.at, data)]


def _name_after_prefix(name: str) -> str | None:
    for prefix in ("execute_tool ", "running tool: ", "Function: ", "anthropic.tool_use ", "tools/call "):
        if name.startswith(prefix):
            return name.removeprefix(prefix) or None
    return None


def _arguments(record: Record) -> Value:
    values = record.attributes
    found = first(values, ARGUMENTS)
    if found is None and (told := _event(record, "gen_ai.tool.message")) is not None:
        found = told.get("content")  # Strands
    if found is None and values.get("langsmith.span.kind") == "tool":
        found = values.get(LANGSMITH_ARGUMENTS)
    if found is None and (found := values.get(ADK_ARGUMENTS)) == "{}":
        # Also what stands there when capture is off; then the result is as empty.
        return None if _hidden(values.get(ADK_RESULT), _HIDDEN) else {}
    if found == "None" and product_of(record.scope) == "agent-framework":
        return {}  # its way of writing that there are no arguments
    if isinstance(found, str) and found.startswith('{"input_str":'):
        told = decoded(found)  # OpenLLMetry's LangChain instrumentation, among the run's own affairs
        return told.get("inputs", told.get("input_str")) if isinstance(told, dict) else None
    return found


def _result(record: Record) -> Value:
    values = record.attributes
    found = first(values, RESULT)
    if found is None and (told := _event(record, "gen_ai.choice")) is not None:
        found = told.get("message")  # Strands
    if found is None and values.get("langsmith.span.kind") == "tool":
        found = values.get(LANGSMITH_RESULT)
    if found is None and not _hidden(values.get(ADK_RESULT), _HIDDEN_RESULTS):
        found = values[ADK_RESULT]
    if found is None and record.failed and (told := _event(record, "exception")) is not None:
        found = told.get("exception.message")
    return tool_message(found)


def _hidden(value: Value, placeholders: frozenset[str]) -> bool:
    return value is None or (isinstance(value, str) and value in placeholders)


def _event(record: Record, name: str) -> Mapping[str, Value] | None:
    events: Sequence[SpanEvent] = record.events
    for event in events:
        if event.name == name:
            return event.attributes
    return None


def _failed(record: Record) -> bool | None:
    """Failed by status, error type or the product's own word; a span that ended without any did not."""
    values = record.attributes
    if record.failed or text(values.get("error.type")) or values.get("gen_ai.tool.status") == "error":
        return True
    if whole(values.get("process.exit.code")):
        return True
    return False if record.at is not None else None
