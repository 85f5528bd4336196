"""Every word of every question, reached by built turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analytics.report.mind import would_change
from analytics.report.verdict_words import finding
from analytics.validation.gates import Question
from analytics.validation.verdicts import Word
from guard.policy import CapPolicy
from tests.analytics.recorded import database as recorded
from tests.analytics.recorded import letters, live
from tests.analytics.validation.judged import (
    database,
    diverse,
    gate,
    judged,
    repeating,
    turn,
    validated,
    validated_in,
    verdict,
)

Rows = list[dict[str, Any]]

# The test database logs no halt by the backstop.
LOGGED = "UPDATE turns SET would_halt_call = 1001, would_halt_threshold = 'backstop' WHERE calls > 1000"


def short(turns: int, first: int = 10_000) -> Rows:
    """Turns of two calls, each of a user of its own: too many for a rare event to hide among them."""
    return [turn([0, 1], session=first + i) for i in range(turns)]


def many(turns: int, keys: list[int], label: str | None, first: int) -> Rows:
    """Turns alike, each of a user of its own."""
    return [turn(keys, label=label, session=first + i) for i in range(turns)]


def long_and_fine() -> Rows:
    return short(200) + many(10, diverse(1001), "rerun", 0)


def long_and_stuck() -> Rows:
    """Stuck turns of 500 calls that no repeat gives away: only the backstop can see them."""
    return short(3100) + many(8, diverse(500), "stuck", 0)


def wrong_halts() -> Rows:
    return short(300) + many(38, repeating(110), "rerun", 0) + many(2, repeating(110), "stuck", 100)


def right_halts(stuck_keys: list[int] | None = None) -> Rows:
    """Halts that hit stuck turns alone; a lower S would hit turns that are not."""
    return (
        short(700)
        + many(40, stuck_keys or repeating(110), "stuck", 0)
        + many(40, repeating(80), "rerun", 100)
    )


def late_sixth() -> Rows:
    """Stuck turns whose fifth repeat comes early and the sixth late."""
    return right_halts([0] * 5 + list(range(1, 146)) + [0] * 10)


def short_stuck() -> Rows:
    """Stuck turns that a lower S would have halted sooner, with nobody else in its way."""
    return short(700) + many(40, repeating(110), "stuck", 0)


def ended_before() -> Rows:
    """Stuck turns that all end before the soft cap: nothing is halted, and a lower S would have met them."""
    return short(700) + many(40, repeating(90), "stuck", 0)


M, K, S = Question.MULTIPLIER, Question.STUCK_THRESHOLD, Question.SOFT_CAP


@pytest.mark.parametrize(
    ("question", "word", "suggested", "rows"),
    [
        pytest.param(M, Word.TOO_LOW, None, long_and_fine, id="multiplier: fine turns pass the backstop"),
        pytest.param(M, Word.TOO_HIGH, 3, long_and_stuck, id="multiplier: 3× saves much, harms nobody"),
        pytest.param(M, Word.VALIDATED, None, lambda: short(3100), id="multiplier: none of 3,100 is long"),
        pytest.param(M, Word.INSUFFICIENT, None, lambda: short(500), id="multiplier: 500 turns are too few"),
        pytest.param(K, Word.TOO_LOW, None, wrong_halts, id="K: most halts are wrong"),
        pytest.param(K, Word.TOO_HIGH, 5, late_sixth, id="K: 5 would have halted the same turns sooner"),
        pytest.param(K, Word.VALIDATED, None, right_halts, id="K: all halts are right, less saves nothing"),
        pytest.param(K, Word.INSUFFICIENT, None, lambda: short(700), id="K: nothing was halted"),
        pytest.param(S, Word.TOO_LOW, None, wrong_halts, id="S: most halts are wrong"),
        pytest.param(S, Word.TOO_HIGH, 75, short_stuck, id="S: 75 would have halted the same turns sooner"),
        pytest.param(S, Word.TOO_HIGH, 75, ended_before, id="S: 75 would have met what ends before 100"),
        pytest.param(S, Word.VALIDATED, None, right_halts, id="S: a lower one halts turns that are fine"),
        pytest.param(S, Word.INSUFFICIENT, None, lambda: short(700), id="S: nothing was halted"),
    ],
)
def test_word(
    question: Question, word: Word, suggested: int | None, rows: Callable[[], Rows], tmp_path: Path
) -> None:
    found = verdict(validated(database(tmp_path / "t.duckdb", rows(), LOGGED)), question)
    assert (found.word, found.suggested) == (word, suggested), found.reasons
    if word is Word.INSUFFICIENT:
        assert found.reasons
        assert found.needed.turns
    else:
        assert found.lean is word
        assert not found.reasons or found.alike


def test_a_halt_that_replay_does_not_reproduce_stops_every_word(tmp_path: Path) -> None:
    found = validated(database(tmp_path / "t.duckdb", long_and_fine()))
    assert {one.word for one in found.verdicts} == {Word.INSUFFICIENT}
    assert "reproduces 0 of 10 logged halts" in gate(found.case, "reproduced halts").text


def test_fewer_than_twenty_users_stop_every_word(tmp_path: Path) -> None:
    rows = right_halts()
    for i, row in enumerate(rows):
        row["session"] = str(i % 19)
    found = validated(database(tmp_path / "t.duckdb", rows))
    assert {one.word for one in found.verdicts} == {Word.INSUFFICIENT}
    assert all("fewer than 20 stop every word" in " ".join(v.reasons) for v in found.verdicts)


def test_a_red_gate_stops_the_words_it_names_and_no_other(tmp_path: Path) -> None:
    """Coins that fell far too often one way make K and S worthless; lengths do not hang on them."""
    coins = (
        "UPDATE turns SET mode = 'enforce', holdout_rate = 0.05",
        "UPDATE turns SET explored = TRUE WHERE would_halt_call IS NOT NULL",
    )
    found = validated(database(tmp_path / "t.duckdb", short(2400) + right_halts(), *coins))
    words = {one.question: one.word for one in found.verdicts}
    assert words == {M: Word.VALIDATED, K: Word.INSUFFICIENT, S: Word.INSUFFICIENT}
    assert "gate 'holdout ratio' is red" in " ".join(verdict(found, K).reasons)


def test_twenty_nine_right_halts_do_not_validate_and_lean_that_way(tmp_path: Path) -> None:
    rows = short(700) + many(29, repeating(110), "stuck", 0) + many(40, repeating(80), "rerun", 100)
    found = verdict(validated(database(tmp_path / "t.duckdb", rows)), K)
    assert (found.word, found.lean) == (Word.INSUFFICIENT, Word.VALIDATED)
    assert "29 halts were explored or read; 30 are needed" in " ".join(found.reasons)
    assert found.needed.labels == 1


def test_unread_halts_are_bounds_and_reading_them_decides(tmp_path: Path) -> None:
    rows = right_halts()
    for row in rows[700:720]:
        row["label"] = None
    unread = verdict(validated(database(tmp_path / "t.duckdb", rows)), K)
    assert unread.word is Word.INSUFFICIENT
    assert (unread.first.least, unread.first.most, unread.first.n) == (0, 20, 40)
    assert unread.needed.labels
    assert unread.needed.turns == 0
    assert "20 halted turns are unread" in " ".join(unread.reasons)


def test_turns_of_a_step_limit_say_nothing_of_the_multiplier(tmp_path: Path) -> None:
    rows = [{**row, "length_limited": True} for row in short(3100)]
    found = validated(database(tmp_path / "t.duckdb", [*rows, *short(50, 0)]))
    assert verdict(found, M).first.n == 50
    assert verdict(found, K).shares[1].n == 3150


def enforced(rows: Rows, tmp_path: Path, explored: int) -> Path:
    """As an enforcing guard leaves it with a holdout of one half: of the halts so many ran on, and only
    they are read; the others end at the refused call."""
    cut = "SELECT turn_id FROM turns WHERE mode = 'enforce' AND halted_call IS NOT NULL"
    return database(
        tmp_path / "t.duckdb", rows,
        "UPDATE turns SET mode = 'enforce', holdout_rate = 0.5",
        "UPDATE turns SET explored = seq IN (SELECT seq FROM turns WHERE would_halt_call IS NOT NULL "
        f"ORDER BY seq LIMIT {explored}) WHERE would_halt_call IS NOT NULL",
        "UPDATE turns SET halted_call = would_halt_call, threshold = 'soft-stuck', outcome = 'halted', "
        "calls = would_halt_call, total = would_halt_call, ran = would_halt_call - 1, refused = 1, "
        "least_calls = would_halt_call WHERE would_halt_call IS NOT NULL AND NOT explored",
        f"DELETE FROM calls WHERE turn_id IN ({cut}) AND n > 101",
        f"DELETE FROM labels WHERE turn_id IN ({cut})",
    )  # fmt: skip


def test_explored_halts_validate_what_enforced_ones_hide(tmp_path: Path) -> None:
    rows = short(1400) + many(80, repeating(110), "stuck", 0) + many(80, repeating(80), "rerun", 200)
    found = validated(enforced(rows, tmp_path, explored=40))
    assert verdict(found, K).word is Word.VALIDATED, verdict(found, K).reasons
    fdr, fhr = verdict(found, K).shares
    assert (fdr.n, fdr.least, fdr.most, fdr.basis) == (40, 0, 0, "halts that the holdout let run on")
    assert (fhr.n, fhr.estimate) == (1560, 0)
    # What the forty enforced halts hide might have become long.
    assert (verdict(found, M).first.least, verdict(found, M).first.most) == (0, 40)


def test_without_a_holdout_enforced_halts_that_nobody_read_are_bounds(tmp_path: Path) -> None:
    rows = short(700) + many(80, repeating(110), "stuck", 0)
    found = verdict(validated(enforced(rows, tmp_path, explored=0)), K)
    assert found.word is Word.INSUFFICIENT
    assert (found.first.least, found.first.most, found.first.n) == (0, 80, 80)


def test_a_backstop_that_is_no_multiple_of_the_soft_cap_is_judged_as_it_is(tmp_path: Path) -> None:
    """Ten turns of 1,030 calls pass 1,000 and not 1,040."""
    rows = short(200) + many(10, diverse(1030), "rerun", 0)
    policy = "soft_cap=100 stuck_at=6 backstop=1040"
    path = database(
        tmp_path / "t.duckdb", rows,
        f"UPDATE policies SET backstop = 1040, text = 'adaptive signal=repeat {policy}'",
    )  # fmt: skip
    found = verdict(validated(path), M)
    assert (found.running, found.first.least) == (10, 0)


def test_turns_known_by_tool_names_alone_tell_lengths_and_nothing_of_repeats(tmp_path: Path) -> None:
    """The long ones among them may all be halted: leaving only those out would say that few are."""
    path = database(
        tmp_path / "t.duckdb", right_halts(),
        "UPDATE turns SET grade = 'names-only' WHERE seq % 2 = 0",
        "UPDATE calls SET key = NULL, result = NULL "
        "WHERE turn_id IN (SELECT turn_id FROM turns WHERE grade = 'names-only')",
    )  # fmt: skip
    found = validated(path)
    assert verdict(found, M).first.n == 780
    fdr, fhr = verdict(found, K).shares
    assert (fdr.n, fdr.most) == (20, 0)
    assert (fhr.n, fhr.most) == (370, 0)
    assert "390 turns do not tell what repeat needs" in " ".join(verdict(found, K).reasons)


def test_a_laxer_value_is_not_suggested_by_the_few_turns_that_tell_of_it() -> None:
    """Ten stuck turns that the holdout let run on say nothing of the forty halts that were carried out."""
    rule = CapPolicy.adaptive(soft_cap=4, stuck_at=3, backstop=40)
    turns = [live(letters("ababa"), rule) for _ in range(40)]
    turns += [live(letters("a" * 30), rule, enforce=False) for _ in range(10)]
    connection = recorded(turns, labels=[False] * 40 + [True] * 10)
    connection.execute("UPDATE turns SET explored = (mode = 'shadow'), mode = 'enforce'")
    found = validated_in(connection)
    of_k = verdict(found, Question.STUCK_THRESHOLD)
    assert (of_k.word, of_k.suggested) == (Word.TOO_LOW, None)
    said = finding(verdict(found, Question.MULTIPLIER))
    assert said.startswith("0 to 40 of 50 turns without a step limit went past it, or would have, and")


def test_long_turns_that_would_change_our_mind_are_those_labelled_not_stuck(tmp_path: Path) -> None:
    rows = [turn(diverse(1100), session=i) for i in range(3)] + [
        turn(diverse(3), session=i) for i in range(3, 900)
    ]
    found = judged(database(tmp_path / "t.duckdb", rows))
    said = list(would_change(found.validation.verdicts, found.decided, (), {}))
    assert "labelled not stuck, would make the backstop too low (now 0)." in said[0]
