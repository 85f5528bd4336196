"""The examples of a loop without a framework stand every case, and do what they say when run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from examples import plain_loop, plain_loop_async
from guard import TurnHalted
from tests.integrations.cases import Cases
from tests.integrations.world import Harness, Ran

ROOT = Path(__file__).resolve().parent.parent.parent
Message = dict[str, Any]


class PlainHarness(Harness):
    raises_tool_errors = False

    def _reply(self, messages: list[Message]) -> Message:
        so_far = sum(message["role"] == "assistant" for message in messages)
        calls = self.script.reply(messages[0]["content"], so_far)
        asked = [{"id": call_id, "name": name, "args": args} for call_id, (name, args) in calls]
        return {"role": "assistant", "content": "done", "tool_calls": asked}

    def run(self, prompt: str) -> Ran:
        def ask(prompt: str) -> str:
            return plain_loop.run_agent(self.guard, self._reply, tools, [{"role": "user", "content": prompt}])

        tools: dict[str, Callable[..., Any]] = {
            "look": self.tools.look,
            "fail": self.tools.fail,
            "meet": self.tools.meet,
            "ask": ask,
        }
        messages: list[Message] = [{"role": "user", "content": prompt}]
        try:
            answer = plain_loop.run_agent(self.guard, self._reply, tools, messages)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self._ran(messages, False, error)
        return self._ran(messages, answer == "done", None)

    async def arun(self, prompt: str) -> Ran:
        async def model(messages: list[Message]) -> Message:
            return self._reply(messages)

        async def look(at: str, path: str) -> str:
            return self.tools.look(at, path)

        async def fail(at: str) -> str:
            return self.tools.fail(at)

        async def ask(prompt: str) -> str:
            return await plain_loop_async.run_agent(
                self.guard, model, tools, [{"role": "user", "content": prompt}]
            )

        tools: dict[str, Callable[..., Awaitable[Any]]] = {
            "look": look,
            "fail": fail,
            "meet": self.tools.ameet,
            "ask": ask,
        }
        messages: list[Message] = [{"role": "user", "content": prompt}]
        try:
            answer = await plain_loop_async.run_agent(self.guard, model, tools, messages)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self._ran(messages, False, error)
        return self._ran(messages, answer == "done", None)

    def _ran(self, messages: list[Message], success: bool, error: Exception | None) -> Ran:
        asked = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        return Ran(success=success, error=error, asked=asked, answered=answered)


class TestPlainLoop(Cases):
    harness = PlainHarness

    def test_a_halt_is_raised_as_turn_halted(self, way: str) -> None:
        harness, _, _ = self.build({"main": [[("look", {"at": "main", "path": "x"})]] * 9}, max_tool_calls=5)
        error = harness.one(way, "main").error
        assert isinstance(error, TurnHalted)
        assert error.verdict.threshold == "explicit-hard"


@pytest.mark.parametrize("name", ["plain_loop.py", "plain_loop_async.py"])
def test_an_example_runs_offline_and_prints_its_halt(name: str) -> None:
    done = subprocess.run(
        [sys.executable, f"examples/{name}"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("Stopped at tool call 105: ")
