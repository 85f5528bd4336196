"""`turncap dashboards`: the files are copied whole, and what is read of a snapshot is written in one step."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

from analytics import dashboards
from analytics.cli import main
from analytics.dashboards import expand

RATES = [{"name": "FDR", "estimate": 0.9, "low": 0.5, "high": 1.0, "n": 10.0, "tolerance": 0.2}]
REPORT = {
    "verdicts": [
        {"question": question, "running": 100, "verdict": verdict, "lean": "too low", "rates": rates,
         "reasons": ["because"]}
        for question, verdict, rates in (("soft_cap", "too low", RATES), ("multiplier", "validated", []))
    ],
    "signals": [],
    "false_stuck": [],
    "gates": [],
    "trend": {"weeks": []},
}  # fmt: skip


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A snapshot of one halted turn that nobody has read, and a report with two verdicts."""
    path = tmp_path / "snapshot.duckdb"
    with duckdb.connect(str(path)) as connection:
        for script in ("schema.sql", "views.sql"):
            connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
        connection.execute("""
            INSERT INTO turns (turn_id, dialect, grade, length_limited, has_started, has_ended, extended,
                chunks_seen, least_calls, started_at, calls, max_repeat,
                would_halt_call, would_halt_threshold)
            VALUES ('t', 'turncap', 'exact', FALSE, TRUE, TRUE, FALSE, 3, 120, 1796000000000000000, 120, 9,
                101, 'soft-stuck')
        """)
        connection.execute("INSERT INTO report VALUES (1795600000000000000, ?)", [json.dumps(REPORT)])
    return path


def test_export_copies_every_file_and_leaves_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    assert main(["dashboards", "export", str(tmp_path)]) == 0
    copied = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()} - {
        Path("mine.txt")
    }
    assert copied == {p.relative_to(dashboards.home()) for p in dashboards.home().rglob("*") if p.is_file()}
    assert (tmp_path / "mine.txt").read_text() == "kept"
    assert len(capsys.readouterr().out.splitlines()) == len(copied)


def test_export_needs_none_of_the_packages_of_analytics(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules.update(duckdb=None, pandas=None, pyarrow=None, numpy=None)"
    run = f"{blocked}; from analytics.cli import main; sys.exit(main(['dashboards', 'export', sys.argv[1]]))"
    assert subprocess.run([sys.executable, "-c", run, tmp_path], stdout=subprocess.DEVNULL).returncode == 0
    assert (tmp_path / "grafana/operations.json").is_file()


def test_json_answers_every_validation_panel(snapshot: Path, tmp_path: Path) -> None:
    assert main(["dashboards", "json", str(snapshot), str(tmp_path / "out")]) == 0
    answers = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert len(answers) == len(list(dashboards.panels("validation")))
    told = [(row["question"], row["verdict"], row["accepted up to"]) for row in answers["verdicts"]]
    assert told == [("soft_cap", "too low", 0.2), ("multiplier", "validated", None)]
    assert answers["to-read"][0]["turn"] == "t"
    assert answers["to-read"][0]["started"].startswith("2026-11-")


def test_textfile_gives_the_rank_of_each_question_and_the_age(snapshot: Path, tmp_path: Path) -> None:
    assert main(["dashboards", "textfile", str(snapshot), str(tmp_path / "turncap.prom")]) == 0
    lines = (tmp_path / "turncap.prom").read_text().splitlines()
    assert 'turncap_verdict_rank{question="soft_cap"} 0' in lines
    assert 'turncap_verdict_rank{question="multiplier"} 2' in lines
    assert "turncap_snapshot_newest_turn_timestamp_seconds 1796000000" in lines
    assert f"turncap_snapshot_published_timestamp_seconds {snapshot.stat().st_mtime:.0f}" in lines


def test_textfile_of_an_empty_snapshot_says_nothing_of_verdicts(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        for script in ("schema.sql", "views.sql"):
            connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
    text = dashboards.textfile(tmp_path / "s.duckdb")
    assert "published" in text
    assert "verdict" not in text
    assert "newest" not in text


@pytest.mark.parametrize("action", ["json", "textfile"])
@pytest.mark.parametrize(
    "content", [None, b"no database", "tables only"], ids=["missing", "no database", "no views"]
)
def test_a_file_that_is_no_snapshot_is_named(
    action: str, content: bytes | str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.duckdb"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        duckdb.connect(str(path)).close()
    assert main(["dashboards", action, str(path), str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert str(path) in said
    assert "turncap snapshot" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sql", "period", "expected"),
    [
        ("WHERE $__timeFilter(week) AND x", None, "WHERE TRUE AND x"),
        ("WHERE $__timeFilter( t.week )", ("a", "b"), "WHERE t.week >= 'a' AND t.week <= 'b'"),
        ("id = ${turn_id:sqlstring}", None, "id = 'it''s'"),
    ],
)
def test_macros_expand_as_grafana_does(sql: str, period: tuple[str, str] | None, expected: str) -> None:
    assert expand(sql, period=period, turn_id="it's") == expected
