"""Turns that callbacks begin and end: made current without ending, ended by what they were left by."""

from __future__ import annotations

import asyncio
import concurrent.futures

import pytest

from guard import PolicyError, ToolCallGuard


def test_a_used_turn_is_current_in_the_block_and_open_after_it() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    assert guard.current_turn() is None
    with guard.use_turn(turn) as used:
        assert used is turn
        assert guard.current_turn() is turn
    assert guard.current_turn() is None
    assert turn.outcome is None
    turn.end()


def test_a_turn_begun_in_the_block_has_the_used_turn_as_its_parent() -> None:
    guard = ToolCallGuard()
    outer = guard.start_turn()
    with guard.use_turn(outer), guard.turn() as inner:
        assert guard.current_turn() is inner
        assert inner._core.started.parent_id == outer.id
    outer.end()


def test_an_error_in_the_block_gets_out_and_leaves_the_turn_open() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    with pytest.raises(KeyError), guard.use_turn(turn):
        raise KeyError("mine")
    assert guard.current_turn() is None
    assert turn.outcome is None
    turn.end()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(None, "completed", id="nothing completes it"),
        pytest.param(ValueError("x"), "errored", id="an exception is an error"),
        pytest.param(asyncio.CancelledError(), "aborted", id="a cancelled task aborts it"),
        pytest.param(concurrent.futures.CancelledError(), "aborted", id="a cancelled future aborts it"),
        pytest.param(KeyboardInterrupt(), "aborted", id="an interruption aborts it"),
        pytest.param(GeneratorExit(), "aborted", id="a closed generator aborts it"),
        pytest.param(SystemExit(1), "aborted", id="an exit aborts it"),
    ],
)
def test_what_a_turn_was_left_by_is_its_outcome(error: BaseException | None, outcome: str) -> None:
    assert ToolCallGuard().start_turn().end(error=error) == outcome


def test_a_halt_that_stands_is_the_outcome_whatever_the_turn_was_left_by() -> None:
    turn = ToolCallGuard(max_tool_calls=1).start_turn()
    turn.admit("a")
    turn.admit("b")
    assert turn.end(error=ValueError("x")) == "halted"


def test_a_word_that_is_no_outcome_is_refused_even_beside_an_error() -> None:
    with pytest.raises(PolicyError, match="outcome"):
        ToolCallGuard().start_turn().end("lost", error=ValueError("x"))
