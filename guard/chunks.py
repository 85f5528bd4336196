"""The calls of a turn as chunks of whole numbers, each small enough for one event.

A chunk holds 50 calls up to call 1,000 and 500 after that, and closes earlier where its protobuf form
would pass 16 KiB. What settled, and retries, that do not fit go to the next chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FIRST_CALLS, FIRST_SIZE, LATER_SIZE = 1_000, 50, 500
LARGEST = 16 * 1024  # bytes of the event in protobuf form
ENVELOPE = 2_048  # of it: time, trace context, attributes on every event, names of lists, and some slack
LARGEST_NUMBER = 13  # bytes of one number in an array
LARGEST_TOOL = 1_060  # bytes of a new tool's name and class
MOST_RETRIES = 200  # waiting for a chunk

COLUMNS = ("keys", "tool_of", "mutating", "offsets_ms", "batches")  # a number of each call
Settled = tuple[int, int, int, int]  # call, result, error, after


def size(*largest: int) -> int:
    """Bytes of one whole number each in arrays of protobuf values: two tags, a length and a varint."""
    return sum(3 + (10 if n < 0 else (n.bit_length() + 6) // 7 or 1) for n in largest)


class Chunks:
    """What has not been sent of a turn's calls, and what will be."""

    __slots__ = ("calls", "first_call", "opened", "retries", "room", "sent", "settled", "tools")

    def __init__(self) -> None:
        self.calls: tuple[list[int], ...] = tuple([] for _ in COLUMNS)
        self.settled: list[Settled] = []
        self.retries: list[tuple[int, int]] = []
        self.tools: list[tuple[str, str]] = []  # name and class, those first used in the open chunk
        self.first_call = 1  # number of the first call in the open chunk
        self.sent = 0
        self.opened = LARGEST - ENVELOPE  # bytes that the open chunk has left for calls and what settled
        self.room = FIRST_SIZE  # calls that surely fit before it must be looked at again

    def add(self, *columns: Iterable[int]) -> None:
        """Take in calls, a column each of `COLUMNS`."""
        for column, numbers in zip(self.calls, columns, strict=True):
            column.extend(numbers)

    def full(self, pairs: int) -> bool:
        """Whether the open chunk must close before another call.

        `pairs` are the (key, result) pairs of the turn so far. Sizes are taken for the largest numbers
        there are, so they are upper bounds.
        """
        count = len(self.calls[0])
        if count < self.room:
            return False
        most = FIRST_SIZE if self.first_call <= FIRST_CALLS else LATER_SIZE
        if count >= most or len(self.retries) >= MOST_RETRIES:
            return True
        number = self.first_call + count
        _, tool, _, offset_ms, batch = (column[-1] for column in self.calls)
        one = size(number, tool, min(self.calls[2]), offset_ms, batch)
        settled = size(number, pairs, 1, number)
        used = count * one + len(self.settled) * settled + len(self.retries) * size(number, number)
        fits = (self.opened - LARGEST_TOOL - used) // (one + settled)
        if fits <= 0:
            return True
        self.room = min(count + fits, most)
        return False

    def add_tool(self, name: str, tool_class: str | None) -> None:
        """A tool used for the first time in the turn."""
        self.tools.append((name, tool_class or ""))
        self.opened -= len(name.encode()) + len((tool_class or "").encode()) + 12
        if self.opened < LARGEST // 2:
            self.room = 0

    def close(self) -> dict[str, Any]:
        """The open chunk as fields of `CallsObserved`, with as much of what settled as fits."""
        count, tools = len(self.calls[0]), self.tools
        numbers = len(COLUMNS) * count + 4 * len(self.settled) + 2 * len(self.retries)
        if numbers < self.opened // LARGEST_NUMBER:
            settled, self.settled, retries, self.retries = self.settled, [], self.retries, []
        else:
            settled, retries = self._fitting(self.opened - sum(map(_column_size, self.calls)))
        found: dict[str, Any] = {"index": self.sent, "first_call": self.first_call}
        if tools:
            found["tools"], found["tool_classes"] = zip(*tools, strict=True)
        if count:
            found |= zip(COLUMNS, map(tuple, self.calls), strict=True)
        for rows, names in (
            (settled, ("settled_call", "settled_result", "settled_error", "settled_after")),
            (retries, ("retry_at", "retry_total")),
        ):
            if rows:
                found |= zip(names, zip(*rows, strict=True), strict=True)
        self.first_call += count
        self.calls, self.tools = tuple([] for _ in COLUMNS), []
        self.sent += 1
        self.opened = LARGEST - ENVELOPE
        self.room = FIRST_SIZE
        return found

    def _fitting(self, left: int) -> tuple[list[Settled], list[tuple[int, int]]]:
        """Take as much of what settled, and of the retries, as fits into that many bytes."""
        each = size(*map(max, zip(*self.retries, strict=True))) if self.retries else 1
        retried = max(0, min(len(self.retries), left // 2 // each))
        left -= retried * each
        each = size(*map(max, zip(*self.settled, strict=True))) if self.settled else 1
        fits = max(0, left // each)
        settled, retries = self.settled[:fits], self.retries[:retried]
        del self.settled[:fits], self.retries[:retried]
        return settled, retries

    def waiting(self) -> bool:
        """Whether anything is still to be sent."""
        return bool(self.calls[0] or self.settled or self.retries)

    def to_state(self) -> Any:
        """What `from_state` needs, as JSON values."""
        calls = list(zip(*self.calls, strict=True))
        return [calls, self.settled, self.retries, self.tools, self.first_call, self.sent, self.opened]

    def from_state(self, state: Any) -> None:
        """Take up what `to_state` returned."""
        calls, settled, retries, tools, self.first_call, self.sent, self.opened = state
        if calls:
            self.add(*zip(*calls, strict=True))
        self.settled = [tuple(row) for row in settled]
        self.retries, self.tools = [tuple(row) for row in retries], [tuple(row) for row in tools]
        self.room = 0


def _column_size(numbers: list[int]) -> int:
    """An upper bound of the bytes of one list: all numbers as large as the largest, -1 as it is."""
    unknown = numbers.count(-1)
    return unknown * size(-1) + (len(numbers) - unknown) * size(max(numbers, default=0))
