"""The same in asyncio, the calls of a reply side by side. Offline: `python examples/plain_loop_async.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from guard import ToolCall, ToolCallGuard, Turn, TurnHalted

Message = dict[str, Any]


async def run_agent(
    guard: ToolCallGuard,
    model: Callable[[list[Message]], Awaitable[Message]],
    tools: dict[str, Callable[..., Awaitable[Any]]],
    messages: list[Message],
) -> str:
    """Let the model call tools until it answers; `messages` begins with the prompt and grows.

    Raises:
        TurnHalted: the cap stopped the turn. Every call in `messages` has an answer.
    """
    with guard.turn() as turn:
        while True:
            reply = await model(messages)
            messages.append(reply)
            calls = reply.get("tool_calls", [])
            if not calls:
                return str(reply["content"])
            verdicts = turn.admit_batch([ToolCall(call["name"], call["args"], call["id"]) for call in calls])
            turn.reply_finished()
            if turn.halted:
                contents = [verdict.message for verdict in verdicts]
            else:
                contents = await asyncio.gather(*(run_tool(turn, tools, call) for call in calls))
            for call, content in zip(calls, contents, strict=True):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            for verdict in verdicts:
                verdict.raise_for_halt()


async def run_tool(turn: Turn, tools: dict[str, Callable[..., Awaitable[Any]]], call: dict[str, Any]) -> str:
    """What the model is told: the tool's result, or its error."""
    try:
        result = await tools[call["name"]](**call["args"])
    except Exception as error:  # noqa: BLE001 - the model may try another way
        turn.settle(call["id"], error=error)
        return f"{type(error).__name__}: {error}"
    turn.settle(call["id"], result=result)
    return str(result)


async def stuck_model(messages: list[Message]) -> Message:
    """Stands in for a model: it runs two commands at a time, after a while always the same two."""
    step = sum(message["role"] == "assistant" for message in messages)
    commands = (f"grep {step}", f"sed {step}p") if step < 47 else ("make", "make test")
    calls = [
        {"id": f"call-{step}-{place}", "name": "shell", "args": {"command": command}}
        for place, command in enumerate(commands)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


async def shell(command: str) -> str:
    """Stands in for a tool."""
    return f"the output of {command}"


if __name__ == "__main__":
    try:
        asyncio.run(
            run_agent(
                ToolCallGuard(), stuck_model, {"shell": shell}, [{"role": "user", "content": "fix the build"}]
            )
        )
    except TurnHalted as halted:
        print(halted)
