"""Why a turn looks stuck: features of its repeats, and few ordered rules that name the pattern.

Two populations, never mixed: turns that a policy halts, and all turns in which some key reached K. Each
is looked at up to that call, as a guard would have to; turns that ran on are looked at again whole. The
rules read no label. They are data, so that a report shows exactly what was applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from statistics import median
from typing import Any, Literal


class Kind(StrEnum):
    """What a turn that looks stuck is."""

    STUCK = "stuck"
    RERUN = "re-run cycle"
    POLLING = "polling"
    BURST = "error burst"  # open until it recovers
    UNCLEAR = "unclear"


# The kinds that labels name (turncap.turn.labelled), in these words.
LABELS = {"stuck": Kind.STUCK, "rerun": Kind.RERUN, "poll": Kind.POLLING, "burst": Kind.BURST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The calls of a turn in order, a list a column; None is unknown.

    `result` numbers (key, result) pairs; `settled_after` are the calls that were asked for when the call
    settled, `settled_order` its place among the settled ones.
    """

    key: Sequence[int]
    result: Sequence[int | None]
    settled_after: Sequence[int | None]
    settled_order: Sequence[int | None]
    error: Sequence[bool | None]
    mutating: Sequence[bool | None]
    offset_ms: Sequence[int | None]
    tool_class: Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the rules look at. A repeat is a call of the key that was asked for most; None is unknown.

    Shares are of the gaps between one repeat and the next, unless said otherwise.
    """

    repeats: int
    new_between: float  # gaps in which a never-seen key was asked for
    change_between: float | None  # gaps in which another call changed files or state
    adjacent: float  # gaps without any call
    failed: float | None  # of the settled repeats, those that failed
    answers_changed: float | None  # from first to last repeat, settled repeats of any key with another result
    dry_run: int | None  # the longest run of settled calls without a never-seen (key, result), in calls
    dry_end: (
        str | None
    )  # what ended that run: `call` (a new key), `answer` (of a known key), `open` (nothing)
    wait_s: float | None  # seconds from the call before to the repeat, the median
    mutating: bool | None  # the repeated call changes files or state
    tool_class: str | None  # of the repeated call


def features(trace: Trace, until: int | None = None) -> Features:
    """The features of a turn's calls; of the first `until` of them, the last one just asked for.

    Raises:
        ValueError: there is no call.
    """
    keys = trace.key[:until]
    if not keys:
        raise ValueError("a turn without calls has no features")
    # Of several keys asked for equally often, the one that was asked for first.
    top = Counter(keys).most_common(1)[0][0]
    at = [place for place, key in enumerate(keys) if key == top]
    gaps = list(pairwise(at))
    seen: set[int] = set()
    new = [not (key in seen or seen.add(key)) for key in keys]  # type: ignore[func-returns-value]
    settled = _settled(trace, len(keys), cut=until is not None)
    judged = [place for place in settled if keys[place] == top] if settled else at
    failures = [trace.error[place] for place in judged if trace.error[place] is not None]
    changing = trace.mutating[: len(keys)]
    mutating = [changing[place] for place in at if changing[place] is not None]
    answers = [(keys[place], trace.result[place]) for place in settled]
    dry_run, dry_end = _dry_run(answers)
    return Features(
        repeats=len(at),
        new_between=_between(gaps, new) or 0.0,
        change_between=_between(gaps, [bool(one) for one in changing])
        if any(one is not None for one in changing)
        else None,
        adjacent=_share([b - a == 1 for a, b in gaps]) or 0.0,
        failed=_share([bool(failure) for failure in failures]),
        answers_changed=_changed(
            [answer for place, answer in zip(settled, answers, strict=True) if at[0] <= place <= at[-1]]
        ),
        dry_run=dry_run,
        dry_end=dry_end,
        wait_s=_wait(trace.offset_ms, at),
        mutating=any(mutating) if mutating else None,
        tool_class=trace.tool_class[at[0]],
    )


def _settled(trace: Trace, calls: int, *, cut: bool) -> list[int]:
    """The places of the settled calls in settle order; where cut, of those before the last was asked for.

    A call of unknown order settled before the next was asked for.
    """
    after = [
        place + 1 if told is None else told for place, told in enumerate(trace.settled_after[:calls])
    ]  # fmt: skip
    settled = [
        place for place in range(calls)
        if trace.result[place] is not None and not (cut and after[place] >= calls)
    ]  # fmt: skip
    settled.sort(key=lambda place: (after[place], trace.settled_order[place] or 0, place))
    return settled


def _share(truths: Sequence[bool]) -> float | None:
    return sum(truths) / len(truths) if truths else None


def _between(gaps: Sequence[tuple[int, int]], holds: Sequence[bool]) -> float | None:
    """The share of the gaps in which `holds` is true of some call strictly between both ends."""
    until = list(accumulate(holds, initial=0))  # how many of the calls before each place
    return _share([until[b] > until[a + 1] for a, b in gaps])


def _changed(answers: Sequence[tuple[int, int | None]]) -> float | None:
    """Of (key, result) whose key had settled before, the share whose result is another than the last time."""
    last: dict[int, int | None] = {}
    changed = []
    for key, result in answers:
        if key in last:
            changed.append(last[key] != result)
        last[key] = result
    return _share(changed)


def _dry_run(answers: Sequence[tuple[int, int | None]]) -> tuple[int | None, str | None]:
    """The longest run of (key, result) that had all been seen, and what ended it."""
    if not answers:
        return None, None
    keys: set[int] = set()
    pairs: set[tuple[int, int | None]] = set()
    run = longest = 0
    end = "open"
    for pair in answers:
        if pair in pairs:
            run += 1
            if run > longest:
                longest, end = run, "open"
        else:
            if run and run == longest:
                end = "answer" if pair[0] in keys else "call"
            run = 0
            pairs.add(pair)
            keys.add(pair[0])
    return longest, end


def _wait(offset_ms: Sequence[int | None], at: Sequence[int]) -> float | None:
    """The median time from the call before a repeat to the repeat, in seconds."""
    waits = [
        (now - before) / 1000
        for now, before in ((offset_ms[place], offset_ms[place - 1]) for place in at[1:])
        if now is not None and before is not None
    ]
    return median(waits) if waits else None


# What the rules compare with.
DRY = 6  # settled calls without anything new
SLOW = 30.0  # seconds before a repeat: an agent that does not wait asks again sooner
MOST = 0.5  # of the gaps, or of the repeats
SOME = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison of one feature; an unknown feature meets none but `is not`."""

    feature: str
    relation: Literal["at least", "below", "is", "is not"]
    value: float | str | bool

    def holds(self, found: Features) -> bool:
        """Whether the features meet it."""
        actual = getattr(found, self.feature)
        if self.relation == "is not":
            return bool(actual != self.value)
        if actual is None:
            return False
        if self.relation == "is":
            return bool(actual == self.value)
        return bool(actual >= self.value if self.relation == "at least" else actual < self.value)

    @property
    def text(self) -> str:
        """In words, such as `dry_run at least 6`."""
        value = f"{self.value:g}" if type(self.value) is float else str(self.value).lower()
        return f"{self.feature} {self.relation} {value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Names the kind where all of the conditions hold; `because` says it in words."""

    kind: Kind
    because: str
    conditions: tuple[Condition, ...]

    def holds(self, found: Features) -> bool:
        """Whether the features meet every condition."""
        return all(condition.holds(found) for condition in self.conditions)


