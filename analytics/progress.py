"""One line on a terminal that says how far a long read is: share, rate and time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

EVERY = 0.2  # seconds between two drawings
BAR = 24  # characters


class Progress:
    """Draws over its own line. `total` is in bytes on disk; 0 where it is unknown (standard input)."""

    def __init__(self, stream: TextIO, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._total, self._clock = stream, total, clock
        self._began = clock()
        self._drawn: float | None = None
        self._width = 0

    def __call__(self, done: int, doing: str = "") -> None:
        """Show that `done` bytes were read, or what is being done after the reading."""
        now = self._clock()
        if self._drawn is not None and now - self._drawn < EVERY and not doing:
            return
        self._drawn = now
        self._draw(doing or self._line(done, now - self._began))

    def close(self) -> None:
        """Wipe the line."""
        if self._width:
            self._draw("")
            self._stream.write("\r")
            self._stream.flush()

    def _line(self, done: int, seconds: float) -> str:
        rate = done / seconds if seconds > 0 else 0.0
        told = f"{done / 1e6:,.0f} MB, {rate / 1e6:,.0f} MB/s"
        if not self._total:
            return told
        share = min(done / self._total, 1.0)
        full = round(share * BAR)
        left = f", {_time((self._total - done) / rate)} left" if rate and done < self._total else ""
        return f"{'█' * full}{'░' * (BAR - full)} {share:4.0%}  {told}{left}"

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02} s"
