"""What `turncap load` says of input it cannot use: one line that helps, and no half work."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import duckdb
import pytest

from analytics import loading, slices
from analytics.cli import main
from analytics.otlp import streams
from tests.analytics.telemetry import START, Event, log_line, small_turn, span, span_line
from tests.analytics.test_load import dump, query

GOOD = log_line(small_turn())
FOREIGN = log_line([Event(name="app.started", at=START, attributes={"x": 1})])


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail, and return the one line that it printed."""
    assert main(argv) == 1
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("content", "likeness"),
    [
        pytest.param(b"hello\nworld\n", "plain text", id="text"),
        pytest.param(b"a,b,c\n1,2,3\n", "a table of comma-separated values", id="CSV"),
        pytest.param(b"", "an empty file", id="nothing"),
        pytest.param(b"\n \n\n", "an empty file", id="blank lines"),
        pytest.param(b"PAR1\x15\x04\x15", "a Parquet file", id="Parquet"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "an image", id="an image"),
        pytest.param(bytes(range(128, 256)) * 40, "binary data", id="bytes"),
        pytest.param(b"<!DOCTYPE html><p>", "a web page", id="a page"),
        pytest.param('{"a": 1}\n'.encode("utf-16"), "text in UTF-16", id="UTF-16"),
        pytest.param(
            b'{"level": "info", "msg": "secret"}\n', "JSON with the keys level, msg", id="another log"
        ),
        pytest.param(b'{"broken": \n', "JSON", id="JSON that never ends"),
        pytest.param(b"[1, 2, 3]\n", "JSON", id="a list of numbers"),
        pytest.param(FOREIGN, "OTLP logs such as 'app.started' of turncap", id="telemetry of others"),
        pytest.param(
            span_line([{**span([], 1), "name": "GET /"}]), "OTLP spans such as 'GET /'", id="spans of others"
        ),
        pytest.param(b"\0\0\0\x05\n\x03abc", "binary data", id="frames of nothing"),
    ],
)
def test_a_file_without_a_record_is_an_error_that_says_what_it_looks_like(
    content: bytes, likeness: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, db = tmp_path / "file", tmp_path / "t.duckdb"
    path.write_bytes(content)
    line = refused(["load", str(path), "--db", str(db)], capsys)
    assert f"{path}: no record that turncap knows; it looks like {likeness}" in line
    assert "secret" not in line
    assert not db.exists(), "no database is left behind"


def test_a_file_without_a_record_beside_others_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(GOOD)
    (tmp_path / "b.txt").write_text("hello\n" * 3000)
    db = tmp_path / "t.duckdb"
    assert main(["load", str(tmp_path / "a.jsonl"), str(tmp_path / "b.txt"), "--db", str(db)]) == 3
    told = capsys.readouterr().err
    assert f"{tmp_path / 'b.txt'}: no record that turncap knows; it looks like plain text" in told
    assert query(db, "SELECT count(*) FROM turns") == [(1,)]
    assert query(db, "SELECT path, reason FROM rejects") == [
        (str(tmp_path / "b.txt"), "no record that turncap knows; it looks like plain text")
    ], "not one for each of its lines"


def test_strict_stops_at_the_first_bad_line_and_leaves_no_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, db = tmp_path / "f.jsonl", tmp_path / "t.duckdb"
    path.write_bytes(GOOD + b"{broken}\n" + GOOD)
    line = refused(["load", str(path), "--db", str(db), "--strict"], capsys)
    assert line.startswith(f"turncap: {path}:2: a line that is no OTLP")
    assert not db.exists()
    path.write_bytes(GOOD)
    assert main(["load", str(path), "--db", str(db), "--strict"]) == 0


def test_strict_keeps_nothing_of_a_load_that_fails_however_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SLICE", 1)
    monkeypatch.setattr(slices, "COMMIT", 1)
    first, second, db = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "t.duckdb"
    first.write_bytes(GOOD)
    assert main(["load", str(first), "--db", str(db)]) == 0
    capsys.readouterr()
    before = dump(db)
    other = GOOD.replace(b'"h-7', b'"h-8')
    first.write_bytes(GOOD + other)
    second.write_bytes(b"{broken}\n")
    refused(["load", str(first), str(second), "--db", str(db), "--strict"], capsys)
    assert dump(db) == before
    assert main(["load", str(first), str(second), "--db", str(db)]) == 3
    assert query(db, "SELECT count(*) FROM turns") == [(2,)]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("missing.jsonl", "no such file, folder or pattern", id="no file"),
        pytest.param("god.jsonl", "did you mean", id="a slip of the pen"),
        pytest.param("*.nothing", "no such file, folder or pattern", id="a pattern that matches nothing"),
        pytest.param("empty", "a folder without files to load", id="an empty folder"),
        pytest.param("no/where/f.jsonl", "there is no folder", id="a folder that is not there"),
    ],
)
def test_a_path_that_stands_for_nothing(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    (tmp_path / "empty").mkdir()
    db = tmp_path / "t.duckdb"
    line = refused(["load", str(tmp_path / "good.jsonl"), str(tmp_path / name), "--db", str(db)], capsys)
    assert says in line
    assert not db.exists(), "nothing is loaded before all names are known to be good"


def test_a_file_that_may_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, closed, db = tmp_path / "good.jsonl", tmp_path / "closed.jsonl", tmp_path / "t.duckdb"
    for path in (good, closed):
        path.write_bytes(GOOD)
    may = os.access  # which says yes to everything where the tests run as root
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(closed) and may(path, mode))
    line = refused(["load", str(good), str(closed), "--db", str(db)], capsys)
    assert line.startswith(f"turncap: {closed}: cannot be read (Permission denied); ")
    assert not db.exists()


