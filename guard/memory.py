"""What a turn remembers of identities it has met, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

REMEMBERED = 10_000  # keys a turn, and (key, result id) pairs a turn


class Record(Protocol):
    """What is remembered of one identity."""

    again: bool  # whether it came a second time

    def clear(self) -> None:
        """Forget what was counted of it, as after a retry."""


T = TypeVar("T", bound=Hashable)
R = TypeVar("R", bound=Record)


class Memory(Generic[T, R]):
    """A record of each of the last 10,000 identities, once-seen ones forgotten first.

    A forgotten identity that comes back gets a new record with a new number: it looks new, which can only
    lower a level. `again` is for the caller to set on a record that it finds in `known`.
    """

    __slots__ = ("_kept", "_queue", "forgotten", "given", "known")

    def __init__(self) -> None:
        self.known: dict[T, R] = {}
        self._queue: deque[T] = deque()  # oldest first, those not yet known to have come again
        self._kept: deque[T] = deque()  # oldest first, those known to have
        self.given = 0  # the next number
        self.forgotten = 0

    def add(self, identity: T, record: R) -> None:
        """Remember what is not known, under the number `given`."""
        if len(self.known) >= REMEMBERED:
            self._drop()
        self.known[identity] = record
        self.given += 1
        self._queue.append(identity)

    def _drop(self) -> None:
        known = self.known
        while self._queue:
            identity = self._queue.popleft()
            if not known[identity].again:
                break
            self._kept.append(identity)
        else:
            identity = self._kept.popleft()
        del known[identity]
        self.forgotten += 1

    def to_state(self, write: Callable[[T, R], Any]) -> Any:
        """What `from_state` needs, as JSON values: records oldest first."""
        rows = [
            [write(identity, self.known[identity]) for identity in part] for part in (self._queue, self._kept)
        ]
        return [*rows, self.given, self.forgotten]

    def from_state(self, state: Any, read: Callable[[Any], tuple[T, R]]) -> None:
        """Take up what `to_state` returned."""
        queue, kept, self.given, self.forgotten = state
        for rows, part in ((queue, self._queue), (kept, self._kept)):
            part.clear()
            for row in rows:
                identity, record = read(row)
                part.append(identity)
                self.known[identity] = record
