"""The one clock: wall time for timestamps, a monotonic reading for durations."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a turn asks of its clock."""

    def unix_ns(self) -> int:
        """Nanoseconds since 1970; asked once a turn, at its start."""

    def monotonic(self) -> float | None:
        """Seconds since some fixed moment, never falling; None where time is unknown."""


class SystemClock:
    """The machine's."""

    unix_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)
