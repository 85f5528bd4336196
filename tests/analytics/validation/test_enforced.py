"""An enforcing guard with a holdout, through the real guard, SDK, receiver and loader."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

from analytics.cli import main
from analytics.collect import Collector
from analytics.validation.gates import Question, State
from analytics.validation.validate import Validation
from analytics.validation.verdicts import Word
from guard import ToolCallGuard
from tests.analytics.validation.judged import gate, judged, validated, verdict

STUCK, FINE = 120, 700


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stuck turns, halted at call 11 unless the coin lets them run on and all read, among short ones."""
    folder = tmp_path_factory.mktemp("enforced")
    with Collector(folder / "telemetry") as collector:
        logs = LoggerProvider(shutdown_on_exit=False)
        logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{collector.url}/v1/logs")))
        guard = ToolCallGuard(
            soft_cap=10, stuck_at=3, backstop=1000, holdout_rate=0.5, holdout_salt="a", logger_provider=logs
        )
        for number in range(STUCK + FINE):
            stuck = number < STUCK
            turn = guard.start_turn(user=f"u{number}")
            for call in range(30 if stuck else 3):
                made = turn.admit("Bash", {"command": "make" if stuck else f"ls {call}"})
                if made.halted:
                    break
                turn.settle(made, result="failed" if stuck else "ok")
            turn.end()
            if stuck:
                guard.label(turn.id, by="human", stuck=True)
            if number % 50 == 49:
                logs.force_flush()
        logs.shutdown()
    assert main(["load", str(folder / "telemetry"), "--db", str(folder / "t.duckdb")]) == 0
    return folder / "t.duckdb"


@pytest.fixture(scope="module")
def found(exported: Path) -> Validation:
    return validated(exported)


def test_no_gate_is_red_and_the_coins_are_fair(found: Validation) -> None:
    states = {one.name: one.state for one in found.case.gates}
    assert State.RED not in states.values(), [one.text for one in found.case.gates]
    assert states["holdout ratio"] is not State.NOT_APPLICABLE
    assert f"{STUCK} of {STUCK} logged halts" in gate(found.case, "reproduced halts").text


def test_the_explored_halts_speak_for_those_that_nobody_read(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    shutil.copy(exported, path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "DELETE FROM labels WHERE turn_id IN (SELECT turn_id FROM turns WHERE halted_call IS NOT NULL)"
        )
    found = validated(path)
    explored = int(found.population.turns.flags("explored").sum())
    assert 30 <= explored < STUCK
    fdr, fhr = verdict(found, Question.STUCK_THRESHOLD).shares
    assert (fdr.n, fdr.least, fdr.most, fdr.basis) == (explored, 0, 0, "halts that the holdout let run on")
    assert (fhr.n, fhr.estimate) == (STUCK + FINE, 0)


def test_where_every_halt_was_read_all_of_them_count(found: Validation) -> None:
    fdr, fhr = verdict(found, Question.STUCK_THRESHOLD).shares
    assert (fdr.n, fdr.least, fdr.most, fdr.basis) == (STUCK, 0, 0, "all halts")
    assert (fhr.n, fhr.least, fhr.most) == (FINE, 0, 0)


def test_a_stricter_soft_cap_would_have_halted_the_stuck_turns_sooner(found: Validation) -> None:
    word = verdict(found, Question.SOFT_CAP)
    assert (word.running, word.word, word.suggested) == (10, Word.TOO_HIGH, 0), word.reasons


def test_calls_of_halted_turns_end_at_the_refused_one(found: Validation) -> None:
    turns = found.population.turns
    cut = turns.flags("cut_short")
    assert set(turns.calls[cut]) == {11}
    assert set(turns.calls[turns.flags("explored")]) == {30}


def test_what_a_halt_hides_is_not_excluded(exported: Path, found: Validation) -> None:
    """A turn that was halted at its eleventh call may have become longer than the backstop."""
    cut = found.population.turns.flags("cut_short")
    (claim,) = [one for one in judged(exported).screen.excluded if "make more than 1,000 calls" in one]
    assert float(claim.split()[3].rstrip("%")) > 100 * cut.mean() > 5


def test_a_policy_that_is_replayed_past_halts_is_said_to_do_at_least_so_much(exported: Path) -> None:
    decided = judged(exported)
    assert decided.screen.alternative is not None
    least = decided.screen.alternative.badge != "exact"
    assert ("would have saved at least " in decided.screen.answers[2]) == least
