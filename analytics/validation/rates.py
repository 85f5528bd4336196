"""The rates that verdicts rest on: wrong halts of halts, wrong halts of turns, long turns of turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analytics import stats
from analytics.validation.population import NOT_STUCK, STUCK, UNREAD, Counts, Flags, Outcome, Turns

# A rate of halts in words, after a percentage.
MEANING = {
    "FDR": "of the halts hit turns that are not stuck",
    "FHR": "of the turns that are not stuck are halted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share whose events may be known only between bounds.

    `estimate` is None where nothing is known of it. `low` and `high` are one-sided bounds at `tail` each:
    the lower one of the fewest events, the upper one of the most. `n_eff` is the effective size behind the
    upper bound. `basis` says in words which turns it was taken from.
    """

    name: str
    least: float
    most: float
    n: float
    clusters: int
    estimate: float | None
    low: float
    high: float
    n_eff: float
    tail: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What readers said of one turn that was drawn by plan: is the halt wrong?

    `judge` and `human` are 1 (not stuck), 0 (stuck) or None; `probability` that of being drawn.
    """

    judge: float | None
    human: float | None
    probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltRates:
    """One policy's stuck halts: raw counts of turns, then both rates, always together.

    `explored` halts ran on although they were to be halted; `observed` are those explored or read. `hidden`
    turns may be halted or not: what would tell is lost, or lies behind an enforced halt.
    """

    halts: int
    stuck: int
    not_stuck: int
    unread: int
    hidden: int
    explored: int
    observed: int
    fdr: Share
    fhr: Share
    caught: Share


def share_of(
    name: str, *, least: Flags, most: Flags, n_least: Flags, n_most: Flags, read: Flags | None,
    cluster: Counts, tail: float, basis: str,
) -> Share:  # fmt: skip
    """A clustered share between the fewest events (`least` of `n_least`) and the most (`most` of `n_most`).

    The estimate takes unread events to be like those that were `read`; None reads all.
    """
    lower = _rate(least, n_least, cluster, tail)
    upper = lower if least is most and n_least is n_most else _rate(most, n_most, cluster, tail)
    known = n_least if read is None else n_least & read
    estimate = float((least & known).sum() / known.sum()) if known.any() else None
    return Share(
        name=name,
        least=lower.events,
        most=upper.events,
        n=upper.n,
        clusters=upper.clusters,
        estimate=estimate,
        low=lower.low,
        high=upper.high,
        n_eff=upper.n_eff,
        tail=tail,
        basis=basis,
    )


def halt_rates(
    turns: Turns, outcome: Outcome, *, tail: float, planned: Mapping[str, Planned] | None = None,
    holdout: bool = False,
) -> HaltRates:  # fmt: skip
    """FDR and FHR of the stuck halts of one policy, a resumed chain counting once.

    `holdout`: the policy is the one that ran, so that its explored halts are a random sample of all of
    them, and speak for those enforced ones that nobody read; elsewhere these stay bounds. `planned` labels
    (by turn id) of halts are weighted by the probability with which they were drawn.
    """
    unit = _Units.of(turns, outcome)
    halted, maybe, truth, cluster = unit.halts, unit.may_halt, unit.truth, unit.cluster
    wrong, right = halted & (truth == NOT_STUCK), halted & (truth == STUCK)
    explored = halted & unit.explored
    if holdout and explored.any() and (halted & unit.cut_short & (truth == UNREAD)).any():
        fdr = _fdr(explored, maybe & False, truth, cluster, tail, "halts that the holdout let run on")
        fhr = _through(fdr, halted, truth, ~halted)
    elif planned and (drawn := _drawn(turns, outcome, planned, tail)) is not None:
        fdr = drawn
        fhr = _through(fdr, halted, truth, ~halted)
    else:
        fdr = _fdr(halted, maybe, truth, cluster, tail, "all halts")
        clean = ~halted & (truth != STUCK)
        fhr = share_of(
            "FHR", least=wrong, most=(halted | maybe) & (truth != STUCK), n_least=clean | wrong,
            n_most=clean | (halted | maybe) & (truth != STUCK), read=None,
            cluster=cluster, tail=tail, basis="all turns that are not stuck",
        )  # fmt: skip
        if (halted & (truth == UNREAD)).any():  # the unread are taken to be like the read, as in FDR
            fhr = replace(fhr, estimate=_carried(fdr.estimate, halted, clean))
    stuck = truth == STUCK
    return HaltRates(
        halts=int(halted.sum()),
        stuck=int(right.sum()),
        not_stuck=int(wrong.sum()),
        unread=int((halted & (truth == UNREAD)).sum()),
        hidden=int(maybe.sum()),
        explored=int(explored.sum()),
        observed=int((explored | wrong | right).sum()),
        fdr=fdr,
        fhr=fhr,
        caught=share_of(
            "stuck turns caught", least=right, most=right | maybe & stuck, n_least=stuck, n_most=stuck,
            read=None, cluster=cluster, tail=tail, basis="turns labelled stuck",
        ),
    )  # fmt: skip


def task_rates(turns: Turns, outcome: Outcome, *, tail: float) -> tuple[Share, Share]:
    """The second reading of stuck halts, by the task's own outcome, never mixed with the labels of stuck.

    The share of halts that hit a turn whose task succeeded (an unknown outcome is a bound), and the share of
    the turns whose task is known to have succeeded that are halted. A task may succeed in spite of a stuck
    stretch, and fail without one.
    """
    halted, success = outcome.halts & ~outcome.backstop, turns.success
    succeeded, cluster = success == 1, turns.cluster
    return (
        share_of(
            "halts of turns whose task succeeded", least=halted & succeeded, most=halted & (success != 0),
            n_least=halted, n_most=halted, read=success != -1, cluster=cluster, tail=tail, basis="all halts",
        ),
        share_of(
            "halted of turns whose task succeeded", least=halted & succeeded, most=halted & succeeded,
            n_least=succeeded, n_most=succeeded, read=None, cluster=cluster, tail=tail,
            basis="turns whose task is known to have succeeded",
        ),
    )  # fmt: skip


def length_share(turns: Turns, limit: int, *, tail: float, missing: int = 0) -> Share:
    """P(N > limit, not stuck) over all turns: N is what a turn would ask for without a guard.

    A turn that is longer and unread is a bound, and so is an unread or not-stuck turn that an enforced halt
    cut short at or before the limit. `missing` turns, known to be lost, count as events in the upper bound
    (each in a cluster of its own).
    """
    truth, longer = turns.truth, turns.calls > limit
    hidden = turns.flags("cut_short") & ~longer & (truth != STUCK)
    everyone = np.ones(len(turns), dtype=bool)
    share = share_of(
        "P(N > H, not stuck)", least=longer & (truth == NOT_STUCK), most=longer & (truth != STUCK) | hidden,
        n_least=everyone, n_most=everyone, read=None, cluster=turns.cluster, tail=tail, basis="all turns",
    )  # fmt: skip
    if not missing:
        return share
    sizes = np.bincount(turns.cluster)
    events = np.bincount(turns.cluster, weights=longer & (truth != STUCK) | hidden)
    sizes, events = sizes[sizes > 0], events[sizes > 0]
    worst = stats.clustered_rate(
        np.append(events, np.ones(missing)), np.append(sizes, np.ones(missing)), tail=tail
    )
    return replace(
        share, most=worst.events, n=worst.n, high=worst.high, n_eff=worst.n_eff,
        basis=f"all turns, and {missing:,} lost ones taken as events in the upper bound",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """Turns, or resumed chains of them, as the units of an outcome."""

    halts: Flags
    may_halt: Flags
    cut_short: Flags
    explored: Flags
    truth: Counts
    cluster: Counts

    @classmethod
    def of(cls, turns: Turns, outcome: Outcome) -> _Units:
        stuck_halts = outcome.halts & ~outcome.backstop
        units = cls(
            halts=stuck_halts,
            may_halt=outcome.may_halt | outcome.unknown,
            cut_short=turns.flags("cut_short"),
            explored=turns.flags("explored") | (stuck_halts & ~turns.flags("cut_short")),
            truth=turns.truth,
            cluster=turns.cluster,
        )
        roots = turns.frame["resumes"]
        return units._chained(turns, roots.to_numpy()) if roots.notna().any() else units

    def _chained(self, turns: Turns, roots: npt.NDArray[np.object_]) -> _Units:
        ids = turns.frame["turn_id"].to_numpy()
        owner = np.where(turns.frame["resumes"].isna(), ids, roots)
        names, code = np.unique(owner.astype(str), return_inverse=True)

        def any_of(flags: Flags) -> Flags:
            return np.bincount(code, weights=flags, minlength=len(names)) > 0

        stuck, fine = any_of(self.truth == STUCK), any_of(self.truth == NOT_STUCK)
        first = np.zeros(len(names), dtype=np.int64)
        first[code[::-1]] = self.cluster[::-1]
        halts = any_of(self.halts)
        return _Units(
            halts=halts,
            may_halt=any_of(self.may_halt) & ~halts,
            cut_short=any_of(self.cut_short),
            explored=any_of(self.explored),
            truth=np.where(stuck, STUCK, np.where(fine, NOT_STUCK, UNREAD)),
            cluster=first,
        )


def _rate(events: Flags, among: Flags, cluster: Counts, tail: float) -> stats.Rate:
    groups = int(cluster.max()) + 1 if len(cluster) else 0
    sizes = np.bincount(cluster, weights=among, minlength=groups)
    return stats.clustered_rate(
        np.bincount(cluster, weights=events & among, minlength=groups), sizes, tail=tail
    )


def _fdr(halted: Flags, maybe: Flags, truth: Counts, cluster: Counts, tail: float, basis: str) -> Share:
    """Unread halts are right in the lower bound and wrong in the upper; so are turns that may be halted."""
    everyone = halted | maybe
    return share_of(
        "FDR", least=halted & (truth == NOT_STUCK), most=everyone & (truth != STUCK), n_least=everyone,
        n_most=halted | maybe & (truth != STUCK), read=halted & (truth != UNREAD), cluster=cluster,
        tail=tail, basis=basis,
    )  # fmt: skip


def _through(fdr: Share, halted: Flags, truth: Counts, rest: Flags) -> Share:
    """FHR from FDR, ends and all."""
    clean = rest & (truth != STUCK)
    halts, n = int(halted.sum()), int(clean.sum() + halted.sum())
    return replace(
        fdr,
        name="FHR",
        least=fdr.least / fdr.n * halts,
        most=fdr.most / fdr.n * halts,
        n=n,
        estimate=_carried(fdr.estimate, halted, clean),
        low=_carried(fdr.low, halted, clean) or 0.0,
        high=_carried(fdr.high, halted, clean) or 0.0,
        n_eff=fdr.n_eff / fdr.n * n,
        basis=f"{fdr.basis}, carried over to all {halts:,} halts",
    )


def _carried(wrong_share: float | None, halted: Flags, clean: Flags) -> float | None:
    if wrong_share is None:
        return None
    return stats.false_halt_share(wrong_share, would_halts=int(halted.sum()), clean=int(clean.sum()))


def _drawn(turns: Turns, outcome: Outcome, planned: Mapping[str, Planned], tail: float) -> Share | None:
    """FDR by labels of a planned sample; None where none of the halts was drawn and read."""
    halted = outcome.halts & ~outcome.backstop
    ids = turns.frame["turn_id"].to_numpy()[halted]
    said = [planned.get(str(turn)) for turn in ids]
    judge = [0.0 if one is None or one.judge is None else one.judge for one in said]
    pairs = [
        (judged, one.human, one.probability)
        for judged, one in zip(judge, said, strict=True)
        if one is not None and one.human is not None and one.probability
    ]
    if len(ids) < 2 or not pairs:
        return None
    estimate = stats.difference_estimate(judge, pairs, units=len(ids))
    sizes = np.bincount(turns.cluster[halted])
    sizes = sizes[sizes > 0]
    wider = stats.Estimate(mean=estimate.mean, error=estimate.error * float(np.sqrt(stats.kish_deff(sizes))))
    rate = stats.share_from_estimate(wider, units=len(pairs), clusters=len(sizes), tail=tail)
    return Share(
        name="FDR",
        least=float(rate.estimate or 0) * len(ids),
        most=float(rate.estimate or 0) * len(ids),
        n=len(ids),
        clusters=len(sizes),
        estimate=rate.estimate,
        low=rate.low,
        high=rate.high,
        n_eff=rate.n_eff,
        tail=tail,
        basis=f"{len(pairs):,} halts drawn by plan and read, speaking for all {len(ids):,}",
    )
