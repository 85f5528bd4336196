"""The bundled real turns through the guard: every figure that is printed of the signals comes out."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from analytics.evidence import TURNS
from guard import CapPolicy, ToolCallGuard

Row = tuple[int, int, int, int]  # stuck turns halted, others halted, calls saved, calls cut
SOFT_CAPS = (0, 50, 100)
TABLE: dict[tuple[str, int], tuple[Row, Row, Row]] = {
    ("repeat", 6): ((10, 101, 588, 2213), (7, 57, 297, 1354), (1, 9, 1, 198)),
    ("repeat", 20): ((7, 0, 425, 0), (7, 0, 277, 0), (1, 0, 1, 0)),
    ("recent_repeat", 6): ((10, 47, 580, 1100), (7, 12, 297, 272), (1, 1, 1, 8)),
    ("novelty_repeat", 6): ((9, 0, 568, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("same_result_repeat", 6): ((10, 1, 570, 7), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("no_progress", 6): ((10, 0, 568, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("no_progress", 8): ((8, 0, 532, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
}
POLICIES = {
    (signal, stuck_at, soft_cap): CapPolicy.adaptive(
        signal=signal, stuck_at=stuck_at, soft_cap=soft_cap, backstop=1000
    )
    for signal, stuck_at in TABLE
    for soft_cap in SOFT_CAPS
}
EXPECTED = {
    (signal, stuck_at, soft_cap): row
    for (signal, stuck_at), rows in TABLE.items()
    for soft_cap, row in zip(SOFT_CAPS, rows, strict=True)
}


def recorded() -> list[dict[str, Any]]:
    """The turns; a call settles before the next is asked about."""
    return [json.loads(line) for line in gzip.decompress(TURNS.read_bytes()).splitlines()]


def may_halt(turn: dict[str, Any]) -> bool:
    """Whether any signal can reach 6: all of them need six calls whose key was seen before, or five."""
    return len(turn["key"]) - len(set(turn["key"])) >= 5


def tally(halts: list[tuple[bool, int, int | None]]) -> Row:
    """Of (labelled stuck, calls, halting call) a turn."""
    stuck = [calls - h + 1 for is_stuck, calls, h in halts if h is not None and is_stuck]
    others = [calls - h + 1 for is_stuck, calls, h in halts if h is not None and not is_stuck]
    return len(stuck), len(others), sum(stuck), sum(others)


def halting_calls(guard: ToolCallGuard, turn: dict[str, Any]) -> list[int | None]:
    """Where the guard's policy halts the turn, then where each candidate does."""
    running = guard.start_turn()
    calls = zip(turn["tool"], turn["key"], turn["result_norm"], turn["error"], strict=True)
    for tool, key, result, failed in calls:
        verdict = running.admit(tool, {"key": key})
        if verdict.halted:
            break
        text = f"r{result}"
        running.settle(verdict, **({"error": text} if failed else {"result": text}))
    halt = running.verdict
    return [
        None if halt is None else halt.call_number,
        *(candidate.halt_call for candidate in running._core.counts.candidates),
    ]


def test_the_signal_table_comes_out_of_one_pass_with_every_policy_as_candidate() -> None:
    guard = ToolCallGuard(max_tool_calls=0, candidates=list(POLICIES.values()))
    halts: dict[Any, list[tuple[bool, int, int | None]]] = {name: [] for name in POLICIES}
    turns = recorded()
    for turn in filter(may_halt, turns):
        found = halting_calls(guard, turn)[1:]
        for name, call in zip(POLICIES, found, strict=True):
            halts[name].append((turn["label"] == "stuck", len(turn["key"]), call))
    assert (len(turns), sum(len(turn["key"]) for turn in turns)) == (4_018, 69_739)
    assert {name: tally(rows) for name, rows in halts.items()} == EXPECTED
    assert guard.faults == {}


@pytest.mark.heavy
@pytest.mark.parametrize("name", list(POLICIES), ids=lambda name: " ".join(map(str, name)))
def test_the_signal_table_comes_out_with_each_policy_enforced(name: tuple[str, int, int]) -> None:
    guard = ToolCallGuard(policy=POLICIES[name])
    halts = [
        (turn["label"] == "stuck", len(turn["key"]), halting_calls(guard, turn)[0])
        for turn in filter(may_halt, recorded())
    ]
    assert tally(halts) == EXPECTED[name]
