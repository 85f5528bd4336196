"""What the documentation says one guard adds is what is counted."""

from __future__ import annotations

import re

import pytest

from tests.dashboards.reading import HOME
from tools.integration.weight import measure

DOCUMENT = (HOME.parent / "docs/dashboards.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
    for line in DOCUMENT.splitlines()
    if re.match(r"\| (both|logs|spans) \|", line)
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_of_the_table_is_what_a_turn_sends(row: list[str]) -> None:
    found = measure(int(row[1]), row[0])
    assert found.records == int(row[2])
    # ids, times and durations differ by a few bytes from run to run
    assert found.log_bytes == pytest.approx(int(row[3]), rel=0.03)
    assert found.log_bytes_gzip == pytest.approx(int(row[4]), rel=0.10)
    assert found.span_bytes == pytest.approx(int(row[5]), rel=0.03)
    assert float(found.row[6]) == pytest.approx(int(row[6]), rel=0.03)


def test_every_setting_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == {"both", "logs", "spans"}


def test_the_number_of_series_is_what_is_counted() -> None:
    (told,) = re.findall(r"\*\*(\d+) series\*\*", DOCUMENT)
    assert measure(20, "both").series == int(told)
