"""Strands Agents under the cap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integrations.cases import Cases, looks, one_by_one
from tests.integrations.world import Harness, Notes, Ran, Script, Tools

pytestmark = pytest.mark.heavy
pytest.importorskip("strands", reason="runs in an environment of its own: make test-all")

from strands import Agent, tool
from strands.models import Model
from strands.types.exceptions import EventLoopException

from guard.integrations.strands import ToolCallCap


class PlannedModel(Model):
    """Follows the plan of the last prompt in the history."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **_: Any) -> None:
        return None

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        last = max(
            place
            for place, message in enumerate(messages)
            if message["role"] == "user" and any("text" in content for content in message["content"])
        )
        prompt = next(content["text"] for content in messages[last]["content"] if "text" in content)
        so_far = sum(message["role"] == "assistant" for message in messages[last:])
        calls = self.script.reply(prompt, so_far)
        yield {"messageStart": {"role": "assistant"}}
        for call_id, (name, args) in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class StrandsHarness(Harness):
    """An agent object of Strands runs once at a time: each prompt has one, all have one cap."""

    raises_tool_errors = False

    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        super().__init__(guard, script, tools)
        self.cap = ToolCallCap(guard)

    def make(self, *more: Any, sync: bool = True, name: str = "main") -> Any:
        tools = self.tools

        @tool
        def look(at: str, path: str) -> str:
            """Look at a path."""
            return tools.look(at, path)

        @tool
        def fail(at: str) -> str:
            """Fail."""
            return tools.fail(at)

        @tool(name="meet")
        def meet(at: str) -> str:
            """Meet the other run."""
            return tools.meet(at)

        @tool(name="meet")
        async def ameet(at: str) -> str:
            """Meet the other run."""
            return await tools.ameet(at)

        @tool(name="ask")
        def ask(prompt: str) -> str:
            """Ask another agent."""
            return str(self.make(name="child")(prompt))

        @tool(name="ask")
        async def aask(prompt: str) -> str:
            """Ask another agent."""
            return str(await self.make(sync=False, name="child").invoke_async(prompt))

        own = [meet, ask] if sync else [ameet, aask]
        return Agent(
            PlannedModel(self.script), tools=[look, fail, *own, *more], hooks=[self.cap], name=name,
            callback_handler=None,
        )  # fmt: skip

    def run(self, prompt: str) -> Ran:
        agent = self.make()
        try:
            return self.judge(agent, agent(prompt), None)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(agent, None, error)

    async def arun(self, prompt: str) -> Ran:
        agent = self.make(sync=False)
        try:
            return self.judge(agent, await agent.invoke_async(prompt), None)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(agent, None, error)

    def judge(self, agent: Any, result: Any, error: Exception | None) -> Ran:
        contents = [content for message in agent.messages for content in message["content"]]
        return Ran(
            success=result is not None and result.stop_reason == "end_turn",
            error=error,
            asked=[content["toolUse"]["toolUseId"] for content in contents if "toolUse" in content],
            answered=[content["toolResult"]["toolUseId"] for content in contents if "toolResult" in content],
        )

    def unwrapped(self, error: BaseException | None) -> BaseException | None:
        assert type(error) is EventLoopException
        return None if error is None else error.__cause__

    def left_open(self) -> object:
        return len(self.cap._runs)


