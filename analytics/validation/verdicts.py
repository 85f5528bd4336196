"""The words: what the bounds say of the multiplier, of K and of S, and what is needed to say more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analytics import stats
from analytics.validation.gates import Gate, Question, State
from analytics.validation.needed import Needed, least_halts, needed_halts, needed_length
from analytics.validation.population import STUCK, Outcome, Population, Replay, Turns
from analytics.validation.rates import (
    MEANING,
    HaltRates,
    Planned,
    Share,
    halt_rates,
    length_share,
    task_rates,
)
from analytics.validation.settings import Settings
from guard.policy import CapPolicy

OF = {"FDR": "the halts", "FHR": "the turns that are not stuck"}  # whose rate it is; else all turns


class Word(StrEnum):
    """What can be said of a threshold."""

    TOO_LOW = "too low"
    TOO_HIGH = "too high"
    VALIDATED = "validated"
    INSUFFICIENT = "insufficient evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """At what one-sided level this look judges; `week` and `number` are None for a single look."""

    level: float
    week: str | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One question's answer. `estimate`, `low`, `high`, `n`, `clusters` are those of the first share.

    `lean` is what single-look bounds alone say, without gates, number of users and of halts: no verdict.
    `suggested` is the nearest value of the grid that is enough: for `too high` by its own bounds, for `too
    low` by its estimates, where nothing of it is hidden. `alike` lists multipliers that share one estimate.
    `by_task` is the second reading, by the task's own outcome. `reasons` are sentences.
    """

    question: Question
    running: int
    word: Word
    lean: Word
    shares: tuple[Share, ...]
    tolerances: tuple[float, ...]
    look: Look
    needed: Needed
    reasons: tuple[str, ...]
    scope: Mapping[str, object]
    suggested: int | None = None
    alike: tuple[int, ...] = ()
    by_task: tuple[Share, ...] = ()

    @property
    def first(self) -> Share:
        """The share that is named first."""
        return self.shares[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A stricter value whose own bounds hold, and the lower end of what it saves more, in calls."""

    value: int
    saved_low: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything the three questions are judged on; `scope_key` names the row of a weekly look."""

    population: Population
    replay: Replay
    settings: Settings
    look: Look
    gates: Sequence[Gate]
    planned: Mapping[str, Planned]
    lost: int
    scope: Mapping[str, object]
    scope_key: str

    @property
    def turns(self) -> Turns:
        """The turns in scope."""
        return self.population.turns

    def told(self, policy: CapPolicy) -> tuple[Turns, Outcome]:
        """The turns whose data have what a policy's signal needs, and what the policy would do to them."""
        outcome, telling = self.replay.under(policy), self.turns.telling(policy.signal)
        if telling.all():
            return self.turns, outcome
        return self.turns.where(telling), outcome.where(telling)

    def rates(self, policy: CapPolicy, *, tail: float) -> HaltRates:
        """The rates of a policy's stuck halts; for the running one by the holdout where there is one."""
        turns, outcome = self.told(policy)
        holdout = policy == self.population.policy
        return halt_rates(turns, outcome, tail=tail, planned=self.planned, holdout=holdout)

    @property
    def stuck_calls(self) -> int:
        """Calls made in stuck turns: what a saving is a share of."""
        return int(self.turns.calls[self.turns.truth == STUCK].sum())


def judge(case: Case) -> tuple[Verdict, ...]:
    """The verdicts on the multiplier, on K and on S."""
    return (
        _multiplier(case),
        _stuck_rule(case, Question.STUCK_THRESHOLD),
        _stuck_rule(case, Question.SOFT_CAP),
    )


def _multiplier(case: Case) -> Verdict:
    policy, settings = case.population.policy, case.settings
    soft_cap, backstop = policy.soft_cap or 0, policy.backstop or 0
    base = soft_cap or max(1, backstop // 10)
    running = round(backstop / base)
    # A backstop that is no multiple of the soft cap goes by the nearest one and is judged as it is.
    limits = {**{m: m * base for m in settings.grid.multiplier}, running: backstop}
    turns = case.turns.where(~case.turns.flags("length_limited"))
    shares, once = (
        {m: length_share(turns, limits[m], tail=tail, missing=case.lost) for m in sorted(limits)}
        for tail in (case.look.level, stats.ONE_LOOK)
    )
    tolerance = settings.tolerance.backstop

    def candidates(of: Mapping[int, Share]) -> list[Candidate]:
        return _stricter(
            case,
            [m for m in sorted(of, reverse=True) if m < running],
            lambda m: of[m].high <= tolerance,
            lambda m: _policy(policy, backstop=limits[m]),
        )

    share, tried = shares[running], candidates(shares)
    word, suggested = _word(case, low=[(share.low, tolerance)], high=[(share.high, tolerance)], tried=tried)
    lean, _ = _word(
        case,
        low=[(once[running].low, tolerance)],
        high=[(once[running].high, tolerance)],
        tried=candidates(once),
    )
    alike = tuple(m for m, one in shares.items() if (one.least, one.most) == (share.least, share.most))
    reasons = _blocked(case, Question.MULTIPLIER, (share,))
    if reasons:
        word = Word.INSUFFICIENT
    if word is Word.INSUFFICIENT:
        reasons.append(_length_reason(turns, share, tolerance, policy))
    if len(alike) > 1:
        reasons.append(
            f"{', '.join(f'{m}×' for m in alike)} share one estimate: these data cannot tell "
            f"{alike[0]}× from {alike[-1]}×"
        )
    return Verdict(
        question=Question.MULTIPLIER,
        running=running,
        word=word,
        lean=lean,
        shares=(share,),
        tolerances=(tolerance,),
        look=case.look,
        needed=needed_length(
            turns, share, tolerance, level=case.look.level, least_clusters=settings.evidence.least_clusters
        )
        if word is Word.INSUFFICIENT
        else Needed(),
        reasons=tuple(reasons),
        scope=case.scope,
        suggested=suggested if word is Word.TOO_HIGH else None,
        alike=alike if len(alike) > 1 else (),
    )


def _stuck_rule(case: Case, question: Question) -> Verdict:
    policy, settings = case.population.policy, case.settings
    tolerance = (settings.tolerance.wrong_halts, settings.tolerance.false_halts)
    of_k = question is Question.STUCK_THRESHOLD
    running = (policy.stuck_at if of_k else policy.soft_cap) or 0
    grid = settings.grid.stuck_at if of_k else settings.grid.soft_cap

    def other(value: int) -> CapPolicy:
        return _policy(policy, stuck_at=value) if of_k else _policy(policy, soft_cap=value)

    turns, outcome = case.told(policy)
    rates = {level: case.rates(policy, tail=level) for level in {case.look.level, stats.ONE_LOOK}}

    def word_at(level: float, clusters: int) -> tuple[Word, int | None]:
        own = rates[level]

        def within(value: int) -> bool:
            found = case.rates(other(value), tail=level)
            few = min(found.fdr.clusters, found.fhr.clusters) < clusters
            return not few and found.fdr.high <= tolerance[0] and found.fhr.high <= tolerance[1]

        limits = list(zip((own.fdr, own.fhr), tolerance, strict=True))
        return _word(
            case,
            low=[(share.low, limit) for share, limit in limits],
            high=[(share.high, limit) for share, limit in limits],
            tried=_stricter(case, [v for v in reversed(grid) if v < running], within, other),
            caught=own.caught.low > 0,
        )

    own = rates[case.look.level]
    word, suggested = word_at(case.look.level, settings.evidence.least_clusters)
    lean, _ = word_at(stats.ONE_LOOK, 0)
    least = least_halts(settings, case.look.level)
    used = _used(word, own, tolerance)
    reasons = _blocked(case, question, used)
    if word is Word.VALIDATED and own.observed < least:
        reasons.append(f"{own.observed:,} halts were explored or read; {least:,} are needed")
    if reasons:
        word = Word.INSUFFICIENT
    if word is Word.INSUFFICIENT:
        reasons.append(_halts_reason(own, tolerance, least))
        if len(turns) < len(case.turns):
            left = len(case.turns) - len(turns)
            reasons.append(f"{left:,} turns do not tell what {policy.signal} needs and are left out here")
    elif word is Word.TOO_LOW:
        suggested = _laxer(case, [v for v in grid if v > running], other, tolerance)
    return Verdict(
        question=question,
        running=running,
        word=word,
        lean=lean,
        shares=(own.fdr, own.fhr),
        tolerances=tolerance,
        look=case.look,
        needed=needed_halts(
            turns,
            own,
            tolerance,
            level=case.look.level,
            least=least,
            least_clusters=settings.evidence.least_clusters,
        )
        if word is Word.INSUFFICIENT
        else Needed(),
        reasons=tuple(reasons),
        scope=case.scope,
        suggested=suggested if word in (Word.TOO_HIGH, Word.TOO_LOW) else None,
        by_task=task_rates(turns, outcome, tail=case.look.level),
    )


def _word(
    case: Case, *, low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]],
    tried: Sequence[Candidate], caught: bool = True,
) -> tuple[Word, int | None]:  # fmt: skip
    """The word by the bounds alone: pairs of (bound, tolerance); and the stricter value that is enough."""
    if any(bound > limit for bound, limit in low):
        return Word.TOO_LOW, None
    least = case.settings.tolerance.saving * case.stuck_calls
    saving = [one.value for one in tried if case.stuck_calls and one.saved_low >= least]
    if saving:
        return Word.TOO_HIGH, saving[0]
    within = all(bound <= limit for bound, limit in high)
    return (Word.VALIDATED if within and caught else Word.INSUFFICIENT), None


