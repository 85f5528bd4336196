"""Rows that are packed come out as they went in, also by way of Arrow, and in parts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from analytics.packed import SEEN, of_arrow, pack, to_arrow, unpack

Rows = list[tuple[Any, ...]]
ROWS: Rows = [
    ("session:a", "codex", "call:1", "call", 1_700_000_000_000_000_000, '{"key":"00ff"}'),
    ("session:a", "codex", "call:2", "call", None, "{}"),
    ("", "", "", "", -1, ""),
    ("sitzung:ä", "코덱스", "call:😀", "call", 0, '{"tool":"日本"}'),
]


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS[:2], ROWS[1:2], []], ids=["any text", "ASCII", "no time", "none"]
)
def test_rows_come_out_as_they_went_in(rows: Rows) -> None:
    assert unpack(pack(rows)) == rows
    table = to_arrow(pack(rows))
    assert table.column_names == list(SEEN)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_a_part_of_a_table_is_packed_alone() -> None:
    table = to_arrow(pack(ROWS))
    assert [unpack(of_arrow(table.slice(n, 2))) for n in range(3)] == [ROWS[n : n + 2] for n in range(3)]


def test_a_worker_needs_no_arrow() -> None:
    code = "import analytics.workers, sys; sys.exit('pyarrow' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
