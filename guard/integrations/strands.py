"""Strands Agents: a turn is one invocation of an agent.

    agent = Agent(model, tools=[...], hooks=[ToolCallCap(guard)])

A halted run ends as a cancelled one does: every pending call is answered, the model is not asked again, and
the result's `stop_reason` is `cancelled`, its last message the reason.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookProvider,
    HookRegistry,
)

from guard.blocks import CurrentTurn
from guard.tool_call_guard import ToolCallGuard
from guard.turn import Turn
from guard.verdict import ToolCall, Verdict

ENDS = {
    "end_turn": None,
    "stop_sequence": None,
    "interrupt": None,
    "checkpoint": None,
    "cancelled": "aborted",
}


@dataclass(slots=True)
class _Run:
    """An agent's open invocation. An agent has one at a time."""

    turn: Turn
    waiting: set[str] | None  # resumed after an interrupt: the calls that were not made yet
    open: dict[str, Verdict] = field(default_factory=dict)
    current: dict[str, CurrentTurn] = field(default_factory=dict)


class ToolCallCap(HookProvider):
    """The cap of one guard, for any number of agents."""

    def __init__(self, guard: ToolCallGuard) -> None:
        self._guard = guard
        self._runs: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()
        self._paused: WeakKeyDictionary[Any, tuple[str, set[str]]] = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(BeforeInvocationEvent, self._begin)
        registry.add_callback(BeforeToolsEvent, self._decide)
        registry.add_callback(BeforeToolCallEvent, self._enter)
        registry.add_callback(AfterToolCallEvent, self._settle)
        registry.add_callback(AfterToolsEvent, self._settle_rest)
        registry.add_callback(AfterInvocationEvent, self._end)

    def _begin(self, event: BeforeInvocationEvent) -> None:
        continues, waiting = self._paused.pop(event.agent, (None, None))
        turn = self._guard.start_turn(
            agent_name=event.agent.name, parent=self._guard.current_turn(), continues=continues
        )
        self._runs[event.agent] = _Run(turn, waiting)

    def _decide(self, event: BeforeToolsEvent) -> None:
        run = self._runs[event.agent]
        uses = [content["toolUse"] for content in event.message["content"] if "toolUse" in content]
        calls = [ToolCall(use["name"], use["input"], use["toolUseId"]) for use in uses]
        calls = [call for call in calls if run.waiting is None or call.call_id in run.waiting]
        verdicts = run.turn.admit_batch(calls)
        run.waiting = None
        run.open = {str(call.call_id): verdict for call, verdict in zip(calls, verdicts, strict=True)}
        if (halt := run.turn.verdict) is not None:
            event.cancel = halt.message
            event.agent.cancel(message=halt.message, after_current_tools=True)

    def _enter(self, event: BeforeToolCallEvent) -> None:
        if (run := self._runs.get(event.agent)) is not None:  # none: a person's agent.tool.name(...)
            current = run.current[event.tool_use["toolUseId"]] = self._guard.use_turn(run.turn)
            current.__enter__()

    def _settle(self, event: AfterToolCallEvent) -> None:
        if (run := self._runs.get(event.agent)) is None:
            return
        if (current := run.current.pop(event.tool_use["toolUseId"], None)) is not None:
            current.__exit__(None, None, None)
        if not event.retry:
            _settle(run, event.result, event.exception)

    def _settle_rest(self, event: AfterToolsEvent) -> None:
        """What was answered without being run: a tool that does not exist, arguments it does not accept."""
        for content in event.message["content"]:
            _settle(self._runs[event.agent], content["toolResult"], None)

    def _end(self, event: AfterInvocationEvent) -> None:
        run = self._runs.pop(event.agent)
        if event.result is None:
            run.turn.end(error=sys.exception())
            return
        run.turn.end(ENDS.get(event.result.stop_reason, "errored"))
        if event.result.stop_reason == "interrupt":
            self._paused[event.agent] = run.turn.id, set(run.open)


def _settle(run: _Run, result: Any, error: Exception | None) -> None:
    verdict = run.open.pop(result["toolUseId"], None)
    if verdict is not None and verdict.allowed:
        failed = error or (result["content"] if result["status"] == "error" else None)
        run.turn.settle(verdict, result=result["content"], error=failed)
