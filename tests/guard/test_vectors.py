"""The outcomes observed by running the rule's origin hold for the guard.

`tests/data/origin.json.gz` says itself how it was made. Left out: row 28 (a switch for the session, which the
guard does not have), pairs that only show how JavaScript writes numbers, and values that exist in it alone.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guard import CapPolicy, PolicyError, ToolCall, ToolCallGuard, Turn
from guard.keys import call_key
from guard.policy import PolicyKind

VECTORS: dict[str, Any] = json.loads(
    gzip.decompress((Path(__file__).parent.parent / "data" / "origin.json.gz").read_bytes())
)


def policy_of(vector: dict[str, Any]) -> CapPolicy:
    kind, cap = vector["policy"]["kind"], vector["policy"]["cap"]
    if kind == "hard":
        return CapPolicy.hard(cap)
    return CapPolicy.disabled() if kind == "disabled" else CapPolicy.adaptive(soft_cap=cap)


def drive(vector: dict[str, Any]) -> dict[str, Any]:
    """What the guard does with a sequence of events, in the words of the vectors."""
    guard = ToolCallGuard(policy=policy_of(vector))
    turn: Turn = guard.start_turn()
    calls = refused = 0
    fires: list[int] = []
    at_first: list[int] | None = None
    for event in vector["events"]:
        if event[0] == "reset":
            turn.end()
            turn = guard.start_turn()
            continue
        halted = turn.halted
        if event[0] == "call":
            calls += 1
            verdict = turn.admit("tool", {"k": event[1]})
            if verdict.halted and not halted:
                fires.append(calls)
                at_first = at_first or [verdict.total_calls, verdict.max_repeat]
            halted = verdict.halted
        elif event[0] == "finished":
            turn.reply_finished()
        elif event[0] == "retry":
            turn.retry()
        refused += halted
    counts = turn._core.counts
    end = [counts.total, counts.committed, counts.repeat.peak]
    return {
        "expected": fires[0] if fires else None,
        "fires": fires,
        "at_first": at_first,
        "end": end,
        "refused_events": refused,
    }


SEQUENCES = [row for row in VECTORS["rows"] if row["row"] != "28"] + VECTORS["sequences"]


@pytest.mark.parametrize(
    "vector",
    SEQUENCES,
    ids=lambda v: f"row {v['row']}: {v['setup']}" if "row" in v else f"{v['structure']} {v['id']}",
)
def test_sequences(vector: dict[str, Any]) -> None:
    assert drive(vector) == {
        key: vector[key] for key in ("expected", "fires", "at_first", "end", "refused_events")
    }


@pytest.mark.parametrize("vector", VECTORS["batches"], ids=lambda v: f"batches {v['id']}: {v['setup']}")
def test_batches(vector: dict[str, Any]) -> None:
    turn = ToolCallGuard(policy=policy_of(vector)).start_turn()
    first = None
    executed = 0
    for number, batch in enumerate(vector["batches"], start=1):
        verdicts = turn.admit_batch([ToolCall("tool", {"k": key}) for key in batch])
        assert len({verdict.halted for verdict in verdicts}) <= 1
        if any(verdict.halted for verdict in verdicts):
            first = first or number
        else:
            executed += len(batch)
    expected = vector["expected"]
    assert (first, executed) == (expected["first_batch"], expected["executed"])
    assert (turn._core.counts.total, turn._core.counts.repeat.peak) == (
        expected["total"],
        expected["max_repeat"],
    )


def test_every_predicate_point() -> None:
    for total, repeat, cap, explicit, halt in VECTORS["predicate"]:
        if cap == "Infinity":
            policy = CapPolicy.disabled()
        else:
            policy = CapPolicy.hard(cap) if explicit else CapPolicy.adaptive(soft_cap=cap)
        assert (policy.decide(total, repeat) is not None) == bool(halt), (total, repeat, cap, explicit)


@pytest.mark.parametrize(
    ("text", "expected"), VECTORS["settings"], ids=[row[0] for row in VECTORS["settings"]]
)
def test_settings(text: str, expected: dict[str, Any]) -> None:
    value = None if text == "unset" else json.loads(text)
    if expected.get("error") or type(value) is float:
        with pytest.raises(PolicyError, match="max_tool_calls"):
            ToolCallGuard(max_tool_calls=value)
        return
    policy = ToolCallGuard(max_tool_calls=value).policy
    if value is None:  # the origin takes null for an explicit 100; None is absent here
        assert policy == CapPolicy.adaptive()
    elif expected["cap"] == "Infinity":
        assert policy.kind is PolicyKind.DISABLED
    else:
        assert policy.hard_cap == expected["cap"]


PAIRS = [pair for pair in VECTORS["key_pairs"] if not pair[3].startswith("JS artefact")]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[3])
def test_key_pairs(pair: list[Any]) -> None:
    one, other, same, _ = pair
    assert (call_key("tool", json.loads(one)) == call_key("tool", json.loads(other))) is same


NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf"), "-0": -0.0}


@pytest.mark.parametrize(
    "pair",
    [
        p
        for p in VECTORS["key_pairs_js"]
        if any(n in p[0] + p[1] for n in NUMBERS) and "undefined" not in p[0] + p[1]
    ],
    ids=lambda pair: pair[2 + 1],
)
def test_key_pairs_of_numbers_that_json_text_cannot_carry(pair: list[Any]) -> None:
    def value(text: str) -> Any:
        inner = text.removeprefix("{a:").removesuffix("}")
        return {"a": NUMBERS[inner] if inner in NUMBERS else json.loads(inner)}

    assert (call_key("tool", value(pair[0])) == call_key("tool", value(pair[1]))) is pair[2]


def test_at_call_1001_of_a_diverse_turn_that_just_reached_six_repeats_both_thresholds_hold() -> None:
    turn = ToolCallGuard().start_turn()
    verdicts = [turn.admit("tool", {"k": n % 200}) for n in range(1001)]
    assert [verdict.halted for verdict in verdicts[-2:]] == [False, True]
    assert (verdicts[-1].threshold, verdicts[-1].level) == ("backstop", 6)
