"""What is wrong with a database file is said in one line."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from analytics.database import open_database
from analytics.errors import InputError
from tests.analytics.evidence_db import build


def _foreign(path: Path) -> None:
    duckdb.connect(str(path)).close()


def _newer(path: Path) -> None:
    build(path, [])
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")


def _text(path: Path) -> None:
    path.write_text("hello " * 1000, encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda path: None, "no such database; make one with", id="no file"),
        pytest.param(
            lambda path: _foreign(path.with_name("turn.duckdb")), "did you mean", id="a near name"
        ),
        pytest.param(lambda path: path.mkdir(), "a folder; give a database", id="a folder"),
        pytest.param(_text, "not a DuckDB database", id="a text file"),
        pytest.param(_foreign, "a database of another program", id="an empty database"),
        pytest.param(_newer, "written by a newer turncap (schema 99", id="a newer schema"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_opened(tmp_path: Path, make: object, said: str) -> None:
    path = tmp_path / "turns.duckdb"
    make(path)  # type: ignore[operator]
    with pytest.raises(InputError) as caught:
        open_database(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
