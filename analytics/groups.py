"""What the dialects saw -> the tables: every touched group is assembled anew from all that was seen of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import orjson

from analytics.dialects.assemble import assemble
from analytics.dialects.base import DialectTurn, Seen, StoredSeen
from analytics.warehouse import Warehouse

BATCH = 2_000  # groups at a time
MILESTONES = 64  # the largest count of repeats that is noted, as in a guard's own event

SEEN = ("group_id", "dialect", "seen_id", "kind", "at", "data")
_CALL = (
    "turn_id", "n", "epoch", "batch", "key", "result", "tool", "tool_class", "mutating", "error", "offset_ms",
    "refused", "settled_after", "settled_order",
)  # fmt: skip
_MILESTONE = ("turn_id", "epoch", "k", "call", "batch_first_call")


def assemble_pending(warehouse: Warehouse) -> int:
    """Assemble every pending group; how many turns they hold. Each batch is one transaction."""
    total = 0
    while True:
        with warehouse.transaction() as connection:
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE group_batch AS SELECT DISTINCT id AS group_id FROM pending "
                f"WHERE kind = 'group' ORDER BY ALL LIMIT {BATCH}"
            )
            if not warehouse.rows("FROM group_batch LIMIT 1"):
                return total
            stored = warehouse.rows(
                'SELECT group_id, dialect, seen_id, kind, "at", data FROM raw_seen '
                "SEMI JOIN group_batch USING (group_id) ORDER BY group_id, dialect, seen_id"
            )
            total += _replace(warehouse, _assembled(stored))
            connection.execute("DELETE FROM pending WHERE kind = 'group' AND id IN (FROM group_batch)")


def _assembled(stored: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, DialectTurn]]:
    for group, rows in groupby(stored, key=lambda one: one[0]):
        seen = [
            StoredSeen(
                dialect=dialect, seen=Seen(group=group, id=seen_id, kind=kind, at=at, data=orjson.loads(data))
            )
            for _, dialect, seen_id, kind, at, data in rows
        ]
        for turn in assemble(group, seen):
            yield group, turn


def _replace(warehouse: Warehouse, assembled: Iterable[tuple[str, DialectTurn]]) -> int:
    """Put the turns in place of those that the groups of `group_batch` had, and of any of the same id."""
    found = {turn.turn_id: (group, turn) for group, turn in assembled}
    connection = warehouse.connection
    owned = [(group, turn_id) for turn_id, (group, _) in found.items()]
    warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    for table in ("turns", "calls", "milestones"):
        connection.execute(
            f"DELETE FROM {table} WHERE turn_id IN "
            "(SELECT turn_id FROM group_turns SEMI JOIN group_batch USING (group_id))"
        )
    connection.execute("DELETE FROM group_turns WHERE group_id IN (FROM group_batch)")
    turns = [turn for _, turn in found.values()]
    if turns:
        rows = [_turn(turn) for turn in turns]
        warehouse.append("turns", tuple(rows[0]), [tuple(row.values()) for row in rows])
        warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    warehouse.append("calls", _CALL, [call for turn in turns for call in _calls(turn)])
    warehouse.append("milestones", _MILESTONE, [one for turn in turns for one in _milestones(turn)])
    return len(turns)


# Columns of `turns` that a dialect gives as they are.
_GIVEN = (
    "turn_id", "dialect", "grade", "cluster_id", "session_id", "conversation_id", "parent_id", "resumed_from",
    "continues", "agent", "model", "started_at", "ended_at", "outcome", "duration_ms",
)  # fmt: skip


def _turn(turn: DialectTurn) -> dict[str, Any]:
    calls = len(turn.calls)
    counts = Counter(call.key for call in turn.calls)
    known = None not in counts
    batches = [call.batch for call in turn.calls if call.batch is not None]
    return {name: getattr(turn, name) for name in _GIVEN} | {
        "length_limited": False,
        "has_started": True,
        "has_ended": turn.ended_at is not None or turn.outcome is not None,
        "calls": calls,
        "total": calls,
        "refused": 0,
        "ran": calls,
        "settled": sum(c.settled_order is not None or c.result is not None for c in turn.calls),
        "errors": sum(call.error is True for call in turn.calls),
        "distinct_keys": len(counts) if known else None,
        "max_repeat": max(counts.values(), default=0) if known else None,
        "name_streak_max": _longest_streak(turn),
        "extended": False,
        "batches": max(batches, default=None),
        "retries": 0,
        "chunks_seen": 0,
        "least_calls": calls,
    }


def _longest_streak(turn: DialectTurn) -> int:
    """The most calls in a row of one tool name."""
    return max((len(list(run)) for name, run in groupby(c.tool for c in turn.calls) if name), default=0)


def _calls(turn: DialectTurn) -> list[tuple[Any, ...]]:
    return [
        (turn.turn_id, n, 0, call.batch, call.key, call.result, call.tool, call.tool_class, call.mutating,
         call.error, call.offset_ms, False, call.settled_after, call.settled_order)
        for n, call in enumerate(turn.calls, start=1)
    ]  # fmt: skip


def _milestones(turn: DialectTurn) -> list[tuple[Any, ...]]:
    """Where the repeat count first reached 2, 3, 4 …; none where a call's arguments are unknown."""
    if any(call.key is None for call in turn.calls):
        return []
    counts: Counter[int | None] = Counter()
    reached: dict[int, tuple[int, int]] = {}
    first_of_batch, batch = 1, None
    for n, call in enumerate(turn.calls, start=1):
        if call.batch is None or call.batch != batch:
            first_of_batch, batch = n, call.batch
        counts[call.key] += 1
        if 2 <= counts[call.key] <= MILESTONES:
            reached.setdefault(counts[call.key], (n, first_of_batch))
    return [(turn.turn_id, 0, k, n, first) for k, (n, first) in reached.items()]


def insert_seen(warehouse: Warehouse, rows: list[tuple[Any, ...]]) -> None:
    """Store rows of `raw_seen`, each natural key once."""
    seen = warehouse.arrow("raw_seen", SEEN, rows)
    warehouse.fold("raw_seen", seen, key=("group_id", "dialect", "seen_id"))
    warehouse.append("pending", ("kind", "id"), [("group", group) for group in {row[0] for row in rows}])
