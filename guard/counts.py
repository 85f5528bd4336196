"""One turn as counts: calls asked about, batches, settling, retries, milestones -> verdicts.

Pure: no lock, clock or telemetry. What happened is left in `happened` for the turn to hand on, in order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from guard import events
from guard.chunks import Chunks
from guard.memory import Numbers
from guard.policy import SIGNALS, CapPolicy, Mode, PolicyKind, Threshold
from guard.signals import UNSETTLED_CALLS, NoProgress, NoveltyRepeat, RecentRepeat, Repeat, SameResultRepeat
from guard.verdict import Verdict

MOST_IDS = 10_000  # call ids, and outstanding calls, that a turn remembers
MOST_TOOLS = 1_000  # names; further ones are counted under one
OTHER_TOOL = "(other)"
LARGEST_MILESTONE = 64
MOST_MILESTONES = 256

Happened = tuple[type[events.Event], dict[str, Any], int | None]  # which event, its fields, at which offset
Asked = tuple[str, bytes, str | None, bool | None, str | None]  # tool, key, call id, mutating, tool class


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
        self.outstanding: OrderedDict[int, int] = OrderedDict()  # call -> key
        self.crossed = False
        self.fired: list[Threshold] = []  # in the order in which they were reached
        self.explored: dict[Threshold, bool] = {}
        self.halt: Verdict | None = None  # the enforced halt that stands
        self.bound: int | None = None  # the total up to which a person lifted it

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

    def ask(self, asked: Sequence[Asked], offset_ms: int | None) -> list[Verdict]:
        """One decision for all of these calls, before any runs: a verdict each, in order."""
        first = self.calls + 1
        self.batches += 1
        policy, signal = self.policy, self._signal
        levels: list[int | None] = []
        numbers: list[tuple[int, int]] = []  # call and key
        cause: int | None = None
        for name, identity, _, mutating, tool_class in asked:
            key, now = self._count(name, identity, mutating, tool_class, offset_ms, first)
            numbers.append((self.calls, key))
            levels = now if not levels else list(map(_larger, levels, now))
            if cause is None and self._acts(levels[signal]):
                cause = self.calls
            for candidate in self.candidates:
                if candidate.halt_call is None and candidate.policy.decide(
                    self.total, levels[candidate.signal]
                ):
                    candidate.halt_call = self.calls
        if not self.crossed and policy.soft_cap is not None and self.total > policy.soft_cap:
            self._cross(levels, offset_ms)
        threshold = None if cause is None else self._judge(levels, cause, offset_ms)
        return self._answer(asked, numbers, levels[signal], threshold, cause)

    def _reached(self, level: int | None) -> Threshold | None:
        """The threshold that holds at this total and level, whether or not it halts."""
        if self.bound is None:
            return self.policy.decide(self.total, level)
        if self.total <= self.bound:
            return None
        return Threshold.EXPLICIT_HARD if self.policy.kind is PolicyKind.HARD else Threshold.BACKSTOP

    def _acts(self, level: int | None) -> bool:
        """Whether a threshold holds at this call that is new or still halts."""
        reached = self._reached(level)
        return reached is not None and (reached not in self.fired or self._standing(reached) is not None)

    def _count(
        self,
        name: str,
        identity: bytes,
        mutating: bool | None,
        tool_class: str | None,
        offset_ms: int | None,
        first: int,
    ) -> tuple[int, list[int | None]]:
        self.calls = n = self.calls + 1
        self.total += 1
        key = self.keys.number(identity)
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
        level = repeat.admit(key)
        if key not in self.first_calls:
            self.first_calls[key] = n
        if level > peak:
            self._new_peak(level, key, name, identity, first)
        elif key == repeat.top:
            self.top_last = n
        chunks = self.chunks
        chunks.calls.append(
            (
                key,
                tool,
                -1 if mutating is None else int(mutating),
                -1 if offset_ms is None else offset_ms,
                self.batches,
            )
        )
        if len(chunks.calls) >= chunks.room and chunks.full():
            self._chunk(offset_ms)
        known = self.settled or n <= UNSETTLED_CALLS
        return key, [
            level,
            self.recent.admit(key),
            self.novelty.admit(key),
            self.same_result.admit(key) if known else None,
            self.no_progress.level if known else None,
        ]

    def _new_tool(self, name: str, tool_class: str | None) -> tuple[int, str]:
        if len(self.tools) >= MOST_TOOLS:
            known = self.tools.get(OTHER_TOOL)
            if known is not None:
                return known, OTHER_TOOL
            name, tool_class = OTHER_TOOL, None
        number = self.tools[name] = len(self.tools)
        self.chunks.add_tool(name, tool_class)
        return number, name

    def _new_peak(self, level: int, key: int, name: str, identity: bytes, first: int) -> None:
        self.top_tool, self.top_identity = name, identity
        self.top_first, self.top_last = self.first_calls[key], self.calls
        if level > self.max_repeat:
            self.max_repeat = level
        wanted = 2 <= level <= LARGEST_MILESTONE or level == self.policy.stuck_at
        if wanted and not self.unrun and len(self.milestones) < MOST_MILESTONES:
            self.milestones.append((level, self.calls, self.epoch, first))

    def _cross(self, levels: list[int | None], offset_ms: int | None) -> None:
        self.crossed = True
        level = levels[self._signal]
        stuck = level is not None and level >= (self.policy.stuck_at or 0)
        fields = {"levels": _levels(levels), "total": self.total, "stuck": stuck}
        self.happened.append((events.SoftCapCrossed, fields, offset_ms))

    def _judge(self, levels: list[int | None], cause: int, offset_ms: int | None) -> Threshold | None:
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
        self.fired.append(threshold)
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

    def _answer(
        self,
        asked: Sequence[Asked],
        numbers: list[tuple[int, int]],
        level: int | None,
        threshold: Threshold | None,
        cause: int | None,
    ) -> list[Verdict]:
        policy = self.policy
        if threshold is None:
            limit = self._ahead()
        elif self.bound is not None:
            limit = self.bound
        else:
            limit = policy.limit_of(threshold)
        fired = self.fired[-1] if self.fired else None
        explored = self.explored.get(fired) if fired is not None else None
        head = self.total, policy.signal, level if policy.signal else None, self.repeat.peak, self.top_tool
        tail = limit, threshold, fired, explored, policy
        verdicts = [Verdict(self.turn_id, n, *head, *tail) for n, _ in numbers]
        if threshold is not None:
            first = numbers[0][0]
            self.halt = verdicts[(cause or first) - first]
            self.refused += len(numbers)
            self.unrun += len(numbers)
            return verdicts
        ids, outstanding = self.ids, self.outstanding
        for (n, key), call, verdict in zip(numbers, asked, verdicts, strict=True):
            outstanding[n] = key
            if call[2] is not None:
                ids[call[2]] = verdict
                if len(ids) > MOST_IDS:
                    ids.popitem(last=False)
                    self.dropped += 1
        while len(outstanding) > MOST_IDS:
            outstanding.popitem(last=False)
            self.dropped += 1
        return verdicts

    def _ahead(self) -> int | None:
        if self.bound is not None and self.total <= self.bound:
            return self.bound
        limit = self.policy.next_limit(self.total)
        backstop = self.policy.backstop
        if self.explored.get(Threshold.BACKSTOP) and backstop is not None and self.total > backstop:
            return 2 * backstop
        return limit

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

    def retry(self, offset_ms: int | None) -> None:
        """Back to the last commit, signals cleared, unless an enforced halt stands."""
        if self.halt is not None:
            return
        self.total = self.committed
        self.epoch += 1
        for signal in self.signals:
            signal.clear()
        self.top_tool, self.top_identity, self.top_first, self.top_last = None, b"", 0, 0
        self.ids.clear()
        self.outstanding.clear()
        self.chunks.retries.append((self.calls, self.total))
        if self.chunks.full():
            self._chunk(offset_ms)

    def extend(self, calls: int, by: str | None, offset_ms: int | None) -> int:
        """Lift the halt that stands for that many more calls; how many were granted."""
        if self.halt is None:
            return 0
        most = 2 * (self.policy.backstop or self.policy.hard_cap or 0)
        bound = min(self.total + calls, most)
        granted = bound - self.total
        if granted <= 0:
            return 0
        self.bound, self.halt = bound, None
        self.happened.append(
            (events.TurnExtended, {"granted": granted, "by": by, "total": self.total}, offset_ms)
        )
        return granted

    def end(self, outcome: str, duration_ms: float | None, offset_ms: int | None) -> None:
        """The last chunks and the final counts."""
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

    def _chunk(self, offset_ms: int | None) -> None:
        self.happened.append((events.CallsObserved, self.chunks.close(), offset_ms))

    # Forgetting, and carrying over

    def _forget_key(self, key: int) -> None:
        self.first_calls.pop(key, None)
        for signal in self.signals:
            signal.forget_key(key)

    def _forget_pair(self, pair: int) -> None:
        for signal in self.signals:
            signal.forget_pair(pair)

    _PLAIN = (
        *(
            "calls",
            "total",
            "committed",
            "epoch",
            "batches",
            "refused",
            "unrun",
            "settled",
            "errors",
            "dropped",
        ),
        *("tools", "max_repeat", "top_tool", "top_first", "top_last", "streak_tool", "streak", "streak_max"),
        *("milestones", "crossed", "fired", "bound"),
    )

    def to_state(self) -> dict[str, Any]:
        """All of it as JSON values: numbers, tool names, call ids and hashes."""
        state: dict[str, Any] = {name: getattr(self, name) for name in self._PLAIN}
        return state | {
            "candidates": [[c.policy.text, c.halt_call] for c in self.candidates],
            "keys": self.keys.to_state(bytes.hex),
            "pairs": self.pairs.to_state(lambda pair: [pair[0], pair[1].hex()]),
            "chunks": self.chunks.to_state(),
            "signals": [signal.to_state() for signal in self.signals],
            "top_identity": self.top_identity.hex(),
            "first_calls": list(self.first_calls.items()),
            "ids": [[call_id, _verdict_state(verdict)] for call_id, verdict in self.ids.items()],
            "outstanding": list(self.outstanding.items()),
            "explored": {str(threshold): value for threshold, value in self.explored.items()},
            "halt": None if self.halt is None else _verdict_state(self.halt),
        }

    def from_state(self, state: dict[str, Any]) -> None:
        """Take up what `to_state` returned."""
        for name in self._PLAIN:
            value = state[name]
            if type(getattr(self, name)) is int and type(value) is not int:
                raise TypeError(f"{name} is no integer")
            setattr(self, name, value)
        self.milestones = [tuple(row) for row in state["milestones"]]
        self.fired = [Threshold(word) for word in state["fired"]]
        self.candidates = [Candidate(CapPolicy.from_text(text), call) for text, call in state["candidates"]]
        self.keys.from_state(state["keys"], bytes.fromhex)
        self.pairs.from_state(state["pairs"], lambda pair: (pair[0], bytes.fromhex(pair[1])))
        self.chunks.from_state(state["chunks"])
        for signal, saved in zip(self.signals, state["signals"], strict=True):
            signal.from_state(saved)
        self.top_identity = bytes.fromhex(state["top_identity"])
        self.first_calls = dict(state["first_calls"])
        self.ids = OrderedDict((call_id, self._verdict(saved)) for call_id, saved in state["ids"])
        self.outstanding = OrderedDict((call, key) for call, key in state["outstanding"])
        self.explored = {Threshold(word): value for word, value in state["explored"].items()}
        self.halt = None if state["halt"] is None else self._verdict(state["halt"])

    def _verdict(self, saved: list[Any]) -> Verdict:
        *head, threshold, would_halt, explored = saved
        reached = [None if word is None else Threshold(word) for word in (threshold, would_halt)]
        return Verdict._make([self.turn_id, *head, *reached, explored, self.policy])


def _verdict_state(verdict: Verdict) -> list[Any]:
    return list(verdict[1:-1])


def _index(policy: CapPolicy) -> int:
    return SIGNALS.index(policy.signal) if policy.signal is not None else 0


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _levels(levels: list[int | None]) -> events.Levels:
    return events.Levels(**dict(zip(SIGNALS, levels, strict=True)))
