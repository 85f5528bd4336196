# requires: strands-agents[otel]==1.62.0
"""Strands Agents: two prompts to one agent, whose tools answer, differ and fail."""

import os

from strands import Agent, tool
from strands.models.model import Model
from strands.telemetry import StrandsTelemetry

SCRIPT = {
    "first": [
        [("search", {"q": "x"})],
        [("search", {"q": "x"}), ("add", {"a": 1, "b": 2})],
        [("broken", {})],
    ],
    "second": [[("search", {"q": "x"})]],
}


class Scripted(Model):
    def __init__(self) -> None:
        self.number = 0

    def update_config(self, **config: object) -> None: ...

    def get_config(self) -> dict[str, str]:
        return {"model_id": "scripted"}

    async def structured_output(self, *args: object, **kwargs: object):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        script, step = [], 0
        for message in messages:
            prompts = [block["text"] for block in message["content"] if "text" in block]
            if message["role"] == "user" and prompts:
                script, step = SCRIPT[prompts[-1].split()[-1]], 0
            elif message["role"] == "assistant":
                step += 1
        yield {"messageStart": {"role": "assistant"}}
        if step >= len(script):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        import json

        for name, arguments in script[step]:
            self.number += 1
            yield {
                "contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": f"t{self.number}"}}}
            }
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


@tool
def search(q: str) -> str:
    """Search."""
    return "found " + q


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


telemetry = StrandsTelemetry()
telemetry.setup_otlp_exporter()
agent = Agent(
    model=Scripted(),
    name="helper",
    tools=[search, add, broken],
    callback_handler=None,
    trace_attributes={"session.id": "strands-session"},
)
agent("run first")
agent("run second")
telemetry.tracer_provider.shutdown()
os._exit(0)
