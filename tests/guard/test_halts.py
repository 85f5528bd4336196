"""Halts that are lifted, shadowed, held out or only candidates; milestones."""

from __future__ import annotations

from typing import Any

import pytest

from guard import CapPolicy, PolicyError, ToolCallGuard
from tests.guard.driving import SMALL, batch, run
from tests.guard.receiving import Receiver

# Extending


def test_a_person_lifts_a_halt_for_that_many_more_calls_whatever_the_level() -> None:
    receiver = Receiver()
    turn = receiver.guard(soft_cap=4, stuck_at=3, backstop=20).start_turn()
    assert run(turn, "aabaa") == (5, "soft-stuck")
    assert turn.extend(3, "ann") == 3
    assert not turn.halted
    verdicts = [turn.admit("tool", {"key": "a"}) for _ in range(4)]
    assert [verdict.halted for verdict in verdicts] == [False, False, False, True]
    assert [verdict.limit for verdict in verdicts] == [8] * 4
    assert (verdicts[3].threshold, verdicts[3].total_calls, verdicts[3].explored) == ("backstop", 9, None)
    assert "extended" in verdicts[3].message
    turn.end()
    extended = receiver.log("turncap.turn.extended").attributes
    assert {k: extended[f"turncap.{k}"] for k in ("granted", "by", "total")} == {
        "granted": 3,
        "by": "ann",
        "total": 5,
    }
    ended = receiver.log("turncap.turn.ended").attributes
    assert {k: ended[f"turncap.{k}"] for k in ("outcome", "calls", "ran", "refused")} == {
        "outcome": "halted",
        "calls": 9,
        "ran": 7,
        "refused": 2,
    }
    halts = [event.attributes for event in receiver.logs if event.name == "turncap.loop_detected"]
    assert [halt["turncap.threshold"] for halt in halts] == ["soft-stuck", "backstop"]
    assert halts[1]["turncap.enforced"] is True
    assert "turncap.explored" not in halts[1]  # no coin was tossed
    assert "turncap.holdout.rate" not in halts[1]


EXTENSIONS: list[tuple[str, dict[str, Any], int, int, str]] = [
    ("an adaptive turn, never past twice the backstop", {"soft_cap": 4, "backstop": 8}, 9, 16, "backstop"),
    ("an explicit cap, never past twice its number", {"max_tool_calls": 8}, 9, 16, "explicit-hard"),
]


@pytest.mark.parametrize(
    ("settings", "halted_at", "bound", "threshold"),
    [r[1:] for r in EXTENSIONS],
    ids=[r[0] for r in EXTENSIONS],
)
def test_extensions_are_bounded(settings: dict[str, Any], halted_at: int, bound: int, threshold: str) -> None:
    turn = ToolCallGuard(**settings).start_turn()
    for n in range(halted_at):
        turn.admit("tool", {"k": n})
    assert turn.halted
    assert turn.extend(10**6, "ann") == bound - halted_at
    ran = halted_at
    while turn.admit("tool", {"k": ran}).allowed:
        ran += 1
    assert ran == bound
    assert turn.verdict is not None
    assert turn.verdict.threshold == threshold
    assert turn.extend(1, "ann") == 0
    assert turn.halted


def test_a_lifted_turn_completes() -> None:
    turn = ToolCallGuard(max_tool_calls=2).start_turn()
    run(turn, "abc")
    assert turn.extend(1, "ann") == 1
    assert turn.end() == "completed"


@pytest.mark.parametrize("calls", [0, -1, True, 1.0, "1", None])
def test_what_is_no_number_of_calls_is_refused(calls: Any) -> None:
    turn = ToolCallGuard(max_tool_calls=1).start_turn()
    with pytest.raises(PolicyError, match="calls"):
        turn.extend(calls, "ann")


def test_where_no_halt_stands_nothing_is_lifted_and_that_is_counted() -> None:
    guard = ToolCallGuard(mode="shadow", max_tool_calls=1)
    turn = guard.start_turn()
    run(turn, "ab")
    assert turn.extend(5, "ann") == 0
    assert guard.faults == {"nothing_to_extend": 1}


# Shadow and latching


def test_shadow_decides_records_and_lets_run() -> None:
    receiver = Receiver()
    turn = receiver.guard(mode="shadow", holdout_rate=1, **SMALL).start_turn()
    verdicts = [turn.admit("tool", {"k": key}) for key in "abacabacabacd"]
    assert all(verdict.allowed for verdict in verdicts)
    assert [verdict.would_halt for verdict in verdicts] == [None] * 4 + ["soft-stuck"] * 4 + ["backstop"] * 5
    assert {verdict.explored for verdict in verdicts} == {None}
    assert "Let run" in verdicts[-1].message
    turn.end()
    halts = [event.attributes for event in receiver.logs if event.name == "turncap.loop_detected"]
    assert [(h["turncap.threshold"], h["turncap.call.number"]) for h in halts] == [
        ("soft-stuck", 5),
        ("backstop", 9),
    ]
    assert [h["turncap.enforced"] for h in halts] == [False, False]
    assert not any("turncap.explored" in h or "turncap.holdout.rate" in h for h in halts)
    assert halts[1]["turncap.also"] == ["soft-stuck"]
    ended = receiver.log("turncap.turn.ended").attributes
    assert (ended["turncap.outcome"], ended["turncap.ran"], ended["turncap.refused"]) == ("completed", 13, 0)


