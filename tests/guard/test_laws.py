"""Laws of the guard: it decides as a re-count of its definition does, however its turn was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from guard import CapPolicy, ToolCall, ToolCallGuard, Turn, Verdict
from guard.carrying import counts_to_state
from guard.policy import SIGNALS
from tests.guard.receiving import ManualClock

Op = tuple[
    str, Any
]  # ("ask", keys) · ("settle", (which outstanding call, result, failed)) · finished · retry

_BATCHES = st.lists(st.integers(0, 4), min_size=1, max_size=6)
_SETTLES = st.tuples(st.integers(0, 50), st.integers(0, 2), st.booleans())
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.lists(st.integers(0, 4), min_size=1, max_size=1)),
        st.tuples(st.just("ask"), _BATCHES),
        st.tuples(st.just("settle"), _SETTLES),
        st.tuples(st.just("settle"), _SETTLES),
        st.tuples(st.just("finished"), st.none()),
        st.tuples(st.just("retry"), st.none()),
    ),
    max_size=60,
)


@st.composite
def policies(draw: st.DrawFn) -> CapPolicy:
    """Small ones, so that every limit is met."""
    if draw(st.integers(0, 9)) == 0:
        return CapPolicy.hard(draw(st.integers(1, 20)))
    soft_cap = draw(st.integers(0, 12))
    return CapPolicy.adaptive(
        soft_cap=soft_cap,
        stuck_at=draw(st.integers(1, 5)),
        backstop=max(1, soft_cap + draw(st.integers(0, 25))),
        signal=draw(st.sampled_from(SIGNALS)),
    )


@dataclass(slots=True)
class Recount:
    """The contract read literally: whole lists, counted anew at every call."""

    policy: CapPolicy
    calls: int = 0
    total: int = 0
    committed: int = 0
    epoch: list[int] = field(default_factory=list)  # keys asked about since the last retry
    settled: list[tuple[int, tuple[int, bool]]] = field(default_factory=list)  # since the last retry
    ever_settled: int = 0
    halted: bool = False

    def levels(self, n: int) -> dict[str, int | None]:
        """Of the last call in `epoch`, which has number n."""
        key = self.epoch[-1]
        news = [i for i, k in enumerate(self.epoch) if k not in self.epoch[:i]]
        mine = [result for k, result in self.settled if k == key]
        streak = 0
        for result in reversed(mine):
            if result != mine[-1]:
                break
            streak += 1
        fresh = [i for i, pair in enumerate(self.settled) if pair not in self.settled[:i]]
        unknown = n > 20 and not self.ever_settled
        return {
            "repeat": max(self.epoch.count(k) for k in self.epoch),
            "recent_repeat": self.epoch[-20:].count(key),
            "novelty_repeat": self.epoch[news[-1] :].count(key),
            "same_result_repeat": None if unknown else streak,
            "no_progress": None if unknown else len(self.settled) - 1 - fresh[-1] if fresh else 0,
        }

    def ask(self, keys: Sequence[int]) -> tuple[str | None, int | None, int]:
        """Threshold, level and largest repeat."""
        known: list[int] = []
        for key in keys:
            self.calls += 1
            self.total += 1
            self.epoch.append(key)
            level = self.levels(self.calls)[self.policy.signal or "repeat"]
            if level is not None:
                known.append(level)
        level = max(known) if known else None
        threshold = self.decide(level)
        self.halted = threshold is not None
        return threshold, level, max(self.epoch.count(k) for k in self.epoch)

    def decide(self, level: int | None) -> str | None:
        """The table of the contract."""
        policy = self.policy
        if policy.hard_cap is not None:
            return "explicit-hard" if self.total > policy.hard_cap else None
        soft, stuck, most = policy.soft_cap or 0, policy.stuck_at or 0, policy.backstop or 0
        if self.total <= soft:
            return None
        if self.total > most:
            return "backstop"
        return "soft-stuck" if level is not None and level >= stuck else None


class Driver:
    """Asks a turn what `ops` say, and keeps what it answers."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.outstanding: list[tuple[int, int]] = []  # number and key
        self.numbers: dict[int, Verdict] = {}

    def step(self, op: Op) -> list[Verdict]:
        """One of them."""
        kind, what = op
        if kind == "ask":
            return self.ask(what)
        if kind == "settle":
            self.settle(*what)
        elif kind == "finished":
            self.turn.reply_finished()
        elif not self.turn.halted:
            self.turn.retry()
            self.outstanding.clear()
        return []

    def ask(self, keys: Sequence[int]) -> list[Verdict]:
        if len(keys) == 1:
            verdicts = [self.turn.admit("tool", {"k": keys[0]})]
        else:
            verdicts = self.turn.admit_batch([ToolCall("tool", {"k": key}) for key in keys])
        if verdicts[0].allowed:
            for verdict, key in zip(verdicts, keys, strict=True):
                self.outstanding.append((verdict.call_number, key))
                self.numbers[verdict.call_number] = verdict
        return verdicts

    def settle(self, which: int, result: int, failed: bool) -> int | None:
        """Settle one of the outstanding calls; its key."""
        if not self.outstanding:
            return None
        number, key = self.outstanding.pop(which % len(self.outstanding))
        text = f"result {result}"
        if failed:
            self.turn.settle(self.numbers[number], error=text)
        else:
            self.turn.settle(self.numbers[number], result=text)
        return key


