"""The two populations of a database, each turn's kind up to the call and whole, and the shares."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pytest

from analytics.false_stuck import Kind
from analytics.false_stuck_turns import agreement, classified, shares
from analytics.replay import Replay
from guard.policy import CapPolicy
from tests.analytics.recorded import Loss, database, letters, live
from tests.analytics.test_replay import adaptive

RULE = CapPolicy.adaptive()


@pytest.fixture(scope="module")
def evidence(evidence_db: Path) -> tuple[Replay, pd.DataFrame]:
    replay = Replay.of(duckdb.connect(str(evidence_db), read_only=True))
    return replay, classified(replay, RULE)


def test_the_populations_of_the_bundled_turns(evidence: tuple[Replay, pd.DataFrame]) -> None:
    _, found = evidence
    assert found.groupby("population").size().to_dict() == {"halted": 10, "repeated": 111}
    assert found["kind"].notna().all()
    repeated = found[found["population"] == "repeated"]
    counts = repeated.groupby(["label", "whole"]).size().to_dict()
    assert counts[Kind.STUCK, Kind.STUCK] == 10
    assert counts[Kind.BURST, Kind.BURST] == 1
    assert counts[Kind.RERUN, Kind.RERUN] >= 97
    assert (repeated["whole"] == Kind.STUCK).sum() == 10


def test_agreement_is_shown_beside_the_baseline(evidence: tuple[Replay, pd.DataFrame]) -> None:
    found = agreement(evidence[1])
    assert found["labelled"] == 111
    assert found["agree"] >= 108
    assert found["always_rerun"] == 100


def test_shares_sum_to_their_population(evidence: tuple[Replay, pd.DataFrame]) -> None:
    replay, frame = evidence
    found = shares(frame, replay, tail=0.05)
    sums = found.groupby("population")["turns"].sum().to_dict()
    assert sums == {"halted": 10, "repeated": 111}
    assert (found["low"] <= found["share"]).all()
    assert (found["share"] <= found["high"]).all()
    assert found["labelled"].sum() == 121
    assert (found["labelled_agree"] <= found["labelled"]).all()


def test_what_hides_a_turn_leaves_its_kind_open() -> None:
    storm, policy = letters("a" * 30), adaptive(4, 3, 100)
    turns = [live(storm, policy, enforce=False), live(storm, policy), live(storm, policy, enforce=False)]
    replay = Replay.of(database(turns, [Loss(), Loss(), Loss(chunks=True)]))
    found = classified(replay, policy)
    halted = found[found["population"] == "halted"]
    assert list(halted["call"]) == [5, 5, 5]
    assert list(halted["kind"].isna()) == [False, False, True]
    assert list(halted["whole"]) == [Kind.STUCK, None, None]
    unseen = shares(found, replay, tail=0.05)
    assert unseen[unseen["kind"].isna()]["turns"].tolist() == [1, 1]


def test_a_database_in_which_nothing_repeats() -> None:
    replay = Replay.of(database([live(letters("abc"), RULE)]))
    found = classified(replay, RULE)
    assert found.empty
    assert shares(found, replay, tail=0.05)["turns"].sum() == 0
    assert agreement(found) == {"labelled": 0, "agree": 0, "always_rerun": 0}
