"""Arguments, results, names and ids of any kind: nothing raises, nothing takes long, telemetry encodes."""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard import ToolCall, ToolCallGuard
from guard.keys import call_key
from tests.guard.receiving import Receiver


class Raises:
    """Raises whatever is done with it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


class Late(Raises):
    """Hashable until it is a key."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


class Liar(list[int]):
    """Says that it is longer than any memory."""

    def __len__(self) -> int:
        return sys.maxsize


class Endless(Mapping[str, int]):
    """Has no last key."""

    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield str(number)

    def __len__(self) -> int:
        return 3


class EndlessSequence(Sequence[Any]):
    """Has no last item."""

    def __getitem__(self, place: Any) -> Any:
        return 1

    def __len__(self) -> int:
        return 3


class Text(str):
    """A text that fails when it is written."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")


def cycle() -> Any:
    found: list[Any] = [1]
    found.append(found)
    return found


def branching_cycle() -> Any:
    found: dict[str, Any] = {}
    found["a"] = found["b"] = found
    return found


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = {"a": [found]}
    return found


def sets(levels: int) -> Any:
    found: Any = frozenset()
    for _ in range(levels):
        found = frozenset({found, 1})
    return found


def shared(levels: int) -> Any:
    found: Any = ["x" * 100]
    for _ in range(levels):
        found = [found, found]
    return found


HOSTILE: list[tuple[str, Callable[[], Any]]] = [
    ("an object whose every method raises", Raises),
    ("such an object as a key", lambda: {Late(): 1}),
    ("a text that fails", lambda: {"a": Text("x")}),
    ("a cycle", cycle),
    ("a cycle that branches", branching_cycle),
    ("10,000 levels", lambda: deep(5_000)),
    ("a value that holds itself 2^60 times over", lambda: shared(60)),
    ("sets in sets, 60 deep", lambda: sets(60)),
    ("sets in sets, 5,000 deep", lambda: sets(5_000)),
    ("50 MB of text", lambda: {"a": "x" * 50_000_000}),
    ("50 MB of text that must be escaped", lambda: {"a": '"\x01' * 12_500_000, "b": 1.5}),
    ("a range without end", lambda: {"a": range(10**15)}),
    ("a mapping without end", Endless),
    ("a sequence without end", EndlessSequence),
    ("a list that lies about its length", lambda: Liar([1])),
    ("two million numbers", lambda: [1.5] * 2_000_000),
    ("two million numbers beside a key that is none", lambda: {1: [1.5] * 2_000_000}),
    ("an integer of 100,000 digits", lambda: {"a": 1 << 332_192}),
    ("a mock, which has every attribute", MagicMock),
    ("NaN and infinities", lambda: {"a": float("nan"), "b": float("inf")}),
    ("lone surrogates", lambda: {"\udc00": "\ud800"}),
    ("generators, functions, classes, modules", lambda: [iter([]), len, Raises, sys, lambda: 1]),
    ("bytes, arrays, memory", lambda: [b"\xff", bytearray(b"x"), memoryview(b"y"), array("d", [1.0])]),
    ("Ellipsis and NotImplemented", lambda: [..., NotImplemented]),
]


@pytest.mark.parametrize("make", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_no_argument_or_result_raises_or_takes_long_and_every_call_counts(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guard.keys.LARGEST", 100_000)  # the same bound, met sooner
    guard = ToolCallGuard(max_tool_calls=3, ignore_args={"tool": {"gone"}})
    turn = guard.start_turn()
    bad = make()
    began = time.thread_time()
    verdict = turn.admit("tool", bad)
    assert (verdict.allowed, verdict.call_number) == (True, 1)
    assert turn.admit("tool", {"in": bad}).call_number == 2
    assert turn.admit_batch([ToolCall("tool", bad), ToolCall("tool", bad)])[1].halted
    turn.settle(verdict, result=bad)
    spent = time.thread_time() - began
    assert set(guard.faults) <= {"key", "result"}
    assert (turn._core.counts.settled, turn.end()) == (1, "halted")
    assert spent < 20


RESULTS = [
    "a" * 300_000,
    "1" * 300_000,
    "1." * 150_000,
    "1h" * 150_000,
    "0x" * 150_000,
    "Mon " * 75_000,
    "a[1" * 100_000,
    "1-" * 150_000,
    "2026-12-01 " * 30_000,
    "f1" * 150_000,
    " " * 300_000,
]


@pytest.mark.parametrize("text", RESULTS, ids=lambda text: text[:4] + "…")
def test_masking_takes_no_longer_for_a_text_made_for_it(text: str) -> None:
    turn = ToolCallGuard().start_turn()
    verdict = turn.admit("tool")
    began = time.thread_time()
    turn.settle(verdict, result=text)
    assert time.thread_time() - began < 2


def test_a_failing_conversion_is_a_call_of_its_own_and_one_fault() -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    assert [turn.admit("tool", {"a": Raises()}).max_repeat for _ in range(3)] == [1, 1, 1]
    assert guard.faults == {"key": 3}


STABLE: list[tuple[str, Callable[[], Any]]] = [
    ("a set", lambda: {"c", "a", "b"}),
    ("bytes", lambda: b"\x00\xff"),
    ("a tuple as key", lambda: {(1, 2): 3}),
    ("a function", lambda: len),
    ("an object with fields", lambda: type("Point", (), {"__init__": _init})()),
    ("an object whose repr has its address", lambda: lambda: 1),
    ("a decimal", lambda: Decimal("1.10")),
    ("a time", lambda: datetime(2026, 12, 1)),
    ("an array", lambda: array("d", [1.0] * 5_000)),
]


def _init(self: Any) -> None:
    self.x = 1


@pytest.mark.parametrize("make", [row[1] for row in STABLE], ids=[row[0] for row in STABLE])
def test_what_is_no_json_has_a_stable_form(make: Callable[[], Any]) -> None:
    assert call_key("t", make()) == call_key("t", make())
    assert call_key("t", make()) != call_key("t", repr(make()))


def test_long_arrays_that_differ_in_the_middle_are_two_keys() -> None:
    one, other = array("d", [1.0] * 5_000), array("d", [1.0] * 5_000)
    other[2_500] = 2.0
    assert call_key("t", one) != call_key("t", other)


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(alphabet=st.characters(), max_size=10),
        st.binary(max_size=10),
        st.complex_numbers(),
        st.decimals(),
        st.dates(),
        st.timedeltas(),
        st.uuids(),
        st.just("\ud800"),
        st.builds(Raises),
        st.builds(object),
        st.builds(Text, st.text(max_size=3)),
        st.just(Liar),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers(), st.none()), inner, max_size=4),
        st.frozensets(st.integers() | st.text(max_size=3), max_size=3),
    ),
    max_leaves=8,
)


@given(st.lists(st.tuples(ANYTHING, ANYTHING, ANYTHING, ANYTHING), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_anything_at_all_is_counted_and_what_is_emitted_encodes(
    calls: list[tuple[Any, Any, Any, Any]],
) -> None:
    receiver = Receiver()
    guard = receiver.guard(mode="shadow", soft_cap=1, stuck_at=1, agent_name="\ud800" * 300, model="m" * 300)
    turn = guard.start_turn(conversation_id="\udfff", sample="s" * 1_000)
    for number, (name, args, call_id, result) in enumerate(calls, start=1):
        verdict = turn.admit(name, args, mutating=args)
        assert (verdict.allowed, verdict.call_number) == (True, number)
        assert isinstance(verdict.message, str)
        turn.settle(call_id, result=result)
        turn.settle(verdict, error=result)
    assert turn.end(None) == "completed"
    guard.label("\ud800" * 200, by="human", task_outcome="\ud800", stuck=True)
    assert set(guard.faults) <= {"key", "result", "unknown_call", "settle"}
    assert receiver.log("turncap.turn.ended").attributes["turncap.calls"] == len(calls)
    for event in receiver.logs:
        for text in event.attributes.values():
            assert not isinstance(text, str) or len(text) <= 128 + len(turn.id) + 40
    assert len(receiver.log("turncap.turn.calls").attributes["turncap.calls.key"]) == len(calls)
    assert not receiver.dropped


def broken(name: Any) -> Any:
    raise RuntimeError("no")


CALLERS: list[tuple[str, dict[str, Any], str]] = [
    ("a tool_info that raises", {"tool_info": broken}, "tool_info"),
    ("a tool_info that answers nonsense", {"tool_info": lambda name: 7}, "tool_info"),
    ("a mask that raises", {"mask": broken}, "result"),
]


@pytest.mark.parametrize(("arguments", "kind"), [r[1:] for r in CALLERS], ids=[r[0] for r in CALLERS])
def test_a_callers_broken_code_never_switches_the_cap_off(arguments: dict[str, Any], kind: str) -> None:
    guard = ToolCallGuard(max_tool_calls=2, **arguments)
    turn = guard.start_turn()
    for n in range(2):
        turn.settle(turn.admit("unheard of", {"n": n}), result="r")
    assert turn.admit("unheard of").halted
    assert kind in guard.faults


class BrokenClock:
    """Fails once the turn has begun."""

    def __init__(self) -> None:
        self.asked = 0

    def unix_ns(self) -> int:
        """The wall's."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Raises, or is no time."""
        self.asked += 1
        if self.asked % 2:
            raise RuntimeError("no")
        return float("nan")


