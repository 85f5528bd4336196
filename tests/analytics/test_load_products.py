"""`turncap load` on what other products wrote, from the files to the report."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from tests.analytics.dialects.reading import DATA, cases
from tests.analytics.dialects.test_payloads import TEXTS


def load(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["load", *arguments]) == 0
    return capsys.readouterr().out


def home(tmp_path: Path, payload: str, place: str) -> Path:
    """A payload where its program keeps it."""
    target = tmp_path / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.decompress((DATA / payload).read_bytes()))
    return target


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    home(tmp_path, "claude-code.session.jsonl.gz", "projects/-home-user/session.jsonl")
    home(tmp_path, "claude-code.agent.jsonl.gz", "projects/-home-user/session/subagents/agent-1.jsonl")
    meta = tmp_path / "projects/-home-user/session/subagents/agent-1.meta.json"
    meta.write_text('{"agentType": "general-purpose", "description": "help"}')
    return tmp_path / "projects"


def test_the_first_use_is_two_commands(
    projects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database, out = "mine.duckdb", tmp_path / "turncap-report"
    told = load(capsys, str(projects), "--db", database)
    assert "claude-code (exact): 3 turns" in told
    assert "passed over" not in told
    assert "0 turns new" in load(capsys, str(projects), "--db", database)
    assert main(["report", "--db", database]) == 0
    coverage = json.loads((out / "report.json").read_text())["coverage"]
    assert (coverage["turns"], coverage["calls"], coverage["rejects"]) == (3, 6, 0)


def test_telemetry_of_the_same_session_adds_nothing_to_its_files(
    projects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "mine.duckdb")
    logs = [str(DATA / f"claude-code.{signal}.jsonl.gz") for signal in ("logs", "traces")]
    assert "claude-code (no-results): 3 turns" in load(capsys, *logs, "--db", database)
    told = load(capsys, str(projects), "--db", database)
    assert "claude-code (exact): 3 turns" in told
    assert "no-results" not in told
    with duckdb.connect(database, read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM calls").fetchall() == [(6,)]


def test_a_session_that_is_still_being_written_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home(tmp_path, "claude-code.session.jsonl.gz", "session.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    database = str(tmp_path / "mine.duckdb")
    for end in (5, 7, len(lines)):
        path.write_bytes(b"".join(lines[:end]))
        load(capsys, str(path), "--db", database)
    with duckdb.connect(database, read_only=True) as connection:
        in_parts = connection.sql("FROM calls ORDER BY ALL").fetchall()
    whole = str(tmp_path / "whole.duckdb")
    load(capsys, str(path), "--db", whole)
    with duckdb.connect(whole, read_only=True) as connection:
        assert connection.sql("FROM calls ORDER BY ALL").fetchall() == in_parts
    assert len(in_parts) == 5


def test_no_text_reaches_the_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "mine.duckdb"
    paths = sorted({str(path) for paths in cases().values() for path in paths})
    load(capsys, *paths, "--db", str(database))
    kept = database.read_bytes().decode("latin-1")
    with duckdb.connect(str(database), read_only=True) as connection:
        # The file is compressed in parts: every row of every table is searched as well.
        for (table,) in connection.sql("SELECT table_name FROM duckdb_tables()").fetchall():
            if table != "files":  # which names the paths that were given
                kept += repr(connection.sql(f'FROM "{table}"').fetchall())
        assert connection.sql("SELECT count(*) > 100 FROM calls").fetchall() == [(True,)]
    assert [text for text in TEXTS if text in kept] == []


def test_records_of_an_unknown_product_that_look_like_tool_calls_are_counted(
    projects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (projects / "-home-user" / "session.jsonl").open("a") as session:
        session.write(json.dumps({"type": "my_tool_call", "id": 1}) + "\n")
        session.write(json.dumps({"type": "weather", "id": 2}) + "\n")
    told = load(capsys, str(projects), "--db", str(tmp_path / "mine.duckdb"))
    assert "2 records of no product that turncap knows were passed over; 1 of them look like tool" in told
