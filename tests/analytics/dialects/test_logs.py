"""Log events of coding agents, and the session files of Codex and Qwen Code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.dialects import DIALECTS
from analytics.dialects.base import Record
from analytics.dialects.codex import failed
from tests.analytics.dialects.building import DAY, keys, line, log, names, results, turns

CLAUDE: dict[str, Any] = {"scope": "com.anthropic.claude_code.events", "session__id": "S"}


def claude(at: float, event: str, prompt: str = "p", **more: Any) -> Record:
    return log(at, event__name=event, prompt__id=prompt, **CLAUDE, **more)


def ran(at: float, call: str, tool: str = "Bash", **more: Any) -> Record:
    about: dict[str, Any] = {"tool_use_id": call, "tool_name": tool, "success": "true", "duration_ms": "500"}
    return claude(at, "tool_result", **{**about, **more})


def test_claude_codes_booleans_and_numbers_are_strings() -> None:
    (turn,) = turns([claude(0, "user_prompt"), ran(2, "a"), ran(3, "b", success="false")])
    assert [call.error for call in turn.calls] == [False, True]
    assert [call.offset_ms for call in turn.calls] == [1500, 2500], "stamped when they ended"


def test_without_tool_details_claude_codes_calls_are_names_only() -> None:
    (turn,) = turns([ran(1, "a"), ran(2, "b")])
    assert (turn.grade, keys(turn)) == ("names-only", [None, None])


def test_with_tool_details_they_have_arguments_and_no_results() -> None:
    (turn,) = turns([ran(number, str(number), tool_input='{"command":"ls"}') for number in range(3)])
    assert (turn.grade, keys(turn), results(turn)) == ("no-results", [0, 0, 0], [None] * 3)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        pytest.param({}, "mcp_tool", id="all go by one name without tool details"),
        pytest.param(
            {"tool_parameters": json.dumps({"mcp_server_name": "files", "mcp_tool_name": "read"})},
            "mcp__files__read",
            id="by their own with them",
        ),
    ],
)
def test_claude_codes_mcp_tools(details: dict[str, str], expected: str) -> None:
    (turn,) = turns([ran(1, "a", "mcp_tool", **details), ran(2, "b", "mcp_tool", **details)])
    assert names(turn) == [expected] * 2
    assert keys(turn) == [None, None], "a shared name is no repeat"


def test_a_refused_call_was_asked_for() -> None:
    refused = claude(1, "tool_decision", tool_use_id="a", tool_name="Bash", decision="reject")
    (turn,) = turns([claude(0, "user_prompt"), refused, ran(3, "b", tool_input="{}")])
    assert (names(turn), turn.grade) == (["Bash", "Bash"], "names-only")
    assert [call.settled_order for call in turn.calls] == [None, 0]


def test_calls_are_in_the_order_in_which_they_were_decided() -> None:
    decided = [
        claude(1, "tool_decision", tool_use_id=call, tool_name=call, event__sequence=number)
        for number, call in enumerate("abc")
    ]
    done = [ran(2, "c", "c"), ran(2, "a", "a"), ran(3, "b", "b")]
    assert names(turns([*done, *decided])[0]) == ["a", "b", "c"]


def test_a_sub_agents_calls_are_told_apart_by_the_span_they_were_logged_in() -> None:
    prompt = claude(0, "user_prompt", trace="t", span="main")
    main, sub = turns([prompt, ran(1, "a", trace="t", span="main"), ran(2, "b", trace="t", span="sub")])
    assert (len(main.calls), len(sub.calls), sub.parent_id) == (1, 1, main.turn_id)


def codex(at: float, event: str, **more: Any) -> Record:
    record = log(at, event__name=f"codex.{event}", conversation__id="C", **more)
    record.name = "event otel/src/somewhere.rs:12"  # what stands in the field for the event's name
    return record


def ran_codex(at: float, call: str | None = None, **more: Any) -> Record:
    about: dict[str, Any] = {
        "tool_name": "exec",
        "arguments": '{"cmd":"ls"}',
        "output": "x",
        "success": "true",
        "call_id": call,
    }
    return codex(at, "tool_result", **{**about, **more})


def test_codex_logs_are_split_at_prompts() -> None:
    found = [codex(0, "user_prompt"), ran_codex(1, "a"), codex(2, "user_prompt"), ran_codex(3, "b")]
    assert [names(turn) for turn in turns(found)] == [["exec"], ["exec"]]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        pytest.param({}, False, id="no word of an exit code"),
        pytest.param({"output": "Process exited with code 0\nOutput:\nx"}, False, id="exit code 0"),
        pytest.param({"output": "Process exited with code 1\nOutput:\nx"}, True, id="exit code 1"),
        pytest.param({"output": '{"output":"x","metadata":{"exit_code":2}}'}, True, id="in older versions"),
        pytest.param({"success": "false"}, True, id="no success"),
    ],
)
def test_a_codex_call_failed_by_its_flag_or_its_exit_code(more: dict[str, str], error: bool) -> None:
    assert turns([ran_codex(1, "a", **more)])[0].calls[0].error is error


def test_what_codex_adds_to_an_output_makes_no_new_result() -> None:
    outputs = [
        f"Chunk ID: {chunk}\nWall time: {chunk}.1 seconds\nOutput:\nsame" for chunk in ("12ab", "34cd")
    ]
    (turn,) = turns([ran_codex(number, str(number), output=text) for number, text in enumerate(outputs)])
    assert results(turn) == [0, 0]


def test_a_codex_call_refused_before_it_ran_has_neither_id_nor_arguments() -> None:
    failed = [ran_codex(at, None, arguments=None, success="false", duration_ms="0") for at in (1, 2)]
    (turn,) = turns(failed)
    assert (keys(turn), turn.grade) == ([None, None], "names-only")


def gemini(at: float, event: str, product: str = "gemini_cli", prompt: str = "p1", **more: Any) -> Record:
    return log(at, event__name=f"{product}.{event}", session__id="G", prompt_id=prompt, **more)


@pytest.mark.parametrize("product", ["gemini_cli", "qwen-code"])
def test_gemini_and_qwen_calls_without_id_or_result(product: str) -> None:
    about: dict[str, Any] = {
        "function_name": "ls",
        "function_args": '{\n  "path": "."\n}',
        "duration_ms": 5,
        "success": True,
    }
    (turn,) = turns([gemini(number, "tool_call", product, **about) for number in range(3)])
    assert (turn.grade, keys(turn)) == ("no-results", [0, 0, 0])


def test_two_prompts_under_one_prompt_id_are_two_turns() -> None:
    found = [
        gemini(0, "user_prompt"),
        gemini(1, "tool_call", function_name="a"),
        gemini(2, "user_prompt"),
        gemini(3, "tool_call", function_name="b"),
    ]
    assert [names(turn) for turn in turns(found)] == [["a"], ["b"]]


def test_a_sub_agents_replies_are_one_turn_with_a_parent() -> None:
    found = [
        gemini(0, "user_prompt", prompt="S########1"),
        gemini(1, "tool_call", prompt="S########1", function_name="ask"),
        gemini(2, "tool_call", prompt="helper-x1#0", function_name="a"),
        gemini(3, "tool_call", prompt="helper-x1#1", function_name="b"),
    ]
    main, sub = turns(found)
    assert (names(main), names(sub), sub.parent_id) == (["ask"], ["a", "b"], main.turn_id)


def test_gemini_loop_events_without_prefix_and_its_spans_are_known_and_keep_nothing() -> None:
    loop = log(1, scope="gemini-cli", event__name="loop_detected", session__id="G")
    assert [dialect.recognise(loop) for dialect in DIALECTS if dialect.name == "gemini-cli"] == [()]


ROLLOUT = "rollout-2026-11-30T00-00-00-0123abcd-0000-0000-0000-000000000001.jsonl"


def rollout(*lines: tuple[str, dict[str, Any]]) -> list[Record]:
    return [
        line(
            {"timestamp": f"{DAY}{number:02d}Z", "type": kind, "payload": payload},
            offset=number * 1000,
            path=ROLLOUT,
        )
        for number, (kind, payload) in enumerate(lines)
    ]


def call(number: int, command: str = "ls", **more: Any) -> tuple[str, dict[str, Any]]:
    about: dict[str, Any] = {
        "type": "function_call",
        "name": "shell",
        "arguments": json.dumps({"command": [command]}),
    }
    return ("response_item", {**about, "call_id": f"c{number}", **more})


def output(number: int, text: Any = "x") -> tuple[str, dict[str, Any]]:
    return ("response_item", {"type": "function_call_output", "call_id": f"c{number}", "output": text})


def event(kind: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("event_msg", {"type": kind, **more})


def test_an_older_rollout_is_split_at_the_users_messages() -> None:
    lines = [
        ("session_meta", {"id": "s"}),
        event("user_message", message="one"),
        call(1),
        output(1, '{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}'),
        call(2),
        output(2, '{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.7}}'),
        event("user_message", message="two"),
        call(3),
        event("turn_aborted", reason="interrupted"),
    ]
    first, second = turns(rollout(*lines))
    assert (names(first), results(first), first.grade) == (["shell"] * 2, [0, 0], "exact")
    assert (names(second), second.outcome, second.grade) == (["shell"], "aborted", "exact")


def test_a_newer_rollout_is_split_at_its_tasks_and_a_message_within_one_splits_nothing() -> None:
    lines = [
        event("task_started", turn_id="t1"),
        event("user_message", message="one"),
        call(1),
        output(1),
        event("user_message", message="and mind the tests"),
        call(2),
        output(2),
        event("task_complete", turn_id="t1"),
    ]
    (turn,) = turns(rollout(*lines))
    assert (names(turn), turn.outcome) == (["shell"] * 2, "completed")


@pytest.mark.parametrize(
    ("payload", "tool"),
    [
        pytest.param(
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"}, "apply_patch"
        ),
        pytest.param({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell"),
    ],
)
def test_the_other_forms_of_a_codex_call(payload: dict[str, Any], tool: str) -> None:
    (turn,) = turns(rollout(("response_item", {**payload, "call_id": "c1"}), output(1, [{"text": "x"}])))
    assert (names(turn), turn.grade) == ([tool], "exact")


def qwen(second: int, kind: str, parts: list[dict[str, Any]], **more: Any) -> Record:
    body = {"type": kind, "sessionId": "Q", "uuid": f"u{second}", "timestamp": f"{DAY}{second:02d}Z"}
    return line({**body, "message": {"role": "user", "parts": parts}, **more}, offset=second)


def test_a_message_put_in_while_qwen_code_runs_splits_nothing() -> None:
    asked = {"functionCall": {"id": "c", "name": "ls", "args": {}}}
    answer = {"functionResponse": {"id": "c", "name": "ls", "response": {"output": "x"}}}
    told = {"status": "success"}
    (turn,) = turns(
        [
            qwen(1, "user", [{"text": "one"}]),
            qwen(2, "assistant", [{"text": "hm", "thought": True}, asked]),
            qwen(3, "tool_result", [answer], toolCallResult=told),
            qwen(4, "user", [{"text": "also"}], subtype="mid_turn_user_message"),
            qwen(5, "assistant", [asked]),
            qwen(6, "tool_result", [answer], toolCallResult=told),
            qwen(7, "assistant", [{"text": "done"}]),
        ]
    )
    assert (keys(turn), results(turn), turn.outcome) == ([0, 0], [0, 0], "completed")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("Process exited with code 3\nOutput:\n", True, id="a code"),
        pytest.param("Chunk ID: a\nExit code: 0\n", False, id="none, on a later line"),
        pytest.param("an exit, an Exit code: 7\nExit code: 1\n", True, id="behind a line that speaks of one"),
        pytest.param('{"output":"no exit","metadata":{"exit_code": 2}}', True, id="in JSON"),
        pytest.param("said Exit code: 1", None, id="within a line"),
        pytest.param("x" * 1999 + "\nExit code: 1", None, id="too far behind"),
        pytest.param("\n" * 1988 + "Exit code: 01", False, id="its last digit too far behind"),
    ],
)
def test_a_command_failed_by_its_exit_code(output: str, expected: bool | None) -> None:
    assert failed(output, None) is expected
