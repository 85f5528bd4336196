"""One turn, as a caller holds it: the lock, the clock and the boundary at which no fault passes.

What is decided stands in `counts`; what it means as telemetry in `telemetry`. The lock is never held while
calling out: arguments become keys before it is taken, events are handed on after it is released.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from guard import events
from guard.carrying import STATE_VERSION, counts_to_state, restore_counts
from guard.counts import Asked, Counts
from guard.errors import PolicyError
from guard.keys import KeyFailure, call_key, result_id, short_key
from guard.policy import LARGEST, Threshold
from guard.telemetry import TurnSpan, caller
from guard.verdict import ToolCall, Verdict

if TYPE_CHECKING:
    from guard.tool_call_guard import ToolCallGuard

OUTCOMES = ("completed", "errored", "aborted")
LONGEST_S = 1e9  # of a turn; what a clock says beyond it is no time


class Turn:
    """One user prompt until the agent stops. Made by `ToolCallGuard.start_turn`; safe to share.

    Nothing here raises on account of a call, a result or a backend; `extend` and `end` refuse wrong
    arguments of the caller's own.
    """

    def __init__(self, guard: ToolCallGuard, counts: Counts, started: events.TurnStarted) -> None:
        self.id: str = counts.turn_id
        self.outcome: str | None = None  # once it has ended
        self._guard = guard
        self._counts = counts
        self._started = started
        self._key = short_key
        self._lock = threading.Lock()
        self._monotonic = guard.read_clock
        self._begun = self._monotonic()
        self._ordinal = 0
        self._spent = 0.0  # seconds in admit and settle
        self._chunks_before = 0  # on spans of other processes
        self.span: TurnSpan | None = None

    def __repr__(self) -> str:
        return f"<Turn {self.id}: {self._counts.calls} calls, {self.outcome or 'open'}>"

    # Asking

    def admit(
        self, name: str, args: Any = None, call_id: str | None = None, *, mutating: bool | None = None
    ) -> Verdict:
        """May this call run? Counted now, whatever becomes of it.

        Args:
            name: the tool.
            args: its arguments; any Python value, None is an empty object.
            call_id: an id to settle it by. One admitted before, since the last retry, is answered as then.
            mutating: whether the call changes files or state; None asks the guard's table of tools.
        """
        # The hot path: what other methods call helpers for is written out here.
        happened: list[events.Event] | None = None
        monotonic = self._monotonic
        try:
            now = monotonic()
            tool, key, call_id, changes = self._asked(name, args, call_id, mutating)
            passed = -1.0 if now is None or self._begun is None else now - self._begun
            offset_ms = passed * 1000 if 0 <= passed < LONGEST_S else -1.0
            self._lock.acquire()  # faster than a `with`
            try:
                verdict = None
                if self.outcome is None:
                    counts = self._counts
                    if counts.halt is not None or call_id is not None:
                        verdict = counts.earlier(call_id)
                    if verdict is None:
                        verdict = counts.ask_one(tool, key, call_id, changes, offset_ms)
                        if counts.happened:
                            happened = self._take()
            finally:
                self._lock.release()
            after = monotonic()
            if now is not None and after is not None and after > now:
                self._spent += after - now
        except Exception as fault:  # noqa: BLE001 - the one boundary: an internal fault allows the call
            self._guard.fault("admit", fault)
            return self._blank()
        if happened is not None:
            self._hand_on(happened)
        return self._after_end() if verdict is None else verdict

    def admit_batch(self, calls: Sequence[ToolCall]) -> list[Verdict]:
        """One decision for calls that will run side by side: all allowed or all refused, a verdict each."""
        happened: list[events.Event] = []
        verdicts: list[Verdict] | None = None
        wanted: list[ToolCall] = []
        try:
            wanted.extend(calls)
            now = self._monotonic()
            asked = [self._asked(call.name, call.args, call.call_id, call.mutating) for call in wanted]
            with self._lock:
                if self.outcome is None:
                    verdicts = self._batch(self._counts, asked, self._offset_ms(now))
                    happened = self._take()
            self._spend(now)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("admit", fault)
            return [self._blank() for _ in wanted]
        self._hand_on(happened)
        return [self._after_end() for _ in wanted] if verdicts is None else verdicts

    @staticmethod
    def _batch(counts: Counts, asked: Sequence[Asked], offset_ms: float) -> list[Verdict]:
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

    def _asked(self, name: Any, args: Any, call_id: Any, mutating: bool | None) -> Asked:
        guard = self._guard
        if type(name) is not str:
            name = events.short(name) or ""
        tool = guard.tools.get(name) or guard.learn(name)
        _, _, changes, ignored = tool
        try:
            key = self._key(name, args, ignored)
        except KeyFailure as failure:
            key = failure.key
            guard.fault("key", failure)
        if call_id is not None:
            call_id = _known_by(call_id)
        return tool, key, call_id, int(mutating) if type(mutating) is bool else changes

    # Settling, replies, retries

    def settle(self, call: str | Verdict, *, result: Any = None, error: Any = None) -> None:
        """A call returned `result`, or failed with `error` (an exception or its text).

        Args:
            call: the call's id, or the verdict that allowed it. Unknown or settled before: counted, no more.
            result: what it returned; kept as a hash alone.
            error: given, the call failed.
        """
        try:
            now = self._monotonic()
            failed = error is not None
            try:
                identity = result_id(error if failed else result, error=failed, mask=self._guard.mask)
            except KeyFailure as failure:
                identity = failure.key
                self._guard.fault("result", failure)
            call_id = None if isinstance(call, Verdict) else _known_by(call)
            with self._lock:
                if self.outcome is not None:
                    kind = "settled_after_end"
                else:
                    counts = self._counts
                    known = call if isinstance(call, Verdict) else counts.outstanding.ids.get(call_id or "")
                    number = known.call_number if known is not None and known.turn_id == self.id else 0
                    kind = "" if counts.settle(number, identity, failed) else "unknown_call"
            self._spend(now)
            if kind:
                self._guard.fault(kind)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("settle", fault)

    def reply_finished(self) -> None:
        """The model's reply is whole: its calls are committed to the budget."""
        with self._lock:
            if self.outcome is None:
                self._counts.reply_finished()

    def retry(self) -> None:
        """The provider's stream was retried: back to the last commit, and every signal begins anew."""
        try:
            offset = self._offset_ms(self._monotonic())
            with self._lock:
                if self.outcome is not None:
                    return
                self._counts.retry(offset)
                happened = self._take()
            self._hand_on(happened)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("retry", fault)

    def extend(self, calls: int, by: str) -> int:
        """Lift the halt that stands for `calls` more calls, never past twice the backstop or hard cap.

        Returns how many were granted: 0 where no halt stands or the bound is reached.

        Raises:
            PolicyError: `calls` is no positive integer.
        """
        if type(calls) is not int or not 0 < calls <= LARGEST:
            raise PolicyError("calls", calls, f"an integer from 1 to {LARGEST}")
        person, offset = events.short(by), self._offset_ms(self._monotonic())
        with self._lock:
            granted = 0
            if self.outcome is None:
                granted = self._counts.extend(calls, person, offset)
            happened = self._take()
        self._hand_on(happened)
        if not granted:
            self._guard.fault("nothing_to_extend")
        return granted

    # The end

    def end(self, outcome: str | None = None, *, error: BaseException | None = None) -> str:
        """End the turn: `completed` (default), `errored` or `aborted`; `halted` where a halt stands.

        Returns the outcome. A second end changes nothing.

        Args:
            outcome: one of the three words.
            error: or what the turn was left by: cancellation and interruption abort it, others are errors.

        Raises:
            PolicyError: another word.
        """
        if outcome is not None and outcome not in OUTCOMES:
            raise PolicyError("outcome", outcome, ", ".join(OUTCOMES))
        if outcome is None and error is not None:
            failed = isinstance(error, Exception) and not isinstance(error, CancelledError)
            outcome = "errored" if failed else "aborted"
        seconds = self._seconds()
        with self._lock:
            if self.outcome is not None:
                return self.outcome
            counts = self._counts
            self.outcome = ended = "halted" if counts.halt is not None else outcome or "completed"
        try:
            with self._lock:
                counts.end(ended, None if seconds is None else round(seconds * 1000, 3))
                happened = self._take()
            self._hand_on(happened)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("end", fault)
        return ended

    def abort(self) -> str:
        """End the turn as cancelled or interrupted."""
        return self.end("aborted")

    @property
    def halted(self) -> bool:
        """Whether an enforced halt stands."""
        return self._counts.halt is not None

    @property
    def verdict(self) -> Verdict | None:
        """The enforced halt that stands, if one does."""
        return self._counts.halt

    def _after_end(self) -> Verdict:
        self._guard.fault("admitted_after_end")
        return self._counts.halt or self._blank()

    def _blank(self) -> Verdict:
        """Allowed and not counted: number 0 is no call's, so that settling it settles nothing."""
        counts, policy = self._counts, self._counts.policy
        limit = policy.next_limit(counts.total)
        numbers = 0, counts.total, policy.signal, None, counts.repeat.peak, counts.top_tool
        return Verdict(self.id, *numbers, limit, None, None, None, policy)

    # Time, events, state

    def _seconds(self) -> float | None:
        """Since the turn began; None where time is unknown."""
        now, begun = self._monotonic(), self._begun
        passed = None if now is None or begun is None else now - begun
        return passed if passed is not None and 0 <= passed < LONGEST_S else None

    def _offset_ms(self, now: float | None) -> float:
        """The same at `now` in milliseconds, -1 where time is unknown."""
        if now is None or self._begun is None:
            return -1.0
        passed = now - self._begun
        return passed * 1000 if 0 <= passed < LONGEST_S else -1.0

    def _spend(self, began: float | None) -> None:
        """The guard itself took from `began` until now; two threads at once may lose a little of it."""
        now = self._monotonic()
        if began is not None and now is not None and now > began:
            self._spent += now - began

    def identity(self) -> dict[str, Any]:
        """The next event's attributes of identity."""
        started, ordinal = self._started, self._ordinal
        self._ordinal += 1
        return {
            "event_id": f"{self.id}/{ordinal}",
            "guard_id": started.guard_id,
            "turn_seq": started.turn_seq,
            "turn_id": self.id,
        }

    def _take(self) -> list[events.Event]:
        """What happened, as events; called with the lock held."""
        counts = self._counts
        taken, counts.happened = counts.happened, []
        started = self._started
        made: list[events.Event] = []
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

    def _hand_on(self, happened: list[events.Event]) -> None:
        guard, span = self._guard, self.span
        who = caller(self._started.agent_name, self._started.model)
        mode, policy = self._counts.mode, self._counts.policy
        for event in happened:
            if isinstance(event, events.TurnEnded):
                event = replace(event, chunks_on_span=self._chunks_before + (span.chunks if span else 0))
            guard.emit(event, span, who, mode, policy)
            if isinstance(event, events.TurnEnded):
                guard.finish(event, span, self._halting(), self._spent, who)

    def _halting(self) -> Threshold | None:
        halt = self._counts.halt
        return None if halt is None else halt.threshold

    def to_state(self) -> bytes:
        """The turn as bytes for `ToolCallGuard.restore_turn`: counts, ids, hashes and tool names."""
        seconds, span = self._seconds(), self._guard.carried(self.span)
        with self._lock:
            started = self._started
            state = {
                "version": STATE_VERSION,
                "turn": {name: getattr(started, name) for name in _CARRIED},
                "at": started.at,
                "seconds": seconds,
                "ordinal": self._ordinal,
                "spent": self._spent,
                "chunks_on_span": self._chunks_before + (self.span.chunks if self.span else 0),
                "policy": self._counts.policy.text,
                "mode": str(self._counts.mode),
                "rates": {str(name): rate for name, rate in self._counts.rates.items()},
                "span": span,
                "counts": counts_to_state(self._counts),
            }
            return json.dumps(state, separators=(",", ":")).encode()

    def take_up(self, state: dict[str, Any]) -> None:
        """Continue from what `to_state` returned, in the turn just made for it."""
        restore_counts(self._counts, state["counts"])
        self._key = call_key  # what is carried of keys is hashes
        for name in ("at", "ordinal", "chunks_on_span"):
            if type(state[name]) is not int:
                raise TypeError(f"{name} is no integer")
        self._ordinal, self._spent = state["ordinal"], float(state["spent"])
        self._chunks_before = state["chunks_on_span"]
        now, seconds = self._monotonic(), state["seconds"]
        self._begun = None
        if now is not None and seconds is not None:
            passed = (self._guard.clock.unix_ns() - self._started.at) / 1e9
            self._begun = now - max(seconds, passed)

    def after_fork(self) -> None:
        """In a forked child: a lock that another thread held would never be released."""
        self._lock = threading.Lock()


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


_CARRIED = (
    *("guard_id", "turn_seq", "turn_id", "conversation_id", "agent_name", "model"),
    *("holdout_rate", "cluster_id", "parent_id", "resumed_from", "continues", "sample"),
)
