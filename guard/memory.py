"""Numbers for identities, in order of first appearance, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

REMEMBERED = 10_000  # keys a turn, and (key, result id) pairs a turn

T = TypeVar("T", bound=Hashable)


class Numbers(Generic[T]):
    """Numbers identities 0, 1, 2 … and remembers the last 10,000 of them, once-seen ones forgotten first.

    A forgotten identity that comes back gets a new number: it looks new, which can only lower a level.
    """

    __slots__ = ("_again", "_forget", "_kept", "_numbers", "_queue", "forgotten", "given")

    def __init__(self, forget: Callable[[int], None]) -> None:
        self._forget = forget  # told of the number of every identity that is dropped
        self._numbers: dict[T, int] = {}
        self._queue: deque[T] = deque()  # oldest first, those not yet known to have come again
        self._kept: deque[T] = deque()  # oldest first, those known to have
        self._again: set[int] = set()  # numbers of those that came again
        self.given = 0
        self.forgotten = 0

    def number(self, identity: T) -> int:
        """The identity's number."""
        number = self._numbers.get(identity)
        if number is not None:
            self._again.add(number)
            return number
        if len(self._numbers) >= REMEMBERED:
            self._drop()
        number = self._numbers[identity] = self.given
        self.given = number + 1
        self._queue.append(identity)
        return number

    def _drop(self) -> None:
        while self._queue:
            identity = self._queue.popleft()
            if self._numbers[identity] not in self._again:
                break
            self._kept.append(identity)
        else:
            identity = self._kept.popleft()
        number = self._numbers.pop(identity)
        self._again.discard(number)
        self.forgotten += 1
        self._forget(number)

    def to_state(self, write: Callable[[T], Any]) -> Any:
        """What `from_state` needs, as JSON values: identities oldest first, with number and come-again."""
        rows = [
            [
                [write(identity), self._numbers[identity], self._numbers[identity] in self._again]
                for identity in part
            ]
            for part in (self._queue, self._kept)
        ]
        return [*rows, self.given, self.forgotten]

    def from_state(self, state: Any, read: Callable[[Any], T]) -> None:
        """Take up what `to_state` returned."""
        queue, kept, self.given, self.forgotten = state
        for rows, part in ((queue, self._queue), (kept, self._kept)):
            part.clear()
            for written, number, again in rows:
                identity = read(written)
                part.append(identity)
                self._numbers[identity] = number
                if again:
                    self._again.add(number)
