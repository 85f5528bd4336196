"""Numbers for identities, in order of first appearance, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

REMEMBERED = 10_000  # keys a turn, and (key, result id) pairs a turn

T = TypeVar("T", bound=Hashable)


class Numbers(Generic[T]):
    """Numbers identities 0, 1, 2 … and remembers the last 10,000 of them, once-seen ones forgotten first.

    A forgotten identity that comes back gets a new number: it looks new, which can only lower a level.
    """

    __slots__ = ("_forget", "_many", "_once", "forgotten", "given")

    def __init__(self, forget: Callable[[int], None]) -> None:
        self._forget = forget  # told of the number of every identity that is dropped
        self._once: OrderedDict[T, int] = OrderedDict()
        self._many: OrderedDict[T, int] = OrderedDict()
        self.given = 0
        self.forgotten = 0

    def number(self, identity: T) -> int:
        """The identity's number."""
        number = self._many.get(identity)
        if number is not None:
            return number
        number = self._once.pop(identity, None)
        if number is not None:
            self._many[identity] = number
            return number
        if len(self._once) + len(self._many) >= REMEMBERED:
            _, dropped = (self._once or self._many).popitem(last=False)
            self.forgotten += 1
            self._forget(dropped)
        number = self.given
        self.given = number + 1
        self._once[identity] = number
        return number

    def to_state(self, write: Callable[[T], Any]) -> Any:
        """What `from_state` needs, as JSON values."""
        once = [[write(identity), number] for identity, number in self._once.items()]
        many = [[write(identity), number] for identity, number in self._many.items()]
        return [once, many, self.given, self.forgotten]

    def from_state(self, state: Any, read: Callable[[Any], T]) -> None:
        """Take up what `to_state` returned."""
        once, many, self.given, self.forgotten = state
        self._once = OrderedDict((read(identity), number) for identity, number in once)
        self._many = OrderedDict((read(identity), number) for identity, number in many)
