"""Ctrl-C at any moment of a load is one line and exit code 130, also when DuckDB raises its own error."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Never

import duckdb
import pytest

from analytics import loading
from analytics.cli import ExitCode, main
from analytics.errors import is_interrupt
from analytics.warehouse import Warehouse
from tests.analytics.telemetry import log_line, small_turn
from tests.analytics.test_load import dump

SAID = "turncap: interrupted; what was read is kept, and the same command goes on from there\n"


def test_an_interrupted_query_is_told_from_a_fault() -> None:
    # Of its own thread alone DuckDB asks between two parts of a query whether somebody pressed Ctrl-C.
    with duckdb.connect(config={"threads": 1}) as connection:
        pressed = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        pressed.start()
        with pytest.raises((KeyboardInterrupt, RuntimeError)) as raised:
            connection.execute("SELECT count(*) FROM range(1000000000000)").fetchall()
    assert is_interrupt(raised.value)
    assert not is_interrupt(RuntimeError("dictionary changed size during iteration"))


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("Query interrupted")], ids=["python", "duckdb"]
)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(Warehouse, "open", id="opening the database"),
        pytest.param(loading.Loader, "_file", id="reading"),
        pytest.param(loading.Loader, "_flush", id="committing"),
        pytest.param(loading, "derive", id="deriving"),
        pytest.param(Warehouse, "close", id="closing the database"),
        pytest.param(loading.Summary, "lines", id="telling what was done"),
    ],
)
def test_interrupted_anywhere_it_says_so_and_can_go_on(
    owner: type | object,
    name: str,
    error: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, db, clean = tmp_path / "t.jsonl", tmp_path / "t.duckdb", tmp_path / "clean.duckdb"
    path.write_bytes(log_line(small_turn()))
    assert main(["load", str(path), "--db", str(clean)]) == 0
    capsys.readouterr()

    close = Warehouse.close

    def press(*given: object) -> Never:
        if name == "close":
            close(*given)  # type: ignore[arg-type]
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, press)
        assert main(["load", str(path), "--db", str(db)]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == SAID
    assert main(["load", str(path), "--db", str(db)]) == 0
    assert dump(db) == dump(clean)
