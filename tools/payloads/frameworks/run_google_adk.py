# requires: google-adk==2.13.0 opentelemetry-exporter-otlp-proto-http
"""Google ADK: two prompts in one session, and an agent used as a tool."""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

SCRIPT = {
    "first": [
        [("search", {"q": "x"})],
        [("search", {"q": "x"}), ("add", {"a": 1, "b": 2})],
        [("broken", {})],
    ],
    "second": [[("inner", {"request": "run third"})]],
    "third": [[("search", {"q": "y"})]],
}


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        script, step = [], 0
        for content in llm_request.contents:
            prompts = [part.text for part in content.parts if part.text]
            if content.role == "user" and prompts and prompts[-1].split()[-1] in SCRIPT:
                script, step = SCRIPT[prompts[-1].split()[-1]], 0
            elif content.role == "model":
                step += 1
        if step >= len(script):
            parts = [types.Part(text="done")]
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=n, args=a)) for n, a in script[step]]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def search(q: str) -> str:
    """Search."""
    return "found " + q


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def broken() -> dict[str, str]:
    """Fail."""
    raise ValueError("it broke")


model = Scripted(model="scripted")
inner = LlmAgent(name="inner", model=model, tools=[search], description="helps")
agent = LlmAgent(name="helper", model=model, tools=[search, add, broken, AgentTool(inner)])


async def main() -> None:
    runner = InMemoryRunner(agent=agent, app_name="demo")
    session = await runner.session_service.create_session(app_name="demo", user_id="u")
    for prompt in ("run first", "run second"):
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        try:
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                pass
        except ValueError as error:
            print("ended by", error)


asyncio.run(main())
provider.shutdown()
os._exit(0)
