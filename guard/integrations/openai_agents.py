"""OpenAI Agents SDK: a turn is one run of a `Runner`.

    cap = ToolCallCap(guard)
    result = await cap.run(agent, "…")      # as Runner.run; so run_sync and run_streamed

A halted run ends as one does that passed `max_turns`: by an `AgentsException`, here `RunHalted`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, AgentsException, FunctionTool, Handoff, RunConfig, RunHooks, Runner
from agents.tool import default_tool_error_function

from guard.errors import TurnHalted
from guard.tool_call_guard import ToolCallGuard
from guard.turn import Turn
from guard.verdict import ToolCall


class RunHalted(TurnHalted, AgentsException):
    """The cap stopped the run; `verdict` says why, `run_data` what there was until then."""


class ToolCallCap:
    """The cap of one guard, for any number of agents and of runs at once."""

    def __init__(self, guard: ToolCallGuard) -> None:
        self._guard = guard
        self._errors: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()  # by the call's context

    async def run(self, agent: Agent[Any], input: Any, **options: Any) -> Any:
        """As `Runner.run`."""
        with self._guard.turn(**_circumstances(agent, options)):
            return await Runner.run(agent, input, **self._options(options))

    def run_sync(self, agent: Agent[Any], input: Any, **options: Any) -> Any:
        """As `Runner.run_sync`."""
        with self._guard.turn(**_circumstances(agent, options)):
            return Runner.run_sync(agent, input, **self._options(options))

    def run_streamed(self, agent: Agent[Any], input: Any, **options: Any) -> Any:
        """As `Runner.run_streamed`; the turn ends when the run does, read or not."""
        turn = self._guard.start_turn(parent=self._guard.current_turn(), **_circumstances(agent, options))
        try:
            with self._guard.use_turn(turn):
                result = Runner.run_streamed(agent, input, **self._options(options))
        except BaseException as error:
            turn.end(error=error)
            raise

        def ended(task: Any) -> None:
            turn.abort() if task.cancelled() else turn.end(error=task.exception())

        if result.run_loop_task is not None:
            result.run_loop_task.add_done_callback(ended)
        return result

    def as_tool(self, agent: Agent[Any], *names: Any, **options: Any) -> FunctionTool:
        """As `agent.as_tool`; each run of it is a child of the turn that calls it."""
        told = options.pop("failure_error_function", default_tool_error_function)

        def failed(context: Any, error: Exception) -> Any:
            self._errors[context] = error
            if (turn := self._guard.current_turn()) is not None:
                turn.end(error=error)
            return told(context, error)

        options["failure_error_function"] = told and failed
        options["hooks"] = _Hooks(self._guard, self._errors, options.get("hooks"))
        tool = agent.as_tool(*names, **options)
        invoke = tool.on_invoke_tool

        async def in_a_turn(context: Any, arguments: str) -> Any:
            with self._guard.turn(agent_name=agent.name):
                return await invoke(context, arguments)

        return replace(tool, on_invoke_tool=in_a_turn)

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        """With hooks before the caller's own, and a formatter of errors that notes them."""
        given = options.get("run_config") or {}
        config = RunConfig(**given) if isinstance(given, dict) else given

        def format_error(args: Any) -> Any:
            if args.kind == "tool_exception":
                self._errors[args.run_context] = args.error
            return None if config.tool_error_formatter is None else config.tool_error_formatter(args)

        return {
            **options,
            "hooks": _Hooks(self._guard, self._errors, options.get("hooks")),
            "run_config": replace(config, tool_error_formatter=format_error),
        }


class _Hooks(RunHooks[Any]):
    """Decides every reply and settles every call, then hands on to the caller's own hooks."""

    def __init__(
        self, guard: ToolCallGuard, errors: WeakKeyDictionary[Any, Exception], hooks: RunHooks[Any] | None
    ) -> None:
        self._guard, self._errors = guard, errors
        self._own = hooks or RunHooks()
        for name in ("on_agent_start", "on_agent_end", "on_llm_start", "on_handoff"):
            setattr(self, name, getattr(self._own, name))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self._own.on_llm_end(context, agent, response)
        handoffs = {
            some.tool_name if isinstance(some, Handoff) else Handoff.default_tool_name(some)
            for some in agent.handoffs
        }
        calls = [call for item in response.output if (call := _asked(item)) and call.name not in handoffs]
        self._halt(self._guard.current_turn(), calls)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A call that a person approved was asked for in an earlier run: it is decided here."""
        if getattr(context, "tool_call_id", None) is not None:
            call = ToolCall(context.tool_name, _parsed(context.tool_arguments), context.tool_call_id)
            self._halt(self._guard.current_turn(), [call])
        await self._own.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        turn, call_id = self._guard.current_turn(), getattr(context, "tool_call_id", None)
        if turn is not None and call_id is not None:
            turn.settle(call_id, result=result, error=self._errors.pop(context, None))
        await self._own.on_tool_end(context, agent, tool, result)

    @staticmethod
    def _halt(turn: Turn | None, calls: list[ToolCall]) -> None:
        if turn is not None:
            turn.admit_batch(calls)
            if turn.verdict is not None:
                raise RunHalted(turn.verdict)


def _circumstances(agent: Agent[Any], options: dict[str, Any]) -> dict[str, Any]:
    conversation = options.get("conversation_id") or getattr(options.get("session"), "session_id", None)
    return {"agent_name": agent.name, "conversation_id": conversation}


def _asked(item: Any) -> ToolCall | None:
    """The call that an item of a reply is; None for text, and for what the provider ran itself."""
    call_id, kind = getattr(item, "call_id", None), getattr(item, "type", "")
    if call_id is None or not kind.endswith("_call"):
        return None
    if kind == "function_call":
        return ToolCall(item.name, _parsed(item.arguments), call_id)
    args = item.model_dump(exclude={"id", "call_id", "status", "type", "name"}, mode="json")
    return ToolCall(getattr(item, "name", None) or kind.removesuffix("_call"), args, call_id)


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
