"""The signals side by side on the bundled turns, and totals against the turns one by one."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.recording import Label
from analytics.replay import Badge, Replay
from analytics.side_by_side import kinds_seen, signals
from analytics.totals import totals
from guard.policy import CapPolicy
from tests.analytics.recorded import Ask, Loss, database, letters, live
from tests.analytics.test_replay import RAN, Case, adaptive, cases, policies


@pytest.fixture(scope="module")
def evidence(evidence_db: Path) -> Replay:
    replay = Replay.of(duckdb.connect(str(evidence_db), read_only=True))
    assert len(replay.levels.turn) > 0  # read while the file is open
    return replay


# Stuck caught / others halted / calls saved / calls cut at S = 0, 50 and 100, the backstop at 1,000.
TABLE = {
    ("repeat", 6): ("10/101/588/2213", "7/57/297/1354", "1/9/1/198"),
    ("repeat", 20): ("7/0/425/0", "7/0/277/0", "1/0/1/0"),
    ("recent_repeat", 6): ("10/47/580/1100", "7/12/297/272", "1/1/1/8"),
    ("novelty_repeat", 6): ("9/0/568/0", "7/0/297/0", "1/0/1/0"),
    ("same_result_repeat", 6): ("10/1/570/7", "7/0/297/0", "1/0/1/0"),
    ("no_progress", 6): ("10/0/568/0", "7/0/297/0", "1/0/1/0"),
    ("no_progress", 8): ("8/0/532/0", "7/0/297/0", "1/0/1/0"),
}


@pytest.mark.parametrize(("signal", "k"), TABLE, ids=[f"{signal} at {k}" for signal, k in TABLE])
def test_the_bundled_turns_under_each_signal(evidence: Replay, signal: str, k: int) -> None:
    found = signals(evidence, soft_cap=100, backstop=1000)
    rows = found[(found["signal"] == signal) & (found["k"] == k)].sort_values("soft_cap")
    shown = rows[["stuck_caught", "others_halted", "calls_saved", "calls_cut"]].astype(str)
    assert tuple(shown.agg("/".join, axis=1)) == TABLE[signal, k]
    assert set(rows["badge"]) == {Badge.EXACT}
    assert set(rows["stuck_turns"]) == {10}
    assert set(rows["other_turns"]) == {4008}


def test_every_signal_k_and_s_has_its_row_and_says_which_kinds_are_unseen(evidence: Replay) -> None:
    found = signals(evidence, soft_cap=100, backstop=1000)
    assert len(found) == 5 * 4 * 3
    assert kinds_seen(evidence) == {"unlabelled": 3907, "rerun": 100, "stuck": 10, "burst": 1}
    assert set(found["unseen"]) == {("poll",)}


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(cases, st.sampled_from([True, False, None])), min_size=15, max_size=15),
    st.lists(policies, min_size=10, max_size=10),
    st.integers(0, 15),
)
def test_totals_are_the_sums_over_the_turns(
    recorded: list[tuple[Case, bool | None]], asked: list[CapPolicy], left_out: int
) -> None:
    turns = [live(script, ran, enforce=enforce) for (script, ran, _, enforce), _ in recorded]
    replay = Replay.of(database(turns, [case[2] for case, _ in recorded], [said for _, said in recorded]))
    among = np.arange(len(replay.turns)) != left_out
    stuck = (replay.turns.label == Label.STUCK) & among
    for policy, row in zip(asked, totals(replay, asked, among=among).to_dict("records"), strict=True):
        halts = replay.halts(policy)
        least, most = halts.lost()
        assert row["turns"] == among.sum()
        assert row["stuck"] == (halts.halted & stuck).sum()
        assert row["stuck_most"] == ((halts.halted | halts.perhaps) & stuck).sum()
        assert row["not_stuck"] + row["unlabelled"] == (halts.halted & among & ~stuck).sum()
        assert row["calls_saved"] == least[stuck].sum()
        assert row["calls_saved_most"] == most[stuck].sum()
        assert row["calls_cut"] == least[among & ~stuck].sum()
        assert row["calls_cut_most"] == most[among & ~stuck].sum()
        assert row["undecided"] == (~halts.exact & among).sum()
        assert row["unknown"] == (~halts.exact & halts.lacking & among).sum()


def test_one_undecided_turn_takes_the_badge_from_the_whole_row() -> None:
    recorded = [live(letters("ababa"), RAN), live(letters("abc"), RAN)]
    found = totals(Replay.of(database(recorded)), [RAN, adaptive(4, 4, 8)])
    assert list(found["badge"]) == [Badge.EXACT, Badge.BOUNDED]
    assert list(found["undecided"]) == [0, 1]


def test_a_signal_of_results_is_unknown_where_results_are() -> None:
    recorded = live([Ask((n // 2,)) for n in range(8)], RAN, enforce=False)
    replay = Replay.of(database([recorded], [Loss(grade="no-results")]))
    asked = [adaptive(4, 2, 8, signal) for signal in ("repeat", "no_progress")]
    assert list(totals(replay, asked)["badge"]) == [Badge.EXACT, Badge.UNKNOWN]
