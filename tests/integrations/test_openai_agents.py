"""The OpenAI Agents SDK under the cap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from guard import TurnHalted
from tests.integrations.cases import Cases, looks, one_by_one
from tests.integrations.world import Harness, Notes, Ran, Script, ToolBroke, Tools

pytestmark = pytest.mark.heavy
pytest.importorskip("agents", reason="runs in an environment of its own: make test-all")

from agents import (
    Agent,
    AgentsException,
    MaxTurnsExceeded,
    Model,
    ModelResponse,
    RunConfig,
    RunHooks,
    SQLiteSession,
    Usage,
    UserError,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from guard.integrations.openai_agents import RunHalted, ToolCallCap

set_tracing_disabled(True)


def given_as(name: str, args: dict[str, Any]) -> str:
    """Arguments as the model writes them; an agent as a tool takes `input`."""
    return json.dumps({"input": args["prompt"]} if name == "ask" else args)


class PlannedModel(Model):
    """Follows the plan of the last prompt in the input."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def output(self, given: Any) -> list[Any]:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        last = max(place for place, item in enumerate(items) if item.get("role") == "user")
        so_far = {
            item["call_id"].rsplit("_", 1)[0] for item in items[last:] if item.get("type") == "function_call"
        }
        calls = self.script.reply(items[last]["content"], len(so_far))
        if not calls:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            return [
                ResponseOutputMessage(
                    id="message", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        return [
            ResponseFunctionToolCall(
                id=call_id, call_id=call_id, name=name, arguments=given_as(name, args), type="function_call"
            )
            for call_id, (name, args) in calls
        ]

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=self.output(input), usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        response = Response(
            id="response", created_at=0, model="planned", object="response", output=self.output(input),
            parallel_tool_calls=True, tool_choice="auto", tools=[],
        )  # fmt: skip
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


class OpenAIHarness(Harness):
    raises_tool_errors = False
    keeps_refused_reply = False

    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        super().__init__(guard, script, tools)
        self.cap = ToolCallCap(guard)
        child = self.make("child", [])
        ask = self.cap.as_tool(child, "ask", "Ask another agent.")
        self.agent = self.make("main", [ask])

    def make(self, name: str, more: list[Any], **options: Any) -> Agent[Any]:
        tools = self.tools

        @function_tool
        def look(at: str, path: str) -> str:
            return tools.look(at, path)

        @function_tool
        def fail(at: str) -> str:
            return tools.fail(at)

        @function_tool
        async def meet(at: str) -> str:
            return await tools.ameet(at)

        model = PlannedModel(self.script)
        return Agent(name, model=model, tools=[look, fail, meet, *more], **options)

    def run(self, prompt: str) -> Ran:
        session = SQLiteSession(prompt)
        try:
            result = self.cap.run_sync(self.agent, prompt, session=session, max_turns=None)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(asyncio.run(session.get_items()), None, error)
        return self.judge(asyncio.run(session.get_items()), result, None)

    async def arun(self, prompt: str) -> Ran:
        session = SQLiteSession(prompt)
        try:
            result = await self.cap.run(self.agent, prompt, session=session, max_turns=None)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(await session.get_items(), None, error)
        return self.judge(await session.get_items(), result, None)

    def judge(self, items: list[Any], result: Any, error: Exception | None) -> Ran:
        ids: dict[str, list[str]] = {"function_call": [], "function_call_output": []}
        for item in items:
            if item.get("type") in ids:
                ids[item["type"]].append(item["call_id"])
        return Ran(
            success=result is not None and result.final_output == "done",
            error=error,
            asked=ids["function_call"],
            answered=ids["function_call_output"],
        )

    def left_open(self) -> object:
        return len(self.cap._errors)


class StreamedHarness(OpenAIHarness):
    """The async way reads the stream of `run_streamed`."""

    async def arun(self, prompt: str) -> Ran:
        session = SQLiteSession(prompt)
        result = self.cap.run_streamed(self.agent, prompt, session=session, max_turns=None)
        try:
            async for _ in result.stream_events():
                pass
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(await session.get_items(), None, error)
        except asyncio.CancelledError:
            result.cancel()
            raise
        return self.judge(await session.get_items(), result, None)


class TestRunner(Cases):
    harness = OpenAIHarness

    def test_a_halted_run_raises_an_agents_exception_with_the_verdict(self, way: str) -> None:
        harness, _, _ = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        error: Any = harness.one(way, "main").error
        assert type(error) is RunHalted
        assert isinstance(error, AgentsException)
        assert isinstance(error, TurnHalted)
        assert (error.verdict.threshold, error.verdict.call_number) == ("explicit-hard", 6)
        assert str(error) == error.verdict.message
        assert len(harness.one(way, "main").error.run_data.new_items) == 10

    def test_the_next_prompt_goes_on_from_a_halted_session(self, way: str) -> None:
        plans = {"main": one_by_one("main", *range(9)), "more": one_by_one("more", 1, 2)}
        harness, guard, _ = self.build(plans, max_tool_calls=5)
        session = SQLiteSession("a-session")
        with pytest.raises(RunHalted):
            self.invoke(harness, way, "main", session=session)
        assert self.invoke(harness, way, "more", session=session).final_output == "done"
        assert [ended.outcome for ended in guard.ended] == ["halted", "completed"]
        assert [started.conversation_id for started in guard.started] == ["a-session"] * 2
        assert [started.agent_name for started in guard.started] == ["main"] * 2

    def test_the_framework_s_own_limit_passes_unchanged(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})
        with pytest.raises(MaxTurnsExceeded):
            self.invoke(harness, way, "main", max_turns=3)
        assert [(ended.outcome, ended.settled) for ended in guard.ended] == [("errored", 3)]

    def test_the_caller_s_hooks_and_formatter_stay(self, way: str) -> None:
        heard = []

        class Hears(RunHooks[Any]):
            async def on_agent_start(self, *_: Any) -> None:
                heard.append("agent")

            async def on_llm_start(self, *_: Any) -> None:
                heard.append("llm")

            async def on_tool_start(self, *_: Any) -> None:
                heard.append("tool")

            async def on_tool_end(self, *given: Any) -> None:
                heard.append(given[-1])

            async def on_agent_end(self, *_: Any) -> None:
                heard.append("end")

        harness, guard, _ = self.build({"main": [[("fail", {"at": "main"})]]})
        config = RunConfig(tool_error_formatter=lambda args: f"{args.kind}: {args.tool_name}")
        self.invoke(harness, way, "main", hooks=Hears(), run_config=config)
        assert heard == ["agent", "llm", "tool", "tool_exception: fail", "llm", "end"]
        assert [(ended.settled, ended.errors) for ended in guard.ended] == [(1, 1)]

    def test_a_tool_whose_errors_are_raised_ends_the_run_with_its_error(self, way: str) -> None:
        harness, guard, tools = self.build({"main": [[("burn", {"at": "main"})]]})

        @function_tool(failure_error_function=None)
        def burn(at: str) -> str:
            return str(tools.fail(at))

        harness.agent = harness.make("main", [burn])
        with pytest.raises(UserError) as raised:  # the framework's own wrapping
            self.invoke(harness, way, "main")
        assert type(raised.value.__cause__) is ToolBroke
        assert [(ended.outcome, ended.calls) for ended in guard.ended] == [("errored", 1)]

    def test_a_handoff_stays_in_the_turn_and_is_no_call(self, way: str) -> None:
        plan = [*one_by_one("main", 1), [("transfer_to_other", {})], *one_by_one("main", 2)]
        harness, guard, tools = self.build({"main": plan})
        other = harness.make("other", [])
        for handoffs in ([other], [handoff(other)]):
            harness.agent = harness.make("main", [], handoffs=handoffs)
            assert self.invoke(harness, way, "main").last_agent is other
        assert tools.ran["main"] == ["1", "2"] * 2
        assert [(e.outcome, e.calls, e.settled) for e in guard.ended] == [("completed", 2, 2)] * 2

    def test_a_call_that_waits_for_a_person_is_asked_again_in_the_run_that_has_the_answer(
        self, way: str
    ) -> None:
        harness, guard, tools = self.build({"main": [[("pay", {"at": "main"})]]})

        @function_tool(needs_approval=True)
        def pay(at: str) -> str:
            return str(tools.look(at, "paid"))

        harness.agent = harness.make("main", [pay])
        first = self.invoke(harness, way, "main")
        (asked,) = first.interruptions
        state = first.to_state()
        state.approve(asked)
        assert self.invoke(harness, way, state).final_output == "done"
        assert tools.ran["main"] == ["paid"]
        assert [(e.outcome, e.calls, e.settled) for e in guard.ended] == [
            ("completed", 1, 0),
            ("completed", 1, 1),
        ]

    @staticmethod
    def invoke(harness: Any, way: str, given: Any, **options: Any) -> Any:
        if way == "async":
            return asyncio.run(harness.cap.run(harness.agent, given, **options))
        return harness.cap.run_sync(harness.agent, given, **options)


class TestStreamed(Cases):
    harness = StreamedHarness

    def test_a_stream_that_is_cancelled_is_aborted(self) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})

        async def main() -> None:
            result = harness.cap.run_streamed(harness.agent, "main")
            async for _ in result.stream_events():
                result.cancel()

        asyncio.run(main())
        assert [ended.outcome for ended in guard.ended] == ["aborted"]

    def test_a_run_whose_stream_nobody_reads_ends_its_turn(self) -> None:
        harness, guard, _ = self.build({"main": [looks("main", *range(9))]}, max_tool_calls=5)

        async def main() -> None:
            result = harness.cap.run_streamed(harness.agent, "main")
            while not result.run_loop_task.done():
                await asyncio.sleep(0)

        asyncio.run(main())
        assert [ended.outcome for ended in guard.ended] == ["halted"]
