"""`turncap replay` answers what other thresholds would have done, in words, a table or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.cli import ExitCode, main
from analytics.warehouse import Warehouse
from guard.policy import CapPolicy
from tests.analytics.recorded import Loss, database, letters, live


def test_what_if_in_words(evidence_db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--db", str(evidence_db), "--stuck-at", "8", "20", "--soft-cap", "50"]) == 0
    shown = capsys.readouterr().out
    assert "4,018 turns with 69,739 calls; by their labels 10 are stuck, 101 are not" in shown
    table = [line.split() for line in shown.splitlines() if line.startswith("repeat")]
    assert table == [
        ["repeat", "6", "100", "1,000", "1", "9", "0", "1", "198", "exact", "<-", "ran"],
        ["repeat", "8", "50", "1,000", "7", "28", "0", "297", "684", "exact"],
        ["repeat", "20", "50", "1,000", "7", "0", "0", "277", "0", "exact"],
    ]
    assert "stuck turns halted 7 instead of 1, turns that are not stuck 28 instead of 9" in shown
    assert "unread ones 0 as before; calls saved 297 instead of 1, calls cut 684 instead of 198" in shown


def test_without_a_question_it_shows_what_ran_and_how_to_ask(
    evidence_db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--db", str(evidence_db)]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert "Ran: adaptive signal=repeat soft_cap=100 stuck_at=6 backstop=1000" in shown
    assert "--stuck-at" in shown


def test_json(evidence_db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--db", str(evidence_db), "--signal", "no_progress", "--json"]) == ExitCode.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["scope"]["turns"] == found["running"]["turns"] == 4018
    (asked,) = found["asked"]
    assert (asked["signal"], asked["k"], asked["soft_cap"], asked["backstop"]) == (
        "no_progress",
        6,
        100,
        1000,
    )
    assert (asked["stuck"], asked["not_stuck"], asked["calls_saved"], asked["badge"]) == (1, 0, 1, "exact")


def test_a_database_without_turns_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Warehouse.open(tmp_path / "empty.duckdb"):
        pass
    assert main(["replay", "--db", str(tmp_path / "empty.duckdb")]) == ExitCode.DONE
    assert "No turn with a call" in capsys.readouterr().out


def test_without_a_guard_the_released_rule_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "transcripts.duckdb"
    turns = [live(letters(text), CapPolicy.disabled()) for text in ("ab" * 60, "abc")]
    connection = database(turns, [Loss(milestones=True)] * 2)
    connection.execute("UPDATE turns SET policy_hash = NULL, mode = NULL, dialect = 'transcript'")
    connection.execute("DELETE FROM policies")
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES ('application', 'turncap'), ('schema_version', '1')"
    )
    connection.execute(f"ATTACH '{db}' AS file")
    connection.execute("COPY FROM DATABASE memory TO file")
    connection.close()
    assert main(["replay", "--db", str(db), "--stuck-at", "70"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert "No guard ran; the released rule stands first." in shown
    table = [line.split() for line in shown.splitlines() if line.startswith("repeat")]
    assert table == [
        ["repeat", "6", "100", "1,000", "0", "0", "1", "0", "20", "exact", "<-", "released", "rule"],
        ["repeat", "70", "100", "1,000", "0", "0", "0", "0", "0", "exact"],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ["--soft-cap", "2000"],
            "--soft-cap: got 2000, above the backstop of 1000 that ran; give --backstop",
            id="above the backstop that ran",
        ),
        pytest.param(
            ["--soft-cap", "2000", "--backstop", "500"],
            "--soft-cap: got 2000, above the backstop of 500; give --backstop",
            id="above the backstop asked about",
        ),
    ],
)
def test_a_policy_that_cannot_be_is_named(
    evidence_db: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["replay", "--db", str(evidence_db), *words]) == ExitCode.FAILED
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ["-1", "x", "6.5", "0", ""])
def test_a_threshold_that_is_no_number_is_named(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["replay", "--db", "x", f"--stuck-at={text}"])
    assert left.value.code == ExitCode.USAGE
    assert f"--stuck-at: got {text!r}; accepted: a whole number from 1" in capsys.readouterr().err


def test_a_missing_database_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--db", str(tmp_path / "none.duckdb")]) == ExitCode.FAILED
    assert "no such database" in capsys.readouterr().err
