"""Spans of agents: whose turn a call is, which calls are one, and what each product's traps are."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.dialects.base import Record, SpanEvent
from tests.analytics.dialects.building import agent, keys, names, results, span, tool, turns


def test_a_call_belongs_to_the_nearest_run_above_it() -> None:
    outer, inner = turns(
        [
            agent("outer", span="a"),
            tool("ask", span="b", parent="a", start=1, end=9),
            agent("inner", span="c", parent="b", start=2, end=8),
            tool("look", span="d", parent="c", start=3),
        ]
    )
    assert (names(outer), outer.parent_id) == (["ask"], None)
    assert (names(inner), inner.parent_id) == (["look"], outer.turn_id)


def test_where_the_span_between_is_missing_the_run_that_encloses_the_call_has_it() -> None:
    found = turns(
        [
            agent("first", span="a", start=0, end=10),
            agent("second", span="b", start=10, end=20),
            tool("x", span="c", parent="gone", start=12, end=13),
        ]
    )
    assert [names(turn) for turn in found] == [[], ["x"]]


def test_two_runs_that_enclose_each_other_are_one_turn() -> None:
    lost = [agent("a", span=name, parent="gone", start=0, end=10) for name in ("a", "b")]
    assert [names(turn) for turn in turns([*lost, tool("x", span="c", parent="a", start=1)])] == [["x"]]


def test_of_two_calls_that_are_each_inside_the_other_one_counts() -> None:
    (turn,) = turns([tool("x", span="a", parent="b"), tool("x", span="b", parent="a")])
    assert names(turn) == ["x"]


def test_without_a_run_the_trace_is_the_turn_and_its_session_is_said_to_be_derived() -> None:
    (turn,) = turns([tool("x", span="a"), tool("x", span="b", start=2)])
    assert (names(turn), keys(turn)) == (["x", "x"], [0, 0])
    assert turn.session_id == "trace:t"


def test_a_run_without_a_call_is_a_turn_too() -> None:
    (turn,) = turns([agent("a", span="a")])
    assert (turn.calls, turn.outcome, turn.agent) == ([], "completed", "a")


def test_a_failed_run_is_errored() -> None:
    (turn,) = turns([agent("a", span="a", failed=True), tool("x", span="b", parent="a")])
    assert turn.outcome == "errored"


def test_the_same_run_written_by_two_libraries_is_one() -> None:
    (turn,) = turns(
        [
            agent("a", span="a"),
            agent("a", span="b", parent="a", start=1, end=99),
            tool("x", span="c", parent="b", start=2),
        ]
    )
    assert names(turn) == ["x"]


def test_an_agent_that_calls_itself_as_a_tool_is_two_runs() -> None:
    outer, inner = turns(
        [
            agent("a", span="a"),
            tool("a", span="b", parent="a", start=1, end=50),
            agent("a", span="c", parent="b", start=2, end=49),
        ]
    )
    assert (names(outer), names(inner), inner.parent_id) == (["a"], [], outer.turn_id)


ID: dict[str, Any] = {"gen_ai__tool__call__id": "1"}
MCP: dict[str, Any] = {"mcp__method__name": "tools/call"}


@pytest.mark.parametrize(
    "copy",
    [
        pytest.param(tool("x", None, None, span="c", parent="b", start=2), id="of the same name"),
        pytest.param(
            tool("other", None, None, span="c", parent="b", start=2, gen_ai__tool__call__id="1"),
            id="of the same id",
        ),
        pytest.param(span("tools/call y", span="c", parent="b", start=2, **MCP), id="a protocol client's"),
        pytest.param(
            span(
                "tools/call y", span="c", parent="b", start=2, gen_ai__operation__name="execute_tool", **MCP
            ),
            id="a protocol server's",
        ),
    ],
)
def test_a_call_written_twice_counts_once(copy: Record) -> None:
    found = [
        agent("a", span="a"),
        tool("x", span="b", parent="a", start=1, end=9, gen_ai__tool__call__id="1"),
        copy,
    ]
    (turn,) = turns(found)
    assert (names(turn), turn.grade) == (["x"], "exact")


def test_a_copy_inside_adds_what_the_outer_span_does_not_know() -> None:
    (turn,) = turns(
        [agent("a", span="a"), tool("x", None, None, span="b", parent="a"), tool("x", span="c", parent="b")]
    )
    assert (names(turn), turn.grade) == (["x"], "exact")


def test_a_different_call_made_inside_a_call_is_a_call() -> None:
    (turn,) = turns([agent("a", span="a"), tool("x", span="b", parent="a"), tool("y", span="c", parent="b")])
    assert names(turn) == ["x", "y"]


def test_the_same_call_twice_in_a_row_is_two_calls_although_the_model_reuses_its_ids() -> None:
    same: dict[str, Any] = {"gen_ai__tool__call__id": "call_0"}
    (turn,) = turns(
        [
            agent("a", span="a"),
            tool("x", span="b", parent="a", start=1, end=2, **same),
            tool("x", span="c", parent="a", start=3, end=4, **same),
        ]
    )
    assert keys(turn) == [0, 0]


def test_a_protocol_servers_calls_alone_are_nobodys_turn() -> None:
    assert turns([span("tools/call x", span="a", **MCP)]) == []


@pytest.mark.parametrize(
    ("grade", "first", "second"),
    [
        pytest.param("exact", {}, {}, id="everything is known"),
        pytest.param("no-results", {}, {"result": None}, id="one result is missing"),
        pytest.param("names-only", {}, {"arguments": None}, id="one call's arguments are missing"),
        pytest.param("names-only", {"result": None}, {"arguments": None}, id="the least counts"),
        pytest.param("names-only", {}, {"arguments": "<REDACTED>"}, id="arguments are hidden"),
        pytest.param("names-only", {}, {"arguments": '{"a": "bbbb'}, id="arguments are cut"),
    ],
)
def test_the_grade_is_what_is_known_of_every_call(
    grade: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    (turn,) = turns([tool("x", span="a", **first), tool("x", span="b", start=2, **second)])
    assert turn.grade == grade


def test_calls_of_unknown_arguments_are_no_repeats() -> None:
    (turn,) = turns([tool("x", None, span=f"s{number}", start=number) for number in range(9)])
    assert (keys(turn), results(turn)) == ([None] * 9, [None] * 9)


def test_order_is_by_start_and_settling_by_end() -> None:
    (turn,) = turns(
        [
            tool("late", span="a", start=5, end=6),
            tool("long", span="b", start=1, end=9),
            tool("short", span="c", start=2, end=3),
        ]
    )
    assert names(turn) == ["long", "short", "late"]
    assert [call.settled_order for call in turn.calls] == [2, 0, 1]
    assert [call.settled_after for call in turn.calls] == [3, 2, 3]
    assert [call.offset_ms for call in turn.calls] == [0, 1000, 4000]


@pytest.mark.parametrize(
    "attribute",
    [
        "session__id",
        "gen_ai__conversation__id",
        "conversation__id",
        "copilot_chat__chat_session_id",
        "gcp__vertex__agent__session_id",
        "langsmith__metadata__thread_id",
        "traceloop__association__properties__session_id",
    ],
)
def test_the_session_by_every_name_it_has(attribute: str) -> None:
    (turn,) = turns([agent("a", span="a", **{attribute: "S"}), tool("x", span="b", parent="a")])
    assert turn.session_id == "S"


def test_langsmiths_project_is_no_session() -> None:
    (turn,) = turns([tool("x", span="a", langsmith__trace__session_id="the project")])
    assert turn.session_id == "trace:t"


EVENTS = (
    SpanEvent(name="gen_ai.tool.message", at=1, attributes={"content": '{"q": 1}'}),
    SpanEvent(name="gen_ai.choice", at=2, attributes={"message": "found"}),
)
TRACELOOP: dict[str, Any] = {
    "traceloop__span__kind": "tool",
    "traceloop__entity__name": "x",
    "traceloop__entity__input": '{"args": [], "kwargs": {"q": 1}}',
    "traceloop__entity__output": "found",
}
LANGSMITH: dict[str, Any] = {
    "langsmith__span__kind": "tool",
    "gen_ai__tool__name": "x",
    "gen_ai__prompt": '{"q": 1}',
    "gen_ai__completion": "found",
}
ADK: dict[str, Any] = {
    "gen_ai__operation__name": "execute_tool",
    "gen_ai__tool__name": "x",
    "gcp__vertex__agent__tool_call_args": '{"q": 1}',
    "gcp__vertex__agent__tool_response": '{"r": 1}',
}
OPENINFERENCE: dict[str, Any] = {
    "openinference__span__kind": "TOOL",
    "tool__name": "x",
    "input__value": '{"q": 1}',
    "output__value": "found",
}
FORMAT_2: dict[str, Any] = {
    "gen_ai__operation__name": "execute_tool",
    "gen_ai__tool__name": "x",
    "tool_arguments": '{"q": 1}',
    "tool_response": "found",
}
COPILOT: dict[str, Any] = {
    "gen_ai__operation__name": "execute_tool",
    "gen_ai__tool__name": "x",
    "gen_ai__tool__call__arguments": {"q": 1},
    "gen_ai__tool__call__result": ["found"],
}


@pytest.mark.parametrize(
    ("record", "product"),
    [
        pytest.param(span("x.tool", span="a", **TRACELOOP), "genai", id="OpenLLMetry"),
        pytest.param(
            span("x.tool", span="a", scope="traceloop.tracer", **TRACELOOP),
            "openllmetry",
            id="OpenLLMetry's scope",
        ),
        pytest.param(span("x", span="a", scope="langsmith", **LANGSMITH), "langsmith", id="LangSmith"),
        pytest.param(
            span("execute_tool x", span="a", scope="gcp.vertex.agent", **ADK),
            "google-adk",
            id="ADK, schema 1",
        ),
        pytest.param(span("x", span="a", **OPENINFERENCE), "openinference", id="OpenInference"),
        pytest.param(
            span("running tool", span="a", scope="pydantic-ai", **FORMAT_2),
            "pydantic-ai",
            id="Pydantic AI, format 2",
        ),
        pytest.param(
            span("execute_tool x", span="a", scope="copilot-chat", **COPILOT),
            "copilot",
            id="VS Code Copilot Chat",
        ),
        pytest.param(
            span(
                "execute_tool x",
                span="a",
                scope="strands.telemetry.tracer",
                events=EVENTS,
                gen_ai__operation__name="execute_tool",
                gen_ai__tool__name="x",
            ),
            "strands",
            id="Strands, in span events",
        ),
    ],
)
def test_a_call_by_every_name_it_has(record: Record, product: str) -> None:
    (turn,) = turns([record])
    assert (names(turn), turn.grade, turn.dialect) == (["x"], "exact", product)


@pytest.mark.parametrize(
    ("arguments", "response", "grade"),
    [
        pytest.param("{}", '{"r": 1}', "exact", id="no arguments, content is captured"),
        pytest.param("{}", "{}", "names-only", id="content is not captured"),
        pytest.param("{}", None, "names-only", id="no response"),
    ],
)
def test_what_google_adk_writes_when_capture_is_off_is_no_empty_argument(
    arguments: str, response: str | None, grade: str
) -> None:
    about: dict[str, Any] = {
        **ADK,
        "gcp__vertex__agent__tool_call_args": arguments,
        "gcp__vertex__agent__tool_response": response,
    }
    (turn,) = turns([span("execute_tool x", span="a", scope="gcp.vertex.agent", **about)])
    assert turn.grade == grade


def test_google_adks_span_about_several_calls_is_no_call() -> None:
    merged: dict[str, Any] = {
        "gen_ai__tool__name": "(merged tools)",
        "gcp__vertex__agent__tool_call_args": "N/A",
    }
    found = [span("execute_tool (merged)", span="a", gen_ai__operation__name="execute_tool", **merged)]
    assert turns([*found, tool("x", span="b")])[0].calls[0].tool == "x"
    assert len(turns([*found, tool("x", span="b")])[0].calls) == 1


def test_a_failed_call_without_result_is_told_apart_by_its_exception() -> None:
    def failing(number: int, message: str) -> Record:
        raised = SpanEvent(name="exception", at=1, attributes={"exception.message": message})
        return tool("x", result=None, span=f"s{number}", start=number, failed=True, events=[raised])

    (turn,) = turns([failing(1, "no disk"), failing(2, "no disk"), failing(3, "no network")])
    assert (results(turn), [call.error for call in turn.calls]) == ([0, 0, 1], [True] * 3)


def test_spans_of_other_software_are_not_claimed() -> None:
    from analytics.dialects import DIALECTS

    record = span("GET /", span="a", http__method="GET", session__id="S")
    assert [dialect.recognise(record) for dialect in DIALECTS] == [None] * len(DIALECTS)


def test_a_cycle_of_parents_ends() -> None:
    found = [
        agent("a", span="a", parent="b"),
        agent("b", span="b", parent="a"),
        tool("x", span="c", parent="a"),
    ]
    assert sum(len(turn.calls) for turn in turns(found)) == 1