def _stricter(
    case: Case, values: Sequence[int], within: Callable[[int], bool], policy: Callable[[int], CapPolicy]
) -> list[Candidate]:
    """Stricter values from the laxest on; the first whose own bounds fail ends the sequence."""
    found: list[Candidate] = []
    now = saved_calls(case.turns, case.replay.under(case.population.policy))
    for value in values:
        if not within(value):
            break
        more = saved_calls(case.turns, case.replay.under(policy(value))) - now
        difference = stats.paired_difference(
            np.bincount(case.turns.cluster, weights=more),
            clusters=len(np.unique(case.turns.cluster)),
            tail=stats.ONE_LOOK,
        )
        found.append(Candidate(value=value, saved_low=difference.low))
    return found


def saved_calls(turns: Turns, outcome: Outcome) -> np.ndarray:
    """Calls saved a turn: those of stuck turns from the halting call on."""
    return np.where((turns.truth == STUCK) & outcome.halts, turns.calls - outcome.ran, 0)


def _laxer(
    case: Case, values: Sequence[int], policy: Callable[[int], CapPolicy], tolerance: tuple[float, float]
) -> int | None:
    """The nearest laxer value whose estimates are within tolerance and that still catches a stuck turn.

    Where a halt that was enforced hides what it would have done, its estimates speak of a part of the turns.
    """
    for value in values:
        found = case.rates(policy(value), tail=stats.ONE_LOOK)
        if found.hidden:
            return None
        fdr, fhr = found.fdr.estimate, found.fhr.estimate
        if fdr is not None and fhr is not None and fdr <= tolerance[0] and fhr <= tolerance[1]:
            return value if found.stuck else None
    return None