def _rule(kind: Kind, because: str, *conditions: tuple[str, Any, float | str | bool]) -> Rule:
    return Rule(
        kind=kind,
        because=because,
        conditions=tuple(Condition(feature=f, relation=r, value=v) for f, r, v in conditions),
    )


_WAITING = (("mutating", "is not", True), ("new_between", "below", MOST))

# The first rule that holds names the kind. Without results no rule for `stuck` can hold.
RULES = (
    _rule(
        Kind.POLLING, "it asked the same again, changed nothing, and in the end the answer changed",
        *_WAITING, ("dry_end", "is", "answer"),
    ),
    _rule(
        Kind.POLLING, "it asked the same again, changed nothing, and the answers kept changing",
        *_WAITING, ("answers_changed", "at least", SOME), ("dry_run", "below", DRY),
    ),
    _rule(
        Kind.POLLING, "it asked the same again, changed nothing, and waited each time",
        *_WAITING, ("wait_s", "at least", SLOW),
    ),
    _rule(
        Kind.STUCK, "many calls in a row brought no answer that it had not seen",
        ("dry_run", "at least", DRY),
    ),
    _rule(
        Kind.STUCK, "nothing but the same call, at once, with the same answer, and no end yet",
        ("new_between", "below", SOME), ("answers_changed", "below", SOME), ("dry_run", "at least", DRY - 2),
        ("dry_end", "is", "open"), ("failed", "below", MOST), ("wait_s", "below", SLOW),
    ),
    _rule(
        Kind.BURST, "the same call failed again and again with nothing new between",
        ("failed", "at least", MOST), ("new_between", "below", MOST),
    ),
    _rule(
        Kind.POLLING, "the repeated call is of a tool that polls",
        *_WAITING, ("tool_class", "is", "poll"),
    ),
    _rule(
        Kind.RERUN, "something never asked for before came between the repeats",
        ("new_between", "at least", MOST),
    ),
    _rule(
        Kind.RERUN, "something was changed between the repeats, and answers were new",
        ("change_between", "at least", MOST), ("dry_run", "below", DRY),
    ),
)  # fmt: skip


def classify(found: Features) -> tuple[Kind, Rule | None]:
    """The kind, and the rule that named it (None: no rule holds, the kind is `unclear`)."""
    for rule in RULES:
        if rule.holds(found):
            return rule.kind, rule
    return Kind.UNCLEAR, None
