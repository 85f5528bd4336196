# requires: openai-agents==0.24.0 openinference-instrumentation-openai-agents==2.6.0
# requires: opentelemetry-instrumentation-genai-openai-agents==1.3b0 opentelemetry-exporter-otlp-proto-http
"""OpenAI Agents SDK, which has no OpenTelemetry of its own, under the instrumentation that WITH names."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_trace_processors
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
set_trace_processors([])  # nothing is to be sent anywhere else
if "openinference" in os.environ["WITH"]:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor as OpenInference

    OpenInference().instrument(tracer_provider=provider)
if "genai" in os.environ["WITH"]:
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


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
provider.shutdown()
