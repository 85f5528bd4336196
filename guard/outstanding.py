"""The calls of a turn that may still settle, and the ids that they are known by, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable

from guard.signals import Key
from guard.verdict import Verdict

MOST_IDS = 10_000  # call ids that a turn remembers, and last calls that may settle


class Outstanding:
    """Which of the last 10,000 calls have not settled. `dropped` counts the ids and calls given up."""

    __slots__ = ("dropped", "ids", "keys", "oldest")

    def __init__(self) -> None:
        self.ids: OrderedDict[str, Verdict] = OrderedDict()
        self.keys: deque[Key | None] = deque()  # of every call from `oldest` on; None is not outstanding
        self.oldest = 1
        self.dropped = 0

    def add(self, keys: Iterable[Key]) -> None:
        """The next calls."""
        self.keys.extend(keys)
        while len(self.keys) > MOST_IDS:
            self.oldest += 1
            if self.keys.popleft() is not None:
                self.dropped += 1

    def take(self, call: int) -> Key | None:
        """The key of a call that is outstanding, and is so no longer."""
        place = call - self.oldest
        if not 0 <= place < len(self.keys):
            return None
        key, self.keys[place] = self.keys[place], None
        return key

    def remember(self, call_id: str, verdict: Verdict) -> None:
        """What was said of the call with this id."""
        self.ids[call_id] = verdict
        if len(self.ids) > MOST_IDS:
            self.ids.popitem(last=False)
            self.dropped += 1

    def clear(self, calls: int) -> None:
        """None of the calls so far may settle any more."""
        self.ids.clear()
        self.keys.clear()
        self.oldest = calls + 1
