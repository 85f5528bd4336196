"""What a report says, as one value; HTML, Markdown and JSON are renderings of it and add nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SCHEMA = 1  # of report.json

# (a number, how many turns have it), ascending.
Counts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The thresholds that ran; a limit that does not apply is None. `turns` ran under it."""

    kind: str
    signal: str | None
    soft_cap: int | None
    stuck_at: int | None
    backstop: int | None
    hard_cap: int | None
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What was started, ended, loaded and rejected."""

    turns_started: int
    turns_ended: int
    turns: int
    calls: int
    rejects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Calls a turn, over turns with at least one; a percentile is the length of a turn that was seen."""

    over_soft_cap: int | None
    max: int | None
    p50: int | None
    p90: int | None
    p99: int | None
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How often the most repeated call of a turn was made."""

    k: int | None
    turns_at_or_over_k: int | None
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Halts:
    """Turns whose first (would-be) halt was this one; a turn counts once."""

    threshold: str
    mode: str
    enforced: bool
    turns: int
    labelled_stuck: int
    labelled_not_stuck: int
    unlabelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """Everything a report says. `limits` are what the bundled turns, where they are in it, cannot show."""

    policy: Policy
    other_policies: int
    coverage: Coverage
    length: Length
    repeats: Repeats
    halts: tuple[Halts, ...]
    limits: tuple[str, ...]


def at_least(counts: Counts, bound: int) -> int:
    """How many turns reach `bound`."""
    return sum(turns for number, turns in counts if number >= bound)


def percentile(counts: Counts, share: float) -> int | None:
    """The smallest number that at least `share` of the turns do not exceed; None without turns."""
    total, seen = sum(turns for _, turns in counts), 0
    for number, turns in counts:
        seen += turns
        if seen >= share * total:
            return number
    return None


def survival(counts: Counts) -> tuple[Sequence[int], Sequence[float]]:
    """(numbers, share of turns that reach each)."""
    total, left = sum(turns for _, turns in counts), sum(turns for _, turns in counts)
    numbers, shares = [], []
    for number, turns in counts:
        numbers.append(number)
        shares.append(left / total)
        left -= turns
    return numbers, shares