def test_a_file_that_goes_away_while_others_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, gone, db = tmp_path / "good.jsonl", tmp_path / "gone.jsonl", tmp_path / "t.duckdb"
    for path in (good, gone):
        path.write_bytes(GOOD)
    opened = streams.open_content

    def opening(path: str) -> IO[bytes]:
        if path == str(gone):
            gone.unlink(missing_ok=True)
        return opened(path)

    monkeypatch.setattr(streams, "open_content", opening)
    line = refused(["load", str(good), str(gone), "--db", str(db)], capsys)
    assert line.startswith(f"turncap: {gone}: no such file")
    assert main(["load", str(good), "--db", str(db)]) == 0
    assert query(db, "SELECT count(*) FROM turns") == [(1,)]


def _of_another_program(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sales (n INT)")


def _of_a_newer_schema(path: Path) -> None:
    assert main(["load", str(path.parent / "good.jsonl"), "--db", str(path)]) == 0
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")


def _of_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (n)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(_of_another_program, "a database of another program", id="another program's"),
        pytest.param(_of_a_newer_schema, "upgrade turncap", id="a newer schema"),
        pytest.param(_of_sqlite, "not a DuckDB database", id="SQLite"),
        pytest.param(lambda path: path.write_text("hello " * 1000), "not a DuckDB database", id="text"),
        pytest.param(lambda path: path.mkdir(), "a folder", id="a folder"),
        pytest.param(None, "does not exist", id="in a folder that is not there"),
    ],
)
def test_a_database_that_is_not_turncaps_is_left_alone(
    make: Callable[[Path], object] | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    db = tmp_path / "t.duckdb" if make else tmp_path / "no" / "t.duckdb"
    if make:
        make(db)
    before = db.read_bytes() if db.is_file() else None
    capsys.readouterr()
    assert says in refused(["load", str(tmp_path / "good.jsonl"), "--db", str(db)], capsys)
    assert before == (db.read_bytes() if db.is_file() else None)


def test_a_second_writer_is_told_who_holds_the_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, db = tmp_path / "good.jsonl", tmp_path / "t.duckdb"
    path.write_bytes(GOOD)
    assert main(["load", str(path), "--db", str(db)]) == 0
    capsys.readouterr()
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        line = refused(["load", str(path), "--db", str(db)], capsys)
        assert f"process {other.pid} has this database open" in line
        other.communicate()
    assert main(["load", str(path), "--db", str(db)]) == 0


def test_what_a_report_and_a_plan_wrote_into_the_folder_is_no_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "telemetry"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(GOOD)
    db = folder / "t.duckdb"
    assert main(["load", str(folder), "--db", str(db)]) == 0
    assert main(["label", "--plan", "--db", str(db)]) == 0
    assert main(["report", "--db", str(db), "--out", str(folder)]) == 0
    assert main(["load", str(folder), "--db", str(db)]) == 0
    assert "no record that turncap knows" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "replay", "recommend"])
def test_a_folder_is_no_database(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "a folder; give a database" in refused([command, "--db", str(tmp_path)], capsys)
