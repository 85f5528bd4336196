"""What becomes of calls after they were allowed, and the signals of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from guard import ToolCall, ToolCallGuard, Turn, Verdict
from tests.guard.driving import batch

# Settling


def test_settling_in_any_order_by_id_and_by_verdict() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    verdicts = [turn.admit("tool", {"k": n}, f"id{n}" if n % 2 else None) for n in range(4)]
    turn.settle("id3", result="r")
    turn.settle(verdicts[2], error=ValueError("no"))
    turn.settle(verdicts[1], result="r")
    turn.settle(verdicts[0])
    assert (turn._core.counts.settled, turn._core.counts.errors, guard.faults) == (4, 1, {})


def other_turns_verdict(turn: Turn) -> Verdict:
    return turn._guard.start_turn().admit("tool")


def refused(turn: Turn) -> Verdict:
    batch(turn, range(1_100))
    assert turn.verdict is not None
    return turn.verdict


UNSETTLED: list[tuple[str, Callable[[Turn], Any]]] = [
    ("an unknown id", lambda turn: "nobody"),
    ("an empty id", lambda turn: ""),
    ("None", lambda turn: None),
    ("another turn's verdict, of the same number", other_turns_verdict),
    ("a refused call's verdict", refused),
]


@pytest.mark.parametrize("call", [row[1] for row in UNSETTLED], ids=[row[0] for row in UNSETTLED])
def test_settling_what_is_not_outstanding_is_counted_and_changes_nothing(
    call: Callable[[Turn], Any],
) -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    turn.admit("tool", {"k": 1}, "id")
    turn.settle(call(turn), result="r")
    assert (turn._core.counts.settled, guard.faults) == (0, {"unknown_call": 1})


def test_a_call_settles_once_and_none_after_the_end() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    first, second = turn.admit("tool", {"k": 1}), turn.admit("tool", {"k": 2})
    turn.settle(first, result="r")
    turn.settle(first, result="other")
    turn.end()
    turn.settle(second, result="r")
    assert (turn._core.counts.settled, guard.faults) == (1, {"unknown_call": 1, "settled_after_end": 1})


def test_calls_that_ran_may_settle_after_a_halt() -> None:
    turn = ToolCallGuard(max_tool_calls=1).start_turn()
    ran = turn.admit("tool", {"k": 1})
    assert turn.admit("tool", {"k": 2}).halted
    turn.settle(ran, result="r")
    assert turn._core.counts.settled == 1


def test_ids_and_outstanding_calls_past_10_000_are_dropped_oldest_first_and_counted() -> None:
    guard = ToolCallGuard(max_tool_calls=0)
    turn = guard.start_turn()
    verdicts = [turn.admit("tool", {"k": n % 7}, f"id{n}") for n in range(10_002)]
    turn._core.counts.catch_up()
    assert turn._core.counts.outstanding.dropped == 4
    turn.settle("id0", result="r")
    turn.settle(verdicts[1], result="r")
    assert guard.faults == {"unknown_call": 2}
    turn.settle("id2", result="r")
    assert turn._core.counts.settled == 1
    assert turn.admit("tool", {"k": 0}, "id0").call_number == 10_003


def test_an_id_of_any_type_and_length_is_found_again() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    ids: list[Any] = [7, ("a", 1), "x" * 100_000, "x" * 100_000 + "y", b"z" * 300, "\ud800"]
    numbers = [turn.admit("tool", {"k": 1}, call_id).call_number for call_id in ids]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert all(len(known) <= 128 for known in turn._core.counts.outstanding.ids)
    for call_id in ids:
        turn.settle(call_id, result="r")
    assert (turn._core.counts.settled, guard.faults) == (6, {})


# Result signals as gate


def test_result_signals_are_unknown_from_call_21_on_while_none_has_settled() -> None:
    settings: dict[str, Any] = {"soft_cap": 0, "stuck_at": 1, "backstop": 1000}
    for signal in ("no_progress", "same_result_repeat"):
        turn = ToolCallGuard(signal=signal, **settings).start_turn()
        verdicts = [turn.admit("tool", {"k": 1}, str(n)) for n in range(22)]
        assert [verdict.level for verdict in verdicts] == [0] * 20 + [None] * 2
        turn.retry()
        assert turn.admit("tool", {"k": 1}, "again").level is None  # a retry does not restart this
        turn.settle("again", result="r")
        assert turn.admit("tool", {"k": 2}).level == 0


def test_same_result_repeat_is_of_the_key_asked_about() -> None:
    turn = ToolCallGuard(signal="same_result_repeat", soft_cap=0, stuck_at=3, backstop=99).start_turn()
    for n in range(3):
        turn.settle(turn.admit("poll", {}), result="waiting")
        assert turn.admit("edit", {"n": n}).level == 0
    assert turn.admit_batch([ToolCall("edit", {"n": 9}), ToolCall("poll")])[0].level == 3
    assert turn.halted


def test_an_outstanding_call_neither_raises_nor_resets() -> None:
    turn = ToolCallGuard(signal="no_progress").start_turn()
    turn.settle(turn.admit("tool", {"k": 1}), result="r")
    turn.settle(turn.admit("tool", {"k": 1}), result="r")
    assert [turn.admit("tool", {"k": n}).level for n in range(5)] == [1] * 5


def test_an_error_is_kept_apart_from_an_equal_success() -> None:
    turn = ToolCallGuard(signal="no_progress").start_turn()
    turn.settle(turn.admit("tool"), result="same")
    turn.settle(turn.admit("tool"), error="same")
    assert turn.admit("tool").level == 0
    turn.settle(turn.admit("tool"), error="same")
    assert turn.admit("tool").level == 1
