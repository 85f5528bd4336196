"""Claude Code's session files: what is a prompt, what is not, and whose turn a call is."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.dialects.base import DialectTurn, Record
from tests.analytics.dialects.building import DAY, keys, line, names, results, turns


class Session:
    """A session file while it is written."""

    def __init__(self, session: str = "s", **common: Any) -> None:
        self.common = {"sessionId": session, "isSidechain": False, "userType": "external", **common}
        self.lines: list[Record] = []
        self.second = 0

    def add(self, kind: str, message: dict[str, Any] | None, **more: Any) -> Session:
        self.second += 1
        body = {
            "type": kind,
            "uuid": f"u{self.second}{more.get('agentId', '')}",
            "timestamp": f"{DAY}{self.second:02d}.000Z",
            **self.common,
            **more,
        }
        if message is not None:
            body["message"] = message
        self.lines.append(line(body, offset=self.second * 1000))
        return self

    def user(self, content: Any, **more: Any) -> Session:
        return self.add("user", {"role": "user", "content": content}, **more)

    def says(self, text: str = "done", reason: str = "end_turn", **more: Any) -> Session:
        block = {"type": "text", "text": text}
        return self.add("assistant", {"role": "assistant", "content": [block], "stop_reason": reason}, **more)

    def calls(self, tool: str, call: str, reply: str = "r", **arguments: Any) -> Session:
        block = {"type": "tool_use", "id": call, "name": tool, "input": arguments}
        message = {
            "id": reply,
            "role": "assistant",
            "model": "m",
            "content": [block],
            "stop_reason": "tool_use",
        }
        return self.add("assistant", message)

    def answers(self, call: str, content: Any = "ok", **more: Any) -> Session:
        block = {"type": "tool_result", "tool_use_id": call, "content": content, **more}
        return self.user([block], toolUseResult={"stdout": "ok"})

    def turns(self) -> list[DialectTurn]:
        return turns(self.lines)


def one_call(session: Session, number: int = 1) -> Session:
    return session.calls("Bash", f"c{number}", f"r{number}", command="ls").answers(f"c{number}")


@pytest.mark.parametrize(
    ("content", "more"),
    [
        pytest.param("do that", {}, id="plain text"),
        pytest.param([{"type": "text", "text": "do that"}], {}, id="a text block"),
        pytest.param([{"type": "image", "source": {}}], {}, id="a picture alone"),
        pytest.param("<command-message>review</command-message>", {}, id="a command sent to the model"),
    ],
)
def test_a_prompt_begins_a_turn(content: Any, more: dict[str, Any]) -> None:
    session = one_call(one_call(Session().user("first"), 1).says().user(content, **more), 2)
    assert [names(turn) for turn in session.turns()] == [["Bash"], ["Bash"]]


@pytest.mark.parametrize(
    ("content", "more"),
    [
        pytest.param([{"type": "tool_result", "tool_use_id": "x", "content": ""}], {}, id="a tool's result"),
        pytest.param("Caveat", {"isMeta": True}, id="injected context"),
        pytest.param("summary", {"isCompactSummary": True}, id="compaction"),
        pytest.param(
            "This session is being continued from a previous conversation that ran out of context.",
            {},
            id="compaction in older versions",
        ),
        pytest.param("<command-name>/clear</command-name>", {}, id="a local command"),
        pytest.param(
            "<local-command-stdout>ok</local-command-stdout>", {}, id="what a local command printed"
        ),
        pytest.param("<bash-input>ls</bash-input>", {}, id="a command of the user's own"),
        pytest.param("<system-reminder>x</system-reminder>", {}, id="a reminder"),
        pytest.param("<task-notification>x</task-notification>", {}, id="a background task that ended"),
        pytest.param("[Request interrupted by user]", {}, id="an interruption"),
    ],
)
def test_what_is_no_prompt_does_not_split_a_turn(content: Any, more: dict[str, Any]) -> None:
    session = one_call(one_call(Session().user("first"), 1).user(content, **more), 2).says()
    (turn,) = session.turns()
    assert (names(turn), keys(turn), turn.grade) == (["Bash", "Bash"], [0, 0], "exact")


def test_a_message_steered_into_a_running_turn_bears_its_prompt_and_resets_nothing() -> None:
    session = one_call(Session().user("first", promptId="p1"), 1).user("and mind the tests", promptId="p1")
    one_call(session, 2)
    assert [names(turn) for turn in session.turns()] == [["Bash", "Bash"]]


@pytest.mark.parametrize("prompt", [{}, {"promptId": "p1"}], ids=["older versions", "newer versions"])
def test_a_stop_hook_that_lets_the_agent_go_on_begins_a_turn_that_continues_the_other(
    prompt: dict[str, str],
) -> None:
    session = one_call(Session().user("first", **prompt), 1).says()
    session.user("Stop hook feedback:\n- run the tests", isMeta=True, **prompt)
    first, second = one_call(session, 2).says().turns()
    assert (names(first), names(second)) == (["Bash"], ["Bash"])
    assert (first.continues, second.continues) == (None, first.turn_id)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        pytest.param(lambda s: s.says(), "completed", id="the model ended its turn"),
        pytest.param(
            lambda s: s.user("[Request interrupted by user for tool use]"), "aborted", id="interrupted"
        ),
        pytest.param(
            lambda s: s.add(
                "assistant",
                {"role": "assistant", "model": "<synthetic>", "content": []},
                isApiErrorMessage=True,
            ),
            "errored",
            id="the interface failed",
        ),
        pytest.param(lambda s: s, None, id="nothing more is there"),
    ],
)
def test_the_outcome(ending: Any, outcome: str | None) -> None:
    (turn,) = ending(one_call(Session().user("first"))).turns()
    assert turn.outcome == outcome


def test_a_call_without_result_did_not_settle_and_lowers_no_grade() -> None:
    session = Session().user("first").calls("Bash", "c1", command="sleep")
    (turn,) = session.user("[Request interrupted by user]").turns()
    assert (turn.grade, turn.calls[0].settled_order, turn.calls[0].error) == ("exact", None, None)


def test_a_reply_of_several_lines_is_a_batch_and_results_settle_in_their_order() -> None:
    session = Session().user("first").calls("A", "c1", "r1").calls("B", "c2", "r1").calls("A", "c3", "r1")
    session.answers("c3", "x").answers("c1", "y").answers("c2", "z", is_error=True)
    session.calls("A", "c4", "r2").answers("c4", "x").says()
    (turn,) = session.turns()
    assert [call.batch for call in turn.calls] == [1, 1, 1, 2]
    assert [call.settled_order for call in turn.calls] == [1, 2, 0, 3]
    assert [call.settled_after for call in turn.calls] == [3, 3, 3, 4]
    assert [call.error for call in turn.calls] == [False, True, False, False]
    assert keys(turn) == [0, 1, 0, 0]
    assert results(turn) == [0, 1, 2, 2], "c3 and c4 are one call with one result, c1 had another"


def test_what_is_known_of_a_tool_is_said_as_the_guard_says_it() -> None:
    session = Session().user("first").calls("Edit", "c1").calls("Read", "c2").calls("mcp__x__y", "c3")
    (turn,) = session.says().turns()
    assert [(call.tool_class, call.mutating) for call in turn.calls] == [
        ("edit", True),
        ("read", False),
        (None, None),
    ]


def test_a_call_id_that_comes_again_is_another_call() -> None:
    session = Session().user("first").calls("A", "call_0", "r1").answers("call_0", "x")
    session.calls("A", "call_0", "r2").answers("call_0", "y").says()
    (turn,) = session.turns()
    assert (keys(turn), results(turn)) == ([0, 0], [0, 1])


def test_a_sub_agent_is_a_turn_of_its_own_with_a_parent() -> None:
    session = Session().user("first", promptId="p1").calls("Agent", "c1", prompt="look")
    side = Session(isSidechain=True, agentId="a7", promptId="p1")
    side.second = session.second
    one_call(side.user("look"), 9).says("found it")
    session.second = side.second
    session.answers("c1", "found it").says()
    main, sub = turns(session.lines + side.lines)
    assert (names(main), names(sub)) == (["Agent"], ["Bash"])
    assert (main.parent_id, sub.parent_id) == (None, main.turn_id)
    assert sub.outcome == "completed"


def test_a_copy_of_another_sessions_line_is_left_out() -> None:
    session = one_call(Session().user("first"))
    fork = one_call(Session(session="f", forkedFrom={"sessionId": "s"}).user("first"))
    assert [turn.session_id for turn in turns(session.lines + fork.lines)] == ["s"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"type": "summary", "summary": "x", "leafUuid": "u"}, id="no session"),
        pytest.param({"type": "user", "sessionId": "s", "message": {"parts": []}}, id="another product's"),
        pytest.param({"resourceLogs": []}, id="OTLP"),
        pytest.param([1, 2], id="a list"),
    ],
)
def test_other_lines_are_not_claimed(body: Any) -> None:
    from analytics.dialects.claude_transcript import ClaudeTranscript

    assert ClaudeTranscript().recognise(line(body)) is None


@pytest.mark.parametrize("kind", ["attachment", "system", "queue-operation", "progress", "a-new-type"])
def test_lines_about_other_things_are_known_and_keep_nothing(kind: str) -> None:
    from analytics.dialects.claude_transcript import ClaudeTranscript

    body = {"type": kind, "sessionId": "s", "uuid": "u", "isSidechain": False, "content": "x"}
    assert ClaudeTranscript().recognise(line(body)) == ()