@given(policies(), OPS)
@settings(max_examples=250, deadline=None)
def test_verdicts_equal_a_recount_of_the_definition(policy: CapPolicy, ops: list[Op]) -> None:
    driver, recount = Driver(ToolCallGuard(policy=policy).start_turn()), Recount(policy)
    for op in ops:
        kind, what = op
        if recount.halted:
            before = driver.turn._core.counts.calls
            assert all(verdict.halted for verdict in driver.step(op))
            assert driver.turn._core.counts.calls == before
        elif kind == "ask":
            threshold, level, largest = recount.ask(what)
            verdicts = driver.ask(what)
            for place, verdict in enumerate(verdicts):
                assert verdict.threshold == verdict.would_halt == threshold
                assert verdict.call_number == recount.calls - len(what) + 1 + place
                assert (verdict.total_calls, verdict.max_repeat) == (recount.total, largest)
                assert verdict.level == (level if policy.signal else None)
        elif kind == "settle":
            key = driver.settle(*what)
            if key is not None:
                recount.settled.append((key, what[1:]))
                recount.ever_settled += 1
        else:
            driver.step(op)
            if kind == "retry":
                recount.total = recount.committed
                recount.epoch.clear()
                recount.settled.clear()
            else:
                recount.committed = recount.total
    assert driver.turn._guard.faults == {}


@given(policies(), OPS)
@settings(max_examples=80, deadline=None)
def test_candidates_halt_where_the_same_policy_in_force_would_have(policy: CapPolicy, ops: list[Op]) -> None:
    ruling = Driver(ToolCallGuard(policy=policy).start_turn())
    beside = Driver(ToolCallGuard(max_tool_calls=0, candidates=[policy]).start_turn())
    for op in ops:
        if not ruling.turn.halted:
            ruling.step(op)
            beside.step(op)
    verdict = ruling.turn.verdict
    candidate = beside.turn._core.counts.candidates[0]
    assert candidate.halt_call == (None if verdict is None else verdict.call_number)


@given(policies(), OPS)
@settings(max_examples=80, deadline=None)
def test_shadow_reaches_what_enforcement_reaches_and_each_threshold_once(
    policy: CapPolicy, ops: list[Op]
) -> None:
    enforced = Driver(ToolCallGuard(policy=policy).start_turn())
    shadow = Driver(ToolCallGuard(policy=policy, mode="shadow").start_turn())
    latched = None
    for op in ops:
        halted_before = enforced.turn.halted
        seen, said = shadow.step(op), [] if halted_before else enforced.step(op)
        for verdict in seen:
            assert verdict.allowed
            assert verdict.explored is None
            assert latched is None or verdict.would_halt is not None
            latched = verdict.would_halt
        if said and not halted_before:
            assert [verdict.threshold for verdict in said] == [verdict.would_halt for verdict in seen]
    assert len(set(shadow.turn._core.counts.fired)) == len(shadow.turn._core.counts.fired)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
@settings(max_examples=80, deadline=None)
def test_batches_count_as_single_calls_do_and_are_refused_where_one_would_halt(
    keys: list[int], data: st.DataObject
) -> None:
    """For `repeat`, which never falls, a batch is refused exactly if it holds the call that would halt."""
    policy = CapPolicy.adaptive(soft_cap=4, stuck_at=3, backstop=12)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(keys) - 1)), max_size=6)))
    single = ToolCallGuard(policy=policy).start_turn()
    halting = None
    for number, key in enumerate(keys, start=1):
        if single.admit("tool", {"k": key}).halted:
            halting = number
            break
    together = ToolCallGuard(policy=policy).start_turn()
    pieces = [keys[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(keys)], strict=True)]
    asked = 0
    for piece in pieces:
        verdicts = together.admit_batch([ToolCall("tool", {"k": key}) for key in piece])
        asked += len(piece)
        assert {verdict.halted for verdict in verdicts} <= {halting is not None and halting <= asked}
    assert (together.verdict and together.verdict.call_number) == halting
    shadow = ToolCallGuard(policy=policy, mode="shadow").start_turn()
    shadow_batches = ToolCallGuard(policy=policy, mode="shadow").start_turn()
    for piece in pieces:
        for key in piece:
            shadow.admit("tool", {"k": key})
        shadow_batches.admit_batch([ToolCall("tool", {"k": key}) for key in piece])
    one, other = shadow._core.counts, shadow_batches._core.counts
    assert (one.calls, one.total, one.keys.given, one.max_repeat) == (
        other.calls,
        other.total,
        other.keys.given,
        other.max_repeat,
    )
    assert [row[:3] for row in one.milestones] == [row[:3] for row in other.milestones]
    assert all(row[1] == row[3] for row in one.milestones)
    starts = [1, *(cut + 1 for cut in cuts)]
    assert all(row[3] == max(s for s in starts if s <= row[1]) for row in other.milestones)


