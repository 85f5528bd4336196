"""A turn at the API: what is counted, when it halts, and with what numbers."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from guard import Threshold, ToolCall, ToolCallGuard, TurnHalted
from guard.carrying import counts_to_state
from tests.guard.driving import SMALL, batch, run
from tests.guard.receiving import Receiver

MATRIX: list[tuple[str, dict[str, Any], str, tuple[int, str] | None]] = [
    ("a diverse turn may reach the backstop", SMALL, "abcdefgh", None),
    ("one call past the backstop halts it", SMALL, "abcdefghi", (9, "backstop")),
    ("stuck within the soft cap is allowed", SMALL, "aaab"[:4], None),
    ("stuck early halts at the first call past the soft cap", SMALL, "aaabc", (5, "soft-stuck")),
    ("two repeats past the soft cap are allowed", SMALL, "abacbd", None),
    ("the third one past the soft cap halts", SMALL, "abacba", (6, "soft-stuck")),
    ("the call that is asked about counts", SMALL, "abaca", (5, "soft-stuck")),
    ("stuck at the backstop itself is soft-stuck", SMALL, "abcdeaga", (8, "soft-stuck")),
    ("stuck one past the backstop is the backstop's", SMALL, "abcdeafga", (9, "backstop")),
    ("S of 0 lets the level alone decide", {"soft_cap": 0, "stuck_at": 3, "backstop": 9}, "aba", None),
    (
        "S of 0, at its third repeat",
        {"soft_cap": 0, "stuck_at": 3, "backstop": 9},
        "abaa",
        (4, "soft-stuck"),
    ),
    ("K of 1 makes the soft cap hard", {"soft_cap": 2, "stuck_at": 1}, "abc", (3, "soft-stuck")),
    (
        "a multiplier of 1 does too",
        {"soft_cap": 2, "backstop_multiplier": 1},
        "abc",
        (3, "backstop"),
    ),
    ("an explicit cap allows its number, however stuck", {"max_tool_calls": 3}, "aaa", None),
    ("an explicit cap halts the next", {"max_tool_calls": 3}, "abcd", (4, "explicit-hard")),
    ("0 switches the cap off", {"max_tool_calls": 0}, "a" * 1_200, None),
    ("less than 0 switches it off too", {"max_tool_calls": -5}, "a" * 1_200, None),
]


@pytest.mark.parametrize(
    ("settings", "keys", "expected"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX]
)
def test_the_behaviour_matrix(settings: dict[str, Any], keys: str, expected: tuple[int, str] | None) -> None:
    assert run(ToolCallGuard(**settings).start_turn(), keys) == expected


@pytest.mark.parametrize(
    ("calls", "distinct", "largest"), [(96, 96, 1), (100, 99, 2), (95, 95, 1)], ids=lambda n: str(n)
)
def test_the_three_turns_of_the_rules_origin_run_to_their_end(
    calls: int, distinct: int, largest: int
) -> None:
    turn = ToolCallGuard().start_turn()
    keys = [*range(distinct), *range(calls - distinct)]
    verdicts = [turn.admit("tool", {"key": key}) for key in keys]
    assert all(verdict.allowed for verdict in verdicts)
    assert (verdicts[-1].total_calls, verdicts[-1].max_repeat) == (calls, largest)
    assert turn.end() == "completed"


# Rows 39 … 46 and 55 … 59 of the origin's table that its vectors do not hold.


def test_row_39_permutations_of_one_objects_fields_are_one_key() -> None:
    turn = ToolCallGuard(soft_cap=10).start_turn()
    halted = []
    for number, order in enumerate(permutations([("a", 1), ("b", 2), ("c", {"x": 1, "y": 2})])):
        args = dict(order)
        args["c"] = {"y": 2, "x": 1} if number % 2 else {"x": 1, "y": 2}
        halted += [turn.admit("edit", args).halted, turn.admit("edit", {"filler": number}).halted]
    assert halted == [False] * 10 + [True] * 2
    assert turn.verdict is not None
    assert (turn.verdict.threshold, turn.verdict.max_repeat) == ("soft-stuck", 6)


KEYS: list[tuple[str, tuple[str, Any], tuple[str, Any], bool]] = [
    ("row 40: the order of an array counts", ("t", {"a": ["a", "b"]}), ("t", {"a": ["b", "a"]}), False),
    ("row 41: 1.0 and 1 are one number", ("t", {"a": 1.0}), ("t", {"a": 1}), True),
    ("row 42: no arguments are an empty object", ("t", None), ("t", {}), True),
    ("row 43: null and absent differ", ("t", {"a": None}), ("t", {}), False),
    (
        "row 45: another description is another call",
        ("shell", {"command": "ls", "description": "list"}),
        ("shell", {"command": "ls", "description": "look"}),
        False,
    ),
    ("row 46: another tool is another call", ("read", {"a": 1}), ("edit", {"a": 1}), False),
]


@pytest.mark.parametrize(("one", "other", "same"), [row[1:] for row in KEYS], ids=[r[0] for r in KEYS])
def test_what_is_the_same_call(one: tuple[str, Any], other: tuple[str, Any], same: bool) -> None:
    turn = ToolCallGuard().start_turn()
    turn.admit(*one)
    assert turn.admit(*other).max_repeat == (2 if same else 1)


def test_ignored_arguments_are_left_out_for_their_tool_alone() -> None:
    turn = ToolCallGuard(ignore_args={"shell": {"description"}}).start_turn()
    turn.admit("shell", {"command": "ls", "description": "list"})
    assert turn.admit("shell", {"command": "ls", "description": "look"}).max_repeat == 2
    turn.admit("other", {"description": "list"})
    assert turn.admit("other", {"description": "look"}).max_repeat == 2  # the shell's
    assert turn._core.counts.keys.given == 3


def test_row_55_an_id_seen_before_gets_its_earlier_verdict_and_counts_nothing() -> None:
    turn = ToolCallGuard(**SMALL).start_turn()
    first = turn.admit("tool", {"a": 1}, "id")
    assert turn.admit("tool", {"a": 2}, "id") is first
    assert turn.admit("tool", {"a": 1}, "").call_number == 2  # an empty id is none
    assert turn.admit("tool", {"a": 1}, "").call_number == 3


def test_rows_56_and_58_a_continuation_and_a_retry_by_the_user_are_turns_of_their_own() -> None:
    guard = ToolCallGuard(soft_cap=100)
    first = guard.start_turn()
    assert run(first, range(90)) is None
    first.end()
    again = guard.start_turn(continues=first.id)
    assert run(again, range(90)) is None
    assert run(guard.start_turn(resumed_from=first.id), ["x"] * 100) is None


def test_row_57_a_message_steered_into_a_turn_resets_nothing() -> None:
    turn = ToolCallGuard(max_tool_calls=100).start_turn()
    assert run(turn, range(90)) is None
    assert not any(turn.admit("tool", {"k": key}).halted for key in range(90, 100))
    assert turn.admit("tool", {"k": 100}).halted


def test_row_59_a_sub_agents_run_has_a_budget_of_its_own() -> None:
    guard = ToolCallGuard(max_tool_calls=100)
    with guard.turn() as parent:
        assert run(parent, range(90)) is None
        with guard.turn() as child:
            assert run(child, range(90)) is None
            assert guard.current_turn() is child
        assert guard.current_turn() is parent
    assert guard.current_turn() is None


# Batches


BATCHES: list[tuple[str, dict[str, Any], list[str], int | None, str | None]] = [
    (
        "row 47: all of it is refused",
        {"max_tool_calls": 10},
        ["a" * 8, "b" * 5],
        1,
        "explicit-hard",
    ),
    ("a batch may jump over the soft cap", SMALL, ["abc", "def"], None, None),
    ("a batch may end at the backstop", SMALL, ["abc", "defgh"], None, None),
    ("one call past it refuses all of the batch", SMALL, ["abc", "defghi"], 1, "backstop"),
    ("a level reached in the middle of it counts", SMALL, ["ab", "aacde"], 1, "soft-stuck"),
    ("row 49: repeats below the cap poison what comes", SMALL, ["aaa", "bc"], 1, "soft-stuck"),
    ("both at once is the backstop's", SMALL, ["abc", "aaaaaa"], 1, "backstop"),
]


@pytest.mark.parametrize(
    ("settings", "batches", "refused", "threshold"), [r[1:] for r in BATCHES], ids=[r[0] for r in BATCHES]
)
def test_a_batch_is_decided_as_one(
    settings: dict[str, Any], batches: list[str], refused: int | None, threshold: str | None
) -> None:
    turn = ToolCallGuard(**settings).start_turn()
    for place, keys in enumerate(batches):
        verdicts = batch(turn, keys)
        assert len(verdicts) == len(keys)
        assert {verdict.halted for verdict in verdicts} == {place == refused}
        total = sum(map(len, batches[: place + 1]))
        assert {verdict.total_calls for verdict in verdicts} == {total}
        assert [v.call_number for v in verdicts] == list(range(total - len(keys) + 1, total + 1))
    assert (turn.verdict and turn.verdict.threshold) == threshold


def test_an_empty_batch_changes_nothing() -> None:
    turn = ToolCallGuard().start_turn()
    assert turn.admit_batch([]) == []
    assert (turn._core.counts.calls, turn._core.counts.batches) == (0, 0)


def test_an_id_twice_in_one_batch_counts_once() -> None:
    turn = ToolCallGuard().start_turn()
    turn.admit("tool", {"k": 0}, "old")
    verdicts = turn.admit_batch(
        [ToolCall("tool", {"k": n}, call_id) for n, call_id in enumerate(["x", "old", "x", "y", None, None])]
    )
    assert [verdict.call_number for verdict in verdicts] == [2, 1, 2, 3, 4, 5]
    assert turn._core.counts.total == 5


# Replies and retries


def test_a_retry_goes_back_to_the_last_reply_and_call_numbers_never_do() -> None:
    turn = ToolCallGuard(soft_cap=10).start_turn()
    run(turn, range(6))
    turn.reply_finished()
    for key in range(6, 10):
        turn.admit("tool", {"key": key})
    turn.retry()
    verdict = turn.admit("tool", {"key": 0})
    assert (verdict.call_number, verdict.total_calls, verdict.max_repeat, verdict.level) == (11, 7, 1, 1)


def test_a_retry_clears_ids_and_outstanding_calls_and_keeps_key_numbers() -> None:
    receiver = Receiver()
    guard = receiver.guard()
    turn = guard.start_turn()
    first = turn.admit("tool", {"k": 1}, "id")
    turn.retry()
    again = turn.admit("tool", {"k": 1}, "id")
    assert again.call_number == 2
    turn.settle(first, result="late")  # of the attempt that was given up
    assert guard.faults == {"unknown_call": 1}
    turn.settle("id", result="r")
    turn.end()
    chunk = receiver.log("turncap.turn.calls").attributes
    assert chunk["turncap.calls.key"] == [0, 0]
    assert (chunk["turncap.retry.at"], chunk["turncap.retry.total"]) == ([1], [0])
    ended = receiver.log("turncap.turn.ended").attributes
    assert (ended["turncap.retries"], ended["turncap.calls"], ended["turncap.total"]) == (1, 2, 1)
    assert ended["turncap.settled"] == 1


def test_while_a_halt_stands_replies_and_retries_change_nothing() -> None:
    turn = ToolCallGuard(**SMALL).start_turn()
    assert run(turn, "abaca") == (5, "soft-stuck")
    before = counts_to_state(turn._core.counts)
    turn.reply_finished()
    turn.retry()
    assert counts_to_state(turn._core.counts) == before
    assert turn.admit("tool", {"key": "new"}).halted


# A halted turn


def test_later_calls_get_the_first_halt_and_change_only_refused() -> None:
    receiver = Receiver()
    turn = receiver.guard(**SMALL).start_turn()
    turn.admit("tool", {"key": "a"}, "allowed")
    run_on = [turn.admit("tool", {"key": key}) for key in "baca"]
    halt = run_on[-1]
    assert halt.halted
    assert turn.admit("tool", {"key": "z"}) is halt
    assert turn.admit("tool", {"key": "a"}, "allowed") is halt  # the halt answers first
    assert batch(turn, "xyz") == [halt] * 3
    assert turn.end() == "halted"
    ended = receiver.log("turncap.turn.ended").attributes
    assert {name: ended[f"turncap.{name}"] for name in ("calls", "ran", "total", "refused")} == {
        "calls": 5,
        "ran": 4,
        "total": 5,
        "refused": 6,
    }
    assert ended["turncap.distinct_keys"] == 3


def test_a_halt_carries_every_number_that_led_to_it() -> None:
    turn = ToolCallGuard(**SMALL).start_turn()
    verdicts = [turn.admit(tool, {"k": tool}) for tool in ("Bash", "Edit", "Bash", "Edit", "Bash")]
    allowed, halt = verdicts[3], verdicts[4]
    assert (allowed.allowed, allowed.halted, allowed.threshold, allowed.limit) == (True, False, None, 4)
    assert (halt.allowed, halt.halted) == (False, True)
    assert halt._asdict() == {
        "turn_id": turn.id,
        "call_number": 5,
        "total_calls": 5,
        "signal": "repeat",
        "level": 3,
        "max_repeat": 3,
        "repeated_tool": "Bash",
        "limit": 4,
        "threshold": Threshold.SOFT_STUCK,
        "would_halt": Threshold.SOFT_STUCK,
        "explored": False,
        "policy": turn._guard.policy,
    }
    with pytest.raises(TurnHalted) as caught:
        halt.raise_for_halt()
    assert caught.value.verdict is halt
    assert str(caught.value) == halt.message
    allowed.raise_for_halt()


def test_limits_ahead() -> None:
    def limits(settings: dict[str, Any], calls: int) -> list[int | None]:
        turn = ToolCallGuard(**settings).start_turn()
        return [turn.admit("tool", {"k": n}).limit for n in range(calls)]

    assert limits(SMALL, 9) == [4] * 4 + [8] * 4 + [8]
    assert limits({"max_tool_calls": 2}, 3) == [2, 2, 2]
    assert limits({"max_tool_calls": 0}, 2) == [None, None]


# Messages

MESSAGES: list[tuple[str, dict[str, Any], str, tuple[str, ...]]] = [
    (
        "soft-stuck names both limits, the tool, and both settings",
        SMALL,
        "abaca",
        ("call 5", "5 calls", "soft cap of 4", "`tool`", "3 times", "TURNCAP_STUCK_AT", "TURNCAP_SOFT_CAP"),
    ),
    (
        "backstop names its limit and setting",
        SMALL,
        "abcdefabi",
        ("call 9", "9 calls", "backstop of 8", "2 times", "TURNCAP_BACKSTOP"),
    ),
    (
        "explicit-hard names its limit and setting",
        {"max_tool_calls": 1},
        "ab",
        ("call 2", "2 calls", "limit of 1", "No call was made twice", "TURNCAP_MAX_TOOL_CALLS_PER_TURN"),
    ),
]


@pytest.mark.parametrize(
    ("settings", "keys", "words"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
def test_a_halts_message_can_be_acted_on(settings: dict[str, Any], keys: str, words: tuple[str, ...]) -> None:
    turn = ToolCallGuard(**settings).start_turn()
    run(turn, keys)
    assert turn.verdict is not None
    message = turn.verdict.message
    for word in words:
        assert word in message
    assert "None" not in message
    assert message.endswith(".")


def test_every_signals_halt_says_what_was_seen() -> None:
    from guard.policy import SIGNALS

    said = set()
    for signal in SIGNALS:
        turn = ToolCallGuard(soft_cap=0, backstop=50, stuck_at=2, signal=signal).start_turn()
        for n in range(6):
            verdict = turn.admit("Bash", {"k": 1}, str(n))
            if verdict.halted:
                break
            turn.settle(str(n), result="same")
        assert verdict.halted
        assert "2" in verdict.message
        said.add(verdict.message.split("and ")[1].split(" (")[0])
    assert len(said) == len(SIGNALS)
