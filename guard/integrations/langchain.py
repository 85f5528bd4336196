"""LangChain and LangGraph: a turn is one run of the graph.

    cap = ToolCallCap(guard)
    agent = create_agent(model, tools, middleware=[cap]).with_config(callbacks=[cap])

As the first middleware it sees every call and result; as a callback it sees the run end, whichever way. A
graph of one's own takes the same callback and gives both wrappers to its `ToolNode`: `docs/integrations.md`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any, NotRequired
from uuid import UUID

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from guard.errors import PolicyError, TurncapError, TurnHalted
from guard.tool_call_guard import ToolCallGuard
from guard.turn import Turn
from guard.verdict import ToolCall, Verdict

TOLD = ("turn_id", "threshold", "call_number", "total_calls", "level", "limit", "message")


class CapState(AgentState[Any]):
    """`turn_halted` is in a halted run's result: the halt's numbers. `turn_id` links a resumed run."""

    turn_halted: NotRequired[Annotated[dict[str, Any], UntrackedValue, OmitFromInput]]  # type: ignore[valid-type]
    turn_id: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


@dataclass(slots=True)
class _Run:
    """The open run of a graph: its turn, and what was said of the calls of its last reply."""

    turn: Turn | None = None
    reply: object = None
    verdicts: dict[Any, Verdict] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)  # parallel calls of one reply come together


class ToolCallCap(AgentMiddleware[Any, Any], BaseCallbackHandler):
    """The cap of one guard, for any number of agents and of runs at once.

    A halt answers every pending call. With `on_halt="end"` the run then ends with a message, and its result
    holds `turn_halted`; with `on_halt="error"` it raises `TurnHalted`.
    """

    state_schema = CapState
    run_inline = True  # as a callback: at once, in the order of the run

    def __init__(self, guard: ToolCallGuard, *, on_halt: str = "end") -> None:
        super().__init__()
        if on_halt not in ("end", "error"):
            raise PolicyError("on_halt", on_halt, "end, error")
        self._guard, self._raises = guard, on_halt == "error"
        self._graphs: dict[UUID, UUID] = {}  # an open run -> the run it is part of
        self._runs: dict[UUID, _Run] = {}  # of graphs

    # As a callback

    def on_chain_start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any) -> None:
        if parent_run_id is not None:
            self._graphs[run_id] = parent_run_id

    def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self._ended(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._ended(run_id, None if isinstance(error, GraphBubbleUp) else error)

    def _ended(self, run_id: UUID, error: BaseException | None) -> None:
        self._graphs.pop(run_id, None)
        run = self._runs.pop(run_id, None)
        if run is not None and run.turn is not None:
            run.turn.end(error=error)

    def _run(self, config: Any, state: Any = None) -> tuple[_Run, Turn]:
        """The run that a hook is called in; `state` may say which turn a run without one goes on from."""
        graph = self._graphs.get(getattr(config.get("callbacks"), "parent_run_id", None))  # type: ignore[arg-type]
        if graph is None:
            raise TurncapError(
                "ToolCallCap: the graph does not call it back when a run ends; "
                "add .with_config(callbacks=[cap]) to it"
            )
        run = self._runs.setdefault(graph, _Run())
        with run.lock:
            if run.turn is None:
                run.turn = self._guard.start_turn(
                    conversation_id=config.get("configurable", {}).get("thread_id"),
                    agent_name=config.get("metadata", {}).get("lc_agent_name"),
                    parent=self._guard.current_turn(),
                    continues=state.get("turn_id") if isinstance(state, dict) else None,
                )
            return run, run.turn

    # As middleware

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        _, turn = self._run(get_config())
        return {"jump_to": "end"} if turn.halted else {"turn_id": turn.id}

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        halted: dict[str, Any] = self.before_model(state, runtime)
        return halted

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        halt = self._run(get_config())[1].verdict
        if halt is None:
            return None
        if self._raises:
            raise TurnHalted(halt)
        last = AIMessage(halt.message, response_metadata={"turn_halted": str(halt.threshold)})
        return {"messages": [last], "turn_halted": {name: getattr(halt, name) for name in TOLD}}

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self.after_agent(state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[Any], Any]) -> Any:
        with self._call(request) as call:
            if call.allowed:
                call.result = handler(request)
        return call.result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        with self._call(request) as call:
            if call.allowed:
                call.result = await handler(request)
        return call.result

    @contextmanager
    def _call(self, request: ToolCallRequest) -> Iterator[Any]:
        """Around one call: `result` is its refusal, or is set to what it returned."""
        run, turn = self._run(request.runtime.config, request.state)
        verdict, call_id = _verdict(run, turn, request), request.tool_call["id"]
        if verdict.halted:
            refusal = ToolMessage(
                verdict.message,
                tool_call_id=call_id,
                name=request.tool_call["name"],
                status="error",
                response_metadata={"turn_halted": str(verdict.threshold)},
            )
            yield SimpleNamespace(allowed=False, result=refusal)
            return
        call = SimpleNamespace(allowed=True, result=None)
        try:
            with self._guard.use_turn(turn):
                yield call
        except GraphBubbleUp:  # an interrupt: the call is made again when the run is resumed
            raise
        except Exception as error:
            turn.settle(verdict, error=error)
            raise
        turn.settle(verdict, **_settled(call.result, call_id))


def _verdict(run: _Run, turn: Turn, request: ToolCallRequest) -> Verdict:
    """Of one call; the first of a reply has the whole reply decided."""
    state, asked = request.state, request.tool_call
    held = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    messages = held if isinstance(held, list) else []
    reply = next((some for some in reversed(messages) if isinstance(some, AIMessage)), None)
    with run.lock:
        if reply is not None and (reply.id, reply.tool_calls) != run.reply:
            answered = {some.tool_call_id for some in messages if isinstance(some, ToolMessage)}
            calls = [
                ToolCall(call["name"], call["args"], call["id"])
                for call in reply.tool_calls
                if call["id"] not in answered
            ]
            verdicts = turn.admit_batch(calls)
            run.reply = reply.id, reply.tool_calls
            run.verdicts = {call.call_id: verdict for call, verdict in zip(calls, verdicts, strict=True)}
        known = run.verdicts.get(asked["id"])
    return known or turn.admit(asked["name"], asked["args"], asked["id"])


def _settled(result: Any, call_id: str | None) -> dict[str, Any]:
    """What `Turn.settle` is told of a result; of a command, the message in it."""
    if isinstance(result, Command):
        update = result.update if isinstance(result.update, dict) else {}
        found = [
            some for some in update.get("messages", ()) if getattr(some, "tool_call_id", None) == call_id
        ]
        return {"result": found[0].content if found else update}
    return {"error" if result.status == "error" else "result": result.content}