@given(policies(), OPS, st.integers(0, 60), st.integers(0, 60), st.sampled_from(["enforce", "shadow"]))
@settings(max_examples=80, deadline=None)
def test_a_turn_carried_over_at_any_point_decides_the_same(
    policy: CapPolicy, ops: list[Op], first: int, second: int, mode: str
) -> None:
    arguments: dict[str, Any] = {"policy": policy, "mode": mode, "candidates": [CapPolicy.hard(5), policy]}
    whole = Driver(ToolCallGuard(clock=ManualClock(), **arguments).start_turn())
    carried = Driver(ToolCallGuard(clock=ManualClock(), **arguments).start_turn())
    for place, op in enumerate(ops):
        if place in (first, second):
            elsewhere = ToolCallGuard(max_tool_calls=1, clock=ManualClock())
            carried.turn = elsewhere.restore_turn(carried.turn.to_state())
        ours = [verdict._replace(turn_id="") for verdict in whole.step(op)]
        theirs = [verdict._replace(turn_id="") for verdict in carried.step(op)]
        assert ours == theirs
    states = [
        json.dumps(counts_to_state(driver.turn._core.counts), sort_keys=True) for driver in (whole, carried)
    ]
    assert states[0] == states[1]
    assert whole.turn.end() == carried.turn.end()


@given(OPS, st.sampled_from(SIGNALS), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_forgetting_never_raises_a_level(ops: list[Op], signal: str, remembered: int) -> None:
    policy = CapPolicy.adaptive(soft_cap=1000, signal=signal)
    whole = Driver(ToolCallGuard(policy=policy).start_turn())
    forgetful = Driver(ToolCallGuard(policy=policy).start_turn())
    for op in ops:
        expected = whole.step(op)
        with patch("guard.memory.REMEMBERED", remembered):
            found = forgetful.step(op)
        for one, other in zip(expected, found, strict=True):
            assert (other.level is None) == (one.level is None)
            assert (other.level or 0) <= (one.level or 0)
            assert other.max_repeat <= one.max_repeat
    counts = forgetful.turn._core.counts
    assert max(len(counts.keys.known), len(counts.pairs.known)) <= remembered
    if remembered < whole.turn._core.counts.keys.given:
        assert counts.keys.forgotten


@given(
    st.lists(st.integers(0, 2), max_size=60),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    policies(),
)
@settings(max_examples=80, deadline=None)
def test_nothing_passes_its_bound(
    keys: list[int], rate: float, backstop_rate: float, policy: CapPolicy
) -> None:
    guard = ToolCallGuard(policy=policy, holdout_rate=rate, backstop_holdout_rate=backstop_rate)
    turn = guard.start_turn()
    ran = sum(turn.admit("tool", {"k": key}).allowed for key in keys)
    if policy.hard_cap is not None:
        assert ran <= policy.hard_cap
    else:
        assert ran <= (policy.backstop or 0) * (2 if backstop_rate else 1)


def let_through(guard: ToolCallGuard, turns: int) -> list[bool | None]:
    """Whether each of so many turns, all stuck at once, was let run."""
    found = []
    for _ in range(turns):
        turn = guard.start_turn()
        turn.admit("tool")
        found.append(turn.admit("tool").explored)
    return found


def test_the_share_let_through_is_the_rate() -> None:
    for rate in (0.0, 0.05, 0.2, 1.0):
        guard = ToolCallGuard(soft_cap=1, stuck_at=2, holdout_rate=rate)
        guard.id = "fixed"  # the coin is of the turn's id: the same turns at every run of this test
        share = sum(map(bool, let_through(guard, 2_000))) / 2_000
        assert abs(share - rate) <= 4 * (rate * (1 - rate) / 2_000) ** 0.5


def test_the_same_turn_gets_the_same_coin_and_another_salt_another() -> None:
    found = []
    for salt in ("a", "a", "b"):
        guard = ToolCallGuard(soft_cap=1, stuck_at=2, holdout_rate=0.5, holdout_salt=salt)
        guard.id = "fixed"
        found.append(let_through(guard, 200))
    assert found[0] == found[1] != found[2]
    guard = ToolCallGuard(soft_cap=1, stuck_at=2, holdout_rate=0.5)
    turn = guard.start_turn()
    state = turn.to_state()
    coins = set()
    for _ in range(5):
        again = guard.restore_turn(state)
        again.admit("tool")
        coins.add(again.admit("tool").explored)
    assert len(coins) == 1