class TestStrands(Cases):
    harness = StrandsHarness

    def test_a_halted_run_is_cancelled_with_the_reason_as_its_last_message(self, way: str) -> None:
        harness, _, _ = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        agent = harness.make()
        result = self.invoke(agent, way, "main")
        assert result.stop_reason == "cancelled"
        assert str(result).startswith("Stopped at tool call 6: ")
        assert agent.messages[-2]["content"][0]["toolResult"]["status"] == "error"

    def test_the_next_prompt_to_the_same_agent_is_a_turn_of_its_own(self, way: str) -> None:
        plans = {"main": [looks("main", *range(9))], "more": one_by_one("more", 1, 2)}
        harness, guard, tools = self.build(plans, max_tool_calls=5)
        agent = harness.make()
        assert self.invoke(agent, way, "main").stop_reason == "cancelled"
        assert self.invoke(agent, way, "more").stop_reason == "end_turn"
        assert dict(tools.ran) == {"more": ["1", "2"]}
        assert [ended.outcome for ended in guard.ended] == ["halted", "completed"]
        assert [started.agent_name for started in guard.started] == ["main"] * 2

    def test_the_framework_s_own_limit_is_no_completed_turn(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})
        result = self.invoke(harness.make(), way, "main", limits={"turns": 3})
        assert result.stop_reason == "limit_turns"
        assert [(ended.outcome, ended.calls) for ended in guard.ended] == [("errored", 3)]

    def test_a_run_that_its_user_cancels_is_aborted(self, way: str) -> None:
        harness, guard, _ = self.build({"main": [*looks_and("stop"), *one_by_one("main", 2)]})

        @tool
        def stop(at: str) -> str:
            """Stop."""
            agent.cancel(after_current_tools=True)
            return "stopping"

        agent = harness.make(stop)
        assert self.invoke(agent, way, "main").stop_reason == "cancelled"
        assert [(ended.outcome, ended.calls) for ended in guard.ended] == [("aborted", 2)]

    def test_unknown_tools_and_arguments_that_do_not_fit_are_errors(self, way: str) -> None:
        plan = [[("nothing", {"x": 1}), *looks("main", "a")], [("look", {"wrong": 1})], looks("main", "b")]
        harness, guard, tools = self.build({"main": plan})
        assert self.invoke(harness.make(), way, "main").stop_reason == "end_turn"
        assert tools.ran["main"] == ["a", "b"]
        assert [(e.calls, e.settled, e.errors) for e in guard.ended] == [(4, 4, 2)]
        assert guard.faults == {}

    def test_a_run_resumed_after_an_interrupt_continues_the_turn_before(self, way: str) -> None:
        plan = [[*looks("main", 0), ("pay", {"at": "main"})], looks("main", 1)]
        harness, guard, tools = self.build({"main": plan})

        @tool(context=True)
        def pay(at: str, tool_context: Any) -> str:
            """Pay."""
            tool_context.interrupt("pay", reason="go on?")
            return str(tools.look(at, "paid"))

        agent = harness.make(pay)
        first = self.invoke(agent, way, "main")
        assert first.stop_reason == "interrupt"
        answer = {"interruptResponse": {"interruptId": first.interrupts[0].id, "response": "yes"}}
        assert self.invoke(agent, way, [answer]).stop_reason == "end_turn"
        assert tools.ran["main"] == ["0", "paid", "1"]
        before, after = guard.started
        assert after.continues == before.turn_id
        assert [(e.outcome, e.calls, e.settled, e.errors) for e in guard.ended] == [
            ("completed", 2, 1, 0),
            ("completed", 2, 2, 0),
        ]

    def test_a_person_s_own_tool_call_is_no_turn(self) -> None:
        harness, guard, tools = self.build({})
        agent = harness.make()
        agent.tool.look(at="main", path="a")
        assert dict(tools.ran) == {"main": ["a"]}
        assert (guard.events, guard.faults) == ([], {})

    def test_a_stream_left_early_is_aborted(self) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})

        async def main() -> None:
            stream = harness.make(sync=False).stream_async("main")
            for _ in range(12):
                await anext(stream)
            await stream.aclose()

        asyncio.run(main())
        assert [ended.outcome for ended in guard.ended] == ["aborted"]

    @staticmethod
    def invoke(agent: Any, way: str, given: Any, **options: Any) -> Any:
        if way == "async":
            return asyncio.run(agent.invoke_async(given, **options))
        return agent(given, **options)


def looks_and(name: str) -> list[Any]:
    """A reply of a look and one other call."""
    return [[*looks("main", 1), (name, {"at": "main"})]]
