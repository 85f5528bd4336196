"""LangChain's create_agent, and a LangGraph of one's own, under the cap."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from guard import TurncapError, TurnHalted
from guard.errors import PolicyError
from tests.integrations.cases import Cases, looks, one_by_one
from tests.integrations.world import Harness, Notes, Ran, Script, Tools

pytestmark = pytest.mark.heavy
pytest.importorskip("langchain", reason="runs in an environment of its own: make test-all")

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from guard.integrations.langchain import ToolCallCap


class PlannedModel(BaseChatModel):
    """Follows the plan of the last prompt in the history."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "planned"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
        so_far = sum(isinstance(message, AIMessage) for message in messages[last:])
        calls = [
            {"name": name, "args": args, "id": call_id, "type": "tool_call"}
            for call_id, (name, args) in self.script.reply(str(messages[last].content), so_far)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done", tool_calls=calls))])


def tools_of(tools: Tools, child: Any) -> list[Any]:
    @tool
    def look(at: str, path: str) -> str:
        """Look at a path."""
        return tools.look(at, path)

    @tool
    def fail(at: str) -> str:
        """Fail."""
        return tools.fail(at)

    def meet(at: str) -> str:
        """Meet the other run."""
        return tools.meet(at)

    async def ameet(at: str) -> str:
        """Meet the other run."""
        return await tools.ameet(at)

    def ask(prompt: str) -> str:
        """Ask another agent."""
        return str(child().invoke(asked(prompt))["messages"][-1].content)

    async def aask(prompt: str) -> str:
        """Ask another agent."""
        return str((await child().ainvoke(asked(prompt)))["messages"][-1].content)

    return [
        look,
        fail,
        StructuredTool.from_function(meet, ameet),
        StructuredTool.from_function(ask, aask, name="ask"),
    ]


def asked(prompt: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(prompt)]}


class LangChainHarness(Harness):
    on_halt = "end"

    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        super().__init__(guard, script, tools)
        self.cap = ToolCallCap(guard, on_halt=self.on_halt)
        self.agent = self.make(None)
        self.child = self.make("child")

    def make(self, name: str | None, **options: Any) -> Any:
        agent = create_agent(
            PlannedModel(script=self.script),
            tools_of(self.tools, lambda: self.child),
            middleware=[self.cap],
            name=name,
            **options,
        )
        return agent.with_config(callbacks=[self.cap])

    def run(self, prompt: str) -> Ran:
        try:
            result = self.agent.invoke(asked(prompt))
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(None, error)
        return self.judge(result, None)

    async def arun(self, prompt: str) -> Ran:
        try:
            result = await self.agent.ainvoke(asked(prompt))
        except Exception as error:  # noqa: BLE001 - what got out is the case's to judge
            return self.judge(None, error)
        return self.judge(result, None)

    def left_open(self) -> object:
        return self.cap._runs or self.cap._graphs

    def judge(self, result: dict[str, Any] | None, error: Exception | None) -> Ran:
        if result is None:
            return Ran(success=False, error=error)
        messages = result["messages"]
        return Ran(
            success="turn_halted" not in result and messages[-1].content == "done",
            asked=[call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls],
            answered=[m.tool_call_id for m in messages if isinstance(m, ToolMessage)],
        )