def test_a_broken_clock_costs_times_alone() -> None:
    receiver = Receiver()
    turn = receiver.guard(max_tool_calls=1, clock=BrokenClock()).start_turn()
    turn.admit("tool")
    assert turn.admit("tool").halted
    turn.end()
    assert receiver.log("turncap.turn.calls").attributes["turncap.calls.offset_ms"] == [-1, -1]
    assert "turncap.duration_ms" not in receiver.log("turncap.turn.ended").attributes


@pytest.mark.parametrize("calls", [None, 5, [None], ["tool"], [ToolCall("a"), {}]], ids=repr)
def test_what_is_no_batch_is_allowed_and_counted_as_a_fault(calls: Any) -> None:
    guard = ToolCallGuard()
    verdicts = guard.start_turn().admit_batch(calls)
    assert all(verdict.allowed and verdict.call_number == 0 for verdict in verdicts)
    assert len(verdicts) == (len(calls) if isinstance(calls, list) else 0)
    assert guard.faults == {"admit": 1}


def test_a_batch_may_be_any_iterable() -> None:
    turn = ToolCallGuard().start_turn()
    calls: Any = (ToolCall("tool", {"n": n}) for n in range(3))
    assert [verdict.call_number for verdict in turn.admit_batch(calls)] == [1, 2, 3]


