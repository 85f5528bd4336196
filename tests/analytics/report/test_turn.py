"""One turn on the terminal."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from analytics.database import open_database
from analytics.report.terminal import show_turn
from analytics.report.turn import build_turn
from analytics.report.turn_policies import turn_policies
from tests.analytics.evidence_db import build

ROW = {
    "source": "my-agent", "session": "s", "turn": 0, "length_limited": False, "outcome": "end_turn",
    "label": None, "tool": ["read", "shell", "shell", "edit", "shell"], "key": [0, 1, 1, 2, 1],
    "result_norm": [0, 1, 2, 3, 2], "error": [0, 0, 1, 0, 1], "mutating": [0, 0, 0, 1, 0],
    "gap_s": [None, 1.0, 1.0, 1.0, 0.5],
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return build(tmp_path / "small.duckdb", [ROW, ROW])


def test_the_strip_shows_repeats_errors_and_changes(small: Path) -> None:
    with open_database(small) as connection:
        turn = build_turn(connection, f"{1:032x}")
        text = show_turn(turn, turn_policies(connection, turn), colour=False)
    assert "     1  ·AA·A\n          xwx\n" in text
    assert "  A  shell      3      2     5        2       2\n" in text
    assert "took    4 s" in text
    assert "No threshold was reached." in text
    assert "\x1b" not in text


def test_the_halting_call_is_marked_and_explained(
    evidence_db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with duckdb.connect(str(evidence_db), read_only=True) as connection:
        found = connection.execute("SELECT turn_id FROM loop_events JOIN truth USING (turn_id) WHERE stuck")
        (turn_id,) = found.fetchone() or ("",)
    assert main(["turn", turn_id, "--db", str(evidence_db)]) == 0
    text = capsys.readouterr().out
    assert "   101  A\n        ^\n" in text
    assert "Would have been halted at call 101: soft-stuck, past the soft cap of 100" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("0000", "the beginning of several turns", id="too short a beginning asks for more"),
        pytest.param(f"{3:032x}", f"such turn; there is, for example, {2:032x}", id="a wrong id"),
        pytest.param("", "no such turn", id="nothing given is no turn"),
    ],
)  # fmt: skip
def test_a_turn_that_is_not_there(
    small: Path, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    assert main(["turn", given, "--db", str(small)]) == 1
    output = capsys.readouterr()
    assert said in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_a_turn_is_also_a_page(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["turn", f"{1:032x}", "--db", str(small), "--out", str(tmp_path / "pages")]) == 0
    path = Path(capsys.readouterr().err.strip())
    page = path.read_text(encoding="utf-8")
    assert path.parent == tmp_path / "pages"
    assert "5 calls; the most repeated is made 3 times." in page
    assert "No threshold was reached." in page
