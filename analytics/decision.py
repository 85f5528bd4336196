"""Which policy to run: what each would cost, the frontier, and one recommendation or why there is none."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from analytics import stats
from analytics.policy_words import halts_at
from analytics.replay import Replay
from analytics.side_by_side import HURT_BY
from analytics.totals import totals
from analytics.validation.gates import Question, State
from analytics.validation.needed import least_halts
from analytics.validation.outcomes import places_of
from analytics.validation.population import STUCK, Outcome, Turns
from analytics.validation.rates import MEANING, HaltRates
from analytics.validation.settings import Grid, Price
from analytics.validation.verdicts import Case
from guard.policy import SIGNALS, CapPolicy

KINDS = {"poll": "waits by polling", "rerun": "re-runs a command between changes"}  # that a signal hurts
TRIED = 25  # policies whose bounds are worked out, the cheapest first


class Answer(StrEnum):
    """What a recommendation says."""

    CHANGE = "change"
    KEEP = "keep"
    NOT_DISTINGUISHABLE = "not distinguishable"
    CANNOT_SAY = "the data cannot say"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costed:
    """One policy on the recorded turns, in turns and calls; `cost` at the price of the settings.

    `others` are halted turns that are not labelled stuck (wrong, or unread and counted as wrong);
    `waste` are calls that ran in stuck turns. `break_even` is the price of a wrong halt (in calls) at which
    this policy and the one that runs cost the same; None where the same one is cheaper at every price.
    `same_as` counts further policies of the grid with the same stuck, others, saved and cut.
    """

    policy: CapPolicy
    stuck: int
    not_stuck: int
    unlabelled: int
    calls_saved: int
    calls_cut: int
    waste: int
    badge: str
    cost: float
    other_costs: tuple[tuple[float, float], ...]
    break_even: float | None
    same_as: int = 0

    @property
    def others(self) -> int:
        """Halted turns that are not labelled stuck."""
        return self.not_stuck + self.unlabelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to do. `policy` is set for `change` alone; `leading` is the cheapest on these turns in any case.

    `saves` is the cost of the running policy minus that of `leading`, with ends by resampled users.
    """

    answer: Answer
    reason: str
    policy: CapPolicy | None
    running: Costed
    leading: Costed | None
    saves: stats.Difference | None
    rates: HaltRates | None
    frontier: tuple[Costed, ...]
    price: Price

    @property
    def settings(self) -> dict[str, str]:
        """What to set in the environment; the backstop too where the soft cap it hangs on changes."""
        old, new = self.running.policy, self.policy
        if new is None:
            return {}
        changed = {
            "TURNCAP_SIGNAL": (old.signal, new.signal),
            "TURNCAP_STUCK_AT": (old.stuck_at, new.stuck_at),
            "TURNCAP_SOFT_CAP": (old.soft_cap, new.soft_cap),
            "TURNCAP_BACKSTOP": ((old.soft_cap, old.backstop), (new.soft_cap, new.backstop)),
        }
        values = {"TURNCAP_BACKSTOP": new.backstop}
        return {
            name: str(values.get(name, after)) for name, (before, after) in changed.items() if before != after
        }


