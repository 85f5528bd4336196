"""Pydantic AI's Agent under the cap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from guard import TurnHalted
from tests.integrations.cases import Cases, looks, one_by_one
from tests.integrations.world import Harness, Notes, Ran, Script, Tools

pytestmark = pytest.mark.heavy
pytest.importorskip("pydantic_ai", reason="runs in an environment of its own: make test-all")

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, capture_run_messages
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import UsageLimits

from guard.integrations.pydantic_ai import RunHalted, ToolCallCap

NO_LIMIT = UsageLimits(request_limit=None)


class PydanticHarness(Harness):
    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        super().__init__(guard, script, tools)
        self.cap = ToolCallCap(guard)
        self.child: Any = self.make("child", sync=True)
        self.agent: Any = self.make(None, sync=True)
        self.aagent: Any = self.make(None, sync=False)

    def make(self, name: str | None, *, sync: bool, **options: Any) -> Any:
        model = FunctionModel(self.reply, stream_function=self.stream)
        agent: Any = Agent(model, name=name, capabilities=[self.cap], **options)
        agent.tool_plain(self.tools.look)
        agent.tool_plain(self.tools.fail)
        agent.tool_plain(name="meet")(self.tools.meet if sync else self.tools.ameet)

        async def ask(prompt: str) -> str:  # the framework forbids run_sync within a tool
            return str((await self.child.run(prompt)).output)

        agent.tool_plain(ask)
        return agent

    def calls(self, messages: list[Any]) -> list[ToolCallPart]:
        last = max(
            place
            for place, message in enumerate(messages)
            if any(isinstance(part, UserPromptPart) for part in message.parts)
        )
        prompt = next(part.content for part in messages[last].parts if isinstance(part, UserPromptPart))
        so_far = sum(isinstance(message, ModelResponse) for message in messages[last:])
        return [
            ToolCallPart(name, args, tool_call_id=call_id)
            for call_id, (name, args) in self.script.reply(str(prompt), so_far)
        ]

    def reply(self, messages: list[Any], info: Any) -> ModelResponse:
        return ModelResponse(parts=self.calls(messages) or [TextPart("done")])

    async def stream(self, messages: list[Any], info: Any) -> AsyncIterator[Any]:
        calls = self.calls(messages)
        for place, call in enumerate(calls):
            yield {
                place: DeltaToolCall(
                    name=call.tool_name, json_args=call.args_as_json_str(), tool_call_id=call.tool_call_id
                )
            }
        if not calls:
            yield "done"

    def run(self, prompt: str) -> Ran:
        with capture_run_messages() as messages:
            try:
                result = self.agent.run_sync(prompt, usage_limits=NO_LIMIT)
            except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
                return self.judge(messages, None, error)
        return self.judge(messages, result, None)

    async def arun(self, prompt: str) -> Ran:
        with capture_run_messages() as messages:
            try:
                result = await self.aagent.run(prompt, usage_limits=NO_LIMIT)
            except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
                return self.judge(messages, None, error)
        return self.judge(messages, result, None)

    def judge(self, messages: list[Any], result: Any, error: Exception | None) -> Ran:
        parts = [part for message in messages for part in message.parts]
        return Ran(
            success=result is not None and result.output == "done",
            error=error,
            asked=[part.tool_call_id for part in parts if isinstance(part, ToolCallPart)],
            answered=[
                part.tool_call_id
                for message in messages
                if isinstance(message, ModelRequest)
                for part in message.parts
                if hasattr(part, "tool_call_id")
            ],
        )


class TestPydanticAI(Cases):
    harness = PydanticHarness

    def test_a_halted_run_raises_a_usage_limit_with_the_verdict(self, way: str) -> None:
        harness, _, _ = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        error = harness.one(way, "main").error
        assert type(error) is RunHalted
        assert isinstance(error, UsageLimitExceeded)
        assert isinstance(error, TurnHalted)
        assert (error.verdict.threshold, error.verdict.call_number) == ("explicit-hard", 6)
        assert str(error) == error.verdict.message

    def test_the_next_prompt_can_go_on_from_a_halted_history(self, way: str) -> None:
        plans = {"main": [looks("main", *range(9))], "more": one_by_one("more", 1, 2)}
        harness, guard, tools = self.build(plans, max_tool_calls=5)
        with capture_run_messages() as messages, pytest.raises(RunHalted):
            self.invoke(harness, way, "main")
        history = list(messages)
        result = self.invoke(harness, way, "more", message_history=history)
        assert result.output == "done"
        assert tools.ran == {"more": ["1", "2"]}
        assert [ended.outcome for ended in guard.ended] == ["halted", "completed"]

    def test_the_framework_s_own_limit_passes_unchanged(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})
        with pytest.raises(UsageLimitExceeded) as raised:
            self.invoke(harness, way, "main", usage_limits=UsageLimits(request_limit=3))
        assert type(raised.value) is UsageLimitExceeded
        assert guard.ended[0].outcome == "errored"

    def test_unknown_tools_and_arguments_that_do_not_fit_are_errors(self, way: str) -> None:
        plan = [
            [("nothing", {"x": 1}), ("look", {"at": "main", "path": "a"})],
            [("look", {"wrong": 1})],
            looks("main", "b"),
        ]
        harness, guard, tools = self.build({"main": plan})
        ran = harness.one(way, "main")
        assert ran.success
        assert tools.ran["main"] == ["a", "b"]
        assert [(e.calls, e.settled, e.errors) for e in guard.ended] == [(4, 4, 2)]
        assert guard.faults == {}

    def test_an_output_tool_s_call_is_the_result_and_not_a_call(self, way: str) -> None:
        harness, guard, _ = self.build({})

        def reply(messages: list[Any], info: Any) -> ModelResponse:
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"response": 7})])

        agent: Any = Agent(FunctionModel(reply), output_type=int, capabilities=[harness.cap])
        harness.agent = harness.aagent = agent
        assert self.invoke(harness, way, "main").output == 7
        assert [(ended.outcome, ended.calls) for ended in guard.ended] == [("completed", 0)]

    def test_a_refused_reply_that_also_holds_the_result_is_no_success(self, way: str) -> None:
        harness, guard, tools = self.build({}, max_tool_calls=1)

        def reply(messages: list[Any], info: Any) -> ModelResponse:
            output = ToolCallPart(info.output_tools[0].name, {"response": 7})
            looks = [ToolCallPart("look", {"at": "main", "path": str(n)}) for n in range(2)]
            return ModelResponse(parts=[*looks, output])

        agent: Any = Agent(FunctionModel(reply), output_type=int, capabilities=[harness.cap])
        agent.tool_plain(harness.tools.look)
        harness.agent = harness.aagent = agent
        with pytest.raises(RunHalted):
            self.invoke(harness, way, "main")
        assert dict(tools.ran) == {}
        assert [ended.outcome for ended in guard.ended] == ["halted"]

    def test_a_call_that_waits_for_a_person_is_asked_again_in_the_run_that_has_the_answer(
        self, way: str
    ) -> None:
        plan = [[("look", {"at": "main", "path": "a"}), ("pay", {"at": "main"})]]
        harness, guard, tools = self.build({"main": plan})

        def pay(at: str) -> str:
            return tools.look(at, "paid")

        agent = harness.make(None, sync=way == "sync", output_type=[str, DeferredToolRequests])
        agent.tool_plain(requires_approval=True)(pay)
        harness.agent = harness.aagent = agent
        first = self.invoke(harness, way, "main")
        (asked,) = first.output.approvals
        history = first.all_messages()
        answers = DeferredToolResults(approvals={asked.tool_call_id: True})
        second = self.invoke(harness, way, None, message_history=history, deferred_tool_results=answers)
        assert second.output == "done"
        assert tools.ran["main"] == ["a", "paid"]
        assert [(e.outcome, e.calls, e.settled, e.errors) for e in guard.ended] == [
            ("completed", 2, 1, 0),
            ("completed", 1, 1, 0),
        ]

    def test_a_streamed_run_is_a_turn(self) -> None:
        plans = {"main": one_by_one("main", *range(9)), "short": one_by_one("short", 1)}
        harness, guard, _ = self.build(plans, max_tool_calls=5)

        async def main(prompt: str) -> str:
            async with harness.aagent.run_stream(prompt) as result:
                output: str = await result.get_output()
                return output

        assert asyncio.run(main("short")) == "done"
        with pytest.raises(RunHalted):
            asyncio.run(main("main"))
        assert [(ended.outcome, ended.ran) for ended in guard.ended] == [("completed", 1), ("halted", 5)]

    def test_a_run_that_is_stepped_and_left_is_aborted(self) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})

        async def main() -> None:
            async with harness.aagent.iter("main") as run:
                async for _ in run:
                    if len(guard.events) > 1 or run.usage.tool_calls:
                        break

        asyncio.run(main())
        assert [ended.outcome for ended in guard.ended] == ["aborted"]

    @staticmethod
    def invoke(harness: Any, way: str, prompt: str | None, **options: Any) -> Any:
        if way == "async":
            return asyncio.run(harness.aagent.run(prompt, **options))
        return harness.agent.run_sync(prompt, **options)
