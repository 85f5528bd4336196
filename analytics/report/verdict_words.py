"""Verdicts, rates and policies in sentences, for people who know no statistics and for those who do."""

from __future__ import annotations

from analytics.decision import Answer, Recommendation
from analytics.first_screen import Effect
from analytics.policy_words import halts_at
from analytics.report.value import WeeklyReport
from analytics.report.words import number, percent, plural
from analytics.validation.gates import Question
from analytics.validation.rates import Share
from analytics.validation.verdicts import Verdict, Word

# Word -> (what to do with the threshold, how it is shown)
MEANING = {
    Word.TOO_LOW: ("raise it: it halts turns that were not stuck", "bad"),
    Word.TOO_HIGH: ("lower it: a stricter value stays within tolerance and saves more", "bad"),
    Word.VALIDATED: ("keep it", "good"),
    Word.INSUFFICIENT: ("no word yet", "open"),
}

# What every number rests on; the method is docs/method.md.
ASSUMPTIONS = (
    "Replay assumes that the agent would have made the same calls under another policy, up to the halt.",
    "Turns of one user (else session) are not independent: intervals are Clopper–Pearson at the effective "
    "number of turns, from the variance between users; fewer than {least_clusters} users stop every word.",
    "Bounds of verdicts are one-sided at {level:.3g}{look}; a verdict needs a bound on one side of its "
    "tolerance, not an estimate.",
    "Not stuck: labelled re-run, polling or burst, or stuck = false. A halted turn that nobody read counts "
    "as right in the lower bound and as wrong in the upper one; a turn that nothing halts and nobody read "
    "counts as not stuck.",
    "FDR is the share of halts that hit a turn that was not stuck, FHR the share of the turns that were not "
    "stuck that were halted. Neither is read without the other.",
    "Calls saved are calls of stuck turns from the halting call on, calls cut the same of all other turns; "
    "they are never added up.",
    "Turns whose steps a harness limited say nothing of length and are left out of the multiplier.",
    "What a policy costs: {wrong:,.0f} calls for each halt of a turn not labelled stuck, {call:g} for each "
    "call that runs in a stuck turn.",
)


def question(verdict: Verdict) -> str:
    """What a verdict answers, with the running value."""
    repeats = f"{'Is' if verdict.running == 1 else 'Are'} {plural(verdict.running, 'repeat')}"
    return {
        Question.MULTIPLIER: f"Is {verdict.running}× the soft cap the right backstop?",
        Question.STUCK_THRESHOLD: f"{repeats} the right sign of being stuck?",
        Question.SOFT_CAP: f"Is {plural(verdict.running, 'call')} the right soft cap?",
    }[verdict.question]


def threshold_name(verdict: Verdict) -> str:
    """The threshold's short name."""
    return {
        Question.MULTIPLIER: "multiplier",
        Question.STUCK_THRESHOLD: "K, stuck at",
        Question.SOFT_CAP: "S, soft cap",
    }[verdict.question]


def meaning(word: Word) -> tuple[str, str]:
    """(What to do with the threshold, how it is shown.)"""
    return MEANING[word]


def finding(verdict: Verdict) -> str:
    """What was seen, in a sentence without a term of statistics."""
    share, limit = verdict.first, verdict.tolerances[0]
    if verdict.question is Question.MULTIPLIER:
        if not share.n:
            return "No turn without a step limit was seen, so nothing is known of long turns."
        of = plural(round(share.n), "turn")
        seen = f"{_between(share)} of {of} without a step limit went past it"
        if share.least != share.most:
            seen += ", or would have, and were not stuck: some were halted before, or nobody has read them"
        return (
            f"{seen}. The true share may be as high as {percent(share.high)}; {percent(limit)} is accepted."
        )
    if not share.n:
        return "No turn would have been halted as stuck, so nothing is known of wrong halts."
    wrong = _between(share)
    return (
        f"{wrong} of {plural(round(share.n), 'halt')} hit a turn that was not stuck. The true share lies "
        f"between {percent(share.low)} and {percent(share.high)}; {percent(limit)} is accepted."
    )


def _between(share: Share) -> str:
    least, most = round(share.least), round(share.most)
    return number(least) if least == most else f"{number(least)} to {number(most)}"


def events(share: Share) -> str:
    """Raw counts: 9 of 10, or 2 to 7 of 10 where some are unread."""
    return f"{_between(share)} of {number(round(share.n))}"


def saved(effect: Effect) -> str:
    """What the running rule saved, under the figure."""
    if not effect.all_stuck:
        return "No turn is labelled stuck, so nothing is known to be saved."
    would = "met" if effect.enforced else "would have met"
    text = f"It {would} {number(effect.stuck)} of the {plural(effect.all_stuck, 'turn')} labelled stuck"
    if effect.stuck_before:
        text += f": {number(effect.stuck_before)} had ended by call {number(effect.soft_cap)}"
    return text + "."


def cost(effect: Effect) -> str:
    """What the running rule cost, under the figure."""
    would = "It halted" if effect.enforced else "It would have halted"
    text = f"{would} {number(effect.halted)} of {plural(effect.turns, 'turn')}"
    if effect.halted:
        text += f"; {number(effect.not_stuck)} of these were not stuck"
        if effect.unread:
            text += f", {number(effect.unread)} nobody has read"
    cut = plural(effect.cut_by_hard_cap, "turn")
    return f"{text}. A hard cap of {number(effect.soft_cap)} would have cut {cut}."


def alternative(decision: Recommendation, effect: Effect) -> str:
    """What the cheapest policy of the grid would have done, under the figure."""
    if not effect.all_stuck:
        return "What another policy would save is not known: no turn is labelled stuck."
    best = decision.leading
    if best is None or best.policy == decision.running.policy:
        return "Nothing on the grid would have cost less on these turns."
    least = "" if best.badge == "exact" else "at least "
    return (
        f"Halting at {halts_at(best.policy)}: {least}{plural(best.stuck, 'stuck turn')} and "
        f"{plural(best.others, 'other')} halted."
    )


def advice(decision: Recommendation) -> str:
    """The recommendation, with why."""
    head = {
        Answer.CHANGE: "Change the policy",
        Answer.KEEP: "Keep what runs",
        Answer.NOT_DISTINGUISHABLE: "Keep what runs",
        Answer.CANNOT_SAY: "These data cannot say which policy is best",
    }[decision.answer]
    return f"{head}: {decision.reason}."


def assumptions(report: WeeklyReport) -> list[str]:
    """Every assumption, with the numbers of this report."""
    settings, look = report.settings, report.look
    numbers = {
        "least_clusters": settings.evidence.least_clusters,
        "level": look.level,
        "look": "" if look.number is None else f", the level of look {look.number} of 13",
        "wrong": settings.price.wrong_halt,
        "call": settings.price.call,
    }
    return [sentence.format(**numbers) for sentence in ASSUMPTIONS]
