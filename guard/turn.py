"""One turn, as a caller holds it: the boundary at which no fault passes, and where events are handed on.

What is done for every call stands in `core`, what is decided in `counts`; what it means as telemetry in
`telemetry`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guard import events
from guard.carrying import STATE_VERSION, counts_to_state, restore_counts
from guard.core import Core
from guard.counts import Counts
from guard.errors import PolicyError
from guard.keys import call_key
from guard.policy import LARGEST, Threshold
from guard.telemetry import TurnSpan, caller
from guard.verdict import ToolCall, Verdict

if TYPE_CHECKING:
    from guard.tool_call_guard import ToolCallGuard

OUTCOMES = ("completed", "errored", "aborted")


class Turn:
    """One user prompt until the agent stops. Made by `ToolCallGuard.start_turn`; safe to share.

    Nothing here raises on account of a call, a result or a backend; `extend` and `end` refuse wrong
    arguments of the caller's own.
    """

    def __init__(self, guard: ToolCallGuard, counts: Counts, started: events.TurnStarted) -> None:
        self.id: str = counts.turn_id
        self._guard = guard
        self._core = Core(guard, counts, started)
        self._chunks_before = 0  # on spans of other processes
        self.span: TurnSpan | None = None

    def __repr__(self) -> str:
        return f"<Turn {self.id}: {self._core.counts.calls} calls, {self.outcome or 'open'}>"

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
        try:
            verdict, happened = self._core.admit(name, args, call_id, mutating)
        except Exception as fault:  # noqa: BLE001 - the one boundary: an internal fault allows the call
            self._guard.fault("admit", fault)
            return self._blank()
        if happened is not None:
            self._hand_on(happened)
        return self._after_end() if verdict is None else verdict

    def admit_batch(self, calls: Sequence[ToolCall]) -> list[Verdict]:
        """One decision for calls that will run side by side: all allowed or all refused, a verdict each."""
        wanted: list[ToolCall] = []
        try:
            wanted.extend(calls)
            verdicts, happened = self._core.admit_batch(wanted)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("admit", fault)
            return [self._blank() for _ in wanted]
        self._hand_on(happened)
        return [self._after_end() for _ in wanted] if verdicts is None else verdicts

    # Settling, replies, retries

    def settle(self, call: str | Verdict, *, result: Any = None, error: Any = None) -> None:
        """A call returned `result`, or failed with `error` (an exception or its text).

        Args:
            call: the call's id, or the verdict that allowed it. Unknown or settled before: counted, no more.
            result: what it returned; kept as a hash alone.
            error: given, the call failed.
        """
        try:
            fault = self._core.settle(call, result, error)
            if fault:
                self._guard.fault(fault)
        except Exception as failure:  # noqa: BLE001 - the one boundary
            self._guard.fault("settle", failure)

    def reply_finished(self) -> None:
        """The model's reply is whole: its calls are committed to the budget."""
        core = self._core
        with core.lock:
            if core.outcome is None:
                core.counts.reply_finished()

    def retry(self) -> None:
        """The provider's stream was retried: back to the last commit, and every signal begins anew."""
        core = self._core
        try:
            offset_ms = core.offset_ms(core.clock())
            with core.lock:
                if core.outcome is not None:
                    return
                core.counts.retry(offset_ms)
                happened = core.take()
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
        core, person = self._core, events.short(by)
        offset_ms = core.offset_ms(core.clock())
        with core.lock:
            granted = 0
            if core.outcome is None:
                granted = core.counts.extend(calls, person, offset_ms)
            happened = core.take()
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
        core = self._core
        offset_ms = core.offset_ms(core.clock())
        with core.lock:
            if core.outcome is not None:
                return core.outcome
            core.outcome = ended = "halted" if self.halted else outcome or "completed"
        try:
            with core.lock:
                core.counts.end(ended, None if offset_ms < 0 else round(offset_ms, 3))
                happened = core.take()
            self._hand_on(happened)
        except Exception as fault:  # noqa: BLE001 - the one boundary
            self._guard.fault("end", fault)
        return ended

    def abort(self) -> str:
        """End the turn as cancelled or interrupted."""
        return self.end("aborted")

    @property
    def outcome(self) -> str | None:
        """How it ended; None while it is open."""
        return self._core.outcome

    @property
    def halted(self) -> bool:
        """Whether an enforced halt stands."""
        return self._core.counts.halt is not None

    @property
    def verdict(self) -> Verdict | None:
        """The enforced halt that stands, if one does."""
        return self._core.counts.halt

    def _after_end(self) -> Verdict:
        self._guard.fault("admitted_after_end")
        return self._core.counts.halt or self._blank()

    def _blank(self) -> Verdict:
        """Allowed and not counted: number 0 is no call's, so that settling it settles nothing."""
        counts, policy = self._core.counts, self._core.counts.policy
        limit = policy.next_limit(counts.total)
        numbers = 0, counts.total, policy.signal, None, counts.repeat.peak, counts.top_tool
        return Verdict(self.id, *numbers, limit, None, None, None, policy)

    # Events, state

    def identity(self) -> dict[str, Any]:
        """The next event's attributes of identity."""
        return self._core.identity()

    def _hand_on(self, happened: list[events.Event]) -> None:
        guard, span = self._guard, self.span
        started, counts = self._core.started, self._core.counts
        who = caller(started.agent_name, started.model)
        for event in happened:
            if isinstance(event, events.TurnEnded):
                event = replace(event, chunks_on_span=self._chunks_before + (span.chunks if span else 0))
            guard.emit(event, span, who, counts.mode, counts.policy)
            if isinstance(event, events.TurnEnded):
                guard.finish(event, span, self._halting(), self._core.spent, who)

    def _halting(self) -> Threshold | None:
        halt = self._core.counts.halt
        return None if halt is None else halt.threshold

    def to_state(self) -> bytes:
        """The turn as bytes for `ToolCallGuard.restore_turn`: counts, ids, hashes and tool names."""
        core, span = self._core, self._guard.carried(self.span)
        seconds = core.seconds()
        with core.lock:
            started, counts = core.started, core.counts
            state = {
                "version": STATE_VERSION,
                "turn": {name: getattr(started, name) for name in _CARRIED},
                "at": started.at,
                "seconds": seconds,
                "ordinal": core.ordinal,
                "spent": core.spent,
                "chunks_on_span": self._chunks_before + (self.span.chunks if self.span else 0),
                "policy": counts.policy.text,
                "mode": str(counts.mode),
                "rates": {str(name): rate for name, rate in counts.rates.items()},
                "span": span,
                "counts": counts_to_state(counts),
            }
            return json.dumps(state, separators=(",", ":")).encode()

    def take_up(self, state: dict[str, Any]) -> None:
        """Continue from what `to_state` returned, in the turn just made for it."""
        core = self._core
        restore_counts(core.counts, state["counts"])
        core.key = call_key  # what is carried of keys is hashes
        for name in ("at", "ordinal", "chunks_on_span"):
            if type(state[name]) is not int:
                raise TypeError(f"{name} is no integer")
        core.ordinal, core.spent = state["ordinal"], float(state["spent"])
        self._chunks_before = state["chunks_on_span"]
        now, seconds = core.clock(), state["seconds"]
        core.begun = None
        if now is not None and seconds is not None:
            passed = (self._guard.clock.unix_ns() - core.started.at) / 1e9
            core.begun = now - max(seconds, passed)

    def after_fork(self) -> None:
        """In a forked child: a lock that another thread held would never be released."""
        self._core.lock = threading.Lock()


_CARRIED = (
    *("guard_id", "turn_seq", "turn_id", "conversation_id", "agent_name", "model"),
    *("holdout_rate", "cluster_id", "parent_id", "resumed_from", "continues", "sample"),
)
