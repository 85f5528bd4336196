"""Labels survive a rebuild, are asked for blindly, and are drawn with the probability that is logged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from analytics.cli import ExitCode, main
from analytics.commands import label as command
from analytics.database import open_database
from analytics.label_plan import LEAST, SHARES, draw, plan_file
from analytics.labels import label_file
from analytics.report.turn import build_turn
from tests.analytics.evidence_db import evidence_rows
from tests.analytics.telemetry import log_line, turn_events, turn_id

TURNS = 40


def _telemetry(path: Path) -> Path:
    long = [row for row in evidence_rows() if row["label"] == "stuck" and len(row["key"]) > 100]
    rows = [*evidence_rows()[:TURNS], *long]
    lines = [log_line(turn_events({**row, "label": None}, "g", seq)) for seq, row in enumerate(rows, start=1)]
    path.write_bytes(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded")
    assert main(["load", str(_telemetry(folder / "logs.jsonl")), "--db", str(folder / "turns.duckdb")]) == 0
    return folder


@pytest.fixture
def database(loaded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    for name in ("logs.jsonl", "turns.duckdb"):
        shutil.copy(loaded / name, tmp_path)
    capsys.readouterr()
    return tmp_path / "turns.duckdb"


def _labels(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(
            'SELECT turn_id, kind, stuck, productive, "by", stratum, probability, labelled_at FROM labels '
            "WHERE \"by\" <> 'import' ORDER BY turn_id, labelled_at"
        ).fetchall()


def _hear(answers: Iterator[str]) -> Callable[[str], str]:
    return lambda prompt: next(answers)


def _read(database: Path, reader: str, answers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", _hear(iter(answers)))
    assert main(["label", "--db", str(database), "--reader", reader]) == 0


def test_rebuilding_from_the_files_loses_no_label_and_no_plan(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["label", "--plan", "--db", str(database)]) == 0
    _read(database, "anna", "snry" + "q", monkeypatch)
    before = _labels(database)
    assert sorted(row[1:5] for row in before) == [
        ("rerun", False, True, "human"), ("stuck", True, False, "human")
    ]  # fmt: skip
    assert all(0 < float(str(row[6])) <= 1 for row in before)
    database.unlink()
    telemetry = database.with_name("logs.jsonl")
    assert main(["load", str(telemetry), str(label_file(database)), "--db", str(database)]) == 0
    assert _labels(database) == before
    _read(database, "anna", "q", monkeypatch)  # takes up the plan
    with duckdb.connect(str(database), read_only=True) as connection:
        (planned,) = connection.execute("SELECT count(*) FROM label_plan").fetchone() or (0,)
    assert planned == len(plan_file(database).read_text(encoding="utf-8").splitlines()) - 1 > 0


def test_planning_again_writes_a_lost_plan_anew(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", "--plan", "--db", str(database)]) == 0
    before = plan_file(database).read_bytes()
    plan_file(database).unlink()
    capsys.readouterr()
    assert main(["label", "--plan", "--db", str(database)]) == 0
    assert capsys.readouterr().out.startswith("0 turns drawn now")
    assert plan_file(database).read_bytes() == before


def test_what_moves_a_verdict_most_is_asked_first(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["label", "--plan", "--db", str(database)])
    assert "halted: 1 turn, drawn with probability 1" in capsys.readouterr().out
    _read(database, "anna", "q", monkeypatch)
    assert f"turn {turn_id('g', TURNS + 1)}" in capsys.readouterr().out


def test_a_second_reader_gets_what_one_other_has_read_and_agreement_is_told(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["label", "--plan", "--db", str(database)])
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE label_plan SET second_reader = stratum = 'halted'")
        connection.execute("DELETE FROM label_plan WHERE stratum <> 'halted'")
    _read(database, "anna", "sn", monkeypatch)
    capsys.readouterr()
    _read(database, "anna", "", monkeypatch)
    assert "nothing to read" in capsys.readouterr().out
    _read(database, "ben", "sn", monkeypatch)
    assert (
        "two readers read 1 turns: the same on being stuck in 1, on the kind in 1" in capsys.readouterr().out
    )


def test_a_reader_sees_nothing_that_judges(database: Path) -> None:
    said: list[str] = []
    with open_database(database) as connection:
        turn = build_turn(connection, turn_id("g", TURNS + 1))
    label = command.ask(turn, reader="anna", say=said.append, hear=_hear(iter("xsn")))
    assert label is not None
    assert (label.kind, label.stuck, label.productive) == ("stuck", True, False)
    assert turn.halts
    assert not any(
        word in said[0] for word in ("^", "halt", "stuck", str(turn.task_outcome), "outcome", "level")
    )


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        pytest.param("n", None, id="n passes over"),
        pytest.param("py", ("poll", False, True), id="waiting is not stuck"),
        pytest.param("o?", ("other", False, None), id="what is unknown stays unknown"),
    ],
)
def test_answers(database: Path, answers: str, given: tuple[object, ...] | None) -> None:
    with open_database(database) as connection:
        turn = build_turn(connection, turn_id("g", 1))
    label = command.ask(turn, reader="anna", say=lambda text: None, hear=_hear(iter(answers)))
    assert given == (None if label is None else (label.kind, label.stuck, label.productive))


def test_a_csv_file_keeps_its_good_lines_and_names_its_bad_ones(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "turn_id,kind,productive,task_outcome\n"
        f"{turn_id('g', 1)},rerun,yes,\n"
        f"{turn_id('g', 2)},sleepy,,\n"
        "nobody,stuck,,\n"
        f"{turn_id('g', 3)},,maybe,\n"
        f"{turn_id('g', 4)},,,\n"
        f"{turn_id('g', 5)},,,resolved\n",
        encoding="utf-8",
    )
    words = ["label", "--csv", str(path), "--db", str(database), "--by", "judge", "--reader", "m"]
    assert main(words) == ExitCode.REJECTS
    output = capsys.readouterr()
    assert output.out == "2 labels taken, 4 lines rejected\n"
    for said in (
        f"{path}:3: kind: got 'sleepy'; accepted: stuck,",
        f"{path}:4: turn_id: got 'nobody'",
        f"{path}:5: productive: got 'maybe'",
        f"{path}:6: says nothing of the turn",
    ):
        assert said in output.err
    assert [(row[1], row[2], row[3], row[4]) for row in _labels(database)] == [
        ("rerun", False, True, "judge"), (None, None, None, "judge")
    ]  # fmt: skip


def test_a_csv_file_of_bad_lines_alone_takes_nothing_and_leaves_no_file(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        f"turn_id,kind,stuck\nnobody,stuck,\n{turn_id('g', 1)},rerun,yes\n{turn_id('g', 2)},stuck,no\n",
        encoding="utf-8",
    )
    assert main(["label", "--csv", str(path), "--db", str(database)]) == ExitCode.FAILED
    output = capsys.readouterr()
    assert output.out == "0 labels taken, 3 lines rejected\n"
    assert f"{path}:3: kind rerun and stuck true contradict each other" in output.err
    assert f"{path}:4: kind stuck and stuck false contradict each other" in output.err
    assert not label_file(database).exists()


def test_a_csv_file_that_is_not_there_is_named_with_the_nearest(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.csv").touch()
    assert main(["label", "--csv", str(tmp_path / "label.csv"), "--db", str(database)]) == ExitCode.FAILED
    assert f"no such file; did you mean {tmp_path / 'labels.csv'}?; give a CSV" in capsys.readouterr().err


def test_a_csv_file_without_the_columns_changes_nothing(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,verdict\n1,stuck\n", encoding="utf-8")
    assert main(["label", "--csv", str(path), "--db", str(database)]) == ExitCode.FAILED
    assert "line 1: got the columns id, verdict; accepted: turn_id" in capsys.readouterr().err
    assert not label_file(database).exists()


def test_turns_are_drawn_with_the_probability_that_is_logged() -> None:
    strata = [(f"turn-{n}", "not halted") for n in range(20_000)] + [
        (f"h-{n}", "halted") for n in range(1000)
    ]
    drawn = draw(strata, at=0)
    finished = [one for one in drawn if one.stratum == "not halted"]
    halted = [one for one in drawn if one.stratum == "halted"]
    assert {one.probability for one in finished} == {SHARES["not halted"]}
    assert abs(len(finished) - 400) < 4 * (400 * 0.98) ** 0.5
    assert abs(len(halted) - 400) < 4 * (400 * 0.6) ** 0.5
    assert 0.05 < sum(one.second_reader for one in drawn) / len(drawn) < 0.15


def test_a_growing_stratum_draws_nobody_whom_it_passed_over() -> None:
    strata = [(f"turn-{n}", "halted") for n in range(1000)]
    early, late = ({one.turn_id for one in draw(strata[:n], at=0)} for n in (60, 1000))
    passed_over = {turn for turn, _ in strata[:60]} - early
    assert not passed_over & late
    assert len(early) >= LEAST * 0.6


def test_an_event_holds_no_text_of_the_turn(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["label", "--plan", "--db", str(database)])
    _read(database, "anna", "sn" + "q", monkeypatch)
    (line,) = label_file(database).read_text(encoding="utf-8").splitlines()
    (record,) = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert record["eventName"] == "turncap.turn.labelled"
    assert {one["key"] for one in record["attributes"]} == {
        f"turncap.{name}"
        for name in (
            "schema.version", "event.id", "guard.id", "turn.seq", "turn.id", "label.id", "stuck",
            "productive", "kind", "by", "stratum", "probability",
        )
    }  # fmt: skip
