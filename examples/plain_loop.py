"""An agent loop without a framework, capped. Offline: `python examples/plain_loop.py`.

Only the lines that say `turn` or `verdict` are turncap's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guard import ToolCall, ToolCallGuard, Turn, TurnHalted

Message = dict[str, Any]


def run_agent(
    guard: ToolCallGuard,
    model: Callable[[list[Message]], Message],
    tools: dict[str, Callable[..., Any]],
    messages: list[Message],
) -> str:
    """Let the model call tools until it answers; `messages` begins with the prompt and grows.

    Raises:
        TurnHalted: the cap stopped the turn. Every call in `messages` has an answer.
    """
    with guard.turn() as turn:
        while True:
            reply = model(messages)
            messages.append(reply)
            calls = reply.get("tool_calls", [])
            if not calls:
                return str(reply["content"])
            verdicts = turn.admit_batch([ToolCall(call["name"], call["args"], call["id"]) for call in calls])
            turn.reply_finished()
            for call, verdict in zip(calls, verdicts, strict=True):
                content = verdict.message if verdict.halted else run_tool(turn, tools, call)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            for verdict in verdicts:
                verdict.raise_for_halt()


def run_tool(turn: Turn, tools: dict[str, Callable[..., Any]], call: dict[str, Any]) -> str:
    """What the model is told: the tool's result, or its error."""
    try:
        result = tools[call["name"]](**call["args"])
    except Exception as error:  # noqa: BLE001 - the model may try another way
        turn.settle(call["id"], error=error)
        return f"{type(error).__name__}: {error}"
    turn.settle(call["id"], result=result)
    return str(result)


def stuck_model(messages: list[Message]) -> Message:
    """Stands in for a model: it reads one file after another, then the same one over and over."""
    step = sum(message["role"] == "assistant" for message in messages)
    path = f"src/{step}.py" if step < 99 else "src/main.py"
    call = {"id": f"call-{step}", "name": "read_file", "args": {"path": path}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


if __name__ == "__main__":
    try:
        run_agent(
            ToolCallGuard(),
            stuck_model,
            {"read_file": lambda path: f"the text of {path}"},
            [{"role": "user", "content": "find the bug"}],
        )
    except TurnHalted as halted:
        print(halted)
