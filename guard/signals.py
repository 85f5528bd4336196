"""The stuck signals: a number per call that grows while a turn looks stuck.

Each is O(1) a call and bounded: it holds no more than the keys and pairs its turn remembers. Keys are
the turn's key numbers, pairs number the turn's (key, result id) pairs. `see` is told of every call as it
is asked about; `level` is then what the policy may look at. `settle` is told of every settled call, in
settle order, and returns the level after it (None where the signal does not look at results).
A retry clears a signal; forgetting a key or pair can only lower its level.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from guard.policy import SIGNALS

WINDOW = 20  # calls that recent_repeat looks back on, the call itself included
_BEYOND = 2**53  # more calls than any turn has
UNSETTLED_CALLS = 20  # past this many calls with nothing settled, result signals are unknown


class Signal:
    """What every signal answers; the levels it returns are calls."""

    name: ClassVar[str]
    of_results: ClassVar[bool] = False

    def see(self, key: int) -> None:
        """Take note of a call as it is asked about; a signal of results has nothing to note."""

    def level(self, key: int) -> int:
        """The level at this call, which was the last one seen."""
        raise TypeError(f"{type(self).__name__} has no level of its own")

    def admit(self, key: int) -> int:
        """See a call; its level."""
        self.see(key)
        return self.level(key)

    def settle(self, key: int, pair: int) -> int | None:
        """The level after this settled call; None for a signal of requests."""
        return None

    def forget_key(self, key: int) -> None:
        """Drop what is held of a key."""

    def forget_pair(self, pair: int) -> None:
        """Drop what is held of a pair."""

    def clear(self) -> None:
        """Begin anew, as after a retry."""
        self.__init__()  # type: ignore[misc]

    def to_state(self) -> Any:
        """What `from_state` needs, as JSON values."""
        raise TypeError(f"{type(self).__name__} has no state")

    def from_state(self, state: Any) -> None:
        """Take up what `to_state` returned."""
        raise TypeError(f"{type(self).__name__} has no state")


class Repeat(Signal):
    """The largest count of any one key in the epoch. It never falls within an epoch."""

    name = "repeat"

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.peak = 0
        self.top: int | None = None  # the key that reached the peak first

    def see(self, key: int) -> None:
        """Count it."""
        counts = self.counts
        count = counts[key] = counts.get(key, 0) + 1
        if count > self.peak:
            self.peak = count
            self.top = key

    def level(self, key: int) -> int:
        """The peak."""
        return self.peak

    def forget_key(self, key: int) -> None:
        """Drop its count; the peak stands."""
        self.counts.pop(key, None)

    def to_state(self) -> Any:
        """Counts, peak and the key that holds it."""
        return [list(self.counts.items()), self.peak, self.top]

    def from_state(self, state: Any) -> None:
        """The reverse."""
        items, self.peak, self.top = state
        self.counts = dict(items)


class RecentRepeat(Signal):
    """The count of this call's key in the last 20 calls, this one included."""

    name = "recent_repeat"

    def __init__(self) -> None:
        self.window: deque[int] = deque(maxlen=WINDOW)
        # To see a call is to let it into the window, and what is 20 calls back out of it.
        self.see = self.window.append  # type: ignore[method-assign, assignment]

    def level(self, key: int) -> int:
        """How often the key stands in the window."""
        return self.window.count(key)

    def to_state(self) -> Any:
        """The window."""
        return list(self.window)

    def from_state(self, state: Any) -> None:
        """The reverse."""
        self.window.clear()
        self.window.extend(state)


class NoveltyRepeat(Signal):
    """Occurrences of this call's key since the last call whose key was never seen before, that included.

    A never-seen key sets every count to zero and its own to 1.
    """

    name = "novelty_repeat"

    def __init__(self) -> None:
        # Counts are kept above `base`, which rises past all of them at a never-seen key: none need be zeroed.
        self.base = 0
        self.counts: dict[int, int] = {}

    def see(self, key: int) -> None:
        """Count it, or begin anew where it was never seen."""
        counts = self.counts
        count = counts.get(key)
        if count is None:
            self.base = count = self.base + _BEYOND
        elif count < self.base:
            count = self.base
        counts[key] = count + 1

    def level(self, key: int) -> int:
        """Its count since something new was asked for."""
        return self.counts[key] - self.base

    def forget_key(self, key: int) -> None:
        """It counts as never seen again."""
        self.counts.pop(key, None)

    def to_state(self) -> Any:
        """The base, and every key's count on top of the base it was counted from."""
        return [self.base, list(self.counts.items())]

    def from_state(self, state: Any) -> None:
        """The reverse."""
        self.base, counts = state
        self.counts = dict(counts)


class SameResultRepeat(Signal):
    """Settled occurrences of this call's key in a row with the same result id.

    In a row of its own: other keys between do not matter. At admit it is the settled streak of the key
    asked about, 0 where none has settled.
    """

    name = "same_result_repeat"
    of_results = True

    def __init__(self) -> None:
        self.streaks: dict[int, tuple[int, int]] = {}  # key -> (pair, streak)

    def level(self, key: int) -> int:
        """The settled streak of this key."""
        streak = self.streaks.get(key)
        return streak[1] if streak else 0

    def settle(self, key: int, pair: int) -> int | None:
        """The streak, this settled call included."""
        last = self.streaks.get(key)
        streak = last[1] + 1 if last is not None and last[0] == pair else 1
        self.streaks[key] = (pair, streak)
        return streak

    def forget_key(self, key: int) -> None:
        """Its streak begins anew."""
        self.streaks.pop(key, None)

    def to_state(self) -> Any:
        """Key, pair and streak of each key."""
        return [[key, pair, streak] for key, (pair, streak) in self.streaks.items()]

    def from_state(self, state: Any) -> None:
        """The reverse."""
        self.streaks = {key: (pair, streak) for key, pair, streak in state}


class NoProgress(Signal):
    """Settled calls since a never-seen (key, result) pair; 0 at such a call.

    At admit it is the value after the last settle. A call that is outstanding neither raises nor resets.
    """

    name = "no_progress"
    of_results = True

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.stale = 0  # settled calls since a never-seen pair

    def level(self, key: int) -> int:
        """What it was after the last settle, whatever the key."""
        return self.stale

    def settle(self, key: int, pair: int) -> int | None:
        """0 for a never-seen pair, else one more."""
        if pair in self.seen:
            self.stale += 1
        else:
            self.seen.add(pair)
            self.stale = 0
        return self.stale

    def forget_pair(self, pair: int) -> None:
        """It counts as never seen again."""
        self.seen.discard(pair)

    def to_state(self) -> Any:
        """Pairs seen, and the level."""
        return [list(self.seen), self.stale]

    def from_state(self, state: Any) -> None:
        """The reverse."""
        seen, self.stale = state
        self.seen = set(seen)


CLASSES: tuple[type[Signal], ...] = (Repeat, RecentRepeat, NoveltyRepeat, SameResultRepeat, NoProgress)
BY_NAME: dict[str, type[Signal]] = {cls.name: cls for cls in CLASSES}
if tuple(BY_NAME) != SIGNALS:
    raise ImportError(
        "guard.policy.SIGNALS and guard.signals.CLASSES must name the same signals in one order"
    )
