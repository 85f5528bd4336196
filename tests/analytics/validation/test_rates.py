"""Rates of halts: bounds where something is unread or hidden, holdout, planned labels, chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from analytics import stats
from analytics.validation.population import NOT_STUCK, STUCK, UNREAD, Outcome, Turns
from analytics.validation.rates import HaltRates, Planned, halt_rates, length_share, task_rates

TAIL = 0.025


def turns(
    truth: Sequence[int], *, calls: int | Sequence[int] = 200, cut_short: Sequence[int] = (),
    explored: Sequence[int] = (), resumes: dict[int, int] | None = None, cluster: Sequence[int] | None = None,
    success: Sequence[int] | None = None,
) -> Turns:  # fmt: skip
    """Turns t0, t1 …, each of a user of its own unless `cluster` says otherwise."""
    n, links = len(truth), resumes or {}
    return Turns(
        pd.DataFrame({
            "turn_id": [f"t{i}" for i in range(n)],
            "truth": truth,
            "calls": calls,
            "cut_short": np.isin(np.arange(n), list(cut_short)),
            "explored": np.isin(np.arange(n), list(explored)),
            "resumes": [f"t{links[i]}" if i in links else None for i in range(n)],
            "cluster": range(n) if cluster is None else cluster,
            "success": [-1] * n if success is None else success,
        })
    )  # fmt: skip


def outcome(
    n: int, halts: Sequence[int], *, maybe: Sequence[int] = (), unknown: Sequence[int] = ()
) -> Outcome:
    """These turns are halted at call 101; those may be, or cannot be known to be."""
    places = np.arange(n)
    return Outcome(
        halts=np.isin(places, list(halts)),
        may_halt=np.isin(places, list(maybe)),
        unknown=np.isin(places, list(unknown)),
        backstop=np.zeros(n, dtype=bool),
        ran=np.full(n, 100),
    )


def rates(of: Turns, under: Outcome, **more: object) -> HaltRates:
    return halt_rates(of, under, tail=TAIL, **more)  # type: ignore[arg-type]


def test_both_rates_stand_on_raw_counts_of_different_denominators() -> None:
    found = rates(turns([NOT_STUCK] * 3 + [STUCK] + [UNREAD] * 96), outcome(100, range(4)))
    assert (found.halts, found.not_stuck, found.stuck, found.unread) == (4, 3, 1, 0)
    assert (found.fdr.least, found.fdr.n, found.fdr.estimate) == (3, 4, 0.75)
    assert (found.fhr.least, found.fhr.n) == (3, 99)  # the unread that nothing halts are not stuck
    assert found.fhr.estimate == pytest.approx(3 / 99)


def test_an_unread_halt_is_right_in_the_lower_bound_and_wrong_in_the_upper() -> None:
    found = rates(turns([NOT_STUCK] + [STUCK] * 2 + [UNREAD] * 97), outcome(100, range(4)))
    assert (found.fdr.least, found.fdr.most, found.fdr.n) == (1, 2, 4)
    assert found.fdr.estimate == pytest.approx(1 / 3)  # of those read
    assert (found.fhr.least, found.fhr.most) == (1, 2)
    all_right = rates(turns([NOT_STUCK] + [STUCK] * 3 + [UNREAD] * 96), outcome(100, range(4)))
    all_wrong = rates(turns([NOT_STUCK] * 2 + [STUCK] * 2 + [UNREAD] * 96), outcome(100, range(4)))
    assert (found.fdr.low, found.fhr.low) == (all_right.fdr.low, all_right.fhr.low)
    assert (found.fdr.high, found.fhr.high) == (all_wrong.fdr.high, all_wrong.fhr.high)


def test_without_a_read_halt_nothing_is_estimated_and_everything_is_possible() -> None:
    found = rates(turns([UNREAD] * 100), outcome(100, range(4)))
    assert (found.fdr.estimate, found.fdr.low, found.fdr.high) == (None, 0.0, 1.0)
    assert found.fhr.estimate is None


def test_without_a_halt_the_share_of_turns_is_nil_and_that_of_halts_unknown() -> None:
    found = rates(turns([UNREAD] * 100), outcome(100, []))
    assert (found.fdr.estimate, found.fdr.n, found.fhr.estimate, found.fhr.n) == (None, 0, 0.0, 100)


def test_a_turn_that_may_be_halted_widens_both_ends() -> None:
    of = turns([NOT_STUCK, STUCK] * 20 + [UNREAD] * 60)
    base = rates(of, outcome(100, range(40)))
    wider = rates(of, outcome(100, range(40), maybe=range(40, 50)))
    assert wider.fdr.low < base.fdr.low
    assert wider.fdr.high > base.fdr.high
    assert wider.fhr.high > base.fhr.high


def test_a_turn_whose_halt_is_unknown_is_a_bound_and_never_left_out() -> None:
    """Which turns are unknown hangs on how long they are: leaving them out would bend every rate."""
    of = turns([NOT_STUCK, STUCK] * 20 + [UNREAD] * 60)
    hidden, lacking = (
        rates(of, outcome(100, range(40), **{name: range(50, 100)})) for name in ("maybe", "unknown")
    )
    assert hidden == lacking
    assert (lacking.hidden, lacking.fhr.least, lacking.fhr.most) == (50, 20, 70)


def test_explored_halts_speak_for_all_halts() -> None:
    """4 of 20 explored halts productive, 300 would-be halts, 9,000 turns without one."""
    truth = [NOT_STUCK] * 4 + [STUCK] * 16 + [UNREAD] * 280 + [UNREAD] * 9000
    of = turns(truth, cut_short=range(20, 300), explored=range(20))
    found = rates(of, outcome(9300, range(300)), holdout=True)
    assert (found.halts, found.explored, found.fdr.n, found.fdr.estimate) == (300, 20, 20, 0.2)
    assert found.fhr.estimate == pytest.approx(0.006623, abs=1e-6)
    # Twenty users are few: both ends are wider than those of twenty independent turns.
    assert 0 < found.fdr.low < 0.057334
    assert 0.436614 < found.fdr.high < 0.47
    carried = stats.false_halt_share(found.fdr.high, would_halts=300, clean=9000)
    assert found.fhr.high == pytest.approx(carried)


def test_of_another_policy_the_enforced_halts_stay_bounds() -> None:
    truth = [NOT_STUCK] * 4 + [STUCK] * 16 + [UNREAD] * 280 + [UNREAD] * 9000
    of = turns(truth, cut_short=range(20, 300), explored=range(20))
    found = rates(of, outcome(9300, range(300)))
    assert (found.fdr.least, found.fdr.most, found.fdr.n) == (4, 284, 300)


def test_labels_drawn_by_plan_are_weighted_by_their_probability() -> None:
    """20 of 100 halts are judged wrong; eight are read by a person, who corrects one each way."""
    judged, human = [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 1]
    chances = [0.2] * 4 + [0.05] * 4
    planned = {f"t{i}": Planned(judge=1 if i < 16 else 0, human=None, probability=None) for i in range(92)}
    planned |= {
        f"t{92 + i}": Planned(judge=judged[i], human=human[i], probability=chances[i]) for i in range(8)
    }
    found = rates(turns([UNREAD] * 1000), outcome(1000, range(100)), planned=planned)
    assert found.fdr.estimate == pytest.approx(0.35)
    assert found.fdr.low < 0.35 < found.fdr.high
    assert "8 halts drawn by plan" in found.fdr.basis


def test_a_resumed_chain_is_one_unit() -> None:
    """A turn is halted, resumed, halted again and then found not to be stuck: one wrong halt."""
    of = turns([UNREAD, UNREAD, NOT_STUCK] + [UNREAD] * 97, resumes={1: 0, 2: 0})
    found = rates(of, outcome(100, [0, 1]))
    assert (found.halts, found.not_stuck, found.fdr.n, found.fhr.n) == (1, 1, 1, 98)


def test_long_turns_count_unless_they_are_labelled_stuck() -> None:
    truth = [STUCK, NOT_STUCK, UNREAD] + [UNREAD] * 97
    share = length_share(turns(truth, calls=[1500] * 3 + [10] * 97), 1000, tail=TAIL)
    assert (share.least, share.most, share.n) == (1, 2, 100)


def test_what_an_enforced_halt_hides_may_have_become_long() -> None:
    truth = [STUCK, NOT_STUCK, UNREAD] + [UNREAD] * 97
    of = turns(truth, calls=[101] * 3 + [10] * 97, cut_short=range(3))
    share = length_share(of, 1000, tail=TAIL)
    assert (share.least, share.most) == (0, 2)


def test_lost_turns_are_taken_as_the_worst_case() -> None:
    of = turns([UNREAD] * 5000, calls=10)
    whole, lossy = (length_share(of, 1000, tail=0.05, missing=lost) for lost in (0, 10))
    assert whole.high == pytest.approx(0.000599, abs=1e-6)
    assert lossy.high == pytest.approx(0.00338, abs=1e-5)
    assert (lossy.low, lossy.estimate) == (0, 0)


def test_the_tasks_own_outcome_is_a_reading_of_its_own() -> None:
    """Two halted tasks succeeded, one failed, of one it is not known; labels of stuck have no say."""
    of = turns([STUCK] * 4 + [UNREAD] * 6, success=[1, 1, 0, -1, 1, 1, 1, 0, 0, -1])
    halts, succeeded = task_rates(of, outcome(10, range(4)), tail=TAIL)
    assert (halts.least, halts.most, halts.n) == (2, 3, 4)
    assert halts.estimate == pytest.approx(2 / 3)
    assert (succeeded.least, succeeded.most, succeeded.n) == (2, 2, 5)
