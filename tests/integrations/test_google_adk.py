"""Google ADK under the cap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integrations.cases import Cases, looks, one_by_one
from tests.integrations.world import Harness, Notes, Ran, Script, Tools

pytestmark = pytest.mark.heavy
pytest.importorskip("google.adk", reason="runs in an environment of its own: make test-all")

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from guard.integrations.google_adk import ToolCallCap


class PlannedModel(BaseLlm):
    """Follows the plan of the last prompt in the request."""

    script: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        contents = llm_request.contents
        last = max(
            place
            for place, content in enumerate(contents)
            if content.role == "user" and any(part.text for part in content.parts)
        )
        prompt = next(part.text for part in contents[last].parts if part.text)
        so_far = sum(content.role == "model" for content in contents[last:])
        parts = [
            types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=given_as(name, args)))
            for call_id, (name, args) in self.script.reply(prompt, so_far)
        ]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="done")]))


def given_as(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """An agent as a tool takes `request`."""
    return {"request": args["prompt"]} if name == "ask" else args


class ADKHarness(Harness):
    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        super().__init__(guard, script, tools)
        self.cap = ToolCallCap(guard)
        child = LlmAgent(name="ask", description="Ask.", model=self.model(), tools=self.functions())
        agent = LlmAgent(name="main", model=self.model(), tools=[*self.functions(), AgentTool(child)])
        self.runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[self.cap]))

    def model(self) -> PlannedModel:
        return PlannedModel(model="planned", script=self.script)

    def functions(self) -> list[Any]:
        tools = self.tools

        def look(at: str, path: str) -> str:
            return tools.look(at, path)

        def fail(at: str) -> str:
            return tools.fail(at)

        async def meet(at: str) -> str:
            return await tools.ameet(at)

        return [look, fail, meet]

    async def session(self) -> Any:
        return await self.runner.session_service.create_session(app_name="app", user_id="user")

    def message(self, prompt: str) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text=prompt)])

    def run(self, prompt: str) -> Ran:
        session = asyncio.run(self.session())
        events: list[Any] = []
        try:
            for event in self.runner.run(
                user_id="user", session_id=session.id, new_message=self.message(prompt)
            ):
                events.append(event)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(events, error)
        return self.judge(events, None)

    async def arun(self, prompt: str) -> Ran:
        session = await self.session()
        events: list[Any] = []
        try:
            async for event in self.runner.run_async(
                user_id="user", session_id=session.id, new_message=self.message(prompt)
            ):
                events.append(event)
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(events, error)
        return self.judge(events, None)

    def judge(self, events: list[Any], error: Exception | None) -> Ran:
        last = events[-1] if events else None
        return Ran(
            success=error is None and last is not None and last.error_code is None,
            error=error,
            asked=[call.id for event in events for call in event.get_function_calls()],
            answered=[answer.id for event in events for answer in event.get_function_responses()],
        )

    def left_open(self) -> object:
        return self.cap._runs


class TestADK(Cases):
    harness = ADKHarness

    def test_a_halted_run_s_last_event_is_an_error_with_the_reason(self) -> None:
        harness, _, _ = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        events = asyncio.run(self.events(harness, "main"))
        assert events[-1].error_code == "TURN_HALTED"
        assert events[-1].error_message.startswith("Stopped at tool call 6: ")
        assert [event.error_code for event in events[:-1]] == [None] * (len(events) - 1)

    def test_the_next_prompt_goes_on_from_a_halted_session(self) -> None:
        plans = {"main": [looks("main", *range(9))], "more": one_by_one("more", 1, 2)}
        harness, guard, tools = self.build(plans, max_tool_calls=5)

        async def main() -> Any:
            session = await harness.session()
            await self.events(harness, "main", session)
            return (await self.events(harness, "more", session))[-1]

        assert asyncio.run(main()).content.parts[0].text == "done"
        assert dict(tools.ran) == {"more": ["1", "2"]}
        assert [ended.outcome for ended in guard.ended] == ["halted", "completed"]
        assert len({started.conversation_id for started in guard.started}) == 1

    def test_the_framework_s_own_limit_passes_unchanged(self) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})
        with pytest.raises(LlmCallsLimitExceededError):
            asyncio.run(self.events(harness, "main", run_config=RunConfig(max_llm_calls=3)))
        assert [(ended.outcome, ended.settled) for ended in guard.ended] == [("errored", 3)]

    def test_a_stream_left_early_is_aborted(self) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})

        async def main() -> None:
            session = await harness.session()
            stream = harness.runner.run_async(
                user_id="user", session_id=session.id, new_message=harness.message("main")
            )
            for _ in range(4):
                await anext(stream)
            await stream.aclose()
            assert [ended.outcome for ended in guard.ended] == ["aborted"]

        asyncio.run(main())

    @staticmethod
    async def events(harness: Any, prompt: str, session: Any = None, **options: Any) -> list[Any]:
        session = session or await harness.session()
        return [
            event
            async for event in harness.runner.run_async(
                user_id="user", session_id=session.id, new_message=harness.message(prompt), **options
            )
        ]
