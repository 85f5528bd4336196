"""A policy that ran is known by its fields, so that verdicts speak of it and not of the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.cli import main
from analytics.database import open_database
from analytics.validation.population import read_population
from guard.policy import CapPolicy
from tests.analytics.evidence_db import evidence_rows
from tests.analytics.telemetry import log_line, turn_events


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(CapPolicy.adaptive(), id="the released rule"),
        pytest.param(CapPolicy.adaptive(soft_cap=50, stuck_at=8), id="other numbers"),
        pytest.param(CapPolicy.adaptive(soft_cap=0, backstop=500, signal="no_progress"), id="another signal"),
    ],
)
def test_the_policy_that_ran_is_the_one_that_is_judged(policy: CapPolicy, tmp_path: Path) -> None:
    told = {
        "policy__soft_cap": policy.soft_cap, "policy__stuck_at": policy.stuck_at,
        "policy__backstop": policy.backstop, "policy__signal": policy.signal, "policy__hash": policy.hash,
    }  # fmt: skip
    events = [
        one.but(**told) if one.name == "turncap.turn.started" else one
        for one in turn_events(evidence_rows()[0], "g", 1)
    ]
    (tmp_path / "logs.jsonl").write_bytes(log_line(events) + b"\n")
    assert main(["load", str(tmp_path / "logs.jsonl"), "--db", str(tmp_path / "turns.duckdb")]) == 0
    with open_database(tmp_path / "turns.duckdb") as connection:
        assert read_population(connection).policy == policy
