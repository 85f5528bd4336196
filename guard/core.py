"""The core of a turn: its counts behind a lock, with the clock, and what was given made into keys and ids.

All of what is done for every call stands in here and in what it calls, so that it can be compiled
(docs/compiled.md). The lock is never held while calling out: arguments become keys before it is taken,
events are handed on after it is released. Foreign code may raise in here; `guard.turn` is the boundary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from guard import events
from guard.counts import Asked, Counts
from guard.keys import KeyFailure, result_id, short_key
from guard.tools import KnownTool
from guard.verdict import ToolCall, Verdict

LONGEST_S = 1e9  # of a turn; what a clock says beyond it is no time

Events = list[events.Event]


class Surroundings(Protocol):
    """What a turn asks of its guard for every call."""

    tools: dict[str, KnownTool]
    mask: Callable[[str], str] | None

    def learn(self, name: str) -> KnownTool:
        """What holds of every call of a tool."""

    def read_clock(self) -> float | None:
        """Seconds; None where time is unknown."""

    def fault(self, kind: str, error: BaseException | None = None) -> None:
        """Count a fault that was passed over."""


class Core:
    """One turn between its beginning and its end; safe to share between threads."""

    def __init__(self, guard: Surroundings, counts: Counts, started: events.TurnStarted) -> None:
        self.counts = counts
        self.started = started
        self.outcome: str | None = None  # once it has ended
        self.lock = threading.Lock()
        self.key: Callable[[str, Any, frozenset[str]], bytes] = short_key
        self.ordinal = 0  # of the next event
        self.spent = 0.0  # seconds in admit and settle
        self.guard = guard
        self.clock: Callable[[], float | None] = guard.read_clock
        self.begun = self.clock()

    # Asking

    def admit(
        self, name: Any, args: Any, call_id: Any, mutating: Any
    ) -> tuple[Verdict | None, Events | None]:
        """The verdict on one call (None when the turn has ended), and the events to hand on."""
        clock, begun = self.clock, self.begun
        now = clock()
        tool, key, known_by, changes = self._asked(name, args, call_id, mutating)
        passed = -1.0 if now is None or begun is None else now - begun
        offset_ms = passed * 1000 if 0 <= passed < LONGEST_S else -1.0
        happened: Events | None = None
        verdict: Verdict | None = None
        self.lock.acquire()  # faster than a `with`
        try:
            if self.outcome is None:
                counts = self.counts
                if counts.halt is not None or known_by is not None:
                    verdict = counts.earlier(known_by)
                if verdict is None:
                    verdict = counts.ask_one(tool, key, known_by, changes, offset_ms)
                    if counts.happened:
                        happened = self.take()
        finally:
            self.lock.release()
        after = clock()
        if now is not None and after is not None and after > now:
            self.spent += after - now  # two threads at once may lose a little of it
        return verdict, happened

    def admit_batch(self, calls: Sequence[ToolCall]) -> tuple[list[Verdict] | None, Events]:
        """The same for calls that are decided together."""
        now = self.clock()
        asked = [self._asked(call.name, call.args, call.call_id, call.mutating) for call in calls]
        verdicts: list[Verdict] | None = None
        with self.lock:
            if self.outcome is None:
                verdicts = self._batch(asked, self.offset_ms(now))
            happened = self.take()
        self._spend(now)
        return verdicts, happened

    def _batch(self, asked: Sequence[Asked], offset_ms: float) -> list[Verdict]:
        counts = self.counts
        ids = [call_id for _, _, call_id, _ in asked]
        found = [counts.earlier(call_id) for call_id in ids]
        new: dict[str | int, Asked] = {}  # an id twice in one batch counts once
        for position, (call, known) in enumerate(zip(asked, found, strict=True)):
            if known is None:
                call_id = ids[position]
                new.setdefault(position if call_id is None else call_id, call)
        answers = dict(zip(new, counts.ask(list(new.values()), offset_ms) if new else (), strict=True))
        return [
            known or answers[position if call_id is None else call_id]
            for position, (call_id, known) in enumerate(zip(ids, found, strict=True))
        ]

    def _asked(self, name: Any, args: Any, call_id: Any, mutating: Any) -> Asked:
        guard = self.guard
        word: str = name if type(name) is str else events.short(name) or ""
        tool = guard.tools.get(word) or guard.learn(word)
        try:
            key = self.key(word, args, tool.ignored)
        except KeyFailure as failure:
            key = failure.key
            guard.fault("key", failure)
        changes = int(mutating) if type(mutating) is bool else tool.mutating
        return tool, key, None if call_id is None else _known_by(call_id), changes

    # Settling

    def settle(self, call: Any, result: Any, error: Any) -> str:
        """Take in what a call returned; what is wrong with it, as a kind of fault, or nothing."""
        now = self.clock()
        failed = error is not None
        try:
            identity = result_id(error if failed else result, error=failed, mask=self.guard.mask)
        except KeyFailure as failure:
            identity = failure.key
            self.guard.fault("result", failure)
        call_id = None if isinstance(call, Verdict) else _known_by(call)
        with self.lock:
            if self.outcome is not None:
                fault = "settled_after_end"
            else:
                counts = self.counts
                known = call if isinstance(call, Verdict) else counts.outstanding.ids.get(call_id or "")
                number = known.call_number if known is not None and known.turn_id == counts.turn_id else 0
                fault = "" if counts.settle(number, identity, failed) else "unknown_call"
        self._spend(now)
        return fault

    # Time and events

    def seconds(self) -> float | None:
        """Since the turn began; None where time is unknown."""
        passed = self.offset_ms(self.clock())
        return None if passed < 0 else passed / 1000

    def offset_ms(self, now: float | None) -> float:
        """From the beginning to `now` in milliseconds, -1 where time is unknown."""
        begun = self.begun
        passed = -1.0 if now is None or begun is None else now - begun
        return passed * 1000 if 0 <= passed < LONGEST_S else -1.0

    def _spend(self, began: float | None) -> None:
        """The guard itself took from `began` until now."""
        now = self.clock()
        if began is not None and now is not None and now > began:
            self.spent += now - began

    def identity(self) -> dict[str, Any]:
        """The next event's attributes of identity."""
        started, turn_id, ordinal = self.started, self.counts.turn_id, self.ordinal
        self.ordinal += 1
        return {
            "event_id": f"{turn_id}/{ordinal}",
            "guard_id": started.guard_id,
            "turn_seq": started.turn_seq,
            "turn_id": turn_id,
        }

    def take(self) -> Events:
        """What happened, as events; called with the lock held."""
        counts = self.counts
        taken, counts.happened = counts.happened, []
        started = self.started
        made: Events = []
        for kind, fields, offset_ms in taken:
            if kind is events.TurnEnded:
                fields["chunks_on_span"] = 0  # known when it is handed on
            who: dict[str, Any] = {}
            if issubclass(kind, events.Caller):
                who = {
                    "conversation_id": started.conversation_id,
                    "agent_name": started.agent_name,
                    "model": started.model,
                }
            at = started.at + max(offset_ms, 0) * 1_000_000
            made.append(kind(at=at, **self.identity(), **who, **fields))
        return made


def _known_by(call_id: Any) -> str | None:
    """A call id as the turn remembers it: text, by its hash where it is longer than 128 characters."""
    if type(call_id) is not str:
        try:
            call_id = str(call_id)
        except Exception:  # noqa: BLE001 - foreign code runs here: such a call has no id
            return None
    if len(call_id) > events.LONGEST:
        return blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return call_id or None
