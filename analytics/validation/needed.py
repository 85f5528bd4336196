"""What would let a word be said: further turns, further read halts, further users, and the weeks it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analytics import stats
from analytics.validation.population import Turns
from analytics.validation.rates import HaltRates, Share
from analytics.validation.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would let a word be said: further turns, further read halts, further users; None is unknown.

    `at_least`: no halt was seen, so that it is reckoned with the highest rate of halts not excluded.
    `weeks` at the rate seen with every halt let run (shadow), and at two holdout rates.
    """

    turns: int | None = None
    labels: int | None = None
    clusters: int | None = None
    weeks_shadow: float | None = None
    weeks_holdout_20: float | None = None
    weeks_holdout_05: float | None = None
    at_least: bool = False
    never: str | None = None


def least_halts(settings: Settings, level: float) -> int:
    """Explored or read halts without which nothing can be validated: that many right ones would just do."""
    bare = stats.turns_for_zero_events(settings.tolerance.wrong_halts, tail=level)
    return max(settings.evidence.least_halts, bare)


def needed_length(
    turns: Turns, share: Share, tolerance: float, *, level: float, least_clusters: int
) -> Needed:
    """For the multiplier: turns until a bound is on one side of the tolerance, at the rate seen."""
    if not share.n or share.estimate is None:
        per_turn, independent = 1.0, stats.turns_for_zero_events(tolerance, tail=level)
    else:
        per_turn = share.n / share.n_eff if share.n_eff else 1.0
        found = (
            stats.turns_for_upper_bound(round(share.most), round(share.n), tolerance, tail=level)
            if share.most < share.n * tolerance or share.most == 0
            else stats.turns_for_lower_bound(share.estimate, tolerance, tail=level)
        )
        if found is None:
            return Needed(
                never="at the rate seen, with its unread turns, neither word can be reached: label them"
            )
        independent = found
    more = max(0, math.ceil(independent * per_turn - share.n))
    clusters = max(0, least_clusters - share.clusters)
    weeks = _weeks(turns, more)
    return Needed(
        turns=more,
        labels=round(share.most - share.least) or None,
        clusters=clusters or None,
        weeks_shadow=weeks,
        weeks_holdout_20=weeks,
        weeks_holdout_05=weeks,
    )


def needed_halts(
    turns: Turns, rates: HaltRates, tolerance: tuple[float, float], *, level: float, least: int,
    least_clusters: int,
) -> Needed:  # fmt: skip
    """For K and S: halts to be read for a word, and the turns in which so many come."""
    if not len(turns):
        return Needed(
            never="turns that tell what the signal needs: arguments, and results where it counts them"
        )
    fdr, read = rates.fdr, rates.stuck + rates.not_stuck
    spread = max(1.0, fdr.n / fdr.n_eff) if fdr.n_eff else 1.0
    if fdr.estimate is not None and fdr.estimate > tolerance[0]:
        wanted = math.ceil(
            (stats.turns_for_lower_bound(fdr.estimate, tolerance[0], tail=level) or 0) * spread
        )
    else:
        found = stats.turns_for_upper_bound(rates.not_stuck, max(read, 1), tolerance[0], tail=level)
        wanted = max(least, math.ceil((found or 0) * spread))
    if fdr.clusters:  # as many more halts as bring enough users with them
        wanted = max(wanted, -(-least_clusters * int(fdr.n) // fdr.clusters))
    labels = max(0, wanted - read)
    waiting = max(0, labels - rates.unread)
    if rates.halts:
        more = -(-waiting * len(turns) // rates.halts)
    else:
        more = math.ceil(waiting / _most_frequent(len(turns)))
    more = max(more, _more_for(rates.fhr, tolerance[1], level))
    weeks = _weeks(turns, more)
    return Needed(
        turns=more,
        labels=labels,
        clusters=max(0, least_clusters - fdr.clusters) or None,
        weeks_shadow=weeks,
        weeks_holdout_20=None if weeks is None else round(weeks / 0.20, 1),
        weeks_holdout_05=None if weeks is None else round(weeks / 0.05, 1),
        at_least=not rates.halts,
    )


def _more_for(fhr: Share, tolerance: float, level: float) -> int:
    """Further turns until FHR is on one side, the unread halts being like the read; 0 where it is."""
    if fhr.estimate is None or not fhr.n_eff or fhr.low > tolerance or fhr.high <= tolerance:
        return 0
    if fhr.estimate > tolerance:
        found = stats.turns_for_lower_bound(fhr.estimate, tolerance, tail=level)
    else:
        found = stats.turns_for_upper_bound(round(fhr.estimate * fhr.n), round(fhr.n), tolerance, tail=level)
    return max(0, math.ceil((found or 0) * fhr.n / fhr.n_eff - fhr.n))


def _most_frequent(turns: int) -> float:
    """The largest share of halts that so many turns without one do not exclude."""
    return stats.clopper_pearson(0, turns, tail=stats.ONE_LOOK).high


def _weeks(turns: Turns, more: int) -> float | None:
    """Weeks in which so many turns come at the rate seen; None where the turns carry no dates."""
    span = turns.weeks
    return None if span is None or not len(turns) else round(more / (len(turns) / span), 1)
