# requires: agent-framework-core==1.23.0 opentelemetry-exporter-otlp-proto-http
"""Microsoft Agent Framework: two prompts in one session, and an agent used as a tool."""

import asyncio
import os

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.observability import (
    ChatTelemetryLayer,
    enable_instrumentation,
    enable_sensitive_telemetry,
)
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
enable_instrumentation()
if os.environ.get("CONTENT"):
    enable_sensitive_telemetry()

SCRIPT = {
    "first": [
        [("search", {"q": "x"})],
        [("search", {"q": "x"}), ("add", {"a": 1, "b": 2})],
        [("broken", {})],
    ],
    "second": [[("inner", {"task": "run third"})]],
    "third": [[("search", {"q": "y"})]],
}
numbers = iter(range(1, 100))


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    def reply(self, messages):
        script, step = [], 0
        for message in messages:
            if message.role == "user" and message.text.split()[-1] in SCRIPT:
                script, step = SCRIPT[message.text.split()[-1]], 0
            elif message.role == "assistant":
                step += 1
        if step >= len(script):
            contents = ["done"]
        else:
            contents = [
                Content.from_function_call(f"c{next(numbers)}", name, arguments=arguments)
                for name, arguments in script[step]
            ]
        return contents

    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        contents = self.reply(messages)
        if stream:

            async def updates():
                made = [Content.from_text(c) if isinstance(c, str) else c for c in contents]
                yield ChatResponseUpdate(role="assistant", contents=made, response_id="r", model="scripted")

            return self._build_response_stream(updates())

        async def response():
            return ChatResponse(
                messages=[Message(role="assistant", contents=contents)], response_id="r", model="scripted"
            )

        return response()


@tool(approval_mode="never_require")
def search(q: str) -> str:
    """Search."""
    return "found " + q


@tool(approval_mode="never_require")
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(approval_mode="never_require")
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


client = Scripted()
inner = Agent(client, name="inner", tools=[search])
agent = Agent(client, name="helper", tools=[search, add, broken, inner.as_tool(arg_name="task")])


async def main() -> None:
    session = agent.create_session()
    for prompt in ("run first", "run second"):
        await agent.run(prompt, session=session)


asyncio.run(main())
provider.shutdown()