class TestCreateAgent(Cases):
    harness = LangChainHarness

    def test_a_halted_run_says_so_in_its_result(self, way: str) -> None:
        harness, _, _ = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        result = self.invoke(harness.agent, way, asked("main"))
        told = result["turn_halted"]
        last = result["messages"][-1]
        assert (told["threshold"], told["call_number"], told["limit"]) == ("explicit-hard", 6, 5)
        assert last.content == told["message"]
        assert last.response_metadata == {"turn_halted": "explicit-hard"}
        assert result["messages"][-2].status == "error"

    def test_with_a_checkpointer_the_next_prompt_finds_a_whole_history(self, way: str) -> None:
        plans = {"main": one_by_one("main", *range(9)), "more": one_by_one("more", 1, 2)}
        harness, guard, _ = self.build(plans, max_tool_calls=5)
        agent = harness.make(None, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "a-thread"}}
        first = self.invoke(agent, way, asked("main"), thread)
        second = self.invoke(agent, way, asked("more"), thread)
        assert "turn_halted" in first
        assert "turn_halted" not in second
        assert second["messages"][-1].content == "done"
        assert [ended.outcome for ended in guard.ended] == ["halted", "completed"]
        assert [started.conversation_id for started in guard.started] == ["a-thread"] * 2
        assert [started.continues for started in guard.started] == [None, None]
        held = agent.get_state(thread).values
        assert set(held) <= {"messages", "turn_id"}

    def test_on_halt_error_answers_the_calls_and_raises(self, way: str) -> None:
        harness, guard, _ = self.build({"main": [looks("main", *range(9))]}, max_tool_calls=5)
        harness.cap = ToolCallCap(guard, on_halt="error")
        agent = harness.make(None, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "a-thread"}}
        with pytest.raises(TurnHalted) as raised:
            self.invoke(agent, way, asked("main"), thread)
        assert raised.value.verdict.threshold == "explicit-hard"
        messages = agent.get_state(thread).values["messages"]
        assert [m.tool_call_id for m in messages[2:]] == [c["id"] for c in messages[1].tool_calls]
        assert guard.ended[0].outcome == "halted"

    def test_an_unknown_on_halt_is_refused(self) -> None:
        with pytest.raises(PolicyError, match="on_halt: got 'stop'; accepted: end, error"):
            ToolCallCap(Notes(), on_halt="stop")

    def test_without_the_callback_the_first_run_says_what_to_write(self, way: str) -> None:
        harness, guard, _ = self.build({"main": []})
        agent = create_agent(PlannedModel(script=harness.script), middleware=[ToolCallCap(guard)])
        with pytest.raises(TurncapError, match=r"with_config\(callbacks=\[cap\]\)"):
            self.invoke(agent, way, asked("main"))

    def test_the_framework_s_own_limit_passes_unchanged(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})
        with pytest.raises(GraphRecursionError):
            self.invoke(harness.agent, way, asked("main"), {"recursion_limit": 12})
        assert guard.ended[0].outcome == "errored"

    def test_a_caller_s_callbacks_stay(self, way: str) -> None:
        heard = []

        class Hears(BaseCallbackHandler):
            def on_tool_start(self, *_: Any, **__: Any) -> None:
                heard.append("tool")

        harness, guard, _ = self.build({"main": one_by_one("main", 1, 2)})
        self.invoke(harness.agent, way, asked("main"), {"callbacks": [Hears()]})
        assert (heard, guard.ended[0].calls) == (["tool", "tool"], 2)

    def test_a_stream_left_early_is_aborted(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", *range(9))})

        async def leave() -> None:
            stream = harness.agent.astream(asked("main"))
            for _ in range(5):
                await anext(stream)
            await stream.aclose()

        if way == "async":
            asyncio.run(leave())
        else:
            stream = harness.agent.stream(asked("main"))
            for _ in range(5):
                next(stream)
            assert guard.current_turn() is None
            stream.close()
        assert [ended.outcome for ended in guard.ended] == ["aborted"]

    def test_a_run_resumed_after_an_interrupt_continues_the_turn_before(self, way: str) -> None:
        @tool
        def approve(at: str) -> str:
            """Ask a person."""
            return str(interrupt("go on?"))

        plan = [looks("main", 0), [("approve", {"at": "main"})], looks("main", 1)]
        harness, guard, _ = self.build({"main": plan})
        agent = create_agent(
            PlannedModel(script=harness.script),
            [*tools_of(harness.tools, None), approve],
            middleware=[harness.cap],
            checkpointer=InMemorySaver(),
        ).with_config(callbacks=[harness.cap])
        thread = {"configurable": {"thread_id": "a-thread"}}
        assert "__interrupt__" in self.invoke(agent, way, asked("main"), thread)
        assert self.invoke(agent, way, Command(resume="yes"), thread)["messages"][-1].content == "done"
        first, second = guard.started
        assert (first.continues, second.continues) == (None, first.turn_id)
        assert [(e.outcome, e.calls, e.settled, e.errors) for e in guard.ended] == [
            ("completed", 2, 1, 0),
            ("completed", 2, 2, 0),
        ]

    def test_a_command_is_settled_by_the_message_in_it(self, way: str) -> None:
        """Its call id differs from call to call, the result does not: the level rises."""

        @tool
        def note(at: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Take a note."""
            return Command(update={"messages": [ToolMessage("noted", tool_call_id=tool_call_id)]})

        harness, guard, _ = self.build(
            {"main": [[("note", {"at": "main"})]] * 9},
            signal="same_result_repeat",
            stuck_at=3,
            soft_cap=0,
            backstop=100,
        )
        agent = create_agent(
            PlannedModel(script=harness.script), [note], middleware=[harness.cap]
        ).with_config(callbacks=[harness.cap])
        self.invoke(agent, way, asked("main"))
        assert (guard.loops[0].threshold, guard.loops[0].call_number) == ("soft-stuck", 4)

    def test_an_agent_that_is_a_node_of_a_graph_has_a_turn_of_its_own_run(self, way: str) -> None:
        harness, guard, _ = self.build({"main": one_by_one("main", 0, 1)})
        builder = StateGraph(MessagesState)
        builder.add_node("agent", harness.agent)
        builder.add_edge(START, "agent")
        builder.add_edge("agent", END)
        self.invoke(builder.compile(), way, asked("main"))
        assert [(ended.outcome, ended.calls) for ended in guard.ended] == [("completed", 2)]

    @staticmethod
    def invoke(agent: Any, way: str, state: Any, config: Any = None) -> dict[str, Any]:
        if way == "async":
            return dict(asyncio.run(agent.ainvoke(state, config)))
        return dict(agent.invoke(state, config))


@dataclass
class ListState:
    """A graph's state that is no dictionary."""

    messages: Annotated[list[Any], add_messages]


class GraphHarness(LangChainHarness):
    """A graph of one's own: model node, ToolNode with the wrappers, an edge that leaves a halted turn."""

    def make(self, name: str | None, **options: Any) -> Any:
        model = PlannedModel(script=self.script)
        builder = StateGraph(MessagesState)

        def call(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        def after_model(state: MessagesState) -> str:
            return "tools" if state["messages"][-1].tool_calls else END

        def after_tools(state: MessagesState) -> str:
            return END if "turn_halted" in state["messages"][-1].response_metadata else "model"

        builder.add_node("model", call)
        builder.add_node(
            "tools",
            ToolNode(
                tools_of(self.tools, lambda: self.child),
                wrap_tool_call=self.cap.wrap_tool_call,
                awrap_tool_call=self.cap.awrap_tool_call,
                handle_tool_errors=False,
            ),
        )
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", after_model)
        builder.add_conditional_edges("tools", after_tools)
        return builder.compile().with_config(callbacks=[self.cap])


class TestGraph(Cases):
    harness = GraphHarness

    def test_a_state_that_is_no_dictionary_is_read_too(self) -> None:
        harness, guard, tools = self.build({"main": [looks("main", 1, 2)]}, max_tool_calls=1)
        model = PlannedModel(script=harness.script)
        builder = StateGraph(ListState)
        builder.add_node("model", lambda state: {"messages": [model.invoke(state.messages)]})
        node = ToolNode(tools_of(tools, None), wrap_tool_call=harness.cap.wrap_tool_call)
        builder.add_node("tools", node)
        builder.add_edge(START, "model")
        builder.add_edge("model", "tools")
        builder.add_edge("tools", END)
        result = builder.compile().with_config(callbacks=[harness.cap]).invoke(asked("main"))
        assert [message.status for message in result["messages"][-2:]] == ["error", "error"]
        assert [(ended.outcome, ended.ran, ended.refused) for ended in guard.ended] == [("halted", 0, 2)]
