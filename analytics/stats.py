"""Pure statistics: sequences in, frozen results out; no table, no file, no clock.

`tail` is everywhere the error probability on one side: 0.05 gives the one-sided 95 % bounds that
verdicts use, 0.025 the two-sided 95 % interval that is shown. A rate of nothing is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import optimize
from scipy import stats as scipy_stats

ONE_LOOK = 0.05  # one-sided level of a report that is looked at once
PLANNED_LOOKS = 13  # weekly looks in a quarter
KISH_ICC = 0.05  # intra-cluster correlation assumed where no event was seen to estimate it from
RESAMPLES = 999
SEED = 20_240_101  # fixed, so that a report made twice says the same

Numbers: TypeAlias = Sequence[float] | npt.NDArray[np.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Both ends of a share, 0 … 1; `tail` is the error probability on each side."""

    low: float
    high: float
    tail: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share with its clusters: `events` of `n` units in `clusters` groups.

    `estimate` is None where n is 0. `n_eff` is the number of independent units worth as much, `deff`
    the variance against that of independent ones (at least 1).
    """

    events: float
    n: float
    clusters: int
    estimate: float | None
    deff: float
    n_eff: float
    low: float
    high: float
    tail: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A total difference between two policies over the same turns, with its resampled ends."""

    total: float
    low: float
    high: float


def clopper_pearson(events: float, n: float, *, tail: float) -> Interval:
    """Exact interval of a binomial share; `events` and `n` may be fractions (an effective size).

    Assumes independent units with one common chance. Misleads (too narrow) on clustered units: use
    `clustered_rate`. Never below its nominal coverage for whole numbers, often above it.
    Source: Clopper and Pearson, Biometrika 26 (1934) 404.
    """
    if n <= 0:
        return Interval(low=0.0, high=1.0, tail=tail)
    low = float(scipy_stats.beta.ppf(tail, events, n - events + 1)) if events > 0 else 0.0
    high = float(scipy_stats.beta.isf(tail, events + 1, n - events)) if events < n else 1.0
    return Interval(low=low, high=high, tail=tail)


def wilson(events: float, n: float, *, tail: float) -> Interval:
    """Score interval of a binomial share, for plots alone.

    Assumes independent units. Misleads for rare events and wherever units come in clusters: it covered
    as little as 66 % at nominal 95 % there. Source: Wilson, JASA 22 (1927) 209.
    """
    if n <= 0:
        return Interval(low=0.0, high=1.0, tail=tail)
    z = float(scipy_stats.norm.isf(tail))
    share = events / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Interval(
        low=0.0 if events == 0 else max(0.0, centre - half),
        high=1.0 if events == n else min(1.0, centre + half),
        tail=tail,
    )


def kish_deff(sizes: Numbers, *, icc: float = KISH_ICC) -> float:
    """Variance against independent units that clusters of these sizes cost at a given correlation.

    Assumes one correlation within every cluster. Misleads where the correlation is not what was assumed.
    Source: Kish, Survey Sampling (1965).
    """
    size = np.asarray(sizes, dtype=float)
    return 1 + icc * (float((size**2).sum()) / float(size.sum()) - 1)


def linearised_variance(events: Numbers, sizes: Numbers) -> float:
    """Variance of the ratio sum(events) / sum(sizes) between clusters.

    Assumes clusters drawn independently, at least two. Misleads (too small) with few clusters or a
    handful of events. Source: Taylor linearisation of a ratio, Cochran, Sampling Techniques (1977) ch. 6.
    """
    event, size = np.asarray(events, dtype=float), np.asarray(sizes, dtype=float)
    residual = event - event.sum() / size.sum() * size
    groups = len(size)
    return groups / (groups - 1) * float((residual**2).sum()) / float(size.sum()) ** 2


def clustered_rate(events: Numbers, sizes: Numbers, *, tail: float) -> Rate:
    """Share of events over units that come in clusters: exact binomial at the effective size.

    `events[g]` of `sizes[g]` units in cluster g; empty clusters are left out. The effective size is
    n / deff x (z / t)^2 with G - 1 degrees of freedom; where nothing (or everything) is an event the
    design effect is Kish's at a correlation of 0.05, since none can be estimated. One cluster alone
    says nothing: its interval is 0 … 1.

    Assumes that clusters are independent of each other. Misleads with fewer than 20 clusters, and where
    one cluster holds most units. Source: Korn and Graubard, Survey Methodology 24 (1998) 193.
    """
    event, size = np.asarray(events, dtype=float), np.asarray(sizes, dtype=float)
    event, size = event[size > 0], size[size > 0]
    total, n, groups = float(event.sum()), float(size.sum()), len(size)
    if n == 0:
        return Rate(
            events=0, n=0, clusters=0, estimate=None, deff=1.0, n_eff=0.0, low=0.0, high=1.0, tail=tail
        )
    share = total / n
    if groups == 1:
        deff, n_eff = n, 0.0
    else:
        if 0 < total < n:
            deff = max(1.0, linearised_variance(event, size) / (share * (1 - share) / n))
        else:
            deff = kish_deff(size)
        n_eff = n / deff * _z_over_t(tail, groups - 1) ** 2
    ends = clopper_pearson(share * n_eff, n_eff, tail=tail)
    return Rate(
        events=total,
        n=n,
        clusters=groups,
        estimate=share,
        deff=deff,
        n_eff=n_eff,
        low=ends.low,
        high=ends.high,
        tail=tail,
    )


