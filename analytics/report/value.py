"""What a report says, as one value; HTML, Markdown and JSON are renderings of it and add nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics.decision import Costed, Recommendation
from analytics.first_screen import FirstScreen
from analytics.report.strip import Strip
from analytics.report.trend import Trend
from analytics.report.turn import TurnView
from analytics.report.turn_policies import TurnPolicies
from analytics.validation.gates import Gate
from analytics.validation.settings import Settings
from analytics.validation.strata import Stratum
from analytics.validation.validate import ByAgent
from analytics.validation.verdicts import Look, Verdict

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
class Step:
    """One step of the waterfall: `turns` are left after it, `lost` were left out by it."""

    name: str
    turns: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One policy on the recorded turns: a row of `analytics.side_by_side.signals`."""

    signal: str
    k: int
    soft_cap: int
    backstop: int
    stuck_caught: int
    others_halted: int
    calls_saved: int
    calls_cut: int
    stuck_caught_most: int
    others_halted_most: int
    calls_saved_most: int
    calls_cut_most: int
    undecided: int
    badge: str
    stuck_turns: int
    other_turns: int
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Turns of one kind in one population that looks stuck: a row of `analytics.false_stuck_turns.shares`.

    `population` is `halted` or `repeated`. `kind` is None where the calls were not recorded. `low` and `high`
    are the ends of a 95 % interval.
    """

    population: str
    kind: str | None
    turns: int
    share: float | None
    low: float
    high: float
    whole: int
    labelled: int
    labelled_agree: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A turn of one kind in one population, drawn; its strip marks the call at which it was judged.

    `because` is the rule that named the kind; `label` the kind that a label names; None: none does.
    """

    population: str
    kind: str
    because: str | None
    label: str | None
    strip: Strip


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A turn that the report draws, with all that is said of it."""

    turn: TurnView
    found: TurnPolicies


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """Everything a report says.

    `week` is None for a report over everything. `kinds` counts turns by the kind that labels name. `drawn`
    are the nearest misses and the examples. `grid` holds each K and S at the running signal and backstop,
    `backstops` each backstop at the running signal, K and S. `limits` are what the bundled turns, where they
    are in it, cannot show.
    """

    week: str | None
    policy: Policy
    other_policies: int
    coverage: Coverage
    length: Length
    repeats: Repeats
    halts: tuple[Halts, ...]
    kinds: Mapping[str, int]
    first: FirstScreen
    drawn: tuple[Drawn, ...]
    waterfall: tuple[Step, ...]
    gates: tuple[Gate, ...]
    look: Look
    scope: Mapping[str, object]
    verdicts: tuple[Verdict, ...]
    by_agent: tuple[ByAgent, ...]
    strata: tuple[Stratum, ...]
    decision: Recommendation
    costed: tuple[Costed, ...]
    grid: tuple[Costed, ...]
    backstops: tuple[Costed, ...]
    signals: tuple[Side, ...]
    false_stuck: tuple[Pattern, ...]
    agreement: Mapping[str, int]
    examples: tuple[Example, ...]
    would_change: tuple[str, ...]
    trend: Trend
    settings: Settings
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
