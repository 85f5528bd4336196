"""The stuck signals: a number per call that grows while a turn looks stuck.

Each is O(1) a call. What it counts of a key or of a (key, result id) pair it keeps on that key or pair, so
that it is bounded as they are: one that is forgotten counts as never seen again, which can only lower a
level. `see` is told of every call in the order in which they were asked about; `level` is then what the
policy may look at. `settle` is told of every settled call, in settle order, and returns the level after it
(None where the signal does not look at results). A retry begins anew with `clear`, and clears what is kept
on keys and pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from guard.policy import SIGNALS

WINDOW = 20  # calls that recent_repeat looks back on, the call itself included
_BEYOND = 2**53  # more calls than any turn has
UNSETTLED_CALLS = 20  # past this many calls with nothing settled, result signals are unknown


class Key:
    """A key of a turn, and what the signals count of it.

    Args:
        identity: the key itself, as `guard.keys` makes it.
        number: in order of first appearance.
        first_call: number of its first call.
    """

    __slots__ = ("again", "count", "first_call", "identity", "number", "pair", "since", "streak")

    def __init__(self, identity: bytes, number: int, first_call: int) -> None:
        self.identity = identity
        self.number = number
        self.first_call = first_call
        self.again = False  # whether it came a second time
        self.count = 0  # repeat
        self.since = -1  # novelty_repeat: occurrences on top of the base, -1 before the first
        self.pair = -1  # same_result_repeat: number of the pair that settled last
        self.streak = 0  # … and how often in a row

    def clear(self) -> None:
        """As no signal has seen it."""
        self.count, self.since, self.pair, self.streak = 0, -1, -1, 0


class Pair:
    """A key with one of its results."""

    __slots__ = ("again", "number", "seen")

    def __init__(self, number: int) -> None:
        self.number = number
        self.again = False  # whether it came a second time
        self.seen = False  # no_progress

    def clear(self) -> None:
        """As no signal has seen it."""
        self.seen = False


class Signal:
    """What every signal answers; the levels it returns are calls."""

    name: ClassVar[str]
    of_results: ClassVar[bool] = False

    def see(self, key: Key) -> None:
        """Take note of a call as it is asked about; a signal of results has nothing to note."""

    def see_all(self, keys: Sequence[Key]) -> None:
        """Take note of calls in a row."""
        for key in keys:
            self.see(key)

    def level(self, key: Key) -> int:
        """The level at this call, which was the last one seen."""
        raise TypeError(f"{type(self).__name__} has no level of its own")

    def admit(self, key: Key) -> int:
        """See a call; its level."""
        self.see(key)
        return self.level(key)

    def settle(self, key: Key, pair: Pair) -> int | None:
        """The level after this settled call; None for a signal of requests."""
        return None

    def clear(self) -> None:
        """Begin anew, as after a retry; what is kept on keys and pairs is cleared with them."""


class Repeat(Signal):
    """The largest count of any one key in the epoch. It never falls within an epoch."""

    name = "repeat"

    def __init__(self) -> None:
        self.peak = 0
        self.top: Key | None = None  # the key that reached the peak first

    def clear(self) -> None:
        """Nothing was counted."""
        self.peak, self.top = 0, None

    def see(self, key: Key) -> None:
        """Count it."""
        key.count = count = key.count + 1
        if count > self.peak:
            self.peak = count
            self.top = key

    def level(self, key: Key) -> int:
        """The peak."""
        return self.peak


class RecentRepeat(Signal):
    """The count of this call's key in the last 20 calls, this one included."""

    name = "recent_repeat"

    def __init__(self) -> None:
        self.window: deque[int] = deque(maxlen=WINDOW)

    def clear(self) -> None:
        """No call is in the window."""
        self.window.clear()

    def see(self, key: Key) -> None:
        """Let it into the window, and what is 20 calls back out of it."""
        self.window.append(key.number)

    def see_all(self, keys: Sequence[Key]) -> None:
        """The same for many."""
        self.window.extend([key.number for key in keys])

    def level(self, key: Key) -> int:
        """How often the key stands in the window."""
        return self.window.count(key.number)


class NoveltyRepeat(Signal):
    """Occurrences of this call's key since the last call whose key was never seen before, that included.

    A never-seen key sets every count to zero and its own to 1.
    """

    name = "novelty_repeat"

    def __init__(self) -> None:
        # Counts are kept above `base`, which rises past all of them at a never-seen key: none need be zeroed.
        self.base = 0

    def clear(self) -> None:
        """No key was ever seen."""
        self.base = 0

    def see(self, key: Key) -> None:
        """Count it, or begin anew where it was never seen."""
        self.see_all((key,))

    def see_all(self, keys: Sequence[Key]) -> None:
        """The same for many, in one loop."""
        base = self.base
        for key in keys:
            since = key.since
            if since < 0:
                base = since = base + _BEYOND
            elif since < base:
                since = base
            key.since = since + 1
        self.base = base

    def level(self, key: Key) -> int:
        """Its count since something new was asked for."""
        return key.since - self.base


class SameResultRepeat(Signal):
    """Settled occurrences of this call's key in a row with the same result id.

    In a row of its own: other keys between do not matter. At admit it is the settled streak of the key
    asked about, 0 where none has settled.
    """

    name = "same_result_repeat"
    of_results = True

    def level(self, key: Key) -> int:
        """The settled streak of this key."""
        return key.streak

    def settle(self, key: Key, pair: Pair) -> int | None:
        """The streak, this settled call included."""
        key.streak = key.streak + 1 if key.pair == pair.number else 1
        key.pair = pair.number
        return key.streak


class NoProgress(Signal):
    """Settled calls since a never-seen (key, result) pair; 0 at such a call.

    At admit it is the value after the last settle. A call that is outstanding neither raises nor resets.
    """

    name = "no_progress"
    of_results = True

    def __init__(self) -> None:
        self.stale = 0  # settled calls since a never-seen pair

    def clear(self) -> None:
        """Nothing settled."""
        self.stale = 0

    def level(self, key: Key) -> int:
        """What it was after the last settle, whatever the key."""
        return self.stale

    def settle(self, key: Key, pair: Pair) -> int | None:
        """0 for a never-seen pair, else one more."""
        self.stale = self.stale + 1 if pair.seen else 0
        pair.seen = True
        return self.stale


CLASSES: tuple[type[Signal], ...] = (Repeat, RecentRepeat, NoveltyRepeat, SameResultRepeat, NoProgress)
BY_NAME: dict[str, type[Signal]] = {cls.name: cls for cls in CLASSES}
if tuple(BY_NAME) != SIGNALS:
    raise ImportError(
        "guard.policy.SIGNALS and guard.signals.CLASSES must name the same signals in one order"
    )
