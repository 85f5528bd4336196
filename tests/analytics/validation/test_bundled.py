"""What the method says of the bundled turns, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.decision import Answer
from analytics.validation.gates import Question, State
from analytics.validation.verdicts import Word
from tests.analytics.validation.judged import Judged, gate, judged


@pytest.fixture(scope="module")
def bundled(evidence_db: Path) -> Judged:
    return judged(evidence_db)


def test_no_gate_is_red_and_every_logged_halt_is_reproduced(bundled: Judged) -> None:
    states = {one.name: one.state for one in bundled.validation.case.gates}
    assert State.RED not in states.values()
    assert states["reproduced halts"] is State.GREEN
    assert "10 of 10" in gate(bundled.validation.case, "reproduced halts").text


def test_multiplier_lacks_long_turns(bundled: Judged) -> None:
    verdict = bundled.verdict(Question.MULTIPLIER)
    assert (verdict.word, verdict.running, verdict.first.n) == (Word.INSUFFICIENT, 10, 1570)
    assert (verdict.first.estimate, verdict.first.low) == (0, 0)
    assert verdict.first.high == pytest.approx(0.0030, abs=0.0001)
    assert verdict.tolerances == (0.001,)
    assert verdict.alike == (3, 5, 7, 10)
    text = " ".join(verdict.reasons)
    assert "only 1,570 turns without a step limit, the longest of 249 calls" in text
    assert "these data cannot tell 3× from 10×" in text
    assert verdict.needed.turns == pytest.approx(3078, abs=2)


@pytest.mark.parametrize("question", [Question.STUCK_THRESHOLD, Question.SOFT_CAP])
def test_ten_halts_are_too_few_and_lean_too_low(bundled: Judged, question: Question) -> None:
    verdict = bundled.verdict(question)
    assert (verdict.word, verdict.lean) == (Word.INSUFFICIENT, Word.TOO_LOW)
    fdr, fhr = verdict.shares
    assert (fdr.name, fdr.least, fdr.n, fdr.estimate) == ("FDR", 9, 10, 0.9)
    assert (fhr.name, fhr.least, fhr.n) == ("FHR", 9, 4008)
    assert fdr.low > 0.2
    assert "10 halts" in " ".join(verdict.reasons)
    assert [(one.least, one.most, one.n) for one in verdict.by_task[:1]] == [(5, 5, 10)]
    assert verdict.needed.labels == 10
    assert verdict.needed.turns == 4018


def test_the_first_screen_says_what_the_rule_did_and_cost(bundled: Judged) -> None:
    answers = bundled.screen.answers
    assert answers[0] == (
        "The rule would have saved 1 call and cut 198. It would have met 1 of 10 stuck turns: "
        "9 had ended by call 100."
    )
    assert "halted 10; 9 of its 10 halts were not stuck; a hard cap of 100 would have cut 50" in answers[1]
    assert "halting at 6 calls in a row that brought nothing new, from the first call on," in answers[2]
    assert "would have saved 568 calls and cut 0, halting 10 stuck and 0 other turns" in answers[2]


def test_nothing_is_recommended_and_it_is_said_why(bundled: Judged) -> None:
    decided = bundled.decided
    assert (decided.answer, decided.policy) == (Answer.CANNOT_SAY, None)
    assert "no labelled turn waits by polling, which this signal is known to halt" in decided.reason
    assert "only 10 of the turns it would have halted are known (30 are needed)" in decided.reason
    assert (decided.running.cost, decided.leading and decided.leading.cost) == (9 * 200 + 707, 140)


def test_each_agent_stands_alone_beside_the_pool(bundled: Judged) -> None:
    rows = {row.agent: row for row in bundled.validation.by_agent}
    assert sum(row.turns for row in rows.values()) == 4018
    assert {agent: row.shares[0].n for agent, row in rows.items()} == {
        "claude-code/a": 0, "mini-swe-agent/a": 6, "tau2-bench/a": 1, "trae/a": 3
    }  # fmt: skip


def test_the_frontier_is_not_beaten_by_any_of_its_own(bundled: Judged) -> None:
    frontier = bundled.decided.frontier
    assert [one.others for one in frontier] == sorted({one.others for one in frontier})
    assert [one.calls_saved for one in frontier] == sorted({one.calls_saved for one in frontier})
    assert frontier[0].calls_saved == 568
