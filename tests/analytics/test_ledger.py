"""Nothing is loaded twice and nothing is lost: growing, rotated, rewritten files, and loads that die."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics import loading, slices, warehouse
from analytics.cli import main
from analytics.otlp import streams
from tests.analytics.telemetry import START, counter, log_line, metric_line, small_turn
from tests.analytics.test_load import ON_SPAN, SOME, dump, query, telemetry

EVENTS, SPANS = telemetry(SOME[:12])
LINES = [
    *(log_line(EVENTS[at : at + 5]) for at in range(0, len(EVENTS), 5)),
    *SPANS,
    log_line(small_turn()),
    metric_line([counter("turncap.calls", [({}, 5)], at=START + 9)]),
]
CONTENT = b"".join(LINES)
ON_SPANS = sum(one.name in ON_SPAN for one in EVENTS) + len(SOME[:12])  # a span is a copy of its turn's end
RECORDS = len(EVENTS) + ON_SPANS + len(small_turn()) + 1


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """The tables of one load of everything."""
    folder = tmp_path_factory.mktemp("clean")
    (folder / "all.jsonl").write_bytes(CONTENT)
    assert main(["load", str(folder / "all.jsonl"), "--db", str(folder / "t.duckdb")]) == 0
    return dump(folder / "t.duckdb")


def ledger(db: Path) -> list[tuple[Any, ...]]:
    """What the ledger says."""
    return query(db, 'SELECT "offset", lines, records FROM files ORDER BY ALL')


def test_a_growing_file_is_continued_where_it_was_left(tmp_path: Path, clean: Any, capsys: Any) -> None:
    path, db = tmp_path / "live.jsonl", tmp_path / "t.duckdb"
    at = 0
    cuts = [len(LINES[0]), len(LINES[0]) + 10, len(CONTENT) // 2, len(CONTENT) - 1, len(CONTENT)]
    for cut in cuts:
        path.write_bytes(CONTENT[:cut])
        whole = cut == len(CONTENT) - 1 or CONTENT[:cut].endswith(b"\n")  # only the newline is missing
        assert main(["load", str(path), "--db", str(db)]) == (0 if whole else 3)
        told = capsys.readouterr().err
        assert ("cut short; it is left for the next load" in told) is not whole
        ((offset, _, _),) = ledger(db)
        assert at <= offset <= cut
        at = offset
        assert query(db, "SELECT count(*) FROM rejects") == [(0 if whole else 1,)]
    assert dump(db) == clean
    assert ledger(db) == [(len(CONTENT), len(LINES), RECORDS)]


def test_a_file_that_did_not_change_costs_no_record(tmp_path: Path, capsys: Any) -> None:
    path, db = tmp_path / "f.jsonl", tmp_path / "t.duckdb"
    path.write_bytes(CONTENT)
    for _ in range(2):
        assert main(["load", str(path), "--db", str(db)]) == 0
    assert "1 files hold nothing new" in capsys.readouterr().out


def test_rotated_packed_and_copied_files_are_known_again(tmp_path: Path, clean: Any, capsys: Any) -> None:
    live, db = tmp_path / "otel.json", tmp_path / "t.duckdb"
    live.write_bytes(CONTENT)
    assert main(["load", str(live), "--db", str(db)]) == 0
    live.rename(tmp_path / "otel-2026-09-14T05-02-14.173.json")
    shutil.copy(tmp_path / "otel-2026-09-14T05-02-14.173.json", tmp_path / "copy.json")
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(CONTENT))
    live.write_bytes(log_line(small_turn()))
    capsys.readouterr()
    assert main(["load", str(tmp_path), "--db", str(db)]) == 0
    assert "3 files hold nothing new" in capsys.readouterr().out
    assert dump(db) == clean


def test_a_file_truncated_and_written_anew_is_read_from_its_beginning(tmp_path: Path, clean: Any) -> None:
    path, db = tmp_path / "f.jsonl", tmp_path / "t.duckdb"
    cut = len(b"".join(LINES[:6]))
    path.write_bytes(CONTENT[:cut])
    assert main(["load", str(path), "--db", str(db)]) == 0
    path.write_bytes(CONTENT[cut:])
    assert main(["load", str(path), "--db", str(db)]) == 0
    assert dump(db) == clean
    assert len(ledger(db)) == 2


def test_files_that_begin_alike_are_told_apart(tmp_path: Path, clean: Any) -> None:
    db = tmp_path / "t.duckdb"
    (tmp_path / "a.jsonl").write_bytes(b"".join([LINES[0], *LINES[1:5]]))
    (tmp_path / "b.jsonl").write_bytes(b"".join([LINES[0], *LINES[5:]]))
    for _ in range(2):
        assert main(["load", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--db", str(db)]) == 0
        assert dump(db) == clean
        assert len(ledger(db)) == 2


def test_a_compressed_file_that_is_cut_short_gives_what_it_holds(
    tmp_path: Path, clean: Any, capsys: Any
) -> None:
    path, db = tmp_path / "f.jsonl.gz", tmp_path / "t.duckdb"
    packed = gzip.compress(CONTENT)
    path.write_bytes(packed[: len(packed) * 2 // 3])
    assert main(["load", str(path), "--db", str(db)]) == 3
    assert "the file ends in the middle of the compressed data" in capsys.readouterr().err
    (rows,) = query(db, "SELECT count(*) FROM turns")
    assert 0 < rows[0] < len(SOME[:12])
    path.write_bytes(packed)
    assert main(["load", str(path), "--db", str(db)]) == 0
    assert dump(db) == clean
    assert query(db, "SELECT count(*) FROM rejects") == [(0,)]


class Died(BaseException):
    """Stands for the end of the process."""


class Dying:
    """A connection that ends the process at its n-th statement."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, left: Iterator[int]) -> None:
        self._connection, self._left = connection, left

    def execute(self, *arguments: Any) -> Any:
        if next(self._left, 0) == 0:
            raise Died
        return self._connection.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("commit", [1, slices.COMMIT], ids=["often committed", "committed once"])
@pytest.mark.parametrize("dies_at", [3, 21, 75, 140, 155, 170])
def test_a_load_that_dies_anywhere_is_made_good_by_the_next(
    dies_at: int, commit: int, tmp_path: Path, clean: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, db = tmp_path / "f.jsonl", tmp_path / "t.duckdb"
    path.write_bytes(CONTENT)
    monkeypatch.setattr(loading, "SLICE", 1)
    monkeypatch.setattr(slices, "COMMIT", commit)
    monkeypatch.setattr(streams, "BLOCK", 20_000)
    monkeypatch.setattr(streams, "_READ", 10_000)
    connect = warehouse.connect
    left = iter(range(dies_at, -1, -1))
    with monkeypatch.context() as patch:
        patch.setattr(warehouse, "connect", lambda path: Dying(connect(path), left))
        with pytest.raises(Died):
            main(["load", str(path), "--db", str(db)])
    assert main(["load", str(path), "--db", str(db)]) == 0
    assert dump(db) == clean
    assert query(db, "SELECT count(*) FROM pending") == [(0,)]
    assert ledger(db)[0][:2] == (len(CONTENT), len(LINES))
