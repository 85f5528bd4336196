"""report.json has the shape that its schema fixes, and says what the method says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analytics.database import open_database
from analytics.report.build import build_report
from analytics.report.render import to_json
from analytics.validation.settings import read_settings
from tests.analytics.evidence_db import build

SCHEMA = json.loads((files("analytics.report") / "report.schema.json").read_text(encoding="utf-8"))
SIGNALS = {  # signal, K -> (stuck caught, others halted, calls saved, calls cut) at S = 0, 50, 100
    ("repeat", 6): ((10, 101, 588, 2213), (7, 57, 297, 1354), (1, 9, 1, 198)),
    ("repeat", 20): ((7, 0, 425, 0), (7, 0, 277, 0), (1, 0, 1, 0)),
    ("recent_repeat", 6): ((10, 47, 580, 1100), (7, 12, 297, 272), (1, 1, 1, 8)),
    ("novelty_repeat", 6): ((9, 0, 568, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("same_result_repeat", 6): ((10, 1, 570, 7), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("no_progress", 6): ((10, 0, 568, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
    ("no_progress", 8): ((8, 0, 532, 0), (7, 0, 297, 0), (1, 0, 1, 0)),
}


def document_of(path: Path) -> dict[str, Any]:
    with open_database(path) as connection:
        found: dict[str, Any] = json.loads(to_json(build_report(connection, read_settings())))
    return found


@pytest.fixture(scope="module")
def bundled(evidence_db: Path) -> dict[str, Any]:
    return document_of(evidence_db)


def test_the_bundled_report_keeps_to_the_schema(bundled: Mapping[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(bundled, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_a_report_of_nothing_keeps_to_the_schema(tmp_path: Path) -> None:
    found = document_of(build(tmp_path / "t.duckdb", []))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert {verdict["verdict"] for verdict in found["verdicts"]} == {"insufficient evidence"}


@pytest.mark.parametrize("section", ["gates", "verdicts", "false_stuck", "signals", "grid"])
def test_a_row_that_lacks_or_invents_a_field_breaks_the_schema(
    section: str, bundled: Mapping[str, Any]
) -> None:
    row = bundled[section][0]
    for changed in ({**row, "invented": 1}, dict(list(row.items())[1:])):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(
                {**bundled, section: [changed, *bundled[section][1:]]},
                SCHEMA,
                cls=jsonschema.Draft202012Validator,
            )


def test_verdicts_of_the_bundled_turns(bundled: Mapping[str, Any]) -> None:
    multiplier, stuck_at, soft_cap = bundled["verdicts"]
    names = ("question", "verdict", "estimate", "low", "n", "clusters", "tolerance")
    assert {name: multiplier[name] for name in names} == {
        "question": "multiplier", "verdict": "insufficient evidence", "estimate": 0, "low": 0, "n": 1570,
        "clusters": 289, "tolerance": 0.001,
    }  # fmt: skip
    assert multiplier["high"] == pytest.approx(0.003, abs=1e-4)
    for verdict in (stuck_at, soft_cap):
        assert (verdict["verdict"], verdict["lean"]) == ("insufficient evidence", "too low")
        assert (verdict["estimate"], verdict["n"], verdict["tolerance"]) == (0.9, 10, 0.2)
        assert [rate["name"] for rate in verdict["rates"]] == ["FDR", "FHR"]


@pytest.mark.parametrize(("signal", "k"), SIGNALS)
def test_signals_of_the_bundled_turns(signal: str, k: int, bundled: Mapping[str, Any]) -> None:
    rows = {(row["signal"], row["k"], row["soft_cap"]): row for row in bundled["signals"]}
    names = ("stuck_caught", "others_halted", "calls_saved", "calls_cut")
    found = tuple(tuple(rows[signal, k, s][name] for name in names) for s in (0, 50, 100))
    assert found == SIGNALS[signal, k]
    assert {rows[signal, k, s]["badge"] for s in (0, 50, 100)} == {"exact"}


def test_the_grid_agrees_with_the_signals_where_they_meet(bundled: Mapping[str, Any]) -> None:
    grid = {(row["signal"], row["k"], row["soft_cap"], row["backstop"]): row for row in bundled["grid"]}
    met = 0
    for side in bundled["signals"]:
        row = grid.get((side["signal"], side["k"], side["soft_cap"], side["backstop"]))
        if row is not None:
            met += 1
            assert (row["stuck"], row["not_stuck"] + row["unlabelled"]) == (
                side["stuck_caught"], side["others_halted"]
            )  # fmt: skip
            assert row["turns"] == row["stuck"] + row["not_stuck"] + row["unlabelled"]
    assert met == 60


def test_recommendation_of_the_bundled_turns(bundled: Mapping[str, Any]) -> None:
    found = bundled["recommendation"]
    assert (found["answer"], found["policy"], found["settings"]) == ("the data cannot say", None, None)
    assert found["running"]["calls_saved"] == 1
    assert (found["leading"]["signal"], found["leading"]["calls_saved"]) == ("no_progress", 568)
