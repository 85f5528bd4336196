"""The bundled turns say what their description says."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("SELECT count(*) FROM turns", 4018, id="4,018 turns"),
        pytest.param("SELECT count(*) FROM calls", 69739, id="69,739 calls"),
        pytest.param("SELECT max(calls) FROM turns", 249, id="the longest turn has 249 calls"),
        pytest.param("SELECT count(*) FROM turns WHERE calls > 100", 50, id="50 turns pass the soft cap"),
        pytest.param("SELECT count(*) FROM turns WHERE max_repeat >= 6", 111, id="111 repeat six times"),
        pytest.param("SELECT count(*) FROM loop_events", 10, id="the released rule halts ten"),
        pytest.param(
            "SELECT count(*) FROM loop_events JOIN labels USING (turn_id) WHERE stuck", 1, id="one is stuck"
        ),
        pytest.param("SELECT count(*) FROM labels WHERE stuck", 10, id="ten turns are labelled stuck"),
        pytest.param("SELECT count(*) FROM turns WHERE NOT length_limited", 1570, id="1,570 unlimited"),
    ],
)  # fmt: skip
def test_figure_of_the_description(evidence_db: Path, query: str, expected: int) -> None:
    with duckdb.connect(str(evidence_db), read_only=True) as connection:
        assert connection.execute(query).fetchone() == (expected,)
