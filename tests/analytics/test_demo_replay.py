"""All bundled turns through the guard, OpenTelemetry and load: replay finds there what the numbers say."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from analytics.cli import main
from analytics.database import open_database
from analytics.false_stuck import Kind
from analytics.false_stuck_turns import agreement, classified
from analytics.replay import Badge, Replay
from analytics.side_by_side import signals
from guard.policy import CapPolicy
from tests.analytics.test_side_by_side import TABLE

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(folder)]) == 0
    with open_database(folder / "turns.duckdb") as connection:
        yield connection


@pytest.fixture(scope="module")
def demo(database: duckdb.DuckDBPyConnection) -> Replay:
    return Replay.of(database)


def test_the_signals_side_by_side(demo: Replay) -> None:
    found = signals(demo, soft_cap=100, backstop=1000)
    assert set(found["badge"]) == {Badge.EXACT}
    shown = found[["stuck_caught", "others_halted", "calls_saved", "calls_cut"]].astype(str)
    found["shown"] = shown.agg("/".join, axis=1)
    rows = found.sort_values("soft_cap").groupby(["signal", "k"])["shown"].agg(tuple)
    assert {key: rows[key] for key in TABLE} == TABLE


def test_what_looks_stuck(demo: Replay) -> None:
    found = classified(demo, CapPolicy.adaptive())
    assert found.groupby("population").size().to_dict() == {"halted": 10, "repeated": 111}
    whole = found[found["population"] == "repeated"].groupby(["label", "whole"]).size()
    assert whole[Kind.STUCK, Kind.STUCK] == 10
    assert whole[Kind.BURST, Kind.BURST] == 1
    assert whole[Kind.RERUN, Kind.RERUN] >= 97
    assert agreement(found)["always_rerun"] == 100


def test_the_policy_that_ran_reproduces_every_halt(database: duckdb.DuckDBPyConnection, demo: Replay) -> None:
    policy = CapPolicy.adaptive()
    halts = demo.halts(policy)
    logged = dict(
        database.execute(
            "SELECT turn_id, would_halt_call FROM turns WHERE would_halt_call IS NOT NULL"
        ).fetchall()
    )
    found = {
        turn_id: halts.call(place)
        for place, turn_id in enumerate(demo.turns.turn_id)
        if halts.call(place) is not None
    }
    assert len(logged) == 10
    assert found == logged