def grid_policies(running: CapPolicy, grid: Grid) -> list[CapPolicy]:
    """Every (signal, K, S, H) of the grid, and the policy that runs; H are multiples of the running S."""
    base = running.soft_cap or max(1, (running.backstop or 1000) // 10)
    limits = sorted({running.backstop or 1000, *(m * base for m in grid.multiplier)})
    soft_caps = sorted({running.soft_cap or 0, *grid.soft_cap})
    levels = sorted({running.stuck_at or 1, *grid.stuck_at})
    return [
        CapPolicy.adaptive(signal=signal, stuck_at=k, soft_cap=soft_cap, backstop=limit)
        for signal in SIGNALS
        for k in levels
        for soft_cap in soft_caps
        for limit in limits
        if limit >= max(soft_cap, 1)
    ]


def over_grid(recorded: Replay, case: Case) -> tuple[tuple[Costed, ...], Recommendation]:
    """Every policy of the grid with what it would cost on the turns in scope, and the recommendation."""
    policies = grid_policies(case.population.policy, case.settings.grid)
    among = np.zeros(len(recorded.turns), dtype=bool)
    places = places_of(recorded, case.turns)
    among[places[places >= 0]] = True
    counts = totals(recorded, policies, among=among)
    return tuple(costed_policies(case, policies, counts)), decide(case, policies, counts)


def decide(case: Case, policies: Sequence[CapPolicy], counts: pd.DataFrame) -> Recommendation:
    """One recommendation over `policies`, whose totals over the turns in scope are the rows of `counts`.

    The cheapest policy whose own bounds hold is compared with the running one on the same turns. No
    signal is recommended while a kind of turn that it is known to hurt is not labelled in the data.
    """
    running = case.population.policy
    costed = costed_policies(case, policies, counts)
    now = next(one for one in costed if one.policy == running)
    ranked = sorted(costed, key=lambda one: (one.cost, _distance(one.policy, running)))
    leading = ranked[0] if ranked else None

    def answer(
        what: Answer, reason: str, chosen: Costed | None = None, rates: HaltRates | None = None
    ) -> Recommendation:
        best = chosen or leading
        return Recommendation(
            answer=what,
            reason=reason,
            policy=chosen.policy if chosen and what is Answer.CHANGE else None,
            running=now,
            leading=best,
            saves=_saves(case, best.policy) if best else None,
            rates=rates,
            frontier=_frontier(ranked),
            price=case.settings.price,
        )

    red = [gate for gate in case.gates if gate.state is State.RED and Question.STUCK_THRESHOLD in gate.blocks]
    if red:
        return answer(Answer.CANNOT_SAY, f"gate {red[0].name!r} is red: {red[0].text}")
    truth = case.turns.truth
    if not (truth == STUCK).any():
        return answer(Answer.CANNOT_SAY, "no turn is labelled stuck, so nothing is known to be saved")
    kinds = set(case.turns.frame["kind"])
    why = ""
    for one in _promising(ranked, now):
        rates = case.rates(one.policy, tail=case.look.level)
        missing = _missing(case, one.policy, rates, kinds)
        if missing:
            why = why or f"halting at {halts_at(one.policy)}, looks best, but {'; '.join(missing)}"
            continue
        saves = _saves(case, one.policy)
        if saves.low <= 0:
            return answer(
                Answer.NOT_DISTINGUISHABLE,
                f"halting at {halts_at(one.policy)}, would have cost {saves.total:,.0f} calls less on these "
                f"turns, {saves.low:,.0f} to {saves.high:,.0f} by chance: keep what runs",
                one,
                rates,
            )
        return answer(Answer.CHANGE, _evidence(one, now, rates, saves), one, rates)
    if leading is not None and leading.policy == running:
        return answer(Answer.KEEP, "no policy of the grid would have cost less on these turns")
    return answer(Answer.CANNOT_SAY, why or "no policy of the grid would have cost less on these turns")


def costed_policies(case: Case, policies: Sequence[CapPolicy], counts: pd.DataFrame) -> list[Costed]:
    """What each of `policies`, the running one among them, would cost; `counts` are their totals in order."""
    price, stuck_calls = case.settings.price, case.stuck_calls
    rows = counts.to_dict("records")
    current = rows[list(policies).index(case.population.policy)]

    def cost(row: Mapping[Hashable, Any], wrong: float) -> float:
        return wrong * _others(row) + price.call * (stuck_calls - int(row["calls_saved"]))

    found = []
    for policy, row in zip(policies, rows, strict=True):
        fewer = _others(current) - _others(row)
        extra = price.call * (int(current["calls_saved"]) - int(row["calls_saved"]))
        lax = (extra, fewer) if fewer > 0 else (-extra, -fewer)
        found.append(
            Costed(
                policy=policy,
                stuck=int(row["stuck"]),
                not_stuck=int(row["not_stuck"]),
                unlabelled=int(row["unlabelled"]),
                calls_saved=int(row["calls_saved"]),
                calls_cut=int(row["calls_cut"]),
                waste=stuck_calls - int(row["calls_saved"]),
                badge=str(row["badge"]),
                cost=cost(row, price.wrong_halt),
                other_costs=tuple((wrong, cost(row, wrong)) for wrong in price.also_shown),
                break_even=stats.break_even(*lax) if lax[0] > 0 else None,
            )
        )
    return found


def _others(row: Mapping[Hashable, Any]) -> int:
    return int(row["not_stuck"]) + int(row["unlabelled"])


def _promising(ranked: Sequence[Costed], now: Costed) -> Iterator[Costed]:
    """Policies cheaper than the running one, one for each set of counts, at most `TRIED`."""
    seen: set[tuple[int, ...]] = set()
    for one in ranked:
        if one.cost >= now.cost or len(seen) == TRIED:
            return
        if _counts(one) not in seen:
            seen.add(_counts(one))
            yield one


def _missing(case: Case, policy: CapPolicy, rates: HaltRates, kinds: set[str]) -> list[str]:
    """What keeps a policy from being validated on these turns, in words."""
    tolerance, least = case.settings.tolerance, least_halts(case.settings, case.look.level)
    missing = [
        f"no labelled turn {KINDS[kind]}, which this signal is known to halt"
        for kind in HURT_BY[policy.signal or "repeat"]
        if kind not in kinds
    ]
    if rates.observed < least:
        missing.append(
            f"only {rates.observed:,} of the turns it would have halted are known ({least:,} are needed)"
        )
    few = min(rates.fdr.clusters, rates.fhr.clusters)
    if few < case.settings.evidence.least_clusters:
        missing.append(
            f"its halts come from only {few:,} {case.turns.cluster_kind}s "
            f"({case.settings.evidence.least_clusters} are needed)"
        )
    for share, limit in ((rates.fdr, tolerance.wrong_halts), (rates.fhr, tolerance.false_halts)):
        if share.high > limit:
            missing.append(f"it may be that {share.high:.2%} {MEANING[share.name]} ({limit:.1%} is accepted)")
    return missing


def _evidence(one: Costed, now: Costed, rates: HaltRates, saves: stats.Difference) -> str:
    return (
        f"on the same turns it would have halted {one.stuck:,} stuck and {one.others:,} other turns "
        f"(what runs: {now.stuck:,} and {now.others:,}) and saved {one.calls_saved:,} calls "
        f"(what runs: {now.calls_saved:,}); at most {rates.fdr.high:.2%} {MEANING['FDR']}, at most "
        f"{rates.fhr.high:.2%} {MEANING['FHR']}; {saves.total:,.0f} calls cheaper, at least {saves.low:,.0f}"
    )


def _saves(case: Case, policy: CapPolicy) -> stats.Difference:
    """Cost of the running policy minus that of `policy`, user by user on the same turns."""
    turns, price = case.turns, case.settings.price

    def cost(outcome: Outcome) -> np.ndarray:
        return _cost_by_turn(turns, outcome, price)

    gap = cost(case.replay.under(case.population.policy)) - cost(case.replay.under(policy))
    return stats.paired_difference(
        np.bincount(turns.cluster, weights=gap),
        clusters=len(np.unique(turns.cluster)),
        tail=stats.ONE_LOOK,
    )


def _cost_by_turn(turns: Turns, outcome: Outcome, price: Price) -> np.ndarray:
    """Cost of each turn in calls: a wrong halt, or what ran of a stuck turn; unread halts count as wrong."""
    stuck = turns.truth == STUCK
    ran = np.where(outcome.halts, outcome.ran, turns.calls)
    return np.where(stuck, price.call * ran, price.wrong_halt * outcome.halts)


def _frontier(ranked: Sequence[Costed]) -> tuple[Costed, ...]:
    """Policies that no other beats in both others halted and calls saved; fewest others first."""
    best, kept = -1, []
    for one in sorted(ranked, key=lambda each: (each.others, -each.calls_saved)):
        if one.calls_saved > best:
            best = one.calls_saved
            alike = sum(_counts(each) == _counts(one) for each in ranked) - 1
            kept.append(replace(one, same_as=alike))
    return tuple(kept)


def _counts(one: Costed) -> tuple[int, int, int, int]:
    return one.stuck, one.others, one.calls_saved, one.calls_cut


def _distance(policy: CapPolicy, running: CapPolicy) -> tuple[object, ...]:
    """How far a policy is from the running one: settings changed, then steps; ties go to the laxer one."""
    changed = (
        (policy.signal != running.signal)
        + (policy.stuck_at != running.stuck_at)
        + (policy.soft_cap != running.soft_cap)
        + (policy.backstop != running.backstop)
    )
    return (
        changed,
        policy.signal != running.signal,
        abs((policy.soft_cap or 0) - (running.soft_cap or 0)),
        -(policy.stuck_at or 0),
        -(policy.backstop or 0),
        policy.text,
    )
