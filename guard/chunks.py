"""The calls of a turn as chunks of whole numbers, each small enough for one event.

A chunk holds 50 calls up to call 1,000 and 500 after that, and closes earlier where its protobuf form
would pass 16 KiB. What settled, and retries, that do not fit go to the next chunk.
"""

from __future__ import annotations

from typing import Any

FIRST_CALLS, FIRST_SIZE, LATER_SIZE = 1_000, 50, 500
LARGEST = 16 * 1024  # bytes of the event in protobuf form
ENVELOPE = 1_536  # of it: time, trace context, the attributes on every event, and the names of all lists
RETRY_COST = 24
MOST_RETRIES = 200  # waiting for a chunk
LARGEST_TOOL = 1_060  # bytes of a new tool's name and class

Call = tuple[int, int, int, int, int]  # key, tool, mutating, offset_ms, batch
Settled = tuple[int, int, int, int]  # call, result, error, after


def cost(numbers: tuple[int, ...]) -> int:
    """Bytes of whole numbers as elements of protobuf arrays: a varint each, in two tagged fields."""
    return sum(3 + (10 if n < 0 else (n.bit_length() + 6) // 7 or 1) for n in numbers)


# What one more call, and its settling, can cost at the most.
LARGEST_CALL = cost((2**40, 2**40, -1, 2**40, 2**40)) + cost((2**40, 2**40, 1, 2**40))


class Chunks:
    """What has not been sent of a turn's calls, and what will be."""

    __slots__ = ("calls", "first_call", "opened", "retries", "room", "sent", "settled", "tools")

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.settled: list[Settled] = []
        self.retries: list[tuple[int, int]] = []
        self.tools: list[tuple[str, str]] = []  # name and class, those first used in the open chunk
        self.first_call = 1  # number of the first call in the open chunk
        self.sent = 0
        self.opened = LARGEST - ENVELOPE  # bytes that the open chunk has left for tools and calls
        self.room = FIRST_SIZE  # calls that surely fit before it must be looked at again

    def full(self) -> bool:
        """Whether the open chunk must close before another call; asked when `room` is used up."""
        count = len(self.calls)
        size = FIRST_SIZE if self.first_call <= FIRST_CALLS else LATER_SIZE
        if count >= size:
            return True
        if len(self.retries) >= MOST_RETRIES:
            return True
        used = sum(map(cost, self.calls)) + sum(map(cost, self.settled)) + RETRY_COST * len(self.retries)
        fits = (self.opened - LARGEST_TOOL - used) // LARGEST_CALL
        if fits <= 0:
            return True
        self.room = min(count + fits, size)
        return False

    def add_tool(self, name: str, tool_class: str | None) -> None:
        """A tool used for the first time in the turn."""
        self.tools.append((name, tool_class or ""))
        self.opened -= len(name.encode()) + len((tool_class or "").encode()) + 12
        if self.opened < LARGEST // 2:
            self.room = 0

    def close(self) -> dict[str, Any]:
        """The open chunk as fields of `CallsObserved`, with as much of what settled as fits."""
        calls, tools = self.calls, self.tools
        left = self.opened - sum(map(cost, calls))
        retried = max(0, min(len(self.retries), left // 2 // RETRY_COST))
        left -= retried * RETRY_COST
        fits = 0
        for entry in self.settled:
            left -= cost(entry)
            if left < 0:
                break
            fits += 1
        settled, retries = self.settled[:fits], self.retries[:retried]
        del self.settled[:fits], self.retries[:retried]
        found: dict[str, Any] = {"index": self.sent, "first_call": self.first_call}
        if tools:
            found["tools"], found["tool_classes"] = zip(*tools, strict=True)
        for rows, lists in (
            (calls, ("keys", "tool_of", "mutating", "offsets_ms", "batches")),
            (settled, ("settled_call", "settled_result", "settled_error", "settled_after")),
            (retries, ("retry_at", "retry_total")),
        ):
            if rows:
                found |= zip(lists, zip(*rows, strict=True), strict=True)
        self.first_call += len(calls)
        self.calls, self.tools = [], []
        self.sent += 1
        self.opened = LARGEST - ENVELOPE
        self.room = FIRST_SIZE
        return found

    def waiting(self) -> bool:
        """Whether anything is still to be sent."""
        return bool(self.calls or self.settled or self.retries)

    def to_state(self) -> Any:
        """What `from_state` needs, as JSON values."""
        return [self.calls, self.settled, self.retries, self.tools, self.first_call, self.sent, self.opened]

    def from_state(self, state: Any) -> None:
        """Take up what `to_state` returned."""
        calls, settled, retries, tools, self.first_call, self.sent, self.opened = state
        self.calls, self.settled = [tuple(row) for row in calls], [tuple(row) for row in settled]
        self.retries, self.tools = [tuple(row) for row in retries], [tuple(row) for row in tools]
        self.room = 0
