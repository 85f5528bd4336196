"""The statistics against numbers from elsewhere, and their coverage against simulated clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from analytics import stats

TWO_SIDED, ONE_SIDED = 0.025, 0.05


@pytest.mark.parametrize(
    ("events", "n", "exact", "score"),
    [
        (0, 20, (0, 0.168433), (0, 0.161125)),
        (3, 60, (0.010432, 0.139243), (0.017150, 0.137005)),
        (7, 50, (0.058192, 0.267396), (0.069508, 0.261862)),
        (1, 1000, (0.000025, 0.005559), (0.000177, 0.005643)),
        (12, 20, (0.360543, 0.808810), (0.386582, 0.781193)),
    ],
)
def test_interval_of_a_share(
    events: int, n: int, exact: tuple[float, float], score: tuple[float, float]
) -> None:
    cp, wilson = (f(events, n, tail=TWO_SIDED) for f in (stats.clopper_pearson, stats.wilson))
    assert (cp.low, cp.high) == pytest.approx(exact, abs=1e-6)
    assert (wilson.low, wilson.high) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(("n", "high"), [(300, 0.009936), (2995, 0.001000), (5000, 0.000599)])
def test_upper_bound_without_an_event(n: int, high: float) -> None:
    assert stats.clopper_pearson(0, n, tail=ONE_SIDED).high == pytest.approx(high, abs=1e-6)


def test_a_share_of_nothing_is_unknown_and_its_interval_is_everything() -> None:
    rate = stats.clustered_rate([], [], tail=ONE_SIDED)
    assert (rate.estimate, rate.low, rate.high, rate.n) == (None, 0.0, 1.0, 0)
    assert stats.clopper_pearson(0, 0, tail=ONE_SIDED) == stats.Interval(low=0.0, high=1.0, tail=ONE_SIDED)


def test_variance_between_clusters() -> None:
    events, sizes = [1, 0, 2, 0], [3, 2, 4, 1]
    variance = stats.linearised_variance(events, sizes)
    assert math.sqrt(variance) == pytest.approx(0.121106, abs=1e-6)
    assert variance == pytest.approx(4 / 3 * 1.10 / 100, abs=1e-12)
    rate = stats.clustered_rate(events, sizes, tail=TWO_SIDED)
    assert rate.estimate == pytest.approx(0.3)
    assert rate.deff == 1  # 0.698 as measured: never taken as better than independent turns
    assert stats.kish_deff([1, 2, 3, 4], icc=0.05) == pytest.approx(1.10)


def test_one_cluster_alone_says_nothing() -> None:
    rate = stats.clustered_rate([3], [50], tail=ONE_SIDED)
    assert (rate.estimate, rate.low, rate.high, rate.clusters) == (0.06, 0.0, 1.0, 1)


def test_without_events_the_design_effect_is_that_of_the_cluster_sizes() -> None:
    single = stats.clustered_rate([0] * 1000, [1] * 1000, tail=ONE_SIDED)
    paired = stats.clustered_rate([0] * 500, [2] * 500, tail=ONE_SIDED)
    assert single.deff == 1
    assert paired.deff == pytest.approx(1.05)
    assert paired.high > single.high


def test_holdout_rates() -> None:
    share = stats.clopper_pearson(4, 20, tail=TWO_SIDED)
    assert (share.low, share.high) == pytest.approx((0.057334, 0.436614), abs=1e-6)
    halted = [stats.false_halt_share(x, would_halts=300, clean=9000) for x in (0.2, share.low, share.high)]
    assert halted == pytest.approx([0.006623, 0.001907, 0.014345], abs=1e-6)


def test_labels_by_plan_correct_the_judge() -> None:
    judged, human = [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 1]
    pairs = list(zip(judged, human, [0.2] * 4 + [0.05] * 4, strict=True))
    estimate = stats.difference_estimate([1] * 20 + [0] * 80, pairs, units=100)
    assert estimate.mean == pytest.approx(0.35)
    assert estimate.error == pytest.approx(0.209502, abs=1e-6)


def test_price_at_which_two_policies_cost_the_same() -> None:
    assert 4 * 200 + 900 == 1700
    assert 1 * 200 + 1400 == 1600
    assert stats.break_even(1400 - 900, 4 - 1) == pytest.approx(166.67, abs=0.01)
    assert stats.break_even(500, 0) is None


@pytest.mark.parametrize(("explored", "p"), [(50, 1), (70, 0.005670), (80, 5.89e-5)])
def test_a_holdout_coin_that_is_off_is_seen(explored: int, p: float) -> None:
    assert stats.holdout_ratio_p(explored, 1000, 0.05) == pytest.approx(p, rel=1e-3)


def test_unread_halts_give_bounds() -> None:
    assert stats.bounds_of_wrong(10, known_wrong=2, known_right=3) == (2, 7)


PRINTED_ONE_SIDED = (
    1.6e-12, 5.8e-7, 4.5e-5, 0.00039, 0.0014, 0.0034, 0.0063, 0.0099, 0.014, 0.019, 0.024, 0.029, 0.035
)  # fmt: skip
PRINTED_TWO_SIDED = (
    1.3e-15, 2.2e-8, 6.1e-6, 1.0e-4, 5.7e-4, 0.0017, 0.0039, 0.0071, 0.0113, 0.0163, 0.0224, 0.0289, 0.0359
)  # fmt: skip


def test_levels_of_thirteen_looks_are_those_printed() -> None:
    rounding = 0.05  # two digits are printed
    assert stats.look_levels() == pytest.approx(PRINTED_ONE_SIDED, rel=rounding)
    shown = [2 * level for level in stats.look_levels(alpha=0.05)]
    assert shown == pytest.approx(PRINTED_TWO_SIDED, rel=rounding)


def test_levels_of_four_looks_are_those_of_the_standard_table() -> None:
    z = [float(norm.isf(level)) for level in stats.look_levels(looks=4, alpha=0.05)]
    assert z == pytest.approx([4.333, 2.963, 2.359, 2.014], abs=1e-3)


def test_all_looks_together_err_as_often_as_one_would() -> None:
    random = np.random.default_rng(stats.SEED)
    steps = random.standard_normal((100_000, stats.PLANNED_LOOKS)).cumsum(axis=1)
    z = steps / np.sqrt(np.arange(1, stats.PLANNED_LOOKS + 1))
    crossed = (z > norm.isf(np.asarray(stats.look_levels()))).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=0.003)


@pytest.mark.parametrize(
    ("tolerance", "turns"), [(0.0005, 5990), (0.001, 2995), (0.002, 1497), (0.005, 598), (0.01, 299)]
)
def test_turns_needed_without_an_event(tolerance: float, turns: int) -> None:
    assert stats.turns_for_zero_events(tolerance, tail=ONE_SIDED) == turns
    assert stats.clopper_pearson(0, turns, tail=ONE_SIDED).high <= tolerance
    assert stats.clopper_pearson(0, turns - 1, tail=ONE_SIDED).high > tolerance


@pytest.mark.parametrize(("look", "turns"), [(9, 4245), (13, 3354)])
def test_turns_needed_at_a_weekly_look(look: int, turns: int) -> None:
    level = stats.look_levels()[look - 1]
    assert stats.turns_for_zero_events(0.001, tail=level) == pytest.approx(turns, rel=2e-3)


@pytest.mark.parametrize(
    ("events", "n", "needed"),
    [
        pytest.param(1, 3000, 7752, id="one in 3,000 is seen at twice as many and more"),
        pytest.param(2, 6000, 7752, id="the same rate seen in 6,000 turns needs the same"),
        pytest.param(3, 4000, 45260, id="a rate near the tolerance needs many"),
        pytest.param(4, 4000, None, id="a rate at the tolerance can never be validated"),
    ],
)
def test_turns_needed_at_the_rate_seen(events: int, n: int, needed: int | None) -> None:
    assert stats.turns_for_upper_bound(events, n, 0.001, tail=ONE_SIDED) == needed
    if needed is None:
        return

    def enough(turns: int) -> bool:
        return stats.clopper_pearson(-(-events * turns // n), turns, tail=ONE_SIDED).high <= 0.001

    assert enough(needed)
    assert not any(enough(turns) for turns in range(max(n, needed - 200), needed))


@given(st.integers(0, 60), st.integers(1, 3000), st.sampled_from([0.05, 0.01, 1e-6]))
def test_the_interval_holds_the_share_and_narrows_with_the_level(events: int, n: int, tail: float) -> None:
    events = min(events, n)
    inner, outer = (stats.clopper_pearson(events, n, tail=t) for t in (tail, tail / 10))
    assert 0 <= outer.low <= inner.low <= events / n <= inner.high <= outer.high <= 1


def test_a_difference_is_resampled_by_cluster_and_the_same_each_time() -> None:
    differences = [10.0] * 30 + [-2.0] * 20
    first, again = (stats.paired_difference(differences, clusters=400, tail=0.025) for _ in range(2))
    assert first == again
    assert first.total == 260
    error = math.sqrt(sum(d * d for d in differences) - 260**2 / 400)
    assert first.low == pytest.approx(260 - 1.96 * error, abs=12)
    assert first.high == pytest.approx(260 + 1.96 * error, abs=12)
    assert stats.paired_difference([], clusters=400, tail=0.025) == stats.Difference(total=0, low=0, high=0)


def _coverage(share: float, icc: float, *, turns: int = 1000, users: int = 100) -> tuple[float, float]:
    """(clustered, naive Wilson) coverage at nominal 95 % over 1,000 seeded repetitions.

    Users' activity is lognormal, their own chance beta-distributed around `share` with correlation `icc`.
    """
    random = np.random.default_rng(stats.SEED)
    held = np.zeros(2)
    for _ in range(1000):
        activity = random.lognormal(0, 1, users)
        sizes = random.multinomial(turns, activity / activity.sum())
        chance = random.beta(share * (1 - icc) / icc, (1 - share) * (1 - icc) / icc, users)
        events = random.binomial(sizes, chance)
        rate = stats.clustered_rate(events.tolist(), sizes.tolist(), tail=TWO_SIDED)
        naive = stats.wilson(int(events.sum()), turns, tail=TWO_SIDED)
        held += (rate.low <= share <= rate.high, naive.low <= share <= naive.high)
    return float(held[0] / 1000), float(held[1] / 1000)


def test_the_clustered_interval_covers_where_the_naive_one_does_not() -> None:
    cells = {(share, icc): _coverage(share, icc) for share in (0.01, 0.05) for icc in (0.02, 0.10)}
    assert min(clustered for clustered, _ in cells.values()) >= 0.90, cells
    assert min(naive for _, naive in cells.values()) <= 0.80, cells
