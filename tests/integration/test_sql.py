"""Every SQL of every panel, run on a published snapshot by the DuckDB that Grafana's plugin embeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from analytics.dashboards import expand
from tests.analytics.evidence_db import build, evidence_rows
from tests.dashboards.reading import targets
from tools.integration.components import PLUGIN_DUCKDB, MissingComponentError, plugin_duckdb

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

PLUGIN = "motherduck-duckdb-datasource"
SCRIPT = """
import duckdb, json, sys
snapshot, queries = sys.argv[1], json.load(sys.stdin)
connection = duckdb.connect(snapshot, read_only=True)
answers = [connection.execute(query).fetchall() for query in queries]
print(json.dumps([duckdb.__version__, [json.loads(json.dumps(rows, default=str)) for rows in answers]]))
"""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The labelled turns, reported and published as a user would."""
    folder = tmp_path_factory.mktemp("published")
    database = build(folder / "turns.duckdb", [row for row in evidence_rows() if row["label"]])
    assert main(["report", "--db", str(database), "--out", str(folder / "report")]) == 0
    target, report = folder / "snapshot.duckdb", folder / "report/report.json"
    assert main(["snapshot", "--db", str(database), "--out", str(target), "--report", str(report)]) == 0
    return target


def test_both_versions_of_duckdb_give_the_same_answers(snapshot: Path) -> None:
    try:
        older = plugin_duckdb()
    except MissingComponentError as error:
        pytest.skip(str(error))
    with duckdb.connect(str(snapshot), read_only=True) as connection:
        turn = connection.execute("SELECT turn_id FROM seen_turns ORDER BY calls DESC, turn_id").fetchall()[
            0
        ][0]
        queries = [expand(target["rawSql"], turn_id=turn) for _, _, target in targets(PLUGIN)]
        ours = [
            json.loads(json.dumps(connection.execute(query).fetchall(), default=str)) for query in queries
        ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, snapshot],
        input=json.dumps(queries),
        env={**os.environ, "PYTHONPATH": str(older)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    version, theirs = json.loads(done.stdout)
    assert f"duckdb=={version}" == PLUGIN_DUCKDB
    assert theirs == ours
    empty = [where for (where, _, _), rows in zip(targets(PLUGIN), ours, strict=True) if not rows]
    # every bundled halt has been read, and no weekly look has been taken
    assert [where.split(": ")[1] for where in empty] == [
        "What each weekly look estimated",
        "Halts to read next",
    ]