def test_a_fault_is_logged_once_without_any_text_of_the_call(caplog: pytest.LogCaptureFixture) -> None:
    guard = ToolCallGuard()
    turn = guard.start_turn()
    for _ in range(3):
        turn.admit("secret tool", {"secret": Raises()})
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


STATES: list[tuple[str, bytes]] = [
    ("nothing", b""),
    ("no JSON", b"\x00\xff"),
    ("JSON of another thing", b"[1]"),
    ("nested without end", b"[" * 100_000),
    ("a version alone", b'{"version": 1}'),
    ("a newer version", b'{"version": 2}'),
]


@pytest.mark.parametrize("state", [row[1] for row in STATES], ids=[row[0] for row in STATES])
def test_what_is_no_state_is_refused_in_one_line(state: bytes) -> None:
    from guard import TurncapError

    with pytest.raises(TurncapError, match="restore_turn") as caught:
        ToolCallGuard().restore_turn(state)
    assert "\n" not in str(caught.value)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_state_is_refused_or_runs(data: st.DataObject) -> None:
    """Whatever one value of it was replaced by: a TurncapError, or a turn that counts."""
    import json

    from guard import TurncapError

    turn = ToolCallGuard().start_turn()
    turn.settle(turn.admit("tool", {"a": 1}, "id"), result="r")
    state = json.loads(turn.to_state())
    part = data.draw(st.sampled_from([state, state["turn"], state["counts"]]))
    name = data.draw(st.sampled_from(sorted(part)))
    part[name] = data.draw(st.none() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}))
    guard = ToolCallGuard()
    try:
        restored = guard.restore_turn(json.dumps(state).encode())
    except TurncapError:
        return
    restored.admit("tool", {"a": 2})
    assert restored.end() in ("completed", "halted")
