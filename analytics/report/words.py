"""The report's sentences: the same words in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from analytics.decision import Costed
from analytics.first_screen import Near
from analytics.report.turn import TurnView
from analytics.report.turn_policies import TurnPolicies
from analytics.report.value import Example, Halts, Policy, Side, WeeklyReport

UNKNOWN = "unknown"


def number(value: float | None) -> str:
    """12,345, or "unknown"."""
    return UNKNOWN if value is None else f"{value:,}"


def percent(part: float | None, whole: float | None = 1) -> str:
    """12.3% of a whole, or "unknown" where there is nothing to take a share of."""
    if part is None or not whole:
        return UNKNOWN
    share = 100 * part / whole
    return f"{share:.0f}%" if share == round(share) else f"{share:.2f}%" if share < 10 else f"{share:.1f}%"


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
    text = (
        f"After {number(policy.soft_cap)} calls a turn is halted as stuck once {what} "
        f"{number(policy.stuck_at)}{' times' if policy.signal in (None, 'repeat') else ''}; "
        f"past {number(policy.backstop)} calls it is halted whatever it does."
    )
    return text if policy.turns else f"The rule as released, under which no turn here ran: {text}"


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
        f"Half of the turns make at most {number(length.p50)} calls, 99% at most {number(length.p99)}; "
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


def shadow(report: WeeklyReport) -> bool:
    """Whether the rule halted nothing: it ran in shadow, or there was no guard."""
    return not report.first.effect.enforced


def scope(report: WeeklyReport) -> str:
    """Which turns the figures speak of."""
    said = report.scope
    turns, clusters = said["turns"], said["clusters"]
    text = plural(int(str(turns)), "turn")
    if said["cluster"]:
        text += f" of {plural(int(str(clusters)), str(said['cluster']))}"
    if said["from"] and said["to"]:
        text += f", {said['from']} to {said['to']}" if said["from"] != said["to"] else f", {said['from']}"
    if not turns:
        left_out = ", ".join(f"{number(int(str(n)))} {why}" for why, n in _left_out(said).items() if n)
        return f"No turn is in scope{f'; left out: {left_out}' if left_out else ''}."
    text += f". Mode: {said['mode'] or 'no guard'}."
    if report.week:
        text = f"Week {report.week}, with all weeks since its look began: {text}"
    return text


def _left_out(scope: Mapping[str, object]) -> Mapping[str, int]:
    found = scope["left_out"]
    return found if isinstance(found, Mapping) else {}


def bar(part: int, whole: int) -> str:
    """Width in per cent."""
    return f"{100 * part / whole:.2f}" if whole else "0"


def look(report: WeeklyReport) -> str:
    """At what level the bounds are."""
    if report.look.number is None:
        return (
            f"One look at all turns, bounds one-sided at {percent(report.look.level)}. A report with "
            "--week counts its looks and judges each at its own, stricter level."
        )
    return (
        f"Look {report.look.number} of 13 planned, bounds one-sided at {report.look.level:.2g}: early looks "
        "are strict on purpose, so that thirteen of them together are wrong no more often than one would be."
    )


def price(report: WeeklyReport) -> str:
    """What costs are in."""
    one = report.decision.price
    return (
        f"Cost counts {one.wrong_halt:,.0f} calls for each halt of a turn not labelled stuck and "
        f"{one.call:g} for each call that runs in a stuck turn."
    )


def seen_kinds(report: WeeklyReport) -> str:
    """Of how many turns of which kinds the figures are."""
    kinds = dict(report.kinds)
    unread = kinds.pop("unlabelled", 0)
    kinds = {name: kinds.pop(name, 0) for name in ("stuck", "rerun", "burst", "poll")} | kinds
    named = ", ".join(f"{number(turns)} {name}" for name, turns in kinds.items())
    return f"In these turns labels name: {named}; {number(unread)} turns have no kind."


def side(one: Side) -> str:
    """stuck caught / others halted / calls saved / calls cut, each a range where the rest is hidden."""
    pairs = (
        (one.stuck_caught, one.stuck_caught_most),
        (one.others_halted, one.others_halted_most),
        (one.calls_saved, one.calls_saved_most),
        (one.calls_cut, one.calls_cut_most),
    )
    return " / ".join(number(least) if least == most else f"{least:,}–{most:,}" for least, most in pairs)


def by_signal(report: WeeklyReport) -> list[tuple[str, list[tuple[int, list[Side]]]]]:
    """The signals side by side, in the order they were computed: signal -> K -> by soft cap."""
    found: dict[str, dict[int, list[Side]]] = {}
    for one in report.signals:
        found.setdefault(one.signal, {}).setdefault(one.k, []).append(one)
    return [(signal, list(rows.items())) for signal, rows in found.items()]


def strata(report: WeeklyReport) -> str:
    """What the strata are that verdicts leave out."""
    said = {
        "explicit cap": "Turns with an explicit cap were stopped by a number that somebody chose for them",
        "sub-agent": "a sub-agent's run is a turn of its own, shorter and of another kind",
    }
    text = "; ".join(said[one.name] for one in report.strata)
    return f"{text[0].upper()}{text[1:]}. Each group is judged under the policy that ran on it."


def no_trend(report: WeeklyReport) -> str:
    """Why there is no trend."""
    if not report.trend.weeks:
        return "The turns carry no dates, so there is no trend to show."
    return f"All turns began in one week ({report.trend.weeks[0].name}), so there is no trend to show."


def near(one: Near) -> str:
    """Where a near miss would be halted."""
    text = plural(one.calls, "call")
    if one.repeats is not None:
        text += (
            f", one of them made {plural(one.repeats, 'time')}" if one.repeats > 1 else ", none of them twice"
        )
    if one.halted:
        return text + "; the rule halts it"
    ways = []
    if one.at_k is not None:
        ways.append(f"K at {one.at_k:,} or less")
    if one.at_s is not None:
        ways.append(f"S at {one.at_s:,} or less")
    if not ways:
        return text + "; no K and no S alone would halt it"
    return text + f"; would be halted with {' or '.join(ways)}"


def settings(report: WeeklyReport) -> list[tuple[str, str]]:
    """(name, value) of the tolerances, prices and grids."""
    return [
        (f"{section}.{name}", ", ".join(map(str, value)) if isinstance(value, tuple) else str(value))
        for section, values in asdict(report.settings).items()
        for name, value in values.items()
    ]


def compared_policies(report: WeeklyReport) -> list[Costed]:
    """The policy that runs, with how many do the same where none beats it, then all that none beats."""
    running, frontier = report.decision.running, report.decision.frontier
    same = [one for one in frontier if one.policy == running.policy]
    return [*(same or [running]), *(one for one in frontier if one.policy != running.policy)]


def grid_alt(report: WeeklyReport) -> str:
    """What the heat map shows."""
    running, best = report.decision.running, min(report.grid, key=lambda one: one.cost)
    backstop = number(running.policy.backstop)
    text = f"K down, S across, at the signal {running.policy.signal} and a backstop of {backstop}."
    if best.cost >= running.cost:
        return text + " No cell costs less than what runs."
    return text + (
        f" The cheapest cell is K = {number(best.policy.stuck_at)}, S = {number(best.policy.soft_cap)}: "
        f"{number(best.stuck)} stuck and {number(best.others)} other turns halted."
    )


def trend_alt(report: WeeklyReport) -> str:
    """What the trend shows."""
    first, last = report.trend.weeks[0], report.trend.weeks[-1]
    return (
        f"Share of turns that reached a threshold, and of those past the soft cap, week by week with 95% "
        f"intervals: {percent(first.halted.estimate)} and {percent(first.long.estimate)} in {first.name}, "
        f"{percent(last.halted.estimate)} and {percent(last.long.estimate)} in {last.name}."
    )


def signal_rows(found: TurnPolicies) -> list[tuple[str, ...]]:
    """(signal, highest level and where, halt after the soft cap, halt from the first call on) of one turn."""
    return [
        (
            f"{one.signal} (runs)" if one.runs else one.signal,
            UNKNOWN if one.highest is None else f"{number(one.highest)} at call {number(one.highest_at)}",
            _halting(one.after_cap, one.after_cap_badge),
            _halting(one.from_first, one.from_first_badge),
        )
        for one in found.signals
    ]


def signal_heads(found: TurnPolicies) -> tuple[str, ...]:
    """The columns of `signal_rows`."""
    return (
        f"signal, at K = {number(found.policy.stuck_at)}",
        "highest level",
        f"halts after {number(found.policy.soft_cap)} calls",
        "halts from the first call on",
    )


def _halting(call: int | None, badge: str) -> str:
    if badge == "exact":
        return "never" if call is None else f"at call {number(call)}"
    return "not known" if call is None else f"not known; not before call {number(call)}"


def pattern(found: TurnPolicies) -> str | None:
    """What a turn that looks stuck is by the rules, and why."""
    if found.kind is None:
        return None
    why = f" ({found.because})" if found.because else ""
    return f"By rules that read no label: {found.kind}{why}."


def populations(report: WeeklyReport) -> list[tuple[str, str, str]]:
    """(population, its heading, what the frame in its strips marks) of the turns that look stuck."""
    k = number(report.policy.stuck_at)
    return [
        ("halted", "Turns that the rule halts", "the call that halts"),
        ("repeated", f"All turns in which some call is made {k} times", f"the {k}th time"),
    ]


def example(one: Example) -> str:
    """What stands under a strip of the false-stuck pattern."""
    parts = [plural(len(one.strip.ranks), "call"), f"marked at call {number(one.strip.halts[0])}"]
    if one.because:
        parts.append(one.because)
    if one.label is None:
        parts.append("not read")
    elif one.label != one.kind:
        parts.append(f"a label says {one.label}")
    return "; ".join(parts)


def agreement(report: WeeklyReport) -> str:
    """How far rules and labels agree, beside the guess that is always the same."""
    found = report.agreement
    if not found["labelled"]:
        return (
            "No turn that looks stuck is labelled with a kind, so the rules cannot be held against anything."
        )
    return (
        f"Of {plural(found['labelled'], 'turn')} whose label names a kind the rules say the same of "
        f"{number(found['agree'])}; calling every one a re-run cycle would be right of "
        f"{number(found['always_rerun'])}."
    )
