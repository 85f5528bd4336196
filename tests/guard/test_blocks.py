"""How turns begin and end: outcomes, blocks, labels, time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from guard import PolicyError, ToolCall, ToolCallGuard, Turn
from tests.guard.driving import run
from tests.guard.receiving import ManualClock, Receiver

# Outcomes


class Stopped(BaseException):
    """As an interrupt, a cancellation or an exit."""


OUTCOMES: list[tuple[str, BaseException | None, bool, str]] = [
    ("a block that ends completes the turn", None, False, "completed"),
    ("an exception is an error", ValueError("no"), False, "errored"),
    ("an interrupt aborts", KeyboardInterrupt(), False, "aborted"),
    ("an exit aborts", SystemExit(0), False, "aborted"),
    ("a closed generator aborts", GeneratorExit(), False, "aborted"),
    ("a halt beats completion", None, True, "halted"),
    ("a halt beats an exception", ValueError("no"), True, "halted"),
    ("a halt beats an interrupt", KeyboardInterrupt(), True, "halted"),
]


@pytest.mark.parametrize(
    ("error", "halt", "expected"), [row[1:] for row in OUTCOMES], ids=[row[0] for row in OUTCOMES]
)
def test_outcomes(error: BaseException | None, halt: bool, expected: str) -> None:
    guard = ToolCallGuard(max_tool_calls=1)

    def block(kept: list[Turn]) -> None:
        with guard.turn() as turn:
            kept.append(turn)
            run(turn, "ab" if halt else "a")
            if error is not None:
                raise error

    kept: list[Turn] = []
    if error is None:
        block(kept)
    else:
        with pytest.raises(type(error)) as caught:
            block(kept)
        assert caught.value is error  # exceptions get out unchanged
    assert kept[0].outcome == expected
    assert kept[0].end() == expected  # a second end changes nothing
    assert guard.current_turn() is None


def test_cancellations_of_both_libraries_abort() -> None:
    import asyncio
    import concurrent.futures

    guard = ToolCallGuard()
    for error in (asyncio.CancelledError, concurrent.futures.CancelledError):
        with pytest.raises(error), guard.turn() as turn:
            raise error
        assert turn.outcome == "aborted"


def test_turns_end_by_hand_too() -> None:
    guard = ToolCallGuard()
    assert guard.start_turn().abort() == "aborted"
    assert guard.start_turn().end("errored") == "errored"
    with pytest.raises(PolicyError, match="outcome"):
        guard.start_turn().end("fine")


def test_a_call_after_the_end_is_allowed_or_gets_the_halt_and_is_counted_as_a_fault() -> None:
    guard = ToolCallGuard(max_tool_calls=1)
    turn = guard.start_turn()
    turn.end()
    verdict = turn.admit("tool")
    assert (verdict.allowed, verdict.call_number, turn._core.counts.calls) == (True, 0, 0)
    assert [v.allowed for v in turn.admit_batch([ToolCall("a"), ToolCall("b")])] == [True, True]
    assert guard.faults == {"admitted_after_end": 3}
    halted = guard.start_turn()
    run(halted, "ab")
    halted.end()
    assert halted.admit("tool").halted


# Blocks


def test_a_generator_closed_in_another_context_aborts_its_turn() -> None:
    import contextvars

    guard = ToolCallGuard()
    kept: list[Turn] = []

    def agent() -> Iterable[int]:
        with guard.turn() as turn:
            kept.append(turn)
            yield 1

    stream: Any = agent()
    contextvars.copy_context().run(next, stream)
    stream.close()
    assert kept[0].outcome == "aborted"
    assert guard.current_turn() is None


def test_a_block_is_entered_once() -> None:
    from guard import TurncapError

    block = ToolCallGuard().turn()
    with block:
        pass
    with pytest.raises(TurncapError, match="one a turn"), block:
        pass


def test_async_blocks_nest_by_task() -> None:
    import asyncio

    receiver = Receiver()
    guard = receiver.guard()

    async def child(name: str) -> None:
        async with guard.turn(conversation_id=name) as turn:
            await asyncio.sleep(0)
            assert guard.current_turn() is turn

    async def parent() -> str:
        async with guard.turn(conversation_id="parent") as turn:
            await asyncio.gather(child("one"), child("two"))
            assert guard.current_turn() is turn
        return turn.id

    parent_id = asyncio.run(parent())
    started = [event.attributes for event in receiver.logs if event.name == "turncap.turn.started"]
    assert [event.get("turncap.turn.parent_id") for event in started] == [None, parent_id, parent_id]


def test_start_turn_touches_no_context() -> None:
    from opentelemetry import trace

    receiver = Receiver()
    guard = receiver.guard()
    turn = guard.start_turn()
    assert guard.current_turn() is None
    assert not trace.get_current_span().get_span_context().is_valid
    turn.end()
    with guard.turn():
        assert trace.get_current_span().get_span_context().is_valid
    assert not trace.get_current_span().get_span_context().is_valid


# Labels


def test_labels_are_checked() -> None:
    guard = ToolCallGuard()
    bad: list[dict[str, Any]] = [
        {"by": "nobody"},
        {"by": "user", "kind": "loop"},
        {"by": "user", "stuck": "yes"},
        {"by": "user", "productive": 1},
        {"by": "user", "probability": 0},
        {"by": "user", "probability": 1.5},
        {"by": "user", "probability": float("nan")},
        {"by": "user", "probability": True},
    ]
    for arguments in bad:
        with pytest.raises(PolicyError):
            guard.label("turn", **arguments)


def test_a_label_names_the_turns_own_guard_and_number() -> None:
    receiver = Receiver()
    one, other = receiver.guard(), receiver.guard()
    turn = one.start_turn()
    turn.end()
    label_id = other.label(turn.id, by="human", stuck=True, productive=False, kind="stuck")
    label = receiver.log("turncap.turn.labelled").attributes
    assert label["turncap.event.id"] == f"{turn.id}/label/{label_id}"
    assert (label["turncap.guard.id"], label["turncap.turn.seq"]) == (one.id, 1)


# Time


def test_times_are_rounded_not_cut() -> None:
    receiver, clock = Receiver(), ManualClock()
    turn = receiver.guard(clock=clock).start_turn()
    for tenths in range(1, 20):
        clock.second = tenths / 10
        turn.admit("tool", {"k": tenths})
    clock.second = 913.9
    turn.end()
    found = receiver.log("turncap.turn.calls").attributes["turncap.calls.offset_ms"]
    assert list(found) == [tenths * 100 for tenths in range(1, 20)]
    assert receiver.log("turncap.turn.ended").attributes["turncap.duration_ms"] == 913_900


def test_times_come_from_the_one_clock() -> None:
    receiver, clock = Receiver(), ManualClock()
    turn = receiver.guard(clock=clock).start_turn()
    turn.admit("tool", {"k": 1})
    clock.second += 1.5
    turn.admit("tool", {"k": 2})
    clock.second -= 99  # a clock that falls back says nothing
    turn.admit("tool", {"k": 3})
    clock.known = False
    turn.admit("tool", {"k": 4})
    clock.known, clock.second = True, 2.0
    turn.end()
    assert receiver.log("turncap.turn.calls").attributes["turncap.calls.offset_ms"] == [0, 1500, -1, -1]
    ended = receiver.log("turncap.turn.ended")
    assert ended.attributes["turncap.duration_ms"] == 2000
    assert ended.at - receiver.log("turncap.turn.started").at == 2_000_000_000


# Carrying over


def test_a_carried_turn_goes_on_where_it_was_with_its_own_policy() -> None:
    receiver, clock = Receiver(), ManualClock()
    first = receiver.guard(soft_cap=4, stuck_at=3, backstop=80, mode="shadow", clock=clock)
    turn = first.start_turn(conversation_id="c")
    for n in range(55):
        turn.settle(turn.admit("tool", {"k": n % 50}, str(n)), result=n)
    clock.second = 3.0
    state = turn.to_state()
    elsewhere = ManualClock(clock.unix + 5_000_000_000)  # two seconds passed between the two processes
    second = receiver.guard(max_tool_calls=1, clock=elsewhere)
    again = second.restore_turn(state)
    assert (again.id, again.outcome) == (turn.id, None)
    assert again.admit("tool", {"k": 0}, "3").call_number == 4  # an id of the first process
    for n in range(55, 60):
        assert again.admit("tool", {"k": n}, str(n)).allowed
    elsewhere.second = 1.0
    again.end()
    events = receiver.logs
    assert [event.attributes["turncap.event.id"] for event in events] == [
        f"{turn.id}/{n}" for n in range(len(events))
    ]
    assert [event.name.removeprefix("turncap.") for event in events] == [
        "turn.started",
        "soft_cap.crossed",
        "turn.calls",
        "turn.calls",
        "turn.ended",
    ]
    assert len({event.trace_id for event in events}) == 1
    chunks = [event.attributes for event in events if event.name == "turncap.turn.calls"]
    assert [len(chunk["turncap.calls.key"]) for chunk in chunks] == [50, 10]
    assert chunks[1]["turncap.calls.key"] == [0, 1, 2, 3, 4, 50, 51, 52, 53, 54]
    assert chunks[1]["turncap.calls.offset_ms"] == [0] * 5 + [5_000] * 5
    ended = events[-1].attributes
    assert (ended["turncap.calls"], ended["turncap.duration_ms"]) == (60, 6_000)
    assert [point for point, _ in receiver.points("turncap.turns.started")] == [{}]
    ((point, count),) = receiver.points("turncap.turns")
    assert (point["turncap.mode"], point["turncap.policy.kind"], count) == ("shadow", "adaptive", 1)
