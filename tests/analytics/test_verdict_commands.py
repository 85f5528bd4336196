"""`turncap report` and `turncap recommend` tell people and CI what was found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from tests.analytics.validation.judged import database, turn
from tests.analytics.validation.test_decision import looping


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Too few turns for any word."""
    rows = [turn([0, 1], session=i) for i in range(30)]
    return database(tmp_path_factory.mktemp("small") / "t.duckdb", rows)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["too-low", "multiplier:too-high"], 0, ""),
        (["too-low", "soft_cap:insufficient-evidence"], 4, "soft_cap is insufficient evidence"),
    ],
)
def test_a_named_verdict_is_an_exit_code(
    words: list[str],
    code: int,
    said: str,
    small: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", "--db", str(small), "--out", str(tmp_path), "--fail-on", *words]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("(--fail-on)") == bool(said)
    assert (tmp_path / "report.json").exists()


@pytest.mark.parametrize("word", ["low", "cap:too-low", "too low"])
def test_a_word_that_no_verdict_has_is_refused(
    word: str, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report", "--db", str(small), "--out", str(tmp_path), "--fail-on", word])
    assert caught.value.code == 2
    assert f"got {word!r}; accepted: too-low, too-high" in capsys.readouterr().err


def test_a_week_is_one_look_and_is_written_down(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    shutil.copy(small, path)
    words = ["report", "--db", str(path), "--out", str(tmp_path), "--week", "2025-W49"]
    assert main(words) == 0
    assert main(words) == 0
    verdict = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["verdicts"][0]
    assert verdict["look"]["week"] == "2025-W49"
    assert verdict["look"]["number"] == 1
    assert verdict["reasons"][0].startswith("look 1 was taken on ")
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*), min(look), max(look) FROM looks").fetchone() == (3, 1, 1)


def test_the_recommendation_names_the_settings_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = database(tmp_path / "t.duckdb", looping(40, 40))
    assert main(["recommend", "--db", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("change: on the same turns it would have halted 40 stuck and 0 other turns")
    assert "TURNCAP_SIGNAL=" in text
    assert "TURNCAP_BACKSTOP=1000" in text
    assert "TURNCAP_SOFT_CAP=" in text


def test_the_recommendation_as_json_is_the_section_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = database(tmp_path / "t.duckdb", looping(40, 40))
    assert main(["recommend", "--db", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["report", "--db", str(path), "--out", str(tmp_path)]) == 0
    assert found == json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["recommendation"]
    assert found["answer"] == "change"


def test_without_enough_data_it_says_why(evidence_db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", "--db", str(evidence_db)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("the data cannot say: ")
    assert "TURNCAP_" not in text
    assert "these data cannot tell 3× from 10×" in text
    assert "multiplier: 3,078 further turns" in text
