"""Rows that are packed come out as they went in, also by way of Arrow, and in parts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from analytics.packed import of_arrow, pack, to_arrow, unpack

Rows = list[tuple[Any, ...]]
NAMES = ("name", "count", "share", "flag", "nothing")
TYPES = dict(zip(NAMES, (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.string()), strict=True))
ROWS: Rows = [
    ("call:1", 1_700_000_000_000_000_000, 0.5, True, None),
    ("", -1, None, None, None),
    (None, None, -2.0, False, None),
    ("sitzung:ä😀", 0, 0.0, False, None),
    *[(str(n), n, n / 7, n % 3 == 0, None) for n in range(20)],
]


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS[:2], ROWS[4:], ROWS[2:3], []], ids=["any", "ASCII", "no NULL", "one", "none"]
)
def test_rows_come_out_as_they_went_in(rows: Rows) -> None:
    assert unpack(pack(NAMES, rows)) == rows
    table = to_arrow(pack(NAMES, rows), TYPES)
    table.validate(full=True)
    assert table.schema == pa.schema(TYPES)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_a_part_of_a_table_is_packed_alone() -> None:
    rows = [row[:2] for row in ROWS]
    table = to_arrow(pack(NAMES[:2], rows), TYPES)
    assert [unpack(of_arrow(table.slice(n, 3))) for n in range(9)] == [rows[n : n + 3] for n in range(9)]


def test_a_worker_needs_no_arrow() -> None:
    code = "import analytics.workers, sys; sys.exit(not {'pyarrow', 'numpy'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
