# requires: pydantic-ai-slim==2.68.0 opentelemetry-exporter-otlp-proto-http
"""Pydantic AI: a conversation of two prompts, and an agent that another one uses as a tool."""

import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

SCRIPTS = {
    "first": [
        [("search", {"q": "x"})],
        [("search", {"q": "x"}), ("add", {"a": 1, "b": 2})],
        [("broken", {})],
    ],
    "second": [[("search", {"q": "x"})]],
    "outer": [[("delegate", {"task": "run inner"})]],
    "inner": [[("add", {"a": 1, "b": 2})]],
}


def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    script, step = [], 0
    for message in messages:
        prompts = [part.content for part in message.parts if part.part_kind == "user-prompt"]
        if prompts:
            script, step = SCRIPTS[str(prompts[-1]).split()[-1]], 0
        elif message.kind == "response":
            step += 1
    if step >= len(script):
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart(tool, arguments) for tool, arguments in script[step]])


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
version = os.environ.get("FORMAT_VERSION")
Agent.instrument_all(InstrumentationSettings(**({"version": int(version)} if version else {})))

helper = Agent(FunctionModel(reply), name="helper")
boss = Agent(FunctionModel(reply), name="boss")


@helper.tool_plain
def search(q: str) -> str:
    return "found " + q


@helper.tool_plain
def add(a: int, b: int) -> int:
    return a + b


@helper.tool_plain(retries=3)
def broken() -> str:
    raise ModelRetry("try again")


@boss.tool_plain
async def delegate(task: str) -> str:
    return (await helper.run(task)).output


first = helper.run_sync("run first")
helper.run_sync("run second", message_history=first.all_messages())
boss.run_sync("run outer")
provider.shutdown()
