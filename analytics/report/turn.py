"""One turn: its calls, what repeats in it, and where it was or would have been halted."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass

import duckdb

from analytics.database import records, select
from analytics.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One numbered call. `rank` is 0 for the most repeated key, 1 for the next …, None for one seen once."""

    n: int
    rank: int | None
    tool: str | None
    error: bool | None
    mutating: bool | None
    refused: bool
    offset_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One key that was asked for more than once. `results` counts its different results, None if unknown."""

    rank: int
    tool: str | None
    times: int
    first_call: int
    last_call: int
    results: int | None
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """A (would-be) halt with the numbers that led to it."""

    threshold: str
    mode: str | None
    enforced: bool
    explored: bool | None
    call_number: int | None
    level: int | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """Everything that is shown of one turn. `calls` may be empty where only the turn's end is known."""

    turn_id: str
    agent: str | None
    model: str | None
    mode: str | None
    outcome: str | None
    task_outcome: str | None
    grade: str
    conversation_id: str | None
    started_at: int | None
    total_calls: int
    duration_ms: float | None
    soft_cap: int | None
    stuck_at: int | None
    backstop: int | None
    stuck: bool | None
    productive: bool | None
    kind: str | None
    calls: tuple[Call, ...]
    repeats: tuple[Repeat, ...]
    halts: tuple[Halt, ...]


def find_turn(connection: duckdb.DuckDBPyConnection, given: str) -> str:
    """The turn id that `given` is, or is the only beginning of; `InputError` names near ones."""
    found = connection.execute(
        "SELECT turn_id FROM turns WHERE starts_with(turn_id, $1) ORDER BY turn_id <> $1, turn_id LIMIT 4",
        [given],
    ).fetchall()
    ids = [turn_id for (turn_id,) in found]
    if given in ids or (given and len(ids) == 1):
        return str(ids[0])
    if given and ids:
        raise InputError(
            f"{given}: the beginning of several turns, such as {', '.join(ids[:3])}; give more of it"
        )
    every = [turn_id for (turn_id,) in connection.execute("SELECT turn_id FROM turns").fetchall()]
    near = difflib.get_close_matches(given, every, n=3, cutoff=0.5) or sorted(every)[:3]
    hint = f"; there is, for example, {', '.join(near)}" if near else "; the database has no turns"
    raise InputError(f"{given}: no such turn{hint}")


def build_turn(connection: duckdb.DuckDBPyConnection, turn_id: str) -> TurnView:
    """Read one turn; `turn_id` as `find_turn` gives it."""
    turn = records(select(connection, "one_turn", turn_id=turn_id))[0]
    rows = records(select(connection, "turn_calls", turn_id=turn_id))
    times = Counter(row["key"] for row in rows if row["key"] is not None)
    ranks = {
        key: rank for rank, (key, count) in enumerate(times.most_common()) if count > 1
    }  # most_common keeps the order of first appearance among equals
    repeats = []
    for key, rank in ranks.items():
        mine = [row for row in rows if row["key"] == key]
        results = {row["result"] for row in mine if row["result"] is not None}
        repeats.append(
            Repeat(
                rank=rank,
                tool=mine[0]["tool"],
                times=len(mine),
                first_call=mine[0]["n"],
                last_call=mine[-1]["n"],
                results=len(results) if results else None,
                errors=sum(row["error"] is True for row in mine),
            )
        )
    return TurnView(
        **{
            name: turn[name]
            for name in (
                "turn_id", "conversation_id", "started_at", "agent", "model", "mode", "outcome",
                "task_outcome", "grade", "duration_ms",
                "soft_cap", "stuck_at", "backstop", "stuck", "productive", "kind",
            )
        },
        total_calls=turn["calls"] if turn["calls"] is not None else turn["least_calls"],
        calls=tuple(
            Call(
                n=row["n"],
                rank=ranks.get(row["key"]),
                tool=row["tool"],
                error=row["error"],
                mutating=row["mutating"],
                refused=row["refused"],
                offset_ms=row["offset_ms"],
            )
            for row in rows
        ),
        repeats=tuple(repeats),
        halts=tuple(
            Halt(**{name: row[name] for name in Halt.__slots__})
            for row in records(select(connection, "turn_halts", turn_id=turn_id))
        ),
    )  # fmt: skip