def _policy(
    policy: CapPolicy,
    *,
    stuck_at: int | None = None,
    soft_cap: int | None = None,
    backstop: int | None = None,
) -> CapPolicy:
    """The policy with one threshold changed; the backstop never below the soft cap."""
    cap = policy.soft_cap if soft_cap is None else soft_cap
    limit = (policy.backstop if backstop is None else backstop) or 1
    return CapPolicy.adaptive(
        soft_cap=cap,
        stuck_at=policy.stuck_at if stuck_at is None else stuck_at,
        backstop=max(limit, cap or 1),
        signal=policy.signal,
    )


def _used(word: Word, rates: HaltRates, tolerance: tuple[float, float]) -> tuple[Share, ...]:
    """The running value's shares that carry a word: those over it for `too low`, none for `too high`."""
    shares = (rates.fdr, rates.fhr)
    if word is Word.TOO_HIGH:
        return ()
    if word is not Word.TOO_LOW:
        return shares
    return tuple(share for share, limit in zip(shares, tolerance, strict=True) if share.low > limit)


def _blocked(case: Case, question: Question, shares: Sequence[Share]) -> list[str]:
    reasons = [
        f"gate {gate.name!r} is red: {gate.text}"
        for gate in case.gates
        if gate.state is State.RED and question in gate.blocks
    ]
    least = case.settings.evidence.least_clusters
    reasons += [
        f"{OF.get(share.name, 'the turns')} are of only {share.clusters:,} {case.turns.cluster_kind}s "
        f"(fewer than {least} stop every word)"
        for share in shares
        if 0 < share.clusters < least
    ]
    return reasons


def _length_reason(turns: Turns, share: Share, tolerance: float, policy: CapPolicy) -> str:
    longest = int(turns.calls.max()) if len(turns) else 0
    return (
        f"only {len(turns):,} turns without a step limit, the longest of {longest:,} calls: between "
        f"{share.low:.2%} and {share.high:.2%} may pass {policy.backstop:,} calls and not be stuck, "
        f"against {tolerance:.1%} accepted"
    )


def _halts_reason(rates: HaltRates, tolerance: tuple[float, float], least: int) -> str:
    if not rates.halts:
        return (
            f"no turn was halted as stuck, so nothing is known of wrong halts; {least:,} explored or read "
            f"ones are needed; {_within(rates.fhr, tolerance[1])}"
        )
    parts = [f"{rates.hidden:,} turns may be halted or not, as part of them is hidden"] * bool(rates.hidden)
    parts += [f"{rates.halts:,} halts, {rates.observed:,} of them explored or read ({least:,} needed)"]
    if rates.fdr.least != rates.fdr.most:
        parts.append(f"{rates.unread:,} halted turns are unread, so the rates are bounds")
    if not rates.stuck:
        parts.append("no stuck turn is known to be caught")
    shares = zip((rates.fdr, rates.fhr), tolerance, strict=True)
    parts += [_within(share, limit) for share, limit in shares]
    return "; ".join(parts)


def _within(share: Share, limit: float) -> str:
    return (
        f"between {share.low:.2%} and {share.high:.2%} {MEANING[share.name]} ({share.name}, "
        f"{limit:.1%} is accepted)"
    )
