"""`turncap snapshot`: a copy that Grafana can read while the database is written, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from analytics.snapshot import TABLES, publish
from tests.analytics.evidence_db import build, evidence_rows


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of ten turns."""
    return build(tmp_path / "turns.duckdb", evidence_rows()[:10])


def _rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return list(connection.execute(query).fetchall())


def test_every_table_that_dashboards_read_is_copied_whole(database: Path, tmp_path: Path) -> None:
    publish(database, tmp_path / "snapshot.duckdb")
    for table in TABLES:
        query = f"SELECT count(*) FROM {table}"
        assert _rows(tmp_path / "snapshot.duckdb", query) == _rows(database, query), table
    assert _rows(tmp_path / "snapshot.duckdb", "SELECT turns FROM freshness") == [(10,)]
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_a_file_is_replaced_in_one_step_so_that_a_reader_keeps_what_it_opened(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "snapshot.duckdb"
    publish(database, target)
    before = target.stat().st_ino
    with duckdb.connect(str(target), read_only=True) as reader:
        publish(database, target)
        assert reader.execute("SELECT count(*) FROM turns").fetchone() == (10,)
    assert target.stat().st_ino != before


def test_the_file_is_in_the_format_of_duckdb_1_5(database: Path, tmp_path: Path) -> None:
    publish(database, tmp_path / "snapshot.duckdb")
    head = (tmp_path / "snapshot.duckdb").read_bytes()[8:20]
    assert head[:4] == b"DUCK"
    assert int.from_bytes(head[4:12], "little") <= 68  # the newest that 1.5 reads


def test_the_report_is_what_the_views_tell(database: Path, tmp_path: Path) -> None:
    assert main(["report", "--db", str(database), "--out", str(tmp_path / "report")]) == 0
    target = tmp_path / "snapshot.duckdb"
    report = str(tmp_path / "report/report.json")
    assert main(["snapshot", "--db", str(database), "--out", str(target), "--report", report]) == 0
    questions = "SELECT DISTINCT question, rank, lean IS NULL FROM report_verdicts ORDER BY ALL"
    assert _rows(target, questions) == [
        ("multiplier", 1, False), ("soft_cap", 1, False), ("stuck_threshold", 1, False)
    ]  # fmt: skip
    unrated = "SELECT * FROM report_verdicts WHERE rate IS NULL OR low IS NULL OR tolerance IS NULL"
    assert _rows(target, unrated) == []
    kinds = "SELECT count(*) > 4, count(turns) = count(*), count(whole) = count(*) FROM report_kinds"
    assert _rows(target, kinds) == [(True, True, True)]
    for view in ("report_signals", "report_gates", "report_trend"):
        first = _rows(target, f"SELECT * FROM {view}")[0]
        assert None not in first, view


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: ["--db", folder / "none.duckdb", "--out", folder / "s.duckdb"], "none.duckdb"),
        (lambda folder: ["--db", folder / "turns.duckdb", "--out", folder / "no/s.duckdb"], "no"),
        (lambda folder: ["--db", folder / "turns.duckdb", "--out", folder / "turns.duckdb"], "turns.duckdb"),
        (lambda folder: ["--db", folder / "turns.duckdb", "--out", folder / "s.duckdb",
                         "--report", folder / "turns.duckdb"], "report.json"),
    ],
    ids=["no database", "no folder", "onto itself", "no report"],
)  # fmt: skip
def test_what_cannot_be_published_is_named_and_nothing_is_left(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: object, named: str
) -> None:
    assert callable(change)
    before = sorted(tmp_path.iterdir())
    assert main(["snapshot", *map(str, change(tmp_path))]) == 1
    assert named in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert _rows(database, "SELECT count(*) FROM turns") == [(10,)]
