"""What a reader sees first: what the rule did to these very turns, and what to do next.

Everything is true of a single turn already; sentences speak of the turns in scope.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import orjson

from analytics import stats
from analytics.decision import Costed, Recommendation
from analytics.evidence import AGENTS, TURNS
from analytics.policy_words import halts_at
from analytics.validation.needed import Needed
from analytics.validation.population import NOT_STUCK, STUCK, UNREAD, Counts, Flags, Turns
from analytics.validation.rates import share_of
from analytics.validation.verdicts import Case, Verdict, saved_calls
from guard.policy import CapPolicy

NEAREST = 5  # turns shown of each kind
TO_LABEL = 10
QUANTILES = (("median", 0.50), ("90 %", 0.90), ("99 %", 0.99), ("largest", 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the rule did, or in shadow would have done, to the turns in scope; turns and calls.

    Of `unknown` turns too little is recorded to know. `stuck_before` are stuck turns that made no call
    past the soft cap. `cut_by_hard_cap` are turns that a plain cap at the soft cap would have halted,
    `beyond_hard_cap` the calls lost by that.
    """

    turns: int
    enforced: bool
    halted: int
    stuck: int
    not_stuck: int
    unread: int
    unknown: int
    by_backstop: int
    all_stuck: int
    stuck_before: int
    calls_saved: int
    calls_cut: int
    soft_cap: int
    cut_by_hard_cap: int
    beyond_hard_cap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """One turn that came near a halt. `at_k`: the largest K that halts it at the running S; `at_s`: the
    largest S that halts it at the running K. None where no value does. `halted`: it is halted already."""

    turn_id: str
    calls: int
    repeats: int | None
    halted: bool
    at_k: int | None
    at_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One quantile of lengths or repeats, here and on the bundled turns."""

    what: str
    quantile: str
    here: int | None
    bundled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToLabel:
    """A turn worth reading. `moves` is how much of its tolerance one label can move the rate it enters."""

    turn_id: str
    why: str
    moves: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstScreen:
    """Values and sentences, in the order in which they are read."""

    effect: Effect
    alternative: Costed | None
    answers: tuple[str, ...]
    words: tuple[str, ...]
    repetitive: tuple[Near, ...]
    longest: tuple[Near, ...]
    compared: tuple[Compared, ...]
    excluded: tuple[str, ...]
    to_label: tuple[ToLabel, ...]
    waits: tuple[str, ...]


def first_screen(case: Case, verdicts: tuple[Verdict, ...], decided: Recommendation | None) -> FirstScreen:
    """The first screen of the turns in scope."""
    effect = _effect(case)
    alternative = decided.leading if decided and decided.leading != decided.running else None
    return FirstScreen(
        effect=effect,
        alternative=alternative,
        answers=_answers(effect, alternative, decided),
        words=tuple(_word(verdict) for verdict in verdicts),
        repetitive=_nearest(case, case.turns.frame["max_repeat"].fillna(0).to_numpy(dtype=np.int64)),
        longest=_nearest(case, case.turns.calls),
        compared=_compared(case.turns),
        excluded=_excluded(case),
        to_label=_to_label(case),
        waits=tuple(_wait(verdict) for verdict in verdicts),
    )


def _effect(case: Case) -> Effect:
    turns, truth, policy = case.turns, case.turns.truth, case.population.policy
    outcome = case.replay.under(policy)
    soft_cap = policy.soft_cap or 0
    lost = np.where(outcome.halts, turns.calls - outcome.ran, 0)
    over = turns.calls > soft_cap
    return Effect(
        turns=len(turns),
        enforced=bool(turns.flags("cut_short").any()),
        halted=int(outcome.halts.sum()),
        stuck=int((outcome.halts & (truth == STUCK)).sum()),
        not_stuck=int((outcome.halts & (truth == NOT_STUCK)).sum()),
        unread=int((outcome.halts & (truth == UNREAD)).sum()),
        unknown=int((outcome.may_halt | outcome.unknown).sum()),
        by_backstop=int(outcome.backstop.sum()),
        all_stuck=int((truth == STUCK).sum()),
        stuck_before=int(((truth == STUCK) & ~over).sum()),
        calls_saved=int(saved_calls(turns, outcome).sum()),
        calls_cut=int(lost[truth != STUCK].sum()),
        soft_cap=soft_cap,
        cut_by_hard_cap=int(over.sum()),
        beyond_hard_cap=int((turns.calls[over] - soft_cap).sum()),
    )


def _answers(effect: Effect, best: Costed | None, decided: Recommendation | None) -> tuple[str, ...]:
    """What the rule saved, what it cost, what the best alternative would have done; then a hard cap."""
    e, would = effect, "" if effect.enforced else "would have "
    saved = f"The rule {would}saved {_n(e.calls_saved, 'call')} and cut {e.calls_cut:,}."
    if e.enforced:  # what a halted turn would still have asked for was never seen
        saved = f"The rule saved at least {_n(e.calls_saved, 'call')} and cut at least {e.calls_cut:,}."
    if e.all_stuck:
        saved += f" It {would}met {e.stuck:,} of {_n(e.all_stuck, 'stuck turn')}"
        saved += f": {e.stuck_before:,} had ended by call {e.soft_cap:,}." if e.stuck_before else "."
    cost = f"Of your {_n(e.turns, 'turn')} it {would}halted {e.halted:,}"
    if e.halted:
        cost += f"; {e.not_stuck:,} of its {_n(e.halted, 'halt')} were not stuck"
        cost += f", {e.unread:,} were not read" if e.unread else ""
    if e.unknown:
        cost += f"; of {e.unknown:,} it cannot be known, as too little of them is recorded"
    cost += f"; a hard cap of {e.soft_cap:,} would have cut {e.cut_by_hard_cap:,}."
    if best is None:
        other = "No other policy of the grid can be shown to do better on these turns."
        if not e.all_stuck:
            other = "What another policy would save is not known: no turn is labelled stuck."
    else:
        least = "" if best.badge == "exact" else "at least "  # of the rest it is not known
        other = (
            f"The best alternative on the same turns, halting at {halts_at(best.policy)}, would have saved "
            f"{least}{_n(best.calls_saved, 'call')} and cut {least}{best.calls_cut:,}, halting {least}"
            f"{best.stuck:,} stuck and {best.others:,} other turns."
        )
        if decided is not None and decided.policy is None:
            other += f" It is not recommended: {decided.answer}, as {decided.reason}."
        elif decided is not None:
            other += f" It is recommended: {decided.reason}."
    return saved, cost, other


def _word(verdict: Verdict) -> str:
    names = {
        "multiplier": f"backstop multiplier {verdict.running}×",
        "stuck_threshold": f"K = {verdict.running}",
        "soft_cap": f"S = {verdict.running}",
    }
    lean = ""
    if verdict.word == "insufficient evidence" and verdict.lean != verdict.word:
        lean = f", leaning {verdict.lean} (no verdict)"
    because = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
    return f"{names[verdict.question]}: {verdict.word}{lean}{because}."


def _wait(verdict: Verdict) -> str:
    """What is needed for a word on one question, and for how long that is at this rate."""
    needed, name = verdict.needed, verdict.question.replace("_", " ")
    if needed == Needed():
        return f"{name}: decided."
    parts, which = [], "long" if verdict.question == "multiplier" else "halted"
    if needed.turns is not None:
        parts.append(f"{'at least ' if needed.at_least else ''}{_n(needed.turns, 'further turn')}")
    if needed.labels:
        parts.append(f"{_n(needed.labels, 'further label')} of {which} turns")
    if needed.clusters:
        parts.append(f"{needed.clusters:,} more {verdict.scope['cluster'] or 'user'}s among them")
    if not parts:
        return f"{name}: {needed.never or 'not known'}."
    text = f"{name}: {', '.join(parts)}"
    if needed.weeks_shadow is not None:
        text += (
            f"; {needed.weeks_shadow:g} weeks in shadow, {needed.weeks_holdout_20:g} at holdout 0.20, "
            f"{needed.weeks_holdout_05:g} at holdout 0.05"
        )
    else:
        text += "; in how many weeks is not known: the turns span less than a day"
    return f"{text}{f' ({needed.never})' if needed.never else ''}."


def _nearest(case: Case, by: Counts) -> tuple[Near, ...]:
    """The turns with the largest `by`, ties by turn id."""
    turns, policy = case.turns, case.population.policy
    top = np.argsort(-by, kind="stable")[:NEAREST].tolist()
    halted = case.replay.under(policy).halts
    ids, calls, repeats = turns.frame["turn_id"].to_numpy(), turns.calls, turns.frame["max_repeat"].to_numpy()
    found = []
    for i in top:
        times = None if np.isnan(repeats[i]) else int(repeats[i])
        at_k, at_s = _thresholds(case, i, int(calls[i]), times)
        found.append(
            Near(
                turn_id=str(ids[i]),
                calls=int(calls[i]),
                repeats=times,
                halted=bool(halted[i]),
                at_k=at_k,
                at_s=at_s,
            )
        )
    return tuple(found)


def _thresholds(case: Case, place: int, calls: int, repeats: int | None) -> tuple[int | None, int | None]:
    """The largest K and the largest S that halt one turn, the other being as it runs.

    `repeat` never falls, so that both are read off; for other signals the values of the grid are tried.
    """
    policy, grid = case.population.policy, case.settings.grid
    soft_cap, stuck_at = policy.soft_cap or 0, policy.stuck_at or 1
    if policy.signal == "repeat" and repeats is not None:
        return (repeats if calls > soft_cap else None), (calls - 1 if repeats >= stuck_at else None)

    def halts(k: int, s: int) -> bool:
        backstop = max(policy.backstop or 1, s, 1)
        other = CapPolicy.adaptive(signal=policy.signal, stuck_at=k, soft_cap=s, backstop=backstop)
        return bool(case.replay.under(other).halts[place])

    levels = [k for k in grid.stuck_at if halts(k, soft_cap)]
    caps = [s for s in grid.soft_cap if halts(stuck_at, s)]
    return (max(levels) if levels else None), (max(caps) if caps else None)


def _compared(turns: Turns) -> tuple[Compared, ...]:
    """Quantiles beside those of the bundled turns; nothing where these are the bundled turns."""
    if not len(turns) or set(turns.frame["agent"].unique()) <= AGENTS:
        return ()
    here = {"calls": turns.calls, "repeats": turns.frame["max_repeat"].dropna().to_numpy(dtype=np.int64)}
    return tuple(
        Compared(
            what=what,
            quantile=name,
            here=_quantile(here[what], share),
            bundled=_quantile(values, share) or 0,
        )
        for what, values in _bundled().items()
        for name, share in QUANTILES
    )


@cache
def _bundled() -> Mapping[str, Counts]:
    """Calls and largest repeat of every bundled turn."""
    with TURNS.open("rb") as packed, gzip.open(packed) as lines:
        keys = [np.asarray(orjson.loads(line)["key"]) for line in lines]
    return {
        "calls": np.array([len(one) for one in keys]),
        "repeats": np.array([np.bincount(one).max() for one in keys]),
    }


def _quantile(values: Counts, share: float) -> int | None:
    """The smallest value that at least `share` of them do not exceed."""
    if not len(values):
        return None
    return int(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)])


def _excluded(case: Case) -> tuple[str, ...]:
    """What the data exclude already, by one-sided 95 % bounds over users.

    Of a turn that an enforced halt cut short it is not known how long it would have become.
    """
    turns, policy = case.turns, case.population.policy
    outcome = case.replay.under(policy)
    maybe = outcome.halts | outcome.may_halt | outcome.unknown
    free = ~turns.flags("length_limited")

    def at_most(flags: Flags, among: Flags) -> float:
        return share_of(
            "", least=flags, most=flags, n_least=among, n_most=among, read=None, cluster=turns.cluster,
            tail=stats.ONE_LOOK, basis="",
        ).high  # fmt: skip

    claims = [
        (at_most(maybe, turns.telling(policy.signal)), "of your turns are halted by the rule"),
        (
            at_most((turns.calls > (policy.backstop or 0)) | turns.flags("cut_short"), free),
            f"of turns without a step limit make more than {policy.backstop or 0:,} calls",
        ),
        (
            at_most(turns.calls > (policy.soft_cap or 0), free),
            f"of turns without a step limit make more than {policy.soft_cap or 0:,} calls",
        ),
    ]
    said = [f"That more than {high:.2%} {what} is excluded." for high, what in claims if high < 0.5]
    users = _n(len(np.unique(turns.cluster)), turns.cluster_kind)
    return tuple(said) or (f"{_n(len(turns), 'turn')} of {users} cannot exclude anything yet.",)


def _to_label(case: Case) -> tuple[ToLabel, ...]:
    """Unread turns, those first whose label moves a rate most against its tolerance.

    A label of one of n turns moves their rate by 1/n. Halts of the running rule count in full, those of a
    stricter K or S by half for each step of the grid, as they decide only whether to move there.
    """
    turns, policy, settings = case.turns, case.population.policy, case.settings
    unread = turns.truth == UNREAD
    moves, why = np.zeros(len(turns)), np.full(len(turns), "", dtype=object)

    def count(flags: Flags, weight: float, text: str) -> None:
        value = weight / flags.sum() if flags.any() else 0.0
        better = flags & unread & (value > moves)
        moves[better], why[better] = value, text

    wrong = settings.tolerance.wrong_halts
    count(case.replay.under(policy).halts, 1 / wrong, "the rule halts it: decides K and S")
    for k, steps in _steps(settings.grid.stuck_at, policy.stuck_at or 1):
        other = _with(policy, k, policy.soft_cap or 0)
        count(case.replay.under(other).halts, 0.5**steps / wrong, f"K = {k} would halt it")
    for s, steps in _steps(settings.grid.soft_cap, policy.soft_cap or 0):
        other = _with(policy, policy.stuck_at or 1, s)
        count(case.replay.under(other).halts, 0.5**steps / wrong, f"S = {s} would halt it")
    free = ~turns.flags("length_limited")
    base = policy.soft_cap or max(1, (policy.backstop or 10) // 10)
    for m in settings.grid.multiplier:
        longer = free & (turns.calls > m * base)
        if longer.any() and free.any():
            value = 1 / settings.tolerance.backstop / free.sum()
            better = longer & unread & (value > moves)
            moves[better], why[better] = value, f"longer than {m}× the soft cap: decides the multiplier"
    top = [i for i in np.argsort(-moves, kind="stable")[:TO_LABEL].tolist() if moves[i] > 0]
    ids = turns.frame["turn_id"].to_numpy()
    return tuple(ToLabel(turn_id=str(ids[i]), why=str(why[i]), moves=round(float(moves[i]), 3)) for i in top)


def _steps(grid: tuple[int, ...], running: int) -> list[tuple[int, int]]:
    """The values of the grid that are stricter than the running one, each with its distance in steps."""
    below = [value for value in grid if value < running]
    return [(value, steps) for steps, value in enumerate(reversed(below), start=1)]


def _with(policy: CapPolicy, stuck_at: int, soft_cap: int) -> CapPolicy:
    backstop = max(policy.backstop or 1, soft_cap, 1)
    return CapPolicy.adaptive(signal=policy.signal, stuck_at=stuck_at, soft_cap=soft_cap, backstop=backstop)


def _n(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"
