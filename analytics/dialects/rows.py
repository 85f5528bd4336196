"""What was seen of groups -> rows of the tables, without a database at hand.

It may run in a process of its own (`analytics.workers`): rows in, rows out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from analytics.dialects.assemble import assemble
from analytics.dialects.base import DialectTurn, Seen, StoredSeen
from analytics.packed import Packed, pack, unpack

MILESTONES = 64  # the largest count of repeats that is noted, as in a guard's own event

CALL = (
    "turn_id", "n", "epoch", "batch", "key", "result", "tool", "tool_class", "mutating", "error", "offset_ms",
    "refused", "settled_after", "settled_order",
)  # fmt: skip
MILESTONE = ("turn_id", "epoch", "k", "call", "batch_first_call")

SEEN = (
    "group_id",
    "dialect",
    "seen_id",
    "kind",
    "at",
    "data",
)  # of raw_seen, as `base.row` orders them

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Assembled:
    """Some turns: the group of each by its id, and the rows of tables, packed."""

    groups: dict[str, str]
    turns: Packed
    calls: Packed
    milestones: Packed

    def without(self, known: Set[str]) -> Assembled:
        """The others than these turns."""
        return Assembled(
            {turn_id: group for turn_id, group in self.groups.items() if turn_id not in known},
            *(
                pack(tuple(table), [row for row in unpack(table) if row[0] not in known])
                for table in (self.turns, self.calls, self.milestones)
            ),
        )


def assembled(stored: Iterable[Row]) -> Assembled:
    """The turns of whole groups, from their rows of `raw_seen` ordered by group, dialect and id."""
    groups: dict[str, str] = {}
    turns: dict[str, DialectTurn] = {}
    for group, rows in groupby(stored, key=lambda one: one[0]):
        seen = [
            StoredSeen(
                dialect=dialect, seen=Seen(group=group, id=seen_id, kind=kind, at=at, data=orjson.loads(data))
            )
            for _, dialect, seen_id, kind, at, data in rows
        ]
        for turn in assemble(group, seen):
            groups[turn.turn_id], turns[turn.turn_id] = group, turn
    return Assembled(
        groups,
        pack(TURN, [_turn(turn) for turn in turns.values()]),
        pack(CALL, [row for turn in turns.values() for row in _calls(turn)]),
        pack(MILESTONE, [row for turn in turns.values() for row in _milestones(turn)]),
    )


# Columns of `turns` that a dialect gives as they are.
_GIVEN = (
    "turn_id", "dialect", "grade", "cluster_id", "session_id", "conversation_id", "parent_id", "resumed_from",
    "continues", "agent", "model", "started_at", "ended_at", "outcome", "duration_ms",
)  # fmt: skip


TURN = (
    *_GIVEN, "length_limited", "has_started", "has_ended", "calls", "total", "refused", "ran", "settled",
    "errors", "distinct_keys", "max_repeat", "name_streak_max", "extended", "batches", "retries",
    "chunks_seen", "least_calls",
)  # fmt: skip


def _turn(turn: DialectTurn) -> Row:
    calls = len(turn.calls)
    counts = Counter(call.key for call in turn.calls)
    known = None not in counts
    batches = [call.batch for call in turn.calls if call.batch is not None]
    return (
        *(getattr(turn, name) for name in _GIVEN),
        False,  # length_limited
        True,  # has_started
        turn.ended_at is not None or turn.outcome is not None,  # has_ended
        calls,  # calls
        calls,  # total
        0,  # refused
        calls,  # ran
        sum(c.settled_order is not None or c.result is not None for c in turn.calls),  # settled
        sum(call.error is True for call in turn.calls),  # errors
        len(counts) if known else None,  # distinct_keys
        max(counts.values(), default=0) if known else None,  # max_repeat
        _longest_streak(turn),  # name_streak_max
        False,  # extended
        max(batches, default=None),  # batches
        0,  # retries
        0,  # chunks_seen
        calls,  # least_calls
    )


def _longest_streak(turn: DialectTurn) -> int:
    """The most calls in a row of one tool name."""
    return max((len(list(run)) for name, run in groupby(c.tool for c in turn.calls) if name), default=0)


def _calls(turn: DialectTurn) -> list[Row]:
    return [
        (turn.turn_id, n, 0, call.batch, call.key, call.result, call.tool, call.tool_class, call.mutating,
         call.error, call.offset_ms, False, call.settled_after, call.settled_order)
        for n, call in enumerate(turn.calls, start=1)
    ]  # fmt: skip


def _milestones(turn: DialectTurn) -> list[Row]:
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
