"""However long a turn is: no event passes 16 KiB, no call is lost from the chunks, memory is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard import CapPolicy, ToolCall, ToolCallGuard, Turn
from guard.counts import WAITING
from tests.guard.receiving import ManualClock, Receiver

LARGEST = 16 * 1024


def singles(turn: Turn, calls: int, clock: ManualClock) -> None:
    for n in range(calls):
        clock.second = n * 0.37
        turn.settle(turn.admit(f"tool{n % 7}", {"n": n % 9_000}), result=f"result {n % 13}")


def batches(turn: Turn, calls: int, clock: ManualClock) -> None:
    for begin in range(0, calls, 1_000):
        verdicts = turn.admit_batch([ToolCall("tool", {"n": n}) for n in range(begin, begin + 1_000)])
        for verdict in reversed(verdicts):
            turn.settle(verdict, error="no")


def long_names(turn: Turn, calls: int, clock: ManualClock) -> None:
    for n in range(calls):
        turn.settle(turn.admit("😀" * 124 + f"{n % 1_500:04}", {"n": n}), result=n)


def long_names_first(turn: Turn, calls: int, clock: ManualClock) -> None:
    """Nothing settles before 400 calls were asked about."""
    for begin in range(0, calls, 400):
        asked = [
            turn.admit("😀" * 124 + f"{n % 1_500:04}", {"n": n})
            for n in range(begin, min(begin + 400, calls))
        ]
        for verdict in asked:
            turn.settle(verdict, result=verdict.call_number)


def settle_storms(turn: Turn, calls: int, clock: ManualClock) -> None:
    waiting = []
    for n in range(calls):
        waiting.append(turn.admit("tool", {"n": n}))
        if len(waiting) == 9_999:
            for verdict in waiting:
                turn.settle(verdict, result=verdict.call_number)
            waiting.clear()
    for verdict in waiting:
        turn.settle(verdict, result="r")


def retries(turn: Turn, calls: int, clock: ManualClock) -> None:
    for n in range(calls):
        turn.settle(turn.admit("tool", {"n": n % 3}), result="r")
        turn.retry()
        if n % 1_000 == 999:
            for _ in range(450):
                turn.retry()


def unknown_times(turn: Turn, calls: int, clock: ManualClock) -> None:
    for n in range(calls):
        clock.known = n % 3 == 0
        clock.second = n * 1e4
        turn.settle(turn.admit(f"tool{n}", {"n": n}, f"id{n}"), result=n)


SHAPES: list[tuple[str, Callable[[Turn, int, ManualClock], None], int]] = [
    ("single calls", singles, 5_000),
    ("batches of 1,000, settled in reverse", batches, 6_000),
    ("1,500 tools with the longest names", long_names, 3_000),
    ("1,500 tools with the longest names, settled late", long_names_first, 3_000),
    ("settle storms", settle_storms, 12_000),
    ("a retry after every call, and storms of them", retries, 2_500),
    ("times that come and go", unknown_times, 3_000),
]
CASES = [pytest.param(drive, calls, id=sentence) for sentence, drive, calls in SHAPES] + [
    pytest.param(drive, 100_000, id=f"{sentence}, 100,000 calls", marks=pytest.mark.heavy)
    for sentence, drive, _ in SHAPES
]


@pytest.mark.parametrize(("drive", "calls"), CASES)
def test_no_event_passes_16_kib_and_the_chunks_hold_every_call(
    drive: Callable[[Turn, int, ManualClock], None], calls: int
) -> None:
    receiver, clock = Receiver("logs"), ManualClock()
    guard = receiver.guard(
        max_tool_calls=0,
        clock=clock,
        agent_name="😀" * 128,
        model="😀" * 128,
        candidates=[CapPolicy.adaptive(soft_cap=2**53 - n, backstop=2**53) for n in range(50)],
        tool_info=lambda name: ("😀" * 128, True),
    )
    turn = guard.start_turn(conversation_id="😀" * 128, sample="😀" * 128, continues="😀" * 128)
    drive(turn, calls, clock)
    clock.known = True
    turn.end()
    logs = receiver.logs
    assert max((event.size, event.name) for event in logs)[0] <= LARGEST
    assert not receiver.dropped
    chunks = [event.attributes for event in logs if event.name == "turncap.turn.calls"]
    (ended,) = [event.attributes for event in logs if event.name == "turncap.turn.ended"]
    assert [chunk["turncap.chunk.index"] for chunk in chunks] == list(range(ended["turncap.chunks.sent"]))

    def joined(name: str) -> list[Any]:
        return [value for chunk in chunks for value in chunk.get(f"turncap.{name}", ())]

    counts: dict[str, int] = {}
    for chunk in chunks:
        assert chunk["turncap.chunk.first_call"] == counts.get("calls", 0) + 1
        counts["calls"] = counts.get("calls", 0) + len(chunk.get("turncap.calls.key", ()))
    assert counts["calls"] == ended["turncap.calls"] == calls
    for group in (("key", "tool", "mutating", "offset_ms", "batch"),):
        assert {len(joined(f"calls.{name}")) for name in group} == {calls}
    settled = joined("settled.call")
    assert len(settled) == len(set(settled)) == ended["turncap.settled"] == calls
    assert {len(joined(f"settled.{name}")) for name in ("result", "error", "after")} == {calls}
    assert len(joined("retry.at")) == len(joined("retry.total")) == ended["turncap.retries"]
    assert max(joined("calls.tool")) < len(joined("tools")) == len(joined("tools.class"))
    assert joined("calls.batch") == sorted(joined("calls.batch"))


def test_chunks_hold_50_calls_up_to_call_1_000_then_up_to_500() -> None:
    receiver = Receiver("logs")
    turn = receiver.guard(max_tool_calls=0).start_turn()
    for n in range(3_000):
        turn.admit("tool", {"n": n % 3})
    turn.end()
    sizes = [
        len(event.attributes["turncap.calls.key"])
        for event in receiver.logs
        if event.name == "turncap.turn.calls"
    ]
    assert sizes[:20] == [50] * 20
    assert all(50 < size <= 500 for size in sizes[20:-1])


def test_a_chunk_is_a_heartbeat_sent_when_it_is_full() -> None:
    receiver = Receiver("logs")
    turn = receiver.guard().start_turn()
    for n in range(49):
        turn.admit("tool", {"n": n})
    assert [event.name for event in receiver.logs] == ["turncap.turn.started"]
    turn.admit("tool", {"n": 50})
    assert [event.name for event in receiver.logs][1:] == ["turncap.turn.calls"]


def held(turn: Turn) -> dict[str, int]:
    """How much the turn holds of what could grow."""
    counts = turn._core.counts
    return {
        "keys": len(counts.keys.known),
        "pairs": len(counts.pairs.known),
        "queued keys": len(counts.keys._queue) + len(counts.keys._kept),
        "queued pairs": len(counts.pairs._queue) + len(counts.pairs._kept),
        "outstanding": len(counts.outstanding.keys),
        "ids": len(counts.outstanding.ids),
        "calls": len(counts.chunks.calls[0]) + len(counts.waiting) // WAITING,
        "settled": len(counts.chunks.settled),
        "happened": len(counts.happened),
        "tools": len(counts.tools),
        "milestones": len(counts.milestones),
    }


def test_nothing_a_turn_holds_passes_its_bound_even_if_results_come_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results come 450 calls late, when their keys, among others that came again, are long forgotten."""
    monkeypatch.setattr("guard.memory.REMEMBERED", 500)  # the same bounds, met sooner
    monkeypatch.setattr("guard.outstanding.MOST_IDS", 500)
    monkeypatch.setattr("guard.counts.MOST_TOOLS", 100)
    turn = ToolCallGuard(max_tool_calls=0).start_turn()
    verdicts = []
    for n in range(3_000):
        verdicts.append(turn.admit(f"tool{n}", {"n": n % 499 if n < 1_000 else n}, str(n)))
        if n >= 450:
            turn.settle(verdicts[n - 450], result=n)
    found = held(turn)
    assert found.pop("tools") <= 101
    assert {name: count for name, count in found.items() if count > 500} == {}
    assert turn._core.counts.keys.forgotten


def test_a_guard_does_not_keep_names_of_any_length() -> None:
    guard = ToolCallGuard(max_tool_calls=0)
    turn = guard.start_turn()
    for n in range(100):
        turn.admit(f"{n}" + "x" * 100_000)
    assert sum(map(len, guard.tools)) < 100_000


MILLION = """
from guard import ToolCallGuard
turn = ToolCallGuard(max_tool_calls=0).start_turn()
def most():  # not ru_maxrss, which a process takes over from the one that started it
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024
for n in range(1_000_000):
    turn.settle(turn.admit("tool", {"n": n}, str(n)), result=n)
    if n % 100_000 == 99_999:
        print(most())
"""


@pytest.mark.heavy
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_memory_is_bounded_under_a_million_distinct_keys_with_the_policy_disabled() -> None:
    """MiB that a process has held at the most, after each hundred thousand."""
    printed = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, check=True, timeout=500)
    held = [int(line) for line in printed.stdout.split()]
    assert len(held) == 10
    assert held[-1] - held[0] <= 8, held
    assert held[-1] < 150, held
