"""Google ADK: a turn is one invocation of a runner.

    app = App(name="…", root_agent=agent, plugins=[ToolCallCap(guard)])
    runner = Runner(app=app, …)

A halted run ends as one does that a model could not answer: every pending call is answered with an error, the
model is not asked again, and the last event has the error code `TURN_HALTED` and the reason.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from guard.blocks import CurrentTurn
from guard.tool_call_guard import ToolCallGuard
from guard.turn import Turn
from guard.verdict import ToolCall, Verdict

LEFT = (GeneratorExit, asyncio.CancelledError)


@dataclass(slots=True)
class _Run:
    """An open invocation."""

    turn: Turn
    open: dict[str, Verdict] = field(default_factory=dict)
    current: dict[str, CurrentTurn] = field(default_factory=dict)


class ToolCallCap(BasePlugin):
    """The cap of one guard, for any number of runners and of runs at once."""

    def __init__(self, guard: ToolCallGuard, name: str = "turncap") -> None:
        super().__init__(name=name)
        self._guard = guard
        self._runs: dict[str, _Run] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        turn = self._guard.start_turn(
            agent_name=invocation_context.agent.name,
            conversation_id=invocation_context.session.id,
            parent=self._guard.current_turn(),
        )
        run_id = invocation_context.invocation_id
        self._runs[run_id] = _Run(turn)
        task = asyncio.current_task()
        if task is not None:  # no callback tells of a run that is cancelled
            task.add_done_callback(lambda _: self._end(run_id, asyncio.CancelledError()))

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """Decide all calls of a reply, before any of them runs."""
        run = self._runs.get(invocation_context.invocation_id)
        calls = [] if event.partial else event.get_function_calls()
        if run is not None and calls:
            asked = [ToolCall(call.name, call.args, call.id) for call in calls]
            verdicts = run.turn.admit_batch(asked)
            run.open.update(
                (str(call.call_id), verdict) for call, verdict in zip(asked, verdicts, strict=True)
            )

    async def before_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any
    ) -> dict[str, Any] | None:
        run, call_id = self._runs[tool_context.invocation_id], tool_context.function_call_id
        verdict = run.open.get(call_id)
        if verdict is None:  # resumed: asked for in an earlier run
            verdict = run.open[call_id] = run.turn.admit(tool.name, tool_args, call_id)
        if verdict.halted:
            return {"error": verdict.message}
        current = run.current[call_id] = self._guard.use_turn(run.turn)
        current.__enter__()
        return None

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        self._settle(tool_context, {"result": result})

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any
    ) -> None:
        self._settle(tool_context, {"error": error} if isinstance(error, Exception) else None)

    def _settle(self, tool_context: Any, told: dict[str, Any] | None) -> None:
        run, call_id = self._runs[tool_context.invocation_id], tool_context.function_call_id
        if (current := run.current.pop(call_id, None)) is not None:
            current.__exit__(None, None, None)
        verdict = run.open.pop(call_id, None)
        if told is not None and verdict is not None and verdict.allowed:
            run.turn.settle(verdict, **told)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> LlmResponse | None:
        halt = self._runs[callback_context.invocation_id].turn.verdict
        if halt is None:
            return None
        return LlmResponse(error_code="TURN_HALTED", error_message=halt.message)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        left = sys.exception()  # one that is left early comes here too
        self._end(invocation_context.invocation_id, left if isinstance(left, LEFT) else None)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        self._end(invocation_context.invocation_id, error)

    def _end(self, run_id: str, error: BaseException | None) -> None:
        if (run := self._runs.pop(run_id, None)) is not None:
            run.turn.end(error=error)
