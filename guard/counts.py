"""One turn as counts: calls asked about, batches, settling, retries, milestones -> verdicts.

Pure: no lock, clock or telemetry. What happened is left in `happened` for the turn to hand on, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from guard import events
from guard.chunks import FIRST_SIZE, MOST_RETRIES, Chunks
from guard.keys import hashed
from guard.memory import Memory
from guard.outstanding import Outstanding
from guard.policy import LARGEST, SIGNALS, CapPolicy, Mode, PolicyKind, Threshold
from guard.signals import (
    UNSETTLED_CALLS,
    Key,
    NoProgress,
    NoveltyRepeat,
    Pair,
    RecentRepeat,
    Repeat,
    SameResultRepeat,
    Signal,
)
from guard.tools import KnownTool
from guard.verdict import Verdict

MOST_TOOLS = 1_000  # names; further ones are counted under one
OTHER_TOOL = "(other)"
LARGEST_MILESTONE = 64
MOST_MILESTONES = 256
TOGETHER = 50  # calls that may wait to be taken in at once

_make = tuple.__new__  # a verdict without the cost of its constructor

Happened = tuple[type[events.Event], dict[str, Any], int]  # which event, its fields, at which offset
Asked = tuple[KnownTool, bytes, str | None, int]  # tool, key, call id, mutating (1, 0, -1)
WAITING = 5  # values of a call that waits: key, tool's number, mutating, offset_ms, batch


class Candidate:
    """A policy judged beside the one in force."""

    __slots__ = ("halt_call", "policy", "signal")

    def __init__(self, policy: CapPolicy, halt_call: int | None = None) -> None:
        self.policy = policy
        self.signal = _index(policy)
        self.halt_call = halt_call


@dataclass(slots=True, kw_only=True, eq=False)
class Counts:
    """The state of one turn. `toss` answers whether a would-be halt at a threshold is let run."""

    turn_id: str
    policy: CapPolicy
    mode: Mode
    candidates: list[Candidate]
    toss: Callable[[Threshold], bool]
    rates: dict[Threshold, float]
    digest: Callable[[bytes], str]
    happened: list[Happened] = field(default_factory=list)

    calls: int = 0  # the number of the last call
    total: int = 0
    committed: int = 0
    epoch: int = 0
    batches: int = 0
    refused: int = 0
    unrun: int = 0  # numbered calls that an enforced halt refused
    settled: int = 0
    errors: int = 0
    keys: Memory[bytes, Key] = field(default_factory=Memory)
    pairs: Memory[tuple[int, bytes], Pair] = field(default_factory=Memory)
    tools: dict[str, int] = field(default_factory=dict)
    chunks: Chunks = field(default_factory=Chunks)
    waiting: list[Any] = field(default_factory=list)  # for `catch_up`, `WAITING` values a call
    room: int = WAITING * FIRST_SIZE  # values that may wait

    repeat: Repeat = field(default_factory=Repeat)
    recent: RecentRepeat = field(default_factory=RecentRepeat)
    novelty: NoveltyRepeat = field(default_factory=NoveltyRepeat)
    same_result: SameResultRepeat = field(default_factory=SameResultRepeat)
    no_progress: NoProgress = field(default_factory=NoProgress)
    max_repeat: int = 0  # over all epochs
    top_tool: str | None = None  # of the key with the largest count of the epoch
    top_last: int = 0  # its last call
    last_tool: KnownTool | None = None
    tool: int = -1  # its number
    streak_from: int = 1  # the first of the calls in a row that are of it
    streak_max: int = 0  # most calls in a row of one tool, before these
    milestones: list[tuple[int, int, int, int]] = field(default_factory=list)  # k, call, epoch, batch's first

    outstanding: Outstanding = field(default_factory=Outstanding)
    crossed: bool = False
    fired: list[Threshold] = field(default_factory=list)  # in the order in which they were reached
    would_halt: Threshold | None = None  # the last of them
    explored: dict[Threshold, bool] = field(default_factory=dict)
    last_explored: bool | None = None  # of the last of them
    halt: Verdict | None = None  # the enforced halt that stands
    bound: int | None = None  # the total up to which a person lifted it

    # What `look_ahead` found: nothing can be reached up to this total and below this peak.
    quiet: int = field(init=False)
    loud: int = field(init=False)
    limit: int | None = field(init=False)  # that comes next
    signal: int = field(init=False)  # place of the policy's in `signals`
    adaptive: bool = field(init=False)

    def __post_init__(self) -> None:
        self.signal = _index(self.policy)
        self.adaptive = self.policy.kind is PolicyKind.ADAPTIVE
        self.look_ahead()

    @property
    def signals(self) -> tuple[Repeat, RecentRepeat, NoveltyRepeat, SameResultRepeat, NoProgress]:
        """In the order of `guard.policy.SIGNALS`."""
        return self.repeat, self.recent, self.novelty, self.same_result, self.no_progress

    # Asking

    def earlier(self, call_id: str | None) -> Verdict | None:
        """What was said of a call with this id since the last retry; counted if a halt answers."""
        if self.halt is not None:
            self.refused += 1
            return self.halt
        return self.outstanding.ids.get(call_id) if call_id is not None else None

    def ask_one(
        self, tool: KnownTool, identity: bytes, call_id: str | None, mutating: int, offset_ms: float
    ) -> Verdict:
        """The verdict on a single call, a batch of its own; `offset_ms` is -1 where time is unknown."""
        n = self.calls + 1
        self.batches += 1
        key = self._count(tool, identity, mutating, offset_ms, n)
        total, peak = self.total, self.repeat.peak
        if total > self.quiet or peak >= self.loud:
            levels = self._levels(key)
            cause = n if self._weigh(levels) else None
            verdict = self._answer([n], levels, cause, offset_ms)[0]
        else:
            level = peak if self.adaptive else None
            verdict = _make(
                Verdict,
                (
                    self.turn_id, n, total, self.policy.signal, level, peak, self.top_tool, self.limit,
                    None, self.would_halt, self.last_explored, self.policy,
                ),
            )  # fmt: skip
        if call_id is not None and verdict.threshold is None:
            self.outstanding.remember(call_id, verdict)
        return verdict

    def ask(self, asked: Sequence[Asked], offset_ms: float) -> list[Verdict]:
        """One decision for all of these calls, before any runs: a verdict each, in order."""
        first = self.calls + 1
        self.batches += 1
        levels: list[int | None] = []
        cause: int | None = None
        for tool, identity, _, mutating in asked:
            found = self._levels(self._count(tool, identity, mutating, offset_ms, first))
            levels = list(map(_larger, levels, found)) if levels else found
            if self._weigh(levels) and cause is None:
                cause = self.calls
        verdicts = self._answer(list(range(first, self.calls + 1)), levels, cause, offset_ms)
        for (_, _, call_id, _), verdict in zip(asked, verdicts, strict=True):
            if call_id is not None and verdict.threshold is None:
                self.outstanding.remember(call_id, verdict)
        return verdicts

    def _answer(
        self, numbers: list[int], levels: list[int | None], cause: int | None, offset_ms: float
    ) -> list[Verdict]:
        """The verdicts on the calls just counted; `cause` is the first at which a threshold acts."""
        threshold = self._conclude(levels, cause, offset_ms)
        level = levels[self.signal]
        if threshold is not None:
            return self._refuse(numbers, level, threshold, cause or numbers[0])
        if self.quiet >= 0 or (self.limit is not None and self.total > self.limit):
            self.look_ahead()
        return [self._verdict(n, level, self.limit, None) for n in numbers]

    def _acts(self, level: int | None) -> bool:
        """Whether a threshold holds at this call that is new or still halts."""
        reached = self._reached(level)
        return reached is not None and (reached not in self.fired or self._standing(reached) is not None)

    def _count(self, tool: KnownTool, identity: bytes, mutating: int, offset_ms: float, first: int) -> Key:
        """Take one call into the counts that every verdict shows; `first` is the first call of its batch."""
        self.calls = n = self.calls + 1
        self.total += 1
        keys = self.keys
        key = keys.known.get(identity)
        if key is None:
            key = Key(identity, keys.given, n)
            keys.add(identity, key)
        else:
            key.again = True
        repeat = self.repeat
        peak = repeat.peak
        repeat.see(key)
        if repeat.peak > peak:
            self._new_peak(tool.name, first)
        elif key is repeat.top:
            self.top_last = n
        if tool is not self.last_tool:
            self._meet(tool)
        waiting = self.waiting
        waiting += (key, self.tool, mutating, offset_ms, self.batches)
        if len(waiting) >= self.room:
            self.catch_up()
        return key

    def catch_up(self) -> None:
        """Take the calls that wait into everything else, and send a chunk when it is full.

        Done for many calls at once, because most calls are not looked at more closely than `_count` does.
        """
        waiting = self.waiting
        if not waiting:
            return
        self.waiting = []
        chunks = self.chunks
        keys: list[Key] = waiting[0::WAITING]
        numbers = [key.number for key in keys]
        offsets_ms = list(map(round, waiting[3::WAITING]))
        chunks.add(numbers, waiting[1::WAITING], waiting[2::WAITING], offsets_ms, waiting[4::WAITING])
        self.recent.see_all(keys)
        self.novelty.see_all(keys)
        self.outstanding.add(keys)
        if chunks.full(self.pairs.given):
            self._chunk(offsets_ms[-1])
        self.room = WAITING * min(TOGETHER, chunks.room - len(chunks.calls[0]))

    def _levels(self, key: Key) -> list[int | None]:
        """Every signal's level at the call just counted, in the order of `guard.policy.SIGNALS`."""
        self.catch_up()
        known = self.settled or self.calls <= UNSETTLED_CALLS
        return [
            self.repeat.peak,
            self.recent.level(key),
            self.novelty.level(key),
            self.same_result.level(key) if known else None,
            self.no_progress.stale if known else None,
        ]

    def _weigh(self, levels: list[int | None]) -> bool:
        """Whether a threshold acts at the call just counted; candidates that would halt here do so."""
        for candidate in self.candidates:
            if candidate.halt_call is None and candidate.policy.decide(self.total, levels[candidate.signal]):
                candidate.halt_call = self.calls
                self.look_ahead()
        return self._acts(levels[self.signal])

    def _reached(self, level: int | None) -> Threshold | None:
        """The threshold that holds at this total and level, whether or not it halts."""
        if self.bound is None:
            return self.policy.decide(self.total, level)
        if self.total <= self.bound:
            return None
        return Threshold.EXPLICIT_HARD if self.policy.kind is PolicyKind.HARD else Threshold.BACKSTOP

    def _conclude(self, levels: list[int | None], cause: int | None, offset_ms: float) -> Threshold | None:
        """The threshold that halts this call or batch, recording what was reached."""
        soft_cap = self.policy.soft_cap
        if not self.crossed and soft_cap is not None and self.total > soft_cap:
            self._cross(levels, offset_ms)
        return None if cause is None else self._judge(levels, cause, offset_ms)

    def look_ahead(self) -> None:
        """Which limit comes next, and up to which total and below which peak nothing can be reached."""
        policy = self.policy
        self.quiet, self.loud = LARGEST, LARGEST
        running = [candidate.policy for candidate in self.candidates if candidate.halt_call is None]
        for one in (policy, *running):
            self._watch(one)
        if self.bound is not None or self.signal:
            self.quiet = -1
        if self.bound is not None and self.total <= self.bound:
            self.limit = self.bound
            return
        self.limit = policy.next_limit(self.total)
        if (
            self.explored.get(Threshold.BACKSTOP)
            and policy.backstop is not None
            and self.total > policy.backstop
        ):
            self.limit = 2 * policy.backstop

    def _watch(self, policy: CapPolicy) -> None:
        """Look at every call from where this policy may reach something."""
        cap = policy.soft_cap if policy.hard_cap is None else policy.hard_cap
        if cap is None:
            return
        if self.total <= cap:
            self.quiet = min(self.quiet, cap)
        elif policy.signal == "repeat" and policy.stuck_at is not None and policy.backstop is not None:
            self.quiet = min(self.quiet, policy.backstop if self.total <= policy.backstop else -1)
            self.loud = min(self.loud, policy.stuck_at)
        else:
            self.quiet = -1

    def _meet(self, tool: KnownTool) -> None:
        """The call just counted is of another tool than the one before."""
        self.last_tool = tool
        number = self.tools.get(tool.name)
        if number is None:
            number = self._new_tool(tool)
        if number != self.tool:
            self.streak_max = self.longest_streak(self.calls - 1)
            self.tool, self.streak_from = number, self.calls

    def _new_tool(self, tool: KnownTool) -> int:
        name, tool_class = tool.name, tool.tool_class
        if len(self.tools) >= MOST_TOOLS:
            if OTHER_TOOL in self.tools:
                return self.tools[OTHER_TOOL]
            name, tool_class = OTHER_TOOL, None
        self.catch_up()  # what was called before the chunk holds a name more
        number = self.tools[name] = len(self.tools)
        self.chunks.add_tool(name, tool_class)
        self.room = 0  # … and whether the next call still fits is asked at once
        return number

    def longest_streak(self, calls: int) -> int:
        """The most of so many first calls in a row that were of one tool; 0 of none."""
        return max(self.streak_max, calls - self.streak_from + 1)

    def _new_peak(self, name: str, first: int) -> None:
        level = self.repeat.peak
        self.top_tool, self.top_last = name, self.calls
        if level > self.max_repeat:
            self.max_repeat = level
        wanted = 2 <= level <= LARGEST_MILESTONE or level == self.policy.stuck_at
        if wanted and not self.unrun and len(self.milestones) < MOST_MILESTONES:
            self.milestones.append((level, self.calls, self.epoch, first))

    def _cross(self, levels: list[int | None], offset_ms: float) -> None:
        self.crossed = True
        level = levels[self.signal]
        stuck = level is not None and level >= (self.policy.stuck_at or 0)
        fields = {"levels": _levels(levels), "total": self.total, "stuck": stuck}
        self.happened.append((events.SoftCapCrossed, fields, round(offset_ms)))

    def _judge(self, levels: list[int | None], cause: int, offset_ms: float) -> Threshold | None:
        """The threshold that halts here and now, recording what was reached."""
        level = levels[self.signal]
        threshold = self._reached(level)
        if threshold is None:
            return None
        if threshold in self.fired:
            return self._standing(threshold)
        explored: bool | None = None
        tossed = self.mode is Mode.ENFORCE and self.bound is None and threshold in self.rates
        if tossed:
            self.explored[threshold] = explored = self.toss(threshold)
        enforced = self.mode is Mode.ENFORCE and not explored
        self.last_explored = explored
        self.fired.append(threshold)
        self.would_halt = threshold
        stuck = level is not None and level >= (self.policy.stuck_at or 0)
        also = threshold is Threshold.BACKSTOP and stuck and self.bound is None
        top = self.repeat.top
        fields = {
            "policy": self.policy,
            "levels": _levels(levels),
            "threshold": threshold,
            "mode": str(self.mode),
            "enforced": enforced,
            "explored": explored,
            "holdout_rate": self.rates[threshold] if tossed else None,
            "call_number": cause,
            "total": self.total,
            "signal": self.policy.signal,
            "level": level if self.policy.signal else None,
            "limit": self.policy.limit_of(threshold) if self.bound is None else self.bound,
            "repeat_count": self.repeat.peak,
            "repeat_tool": self.top_tool,
            "repeat_digest": self.digest(hashed(top.identity)) if top else None,
            "repeat_first_call": top.first_call if top else None,
            "repeat_last_call": self.top_last,
            "distinct_keys": self.keys.given,
            "name_streak_max": self.longest_streak(self.calls),
            "also": (str(Threshold.SOFT_STUCK),) if also else None,
        }
        self.happened.append((events.LoopDetectedEvent, fields, round(offset_ms)))
        return threshold if enforced else None

    def _standing(self, threshold: Threshold) -> Threshold | None:
        """Whether a threshold that was reached before halts now."""
        if self.mode is Mode.SHADOW:
            return None
        if self.explored.get(threshold) and self.bound is None:
            backstop = self.policy.backstop or 0
            return threshold if threshold is Threshold.BACKSTOP and self.total > 2 * backstop else None
        return threshold

    def _refuse(
        self, numbers: list[int], level: int | None, threshold: Threshold, cause: int
    ) -> list[Verdict]:
        limit = self.policy.limit_of(threshold) if self.bound is None else self.bound
        verdicts = [self._verdict(n, level, limit, threshold) for n in numbers]
        for n in numbers:
            self.outstanding.take(n)
        self.halt = verdicts[cause - numbers[0]]
        self.refused += len(numbers)
        self.unrun += len(numbers)
        return verdicts

    def _verdict(self, n: int, level: int | None, limit: int | None, threshold: Threshold | None) -> Verdict:
        signal = self.policy.signal
        head = self.turn_id, n, self.total, signal, level if signal else None, self.repeat.peak, self.top_tool
        return Verdict._make([*head, limit, threshold, self.would_halt, self.last_explored, self.policy])

    # Settling, replies, retries, extensions

    def settle(self, call: int, result: bytes, failed: bool) -> bool:
        """A call returned; False where no such call is outstanding."""
        self.catch_up()
        key = self.outstanding.take(call)
        if key is None:
            return False
        self.settled += 1
        self.errors += failed
        pairs, identity = self.pairs, (key.number, result)
        pair = pairs.known.get(identity)
        if pair is None:
            pair = Pair(pairs.given)
            pairs.add(identity, pair)
        else:
            pair.again = True
        self.same_result.settle(key, pair)
        self.no_progress.settle(key, pair)
        self.chunks.settled.append((call, pair.number, int(failed), self.calls))
        return True

    def reply_finished(self) -> None:
        """Commit the total, unless an enforced halt stands."""
        if self.halt is None:
            self.committed = self.total

    def retry(self, offset_ms: float) -> None:
        """Back to the last commit, signals cleared, unless an enforced halt stands."""
        if self.halt is not None:
            return
        self.catch_up()
        self.total = self.committed
        self.epoch += 1
        cleared: list[Signal | Key | Pair] = [*self.signals, *self.keys.known.values()]
        for one in (*cleared, *self.pairs.known.values()):
            one.clear()
        self.look_ahead()
        self.top_tool, self.top_last = None, 0
        self.outstanding.clear(self.calls)
        self.chunks.retries.append((self.calls, self.total))
        if len(self.chunks.retries) >= MOST_RETRIES:
            self._chunk(offset_ms)

    def extend(self, calls: int, by: str | None, offset_ms: float) -> int:
        """Lift the halt that stands for that many more calls; how many were granted."""
        if self.halt is None:
            return 0
        most = 2 * (self.policy.backstop or self.policy.hard_cap or 0)
        bound = min(self.total + calls, most)
        granted = bound - self.total
        if granted <= 0:
            return 0
        self.bound, self.halt = bound, None
        self.look_ahead()
        self.happened.append(
            (events.TurnExtended, {"granted": granted, "by": by, "total": self.total}, round(offset_ms))
        )
        return granted

    def end(self, outcome: str, duration_ms: float | None) -> None:
        """The last chunks and the final counts."""
        offset_ms = -1.0 if duration_ms is None else duration_ms
        self.catch_up()
        while self.chunks.waiting():
            self._chunk(offset_ms)
        rows: list[Any] = list(zip(*self.milestones, strict=True)) or [None] * 4
        fields = {
            "outcome": outcome,
            "calls": self.calls,
            "ran": self.calls - self.unrun,
            "total": self.total,
            "refused": self.refused,
            "settled": self.settled,
            "errors": self.errors,
            "distinct_keys": self.keys.given,
            "repeat_count": self.max_repeat,
            "name_streak_max": self.longest_streak(self.calls),
            "milestones_k": rows[0],
            "milestones_call": rows[1],
            "milestones_epoch": rows[2],
            "milestones_batch_first_call": rows[3],
            "batches": self.batches,
            "retries": self.epoch,
            "keys_forgotten": self.keys.forgotten + self.pairs.forgotten,
            "chunks_sent": self.chunks.sent,
            "candidates": tuple(c.policy.text for c in self.candidates) or None,
            "candidates_halt_call": tuple(c.halt_call or -1 for c in self.candidates) or None,
            "duration_ms": duration_ms,
        }
        self.happened.append((events.TurnEnded, fields, round(offset_ms)))

    def _chunk(self, offset_ms: float) -> None:
        self.happened.append((events.CallsObserved, self.chunks.close(), round(offset_ms)))


def _index(policy: CapPolicy) -> int:
    return SIGNALS.index(policy.signal) if policy.signal is not None else 0


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _levels(levels: list[int | None]) -> events.Levels:
    return events.Levels(**dict(zip(SIGNALS, levels, strict=True)))
