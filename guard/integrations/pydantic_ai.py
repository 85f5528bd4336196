"""Pydantic AI: a turn is one run of an agent.

    agent = Agent(model, tools=..., capabilities=[ToolCallCap(guard)])

A halted run ends as one does that passed its usage limits: every pending call is answered, the model is not
asked again, and `RunHalted`, a `UsageLimitExceeded`, is raised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed, UsageLimitExceeded

from guard.errors import TurnHalted
from guard.tool_call_guard import ToolCallGuard
from guard.turn import Turn
from guard.verdict import ToolCall, Verdict


class RunHalted(TurnHalted, UsageLimitExceeded):
    """The cap stopped the run; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.message = verdict.message  # without the advice on UsageLimits


@dataclass
class ToolCallCap(AbstractCapability[Any]):
    """The cap of one guard, for any number of agents and of runs at once."""

    guard: ToolCallGuard
    _turn: Turn = field(init=False, repr=False)  # of a run's own copy
    _open: dict[str, Verdict] = field(init=False, repr=False, default_factory=dict)  # by call id

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: Any) -> ToolCallCap:
        return ToolCallCap(self.guard)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        name = getattr(ctx.agent, "name", None)
        with self.guard.turn(agent_name=name, conversation_id=ctx.conversation_id) as self._turn:
            result = await handler()
            self._leave_if_halted()  # a reply that also held the run's result
            return result

    def _leave_if_halted(self) -> None:
        if (halt := self._turn.verdict) is not None:
            raise RunHalted(halt)

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Decide all calls of a reply. A call of an output tool is the run's result."""
        outputs = {tool.name for tool in request_context.model_request_parameters.output_tools}
        calls = [
            ToolCall(call.tool_name, call.args_as_dict(), call.tool_call_id)
            for call in response.tool_calls
            if call.tool_name not in outputs
        ]
        verdicts = self._turn.admit_batch(calls)
        self._open = {str(call.call_id): verdict for call, verdict in zip(calls, verdicts, strict=True)}
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        turn, verdict = self._turn, self._open.pop(call.tool_call_id, None)
        if verdict is None:  # approved by a person, and so asked for in an earlier run
            verdict = turn.admit(call.tool_name, call.args_as_dict(), call.tool_call_id)
        if verdict.halted:
            raise ToolFailed(verdict.message)
        try:
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):
            raise
        except Exception as error:
            turn.settle(verdict, error=error)
            raise
        turn.settle(verdict, result=result)
        return result

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Settle what was answered without being run: an unknown tool, arguments it does not accept."""
        for part in request_context.messages[-1].parts:
            verdict = self._open.pop(getattr(part, "tool_call_id", None) or "", None)
            if verdict is not None and verdict.allowed:
                self._turn.settle(verdict, error=part.content)
        self._leave_if_halted()
        return request_context
