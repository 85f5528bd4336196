"""What would change our mind: how far each verdict and the recommendation are from saying something else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from analytics.decision import Recommendation
from analytics.report.words import number, percent, plural
from analytics.stats import clopper_pearson
from analytics.validation.gates import Gate, Question, State
from analytics.validation.rates import Share
from analytics.validation.verdicts import Verdict, Word


def would_change(
    verdicts: Sequence[Verdict], decision: Recommendation, gates: Sequence[Gate], kinds: Mapping[str, int]
) -> Iterator[str]:
    """A sentence for each finding, not yet made, that would turn a word or the recommendation."""
    for verdict in verdicts:
        share, limit = verdict.first, verdict.tolerances[0]
        if verdict.question is Question.MULTIPLIER:
            yield from _long_turns(verdict, share, limit)
        elif verdict.question is Question.STUCK_THRESHOLD:
            yield from _wrong_halts(share, limit)
    yield from _price(decision)
    if not kinds.get("poll"):
        yield "A labelled turn that waits by polling: without one no signal that halts such turns is advised."
    yield from _gates(gates)
    yield (
        "A new version of the guard, a new model or 13 weeks: each verdict speaks of what it saw, and "
        "begins anew after them."
    )


def _long_turns(verdict: Verdict, share: Share, limit: float) -> Iterator[str]:
    events = fewest_above(share, limit)
    if events is not None and verdict.word is not Word.TOO_LOW:
        yield (
            f"{plural(events, 'turn')} of {number(round(share.n))} past {number(verdict.running)}× the soft "
            f"cap, labelled not stuck, would make the backstop too low (now {number(round(share.least))})."
        )
    if verdict.alike:
        yield (
            f"A turn longer than {number(verdict.alike[0])}× the soft cap: only such turns tell "
            f"{', '.join(f'{m}×' for m in verdict.alike)} from each other."
        )


def _wrong_halts(share: Share, limit: float) -> Iterator[str]:
    if not share.n:
        yield "A first turn that the rule halts: nothing is known of its halts yet."
        return
    events = fewest_above(share, limit)
    now = round(share.least)
    if events is None:
        return
    if now >= events:
        turned = now - events + 1
        yield (
            f"If {number(turned)} of the {number(now)} halts labelled not stuck turned out to be stuck, it "
            f"could no longer be said that more than {percent(limit)} of the halts are wrong."
        )
    else:
        yield (
            f"{number(events - now)} more wrong halts among these {number(round(share.n))} would show that "
            f"more than {percent(limit)} of them are wrong."
        )


def fewest_above(share: Share, limit: float) -> int | None:
    """The fewest events at which the lower bound of the share passes `limit`; None where none does.

    Takes the effective number of turns to stay as it is.
    """
    n = round(share.n)
    if not n or not share.n_eff:
        return None

    def passes(events: int) -> bool:  # once it does it does for all more
        return clopper_pearson(events / n * share.n_eff, share.n_eff, tail=share.tail).low > limit

    found = bisect_left(range(n + 1), True, key=passes)
    return found if found <= n else None


def _price(decision: Recommendation) -> Iterator[str]:
    best = decision.leading
    if best is None or best.policy == decision.running.policy:
        return
    if best.break_even is None:
        yield (
            "No price of a wrong halt makes what runs cheaper than the best alternative on these turns; "
            "other turns would have to."
        )
    else:
        yield (
            f"A wrong halt worth {best.break_even:,.0f} calls instead of {decision.price.wrong_halt:,.0f}: "
            "there what runs and the best alternative cost the same."
        )


def _gates(gates: Sequence[Gate]) -> Iterator[str]:
    for gate in gates:
        if gate.state in (State.RED, State.AMBER):
            yield f"The gate “{gate.name}” turning green: {gate.text}."