def test_in_a_batch_a_later_threshold_is_dated_by_the_call_that_passed_it() -> None:
    receiver = Receiver()
    turn = receiver.guard(mode="shadow", **SMALL).start_turn()
    batch(turn, "abaca")
    batch(turn, "bcdef")
    turn.end()
    halts = [event.attributes for event in receiver.logs if event.name == "turncap.loop_detected"]
    assert [(h["turncap.threshold"], h["turncap.call.number"], h["turncap.total"]) for h in halts] == [
        ("soft-stuck", 5, 5),
        ("backstop", 9, 10),
    ]


# Holdout


def test_a_held_out_turn_ends_at_the_backstop() -> None:
    receiver = Receiver()
    turn = receiver.guard(holdout_rate=1, **SMALL).start_turn()
    verdicts = [turn.admit("tool", {"k": "a"}) for _ in range(9)]
    assert [verdict.halted for verdict in verdicts] == [False] * 8 + [True]
    assert [verdict.explored for verdict in verdicts] == [None] * 4 + [True] * 4 + [False]
    assert verdicts[8].threshold == "backstop"
    turn.end()
    halts = [event.attributes for event in receiver.logs if event.name == "turncap.loop_detected"]
    assert [
        [h[f"turncap.{k}"] for k in ("threshold", "enforced", "explored", "holdout.rate")] for h in halts
    ] == [
        ["soft-stuck", False, True, 1.0],
        ["backstop", True, False, 0.0],
    ]


def test_a_backstop_coin_of_its_own_lets_it_run_to_twice_the_backstop() -> None:
    turn = ToolCallGuard(holdout_rate=1, backstop_holdout_rate=1, **SMALL).start_turn()
    verdicts = [turn.admit("tool", {"k": "a"}) for _ in range(17)]
    assert [verdict.halted for verdict in verdicts] == [False] * 16 + [True]
    assert verdicts[16].threshold == "backstop"
    assert [verdict.limit for verdict in verdicts[:16]] == [4] * 4 + [8] * 4 + [16] * 8


def test_an_explicit_cap_is_never_held_out() -> None:
    guard = ToolCallGuard(max_tool_calls=2, holdout_rate=1, backstop_holdout_rate=1)
    for _ in range(50):
        turn = guard.start_turn()
        assert run(turn, "abc") == (3, "explicit-hard")
        assert turn.verdict is not None
        assert turn.verdict.explored is None


# Candidates


def test_candidates_say_where_each_would_have_halted() -> None:
    receiver = Receiver()
    candidates = [
        CapPolicy.adaptive(soft_cap=2, stuck_at=2, backstop=100),
        CapPolicy.adaptive(signal="no_progress", soft_cap=0, stuck_at=2, backstop=100),
        CapPolicy.hard(3),
        CapPolicy.adaptive(),
        CapPolicy.disabled(),
    ]
    turn = receiver.guard(candidates=candidates).start_turn()
    for n, key in enumerate("abacaa"):
        turn.settle(turn.admit("tool", {"k": key}), result=f"r{n // 3}")
    turn.end()
    ended = receiver.log("turncap.turn.ended").attributes
    assert ended["turncap.candidates"] == [
        "adaptive signal=repeat soft_cap=2 stuck_at=2 backstop=100",
        "adaptive signal=no_progress soft_cap=0 stuck_at=2 backstop=100",
        "hard hard_cap=3",
        "adaptive signal=repeat soft_cap=100 stuck_at=6 backstop=1000",
        "disabled",
    ]
    assert ended["turncap.candidates.halt_call"] == [3, -1, 4, -1, -1]


@pytest.mark.parametrize(
    ("candidates", "accepted"),
    [([6], "CapPolicy"), ([CapPolicy.adaptive()] * 200, "16 KiB")],
    ids=["what is no policy is refused", "more than an event can name are refused"],
)
def test_candidates_are_checked(candidates: Any, accepted: str) -> None:
    with pytest.raises(PolicyError, match="candidates") as caught:
        ToolCallGuard(candidates=candidates)
    assert accepted in caught.value.accepted


def test_milestones_end_with_the_first_refusal() -> None:
    receiver = Receiver()
    turn = receiver.guard(soft_cap=4, stuck_at=3, backstop=20).start_turn()
    batch(turn, "ab")
    batch(turn, "aca")  # refused: a's third call
    assert turn.halted
    turn.extend(10, "ann")
    for _ in range(5):
        turn.admit("tool", {"key": "a"})
    turn.end()
    ended = receiver.log("turncap.turn.ended").attributes
    names = ("k", "call", "epoch", "batch_first_call")
    assert [ended[f"turncap.milestones.{name}"] for name in names] == [[2, 3], [3, 5], [0, 0], [3, 3]]
    assert ended["turncap.repeat.count"] == 8


def test_milestones_hold_k_2_to_64_and_the_k_in_force_and_256_entries() -> None:
    receiver = Receiver()
    turn = receiver.guard(max_tool_calls=0).start_turn()
    for _ in range(5):
        for _ in range(70):
            turn.admit("tool", {"k": 1})
        turn.retry()
    turn.end()
    turn = receiver.guard(soft_cap=500, stuck_at=80).start_turn()
    for _ in range(90):
        turn.admit("tool", {"k": 1})
    turn.end()
    first, second = (e.attributes for e in receiver.logs if e.name == "turncap.turn.ended")
    assert first["turncap.milestones.k"] == (list(range(2, 65)) * 5)[:256]
    assert first["turncap.milestones.epoch"][-1] == 4
    assert second["turncap.milestones.k"] == [*range(2, 65), 80]
