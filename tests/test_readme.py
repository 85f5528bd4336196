"""The README says what is so."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tools import quarter_table
from tools.registry_table import MARKS, README, ROOT, table

TEXT = README.read_text(encoding="utf-8")


def test_its_table_of_what_is_emitted_is_the_registry() -> None:
    found = MARKS.search(TEXT)
    assert found is not None
    assert found[0] == found[1] + table() + found[2], "run python -m tools.registry_table --write"


def test_the_table_of_weeks_is_what_the_method_gives() -> None:
    found = quarter_table.MARKS.search(quarter_table.PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == found[1] + quarter_table.table() + found[2], (
        "run python -m tools.quarter_table --write"
    )


def test_its_twelve_lines_run() -> None:
    (example,) = re.findall(r"(?s)<!-- example -->\n```python\n(.*?)```", TEXT)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Stopped at tool call 101" in done.stdout


def test_the_two_commands_come_first() -> None:
    first_screen = TEXT.splitlines()[:25]
    assert [line for line in first_screen if line.startswith("make ")] == [
        line for line in first_screen if re.match(r"make (demo|test)\b", line)
    ]
    assert sum(bool(re.match(r"make (demo|test)\b", line)) for line in first_screen) == 2


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"^\| `([a-z_./]+)` \|", TEXT.split("## Map of the code")[1], re.M)))
)
def test_its_map_of_the_code_names_what_is_there(path: str) -> None:
    assert (ROOT / path).exists()
