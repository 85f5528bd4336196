# requires: logfire==5.4.0 openai-agents==0.24.0 opentelemetry-exporter-otlp-proto-http
"""OpenAI Agents SDK under Logfire's instrumentation."""

import asyncio
import os

import logfire
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_trace_processors
from openai import AsyncOpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

set_trace_processors([])  # nothing is to be sent anywhere else
logfire.configure(
    send_to_logfire=False,
    console=False,
    additional_span_processors=[SimpleSpanProcessor(OTLPSpanExporter())],
)
logfire.instrument_openai_agents()


@function_tool
def search(q: str) -> str:
    """Search."""
    return "found " + q


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@function_tool
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


model = OpenAIChatCompletionsModel(
    "fake", AsyncOpenAI(base_url=os.environ["MODEL_URL"] + "/v1", api_key="fake")
)
inner = Agent(name="inner", model=model, tools=[search])
agent = Agent(name="helper", model=model, tools=[search, add, broken, inner.as_tool("helper", "helps")])


async def main() -> None:
    for prompt in ("please run first", "please run outer"):
        await Runner.run(agent, prompt)


asyncio.run(main())
logfire.shutdown()
