"""ToolCallGuard: makes turns, tosses the holdout coin, hands what happened to telemetry."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from math import isfinite
from typing import Any
from weakref import WeakSet

from guard.blocks import CurrentTurn, TurnBlock, current_turn
from guard.carrying import read_state
from guard.clock import Clock, SystemClock
from guard.counts import Candidate, Counts
from guard.errors import PolicyError, TurncapError
from guard.events import LONGEST, Event, SoftCapCrossed, TurnEnded, TurnStarted, short
from guard.labels import make_label
from guard.policy import CapPolicy, Mode, Threshold
from guard.settings import resolve
from guard.telemetry import Telemetry, TurnSpan, caller, carried
from guard.tools import TOOLS, UNKNOWN, KnownTool, ToolInfo
from guard.turn import Turn

log = logging.getLogger("turncap")

CANDIDATES_SIZE, CANDIDATE_COST = 6_000, 17  # bytes of them in an event; of each beside its text
_guards: WeakSet[ToolCallGuard] = WeakSet()

MOST_TOOLS = 10_000  # that a guard remembers

Tools = Mapping[str, ToolInfo] | Callable[[str], ToolInfo | None]


class ToolCallGuard:
    """The per-turn tool-call cap. Make one an agent, and a turn of it for every prompt.

    Every setting may come from the environment instead (`TURNCAP_…`); an argument beats it. Without any,
    the adaptive rule runs: past 100 calls a turn is halted when some call has been made 6 times, and
    always past 1,000. `docs/settings.md` has the table.

    Args:
        policy: all of the policy at once, instead of the six settings after `candidates`.
        candidates: policies judged beside it on every turn; the turn's end says where each would have halted.
        max_tool_calls: an explicit hard cap; 0 or less switches the cap off. Excludes the adaptive settings.
        soft_cap, stuck_at, backstop_multiplier, backstop, signal: the adaptive rule's numbers.
        mode: `enforce`, or `shadow` to decide and record and let run.
        holdout_rate: share of would-be `soft-stuck` halts that are let run up to the backstop.
        backstop_holdout_rate: share of would-be `backstop` halts that are let run to twice the backstop.
        holdout_salt: makes the coin differ between deployments.
        digest_secret: key of the exported digests; random a process where none is given.
        events: where events go: `both`, `logs` or `spans`.
        ignore_args: arguments to leave out of the key, by tool.
        tool_info: class and mutating by tool name, a mapping or a function, before the shipped table.
        mask: replaces the masking of volatile parts of result text.
        agent_name, model: of every turn that does not say otherwise.
        clock: read for timestamps and durations.
        tracer_provider, meter_provider, logger_provider: instead of the global ones.

    Raises:
        PolicyError: a setting that is not accepted.
    """

    def __init__(
        self,
        *,
        policy: CapPolicy | None = None,
        candidates: Sequence[CapPolicy] = (),
        max_tool_calls: int | None = None,
        soft_cap: int | None = None,
        stuck_at: int | None = None,
        backstop_multiplier: int | None = None,
        backstop: int | None = None,
        signal: str | None = None,
        mode: str | None = None,
        holdout_rate: float | None = None,
        holdout_salt: str | None = None,
        backstop_holdout_rate: float | None = None,
        digest_secret: str | bytes | None = None,
        events: str | None = None,
        ignore_args: Mapping[str, Collection[str]] | None = None,
        tool_info: Tools | None = None,
        mask: Callable[[str], str] | None = None,
        agent_name: str | None = None,
        model: str | None = None,
        clock: Clock | None = None,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        logger_provider: Any = None,
    ) -> None:
        given = {
            "max_tool_calls": max_tool_calls,
            "soft_cap": soft_cap,
            "stuck_at": stuck_at,
            "backstop_multiplier": backstop_multiplier,
            "backstop": backstop,
            "signal": signal,
            "mode": mode,
            "holdout_rate": holdout_rate,
            "holdout_salt": holdout_salt,
            "backstop_holdout_rate": backstop_holdout_rate,
            "digest_secret": digest_secret,
            "events": events,
        }
        if policy is not None and not isinstance(policy, CapPolicy):
            raise PolicyError("policy", policy, "a CapPolicy")
        if not all(isinstance(candidate, CapPolicy) for candidate in candidates):
            raise PolicyError("candidates", candidates, "a sequence of CapPolicy")
        if sum(len(candidate.text) + CANDIDATE_COST for candidate in candidates) > CANDIDATES_SIZE:
            raise PolicyError(
                "candidates", len(candidates), "about 75 policies, so that the turn's end stays below 16 KiB"
            )
        settings = resolve(given, os.environ, policy)
        self.policy: CapPolicy = settings.policy
        self.mode: Mode = settings.mode
        self.candidates = tuple(candidates)
        self.rates = {
            Threshold.SOFT_STUCK: settings.holdout_rate,
            Threshold.BACKSTOP: settings.backstop_holdout_rate,
        }
        self.tools: dict[str, KnownTool] = {}
        self.mask = mask
        self.clock: Clock = SystemClock() if clock is None else clock
        self.read_clock = SystemClock.monotonic if clock is None else self._checked_clock
        self.agent_name = short(agent_name)
        self.model = short(model)
        self.faults: dict[str, int] = {}  # kind -> how many were passed over
        self._salt = settings.holdout_salt
        self._secret = settings.digest_secret
        self._ignore_args = {name: frozenset(words) for name, words in (ignore_args or {}).items()}
        self._tool_info = tool_info
        self._warned = False
        self._turns: WeakSet[Turn] = WeakSet()
        self._new_identity()
        self._telemetry = Telemetry(
            destination=settings.events,
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
        )
        self._telemetry.observe(self)
        _guards.add(self)

    def __repr__(self) -> str:
        return f"<ToolCallGuard {self.id}: {self.policy.text}, {self.mode}>"

    # Turns

    def start_turn(
        self,
        *,
        conversation_id: str | None = None,
        agent_name: str | None = None,
        model: str | None = None,
        user: str | None = None,
        parent: Turn | str | None = None,
        resumed_from: str | None = None,
        continues: str | None = None,
        sample: str | None = None,
    ) -> Turn:
        """Begin a turn; end it with `Turn.end`. Neither touches any context.

        Args:
            conversation_id: of the conversation it belongs to.
            agent_name, model: who makes its calls.
            user: user or installation: exported as a keyed digest alone.
            parent: the turn (or its id) in which this one, a sub-agent's, is started.
            resumed_from: id of the halted turn that this one takes up again.
            continues: id of the turn that this one goes on from without a new prompt.
            sample: a word by which a data set declares a limit, such as `length-limited`.
        """
        guard_id, seq = self.id, next(self._seq)
        started = TurnStarted(
            at=self.clock.unix_ns(),
            guard_id=guard_id,
            turn_seq=seq,
            turn_id=f"{guard_id}-{seq}",
            conversation_id=short(conversation_id),
            agent_name=self.agent_name if agent_name is None else short(agent_name),
            model=self.model if model is None else short(model),
            policy=self.policy,
            mode=str(self.mode),
            holdout_rate=self.rates[Threshold.SOFT_STUCK] if self.mode is Mode.ENFORCE else None,
            cluster_id=None if user is None else self._digest(str(user).encode("utf-8", "replace"), 8),
            parent_id=parent.id if isinstance(parent, Turn) else short(parent),
            resumed_from=short(resumed_from),
            continues=short(continues),
            sample=short(sample),
        )
        turn = self._turn(started, self.policy, self.mode, self.rates)
        self._start_span(turn, started, None)
        who = caller(started.agent_name, started.model)
        self.emit(replace(started, **turn.identity()), turn.span, who, self.mode, self.policy)
        return turn

    def turn(self, **circumstances: Any) -> TurnBlock:
        """`with guard.turn(...) as turn`: `start_turn` and `end` around a block, sync or async.

        Takes what `start_turn` takes; `parent` defaults to the turn of the enclosing block. The turn's
        span is current in the block. Exceptions get out unchanged.
        """
        return TurnBlock(self, circumstances)

    def use_turn(self, turn: Turn) -> CurrentTurn:
        """`with guard.use_turn(turn)`: make it current for a block, which does not end it.

        For callbacks that begin and end a turn elsewhere: what runs in the block names it as its parent.
        """
        return CurrentTurn(turn)

    def current_turn(self) -> Turn | None:
        """The turn of the innermost block that is open here, of any guard."""
        return current_turn()

    def restore_turn(self, state: bytes) -> Turn:
        """The turn that `Turn.to_state` was called on, to continue here.

        Its policy, mode and holdout rates go with it. Its span continues the trace from here on.

        Raises:
            TurncapError: the bytes are no state, or a newer version's.
        """
        found = read_state(state)
        try:
            policy, mode = CapPolicy.from_text(found["policy"]), Mode(found["mode"])
            if any(isinstance(value, list | dict) for value in found["turn"].values()):
                raise TypeError("a list where a word stands")
            started = TurnStarted(at=found["at"], policy=policy, mode=str(mode), **found["turn"])
            rates = {Threshold(word): rate for word, rate in found["rates"].items()}
            turn = self._turn(started, policy, mode, rates)
            turn.take_up(found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TurncapError(
                f"restore_turn: the state is damaged ({type(error).__name__}); start a new turn"
            ) from None
        self._start_span(turn, started, found.get("span"))
        return turn

    def label(
        self,
        turn_id: str,
        *,
        by: str,
        stuck: bool | None = None,
        productive: bool | None = None,
        kind: str | None = None,
        task_outcome: str | None = None,
        label_id: str | None = None,
        judge_version: str | None = None,
        stratum: str | None = None,
        probability: float | None = None,
    ) -> str:
        """Record ground truth about a turn, at any later time; None is unknown. Returns the label's id.

        Raises:
            PolicyError: a value that is not accepted.
        """
        label = make_label(
            turn_id,
            at=self.clock.unix_ns(),
            by=by,
            stuck=stuck,
            productive=productive,
            kind=kind,
            task_outcome=task_outcome,
            label_id=label_id,
            judge_version=judge_version,
            stratum=stratum,
            probability=probability,
        )
        self._safely(lambda: self._telemetry.emit_label(label))
        return label.label_id

    # What its turns ask of it

    def learn(self, name: str) -> KnownTool:
        """What holds of every call of a tool; remembered."""
        info = self._told(name) or TOOLS.get(name, UNKNOWN)
        known = KnownTool(
            name=short(name) or "",
            tool_class=short(info.tool_class),
            mutating=int(info.mutating) if type(info.mutating) is bool else -1,
            ignored=self._ignore_args.get(name, frozenset()),
        )
        if len(self.tools) < MOST_TOOLS and len(name) <= LONGEST:
            self.tools[name] = known
        return known

    def _told(self, name: str) -> ToolInfo | None:
        try:
            found = self._tool_info(name) if callable(self._tool_info) else (self._tool_info or {}).get(name)
            return None if found is None else ToolInfo(*found)
        except Exception as error:  # noqa: BLE001 - the caller's code: without it, the tool is as shipped
            self.fault("tool_info", error)
            return None

    def _checked_clock(self) -> float | None:
        """The caller's clock; None where it fails or shows what is no time."""
        try:
            seconds = self.clock.monotonic()
            return float(seconds) if seconds is not None and isfinite(seconds) else None
        except Exception as error:  # noqa: BLE001 - the caller's code: without it, time is unknown
            self.fault("clock", error)
            return None

    def fault(self, kind: str, error: BaseException | None = None) -> None:
        """Count a fault that was passed over; the first one with an error behind it is logged."""
        self.faults[kind] = self.faults.get(kind, 0) + 1
        if error is not None and not self._warned:
            self._warned = True
            log.warning(
                "turncap passed over a fault (%s, %s) and allowed the call", kind, type(error).__name__
            )
        with suppress(Exception):  # counted above; telemetry may fail, the tool call may not
            self._telemetry.error(kind, caller(self.agent_name, self.model))

    def emit(
        self, event: Event, span: TurnSpan | None, who: dict[str, Any], mode: Mode, policy: CapPolicy
    ) -> None:
        """Hand an event of a turn with this mode and policy to logs, span and metrics."""
        telemetry = self._telemetry
        self._safely(lambda: telemetry.emit(event, span))
        if isinstance(event, SoftCapCrossed):
            self._safely(lambda: telemetry.count_crossing(event, who, span))
        else:
            self._safely(lambda: telemetry.count(event, span, mode=mode, policy=policy))

    def finish(
        self,
        ended: TurnEnded,
        span: TurnSpan | None,
        halting: Threshold | None,
        seconds: float,
        who: dict[str, Any],
    ) -> None:
        """End a turn's span and record what the guard itself took."""
        self._safely(lambda: self._telemetry.time(seconds, who, span))
        if span is not None:
            self._safely(
                lambda: self._telemetry.finish(span, ended, None if halting is None else str(halting))
            )

    def carried(self, span: TurnSpan | None) -> dict[str, int] | None:
        """What continues a span's trace in another process."""
        return carried(span)

    def after_fork(self) -> None:
        """In a forked child: a guard of its own, so that no two turns have one number."""
        self._new_identity()
        for turn in list(self._turns):
            turn.after_fork()

    # Its own

    def _turn(
        self, started: TurnStarted, policy: CapPolicy, mode: Mode, rates: dict[Threshold, float]
    ) -> Turn:
        turn_id = started.turn_id or ""
        counts = Counts(
            turn_id=turn_id,
            policy=policy,
            mode=mode,
            candidates=[Candidate(candidate) for candidate in self.candidates],
            toss=lambda threshold: self._toss(threshold, turn_id, rates.get(threshold, 0)),
            rates=rates,
            digest=self._digest,
        )
        turn = Turn(self, counts, started)
        self._turns.add(turn)
        return turn

    def _toss(self, threshold: Threshold, turn_id: str, rate: float) -> bool:
        """Whether a would-be halt is let run: the same answer for the same turn and threshold, always."""
        coin = blake2b(
            f"{self._salt}\0{threshold}\0{turn_id}".encode("utf-8", "surrogatepass"), digest_size=8
        )
        return int.from_bytes(coin.digest()) < rate * 2**64

    def _digest(self, data: bytes, size: int = 16) -> str:
        return blake2b(data, key=self._secret, digest_size=size).hexdigest()

    def _start_span(self, turn: Turn, started: TurnStarted, parent: dict[str, int] | None) -> None:
        def start() -> None:
            turn.span = self._telemetry.start(started, parent)

        self._safely(start)

    def _safely(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - telemetry may fail, the tool call may not
            self.fault("telemetry", error)

    def _new_identity(self) -> None:
        self.id = secrets.token_hex(8)
        self._seq = count(1)


def _after_fork() -> None:
    for guard in list(_guards):
        guard.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
