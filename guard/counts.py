"""One turn as counts: calls asked about, batches, settling, retries, milestones -> verdicts.

Pure: no lock, clock or telemetry. What happened is left in `happened` for the turn to hand on, in order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from guard import events
from guard.chunks import MOST_RETRIES, Chunks
from guard.memory import Numbers
from guard.policy import LARGEST, SIGNALS, CapPolicy, Mode, PolicyKind, Threshold
from guard.signals import UNSETTLED_CALLS, NoProgress, NoveltyRepeat, RecentRepeat, Repeat, SameResultRepeat
from guard.verdict import Verdict

MOST_IDS = 10_000  # call ids, and outstanding calls, that a turn remembers
MOST_TOOLS = 1_000  # names; further ones are counted under one
OTHER_TOOL = "(other)"
LARGEST_MILESTONE = 64
MOST_MILESTONES = 256

_make = tuple.__new__  # a verdict without the cost of its constructor

Happened = tuple[type[events.Event], dict[str, Any], int]  # which event, its fields, at which offset
Asked = tuple[str, str | None, bytes, str | None, int]  # tool, its class, key, call id, mutating (1, 0, -1)


class Candidate:
    """A policy judged beside the one in force."""

    __slots__ = ("halt_call", "policy", "signal")

    def __init__(self, policy: CapPolicy, halt_call: int | None = None) -> None:
        self.policy = policy
        self.signal = _index(policy)
        self.halt_call = halt_call


class Counts:
    """The state of one turn. `toss` answers whether a would-be halt at a threshold is let run."""

    def __init__(
        self,
        *,
        turn_id: str,
        policy: CapPolicy,
        mode: Mode,
        candidates: Sequence[CapPolicy],
        toss: Callable[[Threshold], bool],
        rates: dict[Threshold, float],
        digest: Callable[[bytes], str],
    ) -> None:
        self.turn_id, self.policy, self.mode = turn_id, policy, mode
        self.candidates = [Candidate(candidate) for candidate in candidates]
        self.rates, self._toss, self._digest = rates, toss, digest
        self._signal = _index(policy)
        self.happened: list[Happened] = []

        self.calls = 0  # the number of the last call
        self.total = 0
        self.committed = 0
        self.epoch = 0
        self.batches = 0
        self.refused = 0
        self.unrun = 0  # numbered calls that an enforced halt refused
        self.settled = 0
        self.errors = 0
        self.dropped = 0  # ids and outstanding calls forgotten
        self.keys: Numbers[bytes] = Numbers(self._forget_key)
        self.pairs: Numbers[tuple[int, bytes]] = Numbers(self._forget_pair)
        self.tools: dict[str, int] = {}
        self.chunks = Chunks()
        self.repeat, self.recent, self.novelty = Repeat(), RecentRepeat(), NoveltyRepeat()
        self.same_result, self.no_progress = SameResultRepeat(), NoProgress()

        self.max_repeat = 0  # over all epochs
        self.top_tool: str | None = None  # of the key with the largest count of the epoch
        self.top_identity = b""
        self.top_first = self.top_last = 0
        self.first_calls: dict[int, int] = {}  # key -> number of its first call
        self.streak_tool = -1
        self.streak = self.streak_max = 0
        self.milestones: list[tuple[int, int, int, int]] = []  # k, call, epoch, first call of the batch

        self.ids: OrderedDict[str, Verdict] = OrderedDict()
        self.outstanding: dict[int, int] = {}  # call -> key
        self.oldest = 1  # no call below this one is outstanding
        self.crossed = False
        self.fired: list[Threshold] = []  # in the order in which they were reached
        self.would_halt: Threshold | None = None  # the last of them
        self.explored: dict[Threshold, bool] = {}
        self.last_explored: bool | None = None  # of the last of them
        self.halt: Verdict | None = None  # the enforced halt that stands
        self.bound: int | None = None  # the total up to which a person lifted it
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
        return self.ids.get(call_id) if call_id is not None else None

    def ask_one(
        self,
        name: str,
        tool_class: str | None,
        identity: bytes,
        call_id: str | None,
        mutating: int,
        offset_ms: int,
    ) -> Verdict:
        """The verdict on a single call, a batch of its own; `offset_ms` is -1 where time is unknown."""
        self.batches += 1
        key = self._count(name, tool_class, identity, mutating, offset_ms, self.calls + 1)
        level: int | None = self.repeat.peak
        threshold = None
        n, total = self.calls, self.total
        if total > self._quiet or self._signal:
            levels = self._levels(key)
            level = levels[self._signal]
            cause = n if self._weigh(levels) else None
            threshold = self._conclude(levels, cause, offset_ms)
        if threshold is not None:
            return self._refuse([n], level, threshold, n)[0]
        if self._limit is not None and total > self._limit:
            self.look_ahead()
        verdict: Verdict = _make(
            Verdict,
            (
                self.turn_id,
                n,
                total,
                self.policy.signal,
                level if self._adaptive else None,
                self.repeat.peak,
                self.top_tool,
                self._limit,
                None,
                self.would_halt,
                self.last_explored,
                self.policy,
            ),
        )
        self.outstanding[n] = key
        if call_id is not None or len(self.outstanding) > MOST_IDS:
            self._remember(call_id, verdict)
        return verdict

    def ask(self, asked: Sequence[Asked], offset_ms: int) -> list[Verdict]:
        """One decision for all of these calls, before any runs: a verdict each, in order."""
        first = self.calls + 1
        self.batches += 1
        levels: list[int | None] = []
        keys: list[int] = []
        cause: int | None = None
        for name, tool_class, identity, _, mutating in asked:
            key = self._count(name, tool_class, identity, mutating, offset_ms, first)
            keys.append(key)
            levels = list(map(_larger, levels, self._levels(key))) if levels else self._levels(key)
            if self._weigh(levels) and cause is None:
                cause = self.calls
        threshold = self._conclude(levels, cause, offset_ms)
        level, numbers = levels[self._signal], list(range(first, self.calls + 1))
        if threshold is not None:
            return self._refuse(numbers, level, threshold, cause or first)
        self.look_ahead()
        verdicts = [self._verdict(n, level, self._limit, None) for n in numbers]
        for call, key, verdict in zip(asked, keys, verdicts, strict=True):
            self.outstanding[verdict.call_number] = key
            self._remember(call[3], verdict)
        return verdicts

    def _acts(self, level: int | None) -> bool:
        """Whether a threshold holds at this call that is new or still halts."""
        reached = self._reached(level)
        return reached is not None and (reached not in self.fired or self._standing(reached) is not None)

    def _count(
        self, name: str, tool_class: str | None, identity: bytes, mutating: int, offset_ms: int, first: int
    ) -> int:
        """Take one call into every count; its key. `first` is the first call of its batch."""
        self.calls = n = self.calls + 1
        self.total += 1
        known = self.keys.given
        key = self.keys.number(identity)
        if key == known:
            self.first_calls[key] = n
        tool = self.tools.get(name)
        if tool is None:
            tool, name = self._new_tool(name, tool_class)
        if tool == self.streak_tool:
            self.streak += 1
        else:
            self.streak_tool, self.streak = tool, 1
        if self.streak > self.streak_max:
            self.streak_max = self.streak
        repeat = self.repeat
        peak = repeat.peak
        repeat.see(key)
        if repeat.peak > peak:
            self._new_peak(key, name, identity, first)
        elif key == repeat.top:
            self.top_last = n
        self.recent.see(key)
        self.novelty.see(key)
        chunks = self.chunks
        row = (key, tool, mutating, offset_ms, self.batches)
        chunks.calls.append(row)
        if len(chunks.calls) >= chunks.room and chunks.full(row, self.pairs.given):
            self._chunk(offset_ms)
        return key

    def _levels(self, key: int) -> list[int | None]:
        """Every signal's level at the call just counted, in the order of `guard.policy.SIGNALS`."""
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
        return self._acts(levels[self._signal])

    def _reached(self, level: int | None) -> Threshold | None:
        """The threshold that holds at this total and level, whether or not it halts."""
        if self.bound is None:
            return self.policy.decide(self.total, level)
        if self.total <= self.bound:
            return None
        return Threshold.EXPLICIT_HARD if self.policy.kind is PolicyKind.HARD else Threshold.BACKSTOP

    def _conclude(self, levels: list[int | None], cause: int | None, offset_ms: int) -> Threshold | None:
        """The threshold that halts this call or batch, recording what was reached."""
        soft_cap = self.policy.soft_cap
        if not self.crossed and soft_cap is not None and self.total > soft_cap:
            self._cross(levels, offset_ms)
        return None if cause is None else self._judge(levels, cause, offset_ms)

    def look_ahead(self) -> None:
        """Which limit comes next, and up to which total nothing can be reached."""
        policy = self.policy
        caps = [
            p.soft_cap if p.hard_cap is None else p.hard_cap
            for p in (policy, *(c.policy for c in self.candidates))
        ]
        self._quiet = min((cap for cap in caps if cap is not None), default=LARGEST)
        self._adaptive = policy.kind is PolicyKind.ADAPTIVE
        if self.bound is not None and self.total <= self.bound:
            self._limit: int | None = self.bound
            return
        self._limit = policy.next_limit(self.total)
        if (
            self.explored.get(Threshold.BACKSTOP)
            and policy.backstop is not None
            and self.total > policy.backstop
        ):
            self._limit = 2 * policy.backstop

    def _new_tool(self, name: str, tool_class: str | None) -> tuple[int, str]:
        if len(self.tools) >= MOST_TOOLS:
            known = self.tools.get(OTHER_TOOL)
            if known is not None:
                return known, OTHER_TOOL
            name, tool_class = OTHER_TOOL, None
        number = self.tools[name] = len(self.tools)
        self.chunks.add_tool(name, tool_class)
        return number, name

    def _new_peak(self, key: int, name: str, identity: bytes, first: int) -> None:
        level = self.repeat.peak
        self.top_tool, self.top_identity = name, identity
        self.top_first, self.top_last = self.first_calls[key], self.calls
        if level > self.max_repeat:
            self.max_repeat = level
        wanted = 2 <= level <= LARGEST_MILESTONE or level == self.policy.stuck_at
        if wanted and not self.unrun and len(self.milestones) < MOST_MILESTONES:
            self.milestones.append((level, self.calls, self.epoch, first))

    def _cross(self, levels: list[int | None], offset_ms: int) -> None:
        self.crossed = True
        level = levels[self._signal]
        stuck = level is not None and level >= (self.policy.stuck_at or 0)
        fields = {"levels": _levels(levels), "total": self.total, "stuck": stuck}
        self.happened.append((events.SoftCapCrossed, fields, offset_ms))

    def _judge(self, levels: list[int | None], cause: int, offset_ms: int) -> Threshold | None:
        """The threshold that halts here and now, recording what was reached."""
        level = levels[self._signal]
        threshold = self._reached(level)
        if threshold is None:
            return None
        if threshold in self.fired:
            return self._standing(threshold)
        explored: bool | None = None
        tossed = self.mode is Mode.ENFORCE and self.bound is None and threshold in self.rates
        if tossed:
            self.explored[threshold] = explored = self._toss(threshold)
        enforced = self.mode is Mode.ENFORCE and not explored
        self.last_explored = explored
        self.fired.append(threshold)
        self.would_halt = threshold
        stuck = level is not None and level >= (self.policy.stuck_at or 0)
        also = threshold is Threshold.BACKSTOP and stuck and self.bound is None
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
            "repeat_digest": self._digest(self.top_identity),
            "repeat_first_call": self.top_first,
            "repeat_last_call": self.top_last,
            "distinct_keys": self.keys.given,
            "name_streak_max": self.streak_max,
            "also": (str(Threshold.SOFT_STUCK),) if also else None,
        }
        self.happened.append((events.LoopDetectedEvent, fields, offset_ms))
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
        self.halt = verdicts[cause - numbers[0]]
        self.refused += len(numbers)
        self.unrun += len(numbers)
        return verdicts

    def _verdict(self, n: int, level: int | None, limit: int | None, threshold: Threshold | None) -> Verdict:
        signal = self.policy.signal
        head = self.turn_id, n, self.total, signal, level if signal else None, self.repeat.peak, self.top_tool
        return Verdict._make([*head, limit, threshold, self.would_halt, self.last_explored, self.policy])

    def _remember(self, call_id: str | None, verdict: Verdict) -> None:
        """Keep a call's id, and no more outstanding calls and ids than are wanted."""
        ids, outstanding = self.ids, self.outstanding
        if call_id is not None:
            ids[call_id] = verdict
            if len(ids) > MOST_IDS:
                ids.popitem(last=False)
                self.dropped += 1
        while len(outstanding) > MOST_IDS:
            if outstanding.pop(self.oldest, None) is not None:
                self.dropped += 1
            self.oldest += 1

    # Settling, replies, retries, extensions

    def settle(self, call: int, result: bytes, failed: bool) -> bool:
        """A call returned; False where no such call is outstanding."""
        key = self.outstanding.pop(call, None)
        if key is None:
            return False
        self.settled += 1
        self.errors += failed
        pair = self.pairs.number((key, result))
        if key in self.first_calls:  # else it was forgotten, and would be held for good
            self.same_result.settle(key, pair)
        self.no_progress.settle(key, pair)
        self.chunks.settled.append((call, pair, int(failed), self.calls))
        return True

    def reply_finished(self) -> None:
        """Commit the total, unless an enforced halt stands."""
        if self.halt is None:
            self.committed = self.total

    def retry(self, offset_ms: int) -> None:
        """Back to the last commit, signals cleared, unless an enforced halt stands."""
        if self.halt is not None:
            return
        self.total = self.committed
        self.epoch += 1
        for signal in self.signals:
            signal.clear()
        self.look_ahead()
        self.top_tool, self.top_identity, self.top_first, self.top_last = None, b"", 0, 0
        self.ids.clear()
        self.outstanding.clear()
        self.chunks.retries.append((self.calls, self.total))
        if len(self.chunks.retries) >= MOST_RETRIES:
            self._chunk(offset_ms)

    def extend(self, calls: int, by: str | None, offset_ms: int) -> int:
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
            (events.TurnExtended, {"granted": granted, "by": by, "total": self.total}, offset_ms)
        )
        return granted

    def end(self, outcome: str, duration_ms: float | None) -> None:
        """The last chunks and the final counts."""
        offset_ms = -1 if duration_ms is None else int(duration_ms)
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
            "name_streak_max": self.streak_max,
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
        self.happened.append((events.TurnEnded, fields, offset_ms))

    def _chunk(self, offset_ms: int) -> None:
        self.happened.append((events.CallsObserved, self.chunks.close(), offset_ms))

    # Forgetting

    def _forget_key(self, key: int) -> None:
        self.first_calls.pop(key, None)
        for signal in self.signals:
            signal.forget_key(key)

    def _forget_pair(self, pair: int) -> None:
        for signal in self.signals:
            signal.forget_pair(pair)


def _index(policy: CapPolicy) -> int:
    return SIGNALS.index(policy.signal) if policy.signal is not None else 0


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _levels(levels: list[int | None]) -> events.Levels:
    return events.Levels(**dict(zip(SIGNALS, levels, strict=True)))
