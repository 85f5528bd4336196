"""CPU time, memory and bars: what every measurement prints alike."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# ru_maxrss counts KiB, on macOS bytes.
UNIT = 1 if sys.platform == "darwin" else 1024


def peak_gb(of: int = resource.RUSAGE_SELF) -> float:
    """The most memory that this process (or its children: RUSAGE_CHILDREN) has held, in GB."""
    return resource.getrusage(of).ru_maxrss * UNIT / 1e9


@dataclass(slots=True)
class Lap:
    """One part: seconds of CPU and of the clock on the wall."""

    name: str
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(slots=True)
class Sheet:
    """Laps and bars of one bench; prints each as it is known."""

    laps: list[Lap] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @contextmanager
    def lap(self, name: str) -> Iterator[Lap]:
        """Time a part."""
        lap = Lap(name)
        cpu, wall = time.process_time(), time.perf_counter()
        yield lap
        lap.cpu_s, lap.wall_s = time.process_time() - cpu, time.perf_counter() - wall
        self.laps.append(lap)
        print(f"{name}: {lap.cpu_s:.2f} s of CPU, {lap.wall_s:.2f} s on the clock", flush=True)

    def bar(self, text: str, *, holds: bool) -> None:
        """A bar, and whether it is held."""
        print(f"{'held' if holds else 'MISSED'}: {text}", flush=True)
        if not holds:
            self.missed.append(text)

    @property
    def code(self) -> int:
        """The exit code: 1 when a bar was missed."""
        return 1 if self.missed else 0
