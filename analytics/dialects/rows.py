"""What was seen of groups -> rows of the tables, without a database at hand.

It may run in a process of its own (`analytics.workers`): rows in, rows out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from analytics.dialects import base
from analytics.dialects.assemble import assemble
from analytics.dialects.base import DialectTurn
from analytics.packed import Packed, pack, pack_column, unpack

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
    """Some turns: the place of the group of each by its id, and the rows of tables, packed."""

    groups: dict[str, int]
    turns: Packed
    calls: Packed
    milestones: Packed

    def without(self, known: Set[str]) -> Assembled:
        """The others than these turns."""
        return Assembled(
            {turn_id: place for turn_id, place in self.groups.items() if turn_id not in known},
            *(
                pack(tuple(table), [row for row in unpack(table) if row[0] not in known])
                for table in (self.turns, self.calls, self.milestones)
            ),
        )


def assembled(stored: Iterable[Row]) -> Assembled:
    """The turns of whole groups, from rows of `raw_seen` ordered by group, dialect and id.

    A row is: the group's place among all that are assembled, seen_id, kind, at, data.
    """
    places: dict[str, int] = {}
    turns: dict[str, DialectTurn] = {}
    for place, rows in groupby(stored, key=itemgetter(0)):
        for turn in assemble(base.stored(rows)):
            places[turn.turn_id], turns[turn.turn_id] = place, turn
    milestones: list[Row] = []
    return Assembled(
        places,
        pack(TURN, [_turn(turn, milestones) for turn in turns.values()]),
        _calls(turns.values()),
        pack(MILESTONE, milestones),
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

_given = attrgetter(*_GIVEN)


def _turn(turn: DialectTurn, milestones: list[Row]) -> Row:
    """A row of `turns`, and rows of `milestones`: where the repeat count first reached 2, 3, 4 …; none where
    a call's arguments are unknown."""
    counts: dict[int | None, int] = {}
    reached: list[Row] = []
    settled = errors = batches = streak = longest = 0
    most, first_of_batch, batch, tool = 0, 1, None, None
    for n, call in enumerate(turn.calls, start=1):
        if call.batch is None or call.batch != batch:
            first_of_batch, batch = n, call.batch
            batches = max(batches, batch or 0)
        counts[call.key] = times = counts.get(call.key, 0) + 1
        if times > most:
            most = times
            if 2 <= times <= MILESTONES:
                reached.append((turn.turn_id, 0, times, n, first_of_batch))
        streak = streak + 1 if call.tool == tool else 1
        tool = call.tool
        if streak > longest and tool:
            longest = streak
        if call.settled_order is not None or call.result is not None:
            settled += 1
        if call.error:
            errors += 1
    known = None not in counts
    if known:
        milestones += reached
    calls = len(turn.calls)
    return (
        *_given(turn),
        False,  # length_limited
        True,  # has_started
        turn.ended_at is not None or turn.outcome is not None,  # has_ended
        calls,  # calls
        calls,  # total
        0,  # refused
        calls,  # ran
        settled,  # settled
        errors,  # errors
        len(counts) if known else None,  # distinct_keys
        most if known else None,  # max_repeat
        longest,  # name_streak_max
        False,  # extended
        batches or None,  # batches
        0,  # retries
        0,  # chunks_seen
        calls,  # least_calls
    )


def _calls(turns: Collection[DialectTurn]) -> Packed:
    """The rows of `calls`."""
    calls = [call for turn in turns for call in turn.calls]
    given: dict[str, list[Any]] = {
        "turn_id": [turn.turn_id for turn in turns for _ in turn.calls],
        "n": [n for turn in turns for n in range(1, len(turn.calls) + 1)],
        "epoch": [0] * len(calls),
        "refused": [False] * len(calls),
    }
    return {name: pack_column(given.get(name) or list(map(attrgetter(name), calls))) for name in CALL}