def false_halt_share(wrong_share: float, *, would_halts: float, clean: float) -> float:
    """FHR from FDR: the share of not-stuck turns that are halted.

    `wrong_share` of the `would_halts` hit turns that are not stuck; `clean` turns are not stuck and met no
    halt. Monotone in `wrong_share`, so the ends of an interval go through it. Assumes a holdout drawn at
    random, so that the explored share speaks for all would-be halts. Misleads (by the ignored chance in
    the two counts) once the explored halts are more than about 500.
    """
    wrong = wrong_share * would_halts
    return wrong / (wrong + clean) if wrong + clean > 0 else 0.0


def difference_estimate(
    judge: Numbers, pairs: Sequence[tuple[float, float, float]], *, units: int
) -> Estimate:
    """Share by a judge's labels on all units, corrected by a planned sample of better ones.

    `judge` holds the judge's label of each of the `units`; each pair is (judge, human, probability) of one
    unit that was drawn for the better reading. Without a judge give zeros: the estimate is then that of
    Horvitz and Thompson. Assumes that the probabilities are those by which the units were drawn.
    Misleads where labels came by complaint instead of by plan. Source: Särndal et al., Model Assisted
    Survey Sampling (1992) ch. 6; Angelopoulos et al., Science 382 (2023) 669.
    """
    if units < 2:
        raise ValueError(f"units: got {units}; at least 2 are needed for a standard error")
    gaps = np.asarray([(human - judged) / probability for judged, human, probability in pairs], dtype=float)
    judged_all = np.asarray(judge, dtype=float)
    mean = float(judged_all.mean() + gaps.sum() / units)
    spread = float((gaps**2).sum() - gaps.sum() ** 2 / units) / units**2
    return Estimate(mean=mean, error=math.sqrt(float(judged_all.var(ddof=1)) / units + spread))


def share_from_estimate(estimate: Estimate, *, units: float, clusters: int, tail: float) -> Rate:
    """An estimated share as a `Rate`: exact binomial at the size that has the same variance.

    Where the estimate is 0 or 1 (or its error 0) the size is that of `units`, the units read by a person.
    Assumes that the standard error already carries the clusters' correlation. Misleads with few labels.
    Source: the effective-size argument of Korn and Graubard, as in `clustered_rate`.
    """
    share = min(1.0, max(0.0, estimate.mean))
    spread = share * (1 - share)
    n_eff = min(units, spread / estimate.error**2) if spread > 0 and estimate.error > 0 else float(units)
    n_eff *= _z_over_t(tail, clusters - 1) ** 2 if clusters > 1 else 0.0
    ends = clopper_pearson(share * n_eff, n_eff, tail=tail)
    return Rate(
        events=share * units,
        n=units,
        clusters=clusters,
        estimate=share,
        deff=max(1.0, units / n_eff) if n_eff else float(units),
        n_eff=n_eff,
        low=ends.low,
        high=ends.high,
        tail=tail,
    )


def holdout_ratio_p(explored: int, would_halts: int, rate: float) -> float:
    """Chance of a coin at least as far off as the one seen, if `rate` is what it was set to.

    Assumes one independent coin a turn at one rate; test each rate apart. Source: exact binomial test.
    """
    return float(scipy_stats.binomtest(explored, would_halts, rate).pvalue)


@cache
def look_levels(*, looks: int = PLANNED_LOOKS, alpha: float = 2 * ONE_LOOK) -> tuple[float, ...]:
    """One-sided level of each of `looks` equally spaced looks, so that all together err at most `alpha`.

    `alpha` is two-sided: 0.10 for one-sided verdict bounds at 5 %, 0.05 for the intervals shown.
    O'Brien-Fleming type spending 4[1 - Phi(z_{1-alpha/4} / sqrt t)], boundaries found by integrating the
    density of the test statistic look by look. Assumes independent, equal information a look; a look that
    is missed leaves the rest conservative. Slightly liberal where users return (0.067-0.075 for 0.05).
    Source: Lan and DeMets, Biometrika 70 (1983) 659; Armitage, McPherson and Rowe, JRSS A 132 (1969) 235.
    """
    start = scipy_stats.norm.isf(alpha / 4)
    spent = 4 * scipy_stats.norm.sf(start / np.sqrt(np.arange(1, looks + 1) / looks))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    bounds: list[float] = []
    points = density = np.empty(0)  # the sum of the increments, while no boundary was crossed
    for look in range(1, looks + 1):
        share = spent[0] if look == 1 else spent[look - 1] - spent[look - 2]
        if look == 1:
            bound = float(scipy_stats.norm.isf(share / 2))
        else:
            bound = _crossing(points, density, look, float(share))
        bounds.append(bound)
        edge = bound * math.sqrt(look)
        grid = edge * nodes
        if look == 1:
            at_grid = scipy_stats.norm.pdf(grid)
        else:
            at_grid = scipy_stats.norm.pdf(grid[:, None] - points[None, :]) @ density
        points, density = grid, at_grid * weights * edge
    return tuple(np.asarray(scipy_stats.norm.sf(bounds)).tolist())


