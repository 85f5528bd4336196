"""What notebooks show: frames of the report, pictures that stand alone, thresholds to slide."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from analytics import explore
from analytics.database import open_database
from analytics.errors import InputError
from analytics.report.strip import Strip
from tests.analytics.evidence_db import build, evidence_rows
from tools.notebooks import NOTEBOOKS, numbers


@pytest.fixture(scope="module")
def turns(evidence_db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with explore.open_turns(evidence_db) as connection:
        yield connection


@pytest.fixture(scope="module")
def thresholds(turns: duckdb.DuckDBPyConnection) -> explore.Thresholds:
    return explore.Thresholds(turns)


def _captions(svg: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(svg).iter() if one.get("class") == "caption"]


def test_a_policy_halts_whom_the_bundled_turns_say(thresholds: explore.Thresholds) -> None:
    assert thresholds.totals().loc[["stuck", "not stuck"]].values.tolist() == [[1, 1], [9, 198]]
    best = thresholds.totals(signal="no_progress", soft_cap=0)
    assert best.loc[["stuck", "not stuck"]].values.tolist() == [[10, 568], [0, 0]]


def test_a_picture_stands_alone(thresholds: explore.Thresholds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(explore.STATIC, "1")
    picture = explore.sliders(thresholds)
    assert repr(picture).splitlines()[0] == (
        "1 stuck turns halted, 1 calls saved; 9 others halted, 198 calls cut"
    )  # fmt: skip
    assert "var(" not in picture.svg
    captions = _captions(picture.svg)
    assert captions[0] == "not stuck, halted at call 101 of 145"
    assert len(captions) == 5


def test_a_caption_is_text_and_nothing_else() -> None:
    strip = Strip(turn_id="t", ranks=(0, 0), failed=(), changes=(), halts=())
    svg = explore.stacked([('a <b> & "c"', strip)]).svg
    assert _captions(svg) == ['a <b> & "c"']


def test_no_turn_is_said_and_drawn_as_none() -> None:
    picture = explore.stacked([])
    assert picture.text == "No such turn was seen."
    ElementTree.fromstring(picture.svg)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_nothing_and_imports_analytics_alone(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            assert not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.Import))
            if isinstance(node, ast.ImportFrom):
                assert node.module == "analytics"
    assert cells
    assert any(cell["outputs"] for cell in cells)
    assert path.stat().st_size < 150_000


def test_numbers_are_compared_and_neither_pictures_nor_words() -> None:
    class Notebook:
        cells = (
            {"outputs": [{"data": {"image/svg+xml": "<svg/>", "text/plain": "a picture"}}]},
            {"outputs": [{"data": {"text/plain": "10 turns\n2,000.5"}}, {"name": "stderr", "text": "7"}]},
            {"outputs": [{"name": "stdout", "text": "3 of 4."}]},
        )

    assert numbers(Notebook) == ["cell 1: 10", "cell 1: 2,000.5", "cell 2: 3", "cell 2: 4"]


@pytest.mark.heavy  # in the stage of the notebooks, which has widgets
def test_a_moved_slider_shows_who_would_be_halted_then(
    thresholds: explore.Thresholds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(explore.STATIC, raising=False)
    shown = explore.sliders(thresholds)
    signal, _, soft_cap, *_ = shown.children
    shown.update()
    assert "1 stuck turns halted, 1 calls saved; 9 others halted, 198 calls cut" in shown.result.text
    soft_cap.value = 0
    assert "10 stuck turns halted, 588 calls saved; 101 others halted, 2,213 calls cut" in shown.result.text
    signal.value = "no_progress"
    assert "10 stuck turns halted, 568 calls saved; 0 others halted, 0 calls cut" in shown.result.text


def test_the_turn_to_look_at_is_the_dearest_halt_else_the_most_repetitive(
    thresholds: explore.Thresholds, tmp_path: Path
) -> None:
    halted = thresholds.halted().sort_values("calls_after", ascending=False, kind="stable")
    assert thresholds.one_to_look_at() == halted["turn_id"].iloc[0]
    rows = [{**row, "label": None} for row in evidence_rows()[5:8]]
    with open_database(build(tmp_path / "t.duckdb", rows)) as connection:
        few = explore.Thresholds(connection)
        sizes = [(max(map(row["key"].count, row["key"])), len(row["key"])) for row in rows]
        most = sizes.index(max(sizes))
        assert len(few.halted()) == 0
        assert few.one_to_look_at() == few.replay.turns.turn_id[most]
    with open_database(build(tmp_path / "none.duckdb", [])) as connection, pytest.raises(InputError):
        explore.Thresholds(connection).one_to_look_at()
