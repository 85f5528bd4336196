"""The report's sentences: the same words in HTML and Markdown."""

from __future__ import annotations

from datetime import UTC, datetime

from analytics.report.turn import TurnView
from analytics.report.value import Halts, Policy, WeeklyReport

UNKNOWN = "unknown"


def number(value: float | None) -> str:
    """12,345, or "unknown"."""
    return UNKNOWN if value is None else f"{value:,}"


def percent(part: float | None, whole: float | None = 1) -> str:
    """12.3 % of a whole, or "unknown" where there is nothing to take a share of."""
    return UNKNOWN if part is None or not whole else f"{100 * part / whole:.3g} %"


def plural(count: int, one: str, many: str | None = None) -> str:
    """1 turn, 2 turns."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def rule(policy: Policy) -> str:
    """The running policy in a sentence."""
    if policy.kind == "disabled":
        return "No cap was running."
    if policy.kind == "hard":
        return f"A turn is halted when it asks for more than {number(policy.hard_cap)} calls."
    what = (
        "one and the same call has been asked for"
        if policy.signal in (None, "repeat")
        else f"the signal {policy.signal} has reached"
    )
    return (
        f"After {number(policy.soft_cap)} calls a turn is halted as stuck once {what} "
        f"{number(policy.stuck_at)}{' times' if policy.signal in (None, 'repeat') else ''}; "
        f"past {number(policy.backstop)} calls it is halted whatever it does."
    )


def threshold(name: str) -> str:
    """What a threshold means, for people."""
    return {
        "soft-stuck": "past the soft cap and repeating itself",
        "backstop": "past the backstop",
        "explicit-hard": "past an explicit hard cap",
    }.get(name, name)


def halted(halts: Halts) -> str:
    """Whether the halt happened."""
    return "halted" if halts.enforced else "would have been halted"


def calls_alt(report: WeeklyReport) -> str:
    """What the chart of calls per turn shows."""
    length = report.length
    text = (
        f"Half of the turns make at most {number(length.p50)} calls, 99 % at most {number(length.p99)}; "
        f"the longest makes {number(length.max)}."
    )
    if length.over_soft_cap is not None:
        turns = sum(turns for _, turns in length.counts)
        text += f" {plural(length.over_soft_cap, 'turn')} of {number(turns)} pass the soft cap."
    return text


def repeats_alt(report: WeeklyReport) -> str:
    """What the chart of largest repeats shows."""
    repeats = report.repeats
    total = sum(turns for _, turns in repeats.counts)
    if repeats.k is None or repeats.turns_at_or_over_k is None:
        return f"The largest repeat of one call in each of {number(total)} turns."
    return (
        f"In {plural(repeats.turns_at_or_over_k, 'turn')} of {number(total)} some call is made "
        f"{number(repeats.k)} times or more."
    )


def turn_facts(turn: TurnView) -> list[tuple[str, str]]:
    """(name, value) of what is known of a turn as a whole."""
    seconds = None if turn.duration_ms is None else round(turn.duration_ms / 1000)
    label = {True: "stuck", False: "not stuck", None: "none"}[turn.stuck]
    return [
        ("agent", turn.agent or UNKNOWN),
        ("model", turn.model or UNKNOWN),
        ("calls", number(turn.total_calls)),
        ("took", UNKNOWN if seconds is None else f"{number(seconds)} s"),
        ("outcome", turn.outcome or "open"),
        ("task", turn.task_outcome or UNKNOWN),
        ("label", f"{label} ({turn.kind})" if turn.kind and turn.kind != label else label),
        ("mode", turn.mode or "no guard"),
        ("data", turn.grade),
    ]


def reader_facts(turn: TurnView) -> list[tuple[str, str]]:
    """(name, value) of what helps a reader to find a turn and nothing that judges it."""
    began = turn.started_at
    facts = [
        ("agent", turn.agent),
        ("conversation", turn.conversation_id),
        (
            "began",
            None if began is None else f"{datetime.fromtimestamp(began // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC",
        ),
    ]
    return [(name, value) for name, value in facts if value]


def turn_halts(turn: TurnView) -> list[str]:
    """A sentence for each (would-be) halt of a turn."""
    if not turn.halts:
        return ["No threshold was reached."]
    lines = []
    for halt in turn.halts:
        what = "Halted" if halt.enforced else "Would have been halted"
        if halt.explored:
            what = "Let run on as part of the holdout; would have been halted"
        numbers = f"limit {number(halt.limit)}"
        if halt.threshold == "soft-stuck":
            numbers = f"past the soft cap of {number(halt.limit)} with a level of {number(halt.level)}"
        lines.append(f"{what} at call {number(halt.call_number)}: {halt.threshold}, {numbers}.")
    return lines


def strip_alt(turn: TurnView) -> str:
    """What the strip of a turn shows."""
    text = plural(turn.total_calls, "call")
    if turn.repeats:
        text += f"; the most repeated is made {plural(turn.repeats[0].times, 'time')}"
    for halt in turn.halts[:1]:
        text += f"; {'halted' if halt.enforced else 'would be halted'} at call {number(halt.call_number)}"
    return text + "."
