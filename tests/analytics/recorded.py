"""Turns recorded by a slow guard that follows the definitions word by word, as a database to replay.

It is an oracle for `analytics.replay`: it shares no code with the signals or with replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import duckdb
import pandas as pd

from guard.policy import CapPolicy


@dataclass(frozen=True, slots=True)
class Ask:
    """A batch of calls, by key; one call is a batch of one."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """Call number `call` settles with this result id; one that was refused or dropped is ignored."""

    call: int
    result: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The total is committed."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The total rolls back, the signals are cleared."""


Step = Ask | Settle | Finished | Retry


@dataclass(slots=True)
class Live:
    """One turn as the slow guard saw it."""

    policy: CapPolicy
    enforce: bool = True
    calls: list[dict[str, Any]] = field(default_factory=list)
    settled: list[tuple[int, int, int]] = field(default_factory=list)  # epoch, key, result
    outstanding: set[int] = field(default_factory=set)
    retries: list[tuple[int, int]] = field(default_factory=list)  # at call, total after it
    total: int = 0
    committed: int = 0
    batches: int = 0
    halted: int | None = None  # by an enforced halt
    would_halt: int | None = None
    threshold: str | None = None
    ran: int = 0
    ever_settled: bool = False

    @property
    def epoch(self) -> int:
        """How many retries came before."""
        return len(self.retries)

    def level(self, signal: str, key: int) -> int | None:
        """The level at the last call, which asked for `key`, by the definition."""
        calls = [c["key"] for c in self.calls if c["epoch"] == self.epoch]
        settled = [(k, r) for e, k, r in self.settled if e == self.epoch]
        if signal == "repeat":
            return max(calls.count(k) for k in calls)
        if signal == "recent_repeat":
            return calls[-20:].count(key)
        if signal == "novelty_repeat":
            newest = max(i for i, k in enumerate(calls) if k not in calls[:i])
            return calls[newest:].count(key)
        if len(self.calls) > 20 and not self.ever_settled:
            return None
        if signal == "same_result_repeat":
            results = [r for k, r in settled if k == key]
            streak = 0
            while streak < len(results) and results[-1 - streak] == results[-1]:
                streak += 1
            return streak
        newest = max((i for i, pair in enumerate(settled) if pair not in settled[:i]), default=0)
        return max(len(settled) - 1 - newest, 0)

    def ask(self, keys: Sequence[int]) -> None:
        """One batch: counted whole, judged once, run or refused whole."""
        if self.halted is not None:
            return
        self.batches += 1
        before, levels = len(self.calls), []
        halting = None
        for key in keys:
            self.total += 1
            self.calls.append(
                {"n": len(self.calls) + 1, "epoch": self.epoch, "batch": self.batches, "key": key,
                 "result": None, "settled_after": None, "settled_order": None, "refused": False}
            )  # fmt: skip
            levels.append(-1 if self.policy.signal is None else self.level(self.policy.signal, key) or 0)
            if halting is None and self.policy.decide(self.total, max(levels)) is not None:
                halting = len(self.calls)
        if halting is not None and self.would_halt is None:
            self.would_halt = halting
            self.threshold = str(self.policy.decide(self.total, max(levels)))
            self.ran = before
            if self.enforce:
                self.halted = halting
        for call in self.calls[before:]:
            if self.halted is not None:
                call["refused"] = True
            else:
                self.outstanding.add(call["n"])

    def do(self, step: Step) -> None:
        """One step of the script."""
        if isinstance(step, Ask):
            self.ask(step.keys)
        elif isinstance(step, Settle) and step.call in self.outstanding:
            self.outstanding.remove(step.call)
            call = self.calls[step.call - 1]
            call["result"] = call["key"] * 1000 + step.result
            call["settled_after"], call["settled_order"] = len(self.calls), len(self.settled)
            self.settled.append((call["epoch"], call["key"], step.result))
            self.ever_settled = True
        elif isinstance(step, Finished) and self.halted is None:
            self.committed = self.total
        elif isinstance(step, Retry) and self.halted is None:
            self.total = self.committed
            self.retries.append((len(self.calls), self.total))
            self.outstanding.clear()

    @property
    def calls_that_ran(self) -> int:
        """Calls that were let run."""
        return self.ran if self.halted is not None else len(self.calls)


def live(script: Iterable[Step], policy: CapPolicy, *, enforce: bool = True) -> Live:
    """The turn that the script makes under the policy."""
    turn = Live(policy=policy, enforce=enforce)
    for step in script:
        turn.do(step)
    return turn