def turns_for_zero_events(tolerance: float, *, tail: float) -> int:
    """Fewest independent turns without any event whose upper bound is within `tolerance`.

    Multiply by n / n_eff for clustered turns. Assumes that no event will come.
    Source: 1 - tail^(1/n) <= tolerance.
    """
    return math.ceil(math.log(tail) / math.log1p(-tolerance))


def turns_for_upper_bound(events: int, n: int, tolerance: float, *, tail: float) -> int | None:
    """Fewest turns at which the upper bound is within `tolerance` if the rate seen goes on.

    At n' turns ceil(events / n x n') events are expected. None where the rate seen is not below the
    tolerance: more turns of the same would never do. Assumes independent turns; misleads (is itself
    uncertain) with few events. Source: inversion of Clopper and Pearson.
    """
    if events == 0:
        return turns_for_zero_events(tolerance, tail=tail)
    if n <= 0 or events / n >= tolerance:
        return None
    expected = events
    while expected < 1_000_000:
        least = _turns_for(expected, tolerance, tail)
        if -(-events * least // n) <= expected:
            return least
        expected += 1
    return None


def turns_for_lower_bound(estimate: float, tolerance: float, *, tail: float) -> int | None:
    """About how many independent turns show a rate to be above `tolerance`, if `estimate` is true.

    None where it is not above. Normal approximation: misleads for fewer than about five events.
    """
    if estimate <= tolerance:
        return None
    z = float(scipy_stats.norm.isf(tail))
    return math.ceil(z * z * estimate * (1 - estimate) / (estimate - tolerance) ** 2)


def bounds_of_wrong(halts: int, *, known_wrong: int, known_right: int) -> tuple[int, int]:
    """Fewest and most wrong halts when some were never read: the unread ones are wrong, or none is."""
    return known_wrong, halts - known_right


def paired_difference(differences: Numbers, *, clusters: int, tail: float) -> Difference:
    """Total difference over the same turns, its ends by resampling clusters.

    `differences` is one number a cluster in which the two policies differ (others are 0 and need not be
    given); `clusters` counts all. Assumes independent clusters. Misleads with fewer than 20 clusters, and
    for rates that hang on a few rare events. Source: Efron and Tibshirani (1993), percentile bootstrap.
    """
    given = np.asarray(differences, dtype=float)
    given = given[given != 0]
    total = float(given.sum())
    if not len(given):
        return Difference(total=0.0, low=0.0, high=0.0)
    random = np.random.default_rng(SEED)
    chances = np.append(np.full(len(given), 1 / clusters), max(0.0, 1 - len(given) / clusters))
    sums = np.empty(RESAMPLES)
    for i in range(RESAMPLES):  # one row at a time: a matrix of 999 x clusters would not be small
        sums[i] = random.multinomial(clusters, chances)[:-1] @ given
    low, high = np.quantile(sums, [tail, 1 - tail])
    return Difference(total=total, low=float(low), high=float(high))


def break_even(extra_calls: float, fewer_kills: float) -> float | None:
    """What a wrongly halted turn must be worth, in calls, for the laxer policy to pay.

    None where the laxer policy spares no turn, so that no price makes it pay.
    """
    return extra_calls / fewer_kills if fewer_kills > 0 else None


def _z_over_t(tail: float, freedom: int) -> float:
    return float(scipy_stats.norm.isf(tail) / scipy_stats.t.isf(tail, freedom))


def _crossing(points: np.ndarray, density: np.ndarray, look: int, share: float) -> float:
    """The boundary at this look, on the scale of z, that spends `share`."""

    def overspent(bound: float) -> float:
        edge = bound * math.sqrt(look)
        outside = scipy_stats.norm.sf(edge - points) + scipy_stats.norm.cdf(-edge - points)
        return float(outside @ density) - share

    return float(optimize.brentq(overspent, 0.5, 10.0, xtol=1e-10))


def _turns_for(events: int, tolerance: float, tail: float) -> int:
    """Fewest turns n at which the upper bound of events / n is within the tolerance."""
    low, high = events + 1, 2 * (events + 1)
    while clopper_pearson(events, high, tail=tail).high > tolerance:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if clopper_pearson(events, middle, tail=tail).high <= tolerance:
            high = middle
        else:
            low = middle + 1
    return high