def letters(text: str) -> list[Step]:
    """One call a letter, each settled before the next is asked, always with the same result."""
    return [
        step
        for n, letter in enumerate(text, start=1)
        for step in (Ask((ord(letter),)), Settle(n, 0))
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What of a turn does not reach the database."""

    chunks: bool = False  # every chunk
    chunk: int | None = None  # this chunk of 10 calls
    end: bool = False  # the event that ends the turn
    milestones: bool = False  # no guard wrote it: there is no such event, but its calls are known
    grade: str = "exact"


def database(
    turns: Sequence[Live], losses: Sequence[Loss] | None = None, labels: Sequence[bool | None] = ()
) -> duckdb.DuckDBPyConnection:
    """A database in memory of these turns, in this order; `labels` say which are stuck."""
    connection = duckdb.connect()
    connection.execute(files("analytics").joinpath("schema.sql").read_text(encoding="utf-8"))
    frames: dict[str, list[dict[str, Any]]] = {
        "turns": [], "calls": [], "retries": [], "milestones": [], "labels": [], "policies": []
    }  # fmt: skip
    known = set()
    for number, turn in enumerate(turns):
        loss = losses[number] if losses else Loss()
        if turn.policy.hash not in known:
            known.add(turn.policy.hash)
            frames["policies"].append(_policy(turn.policy))
        _add(frames, f"{number:06d}", turn, loss)
        if number < len(labels) and labels[number] is not None:
            frames["labels"].append(
                {"label_id": "1", "turn_id": f"{number:06d}", "stuck": labels[number], "by": "human"}
            )
    for table, records in frames.items():
        if records:
            connection.register("frame", pd.DataFrame(records, dtype=object))
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM frame")
            connection.unregister("frame")
    return connection


def _policy(policy: CapPolicy) -> dict[str, Any]:
    return {
        "policy_hash": policy.hash, "kind": str(policy.kind), "signal": policy.signal,
        "soft_cap": policy.soft_cap, "stuck_at": policy.stuck_at, "backstop": policy.backstop,
        "hard_cap": policy.hard_cap, "text": policy.text,
    }  # fmt: skip


def _add(frames: dict[str, list[dict[str, Any]]], turn_id: str, turn: Live, loss: Loss) -> None:
    seen = [
        call for call in turn.calls
        if not loss.chunks and loss.grade != "spans-only" and (call["n"] - 1) // 10 != loss.chunk
    ]  # fmt: skip
    results = loss.grade == "exact"
    keys = loss.grade != "names-only"
    for call in seen:
        frames["calls"].append(
            {"turn_id": turn_id, **call}
            | ({} if results else {"result": None, "settled_after": None, "settled_order": None})
            | ({} if keys else {"key": None})
        )
    known_retries = [r for r in turn.retries if not loss.chunks and r[0] // 10 != loss.chunk]
    for epoch, (at_call, total) in enumerate(turn.retries, start=1):
        if (at_call, total) in known_retries:
            frames["retries"].append({"turn_id": turn_id, "epoch": epoch, "at_call": at_call, "total": total})
    counts: dict[tuple[int, int], int] = {}
    peaks: dict[int, int] = {}
    for call in turn.calls:
        place = (call["epoch"], call["key"])
        counts[place] = counts.get(place, 0) + 1
        if counts[place] > peaks.get(call["epoch"], 0):
            peaks[call["epoch"]] = counts[place]
            if (
                not loss.end
                and not loss.milestones
                and keys
                and (2 <= counts[place] <= 64 or counts[place] == turn.policy.stuck_at)
            ):
                first = min(c["n"] for c in turn.calls if c["batch"] == call["batch"])
                frames["milestones"].append(
                    {"turn_id": turn_id, "epoch": call["epoch"], "k": counts[place], "call": call["n"],
                     "batch_first_call": first}
                )  # fmt: skip
    calls, chunks = len(turn.calls), -(-len(turn.calls) // 10)
    ended = {
        "outcome": "completed" if turn.halted is None else "halted", "calls": calls, "total": turn.total,
        "ran": turn.calls_that_ran, "settled": len(turn.settled), "batches": turn.batches,
        "retries": len(turn.retries), "keys_forgotten": 0, "chunks_sent": chunks,
        "distinct_keys": len({c["key"] for c in turn.calls}) if keys else None,
        "max_repeat": max(peaks.values(), default=0) if keys else None,
    }  # fmt: skip
    frames["turns"].append({
        "turn_id": turn_id, "guard_id": None if loss.milestones else "guard",
        "seq": len(frames["turns"]) + 1, "dialect": "turncap",
        "grade": loss.grade, "length_limited": False, "mode": "enforce" if turn.enforce else "shadow",
        "policy_hash": turn.policy.hash, "has_started": True, "has_ended": not loss.end,
        "halted_call": turn.halted, "would_halt_call": turn.would_halt,
        "threshold": turn.threshold if turn.halted is not None else None,
        "would_halt_threshold": turn.threshold, "extended": False,
        "chunks_seen": 0 if loss.chunks else chunks - (loss.chunk is not None and loss.chunk < chunks),
        "least_calls": max((call["n"] for call in seen), default=0) if loss.end else calls,
        **({} if loss.end else ended),
    })  # fmt: skip
