"""Weekly looks: which one a week is, its level, and the row that is written of it once."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics import stats
from analytics.database import open_database
from analytics.errors import InputError
from analytics.replay import Replay
from analytics.validation.gates import Question
from analytics.validation.looks import Block, Week, block_of, keep_once, week_number, week_text
from analytics.validation.population import WEEK
from analytics.validation.settings import read_settings
from analytics.validation.validate import validate
from analytics.validation.verdicts import Word
from tests.analytics.evidence_db import STARTED
from tests.analytics.validation.judged import database, repeating, turn, validated, verdict

FIRST = week_number("2025-W49")  # the week of the test database's one date


def week(number: int, *, guard: str = "1", models: str = "a") -> Week:
    return Week(number=number, guard_version=guard, models=frozenset(models))


@pytest.mark.parametrize(
    ("known", "asked", "block"),
    [
        pytest.param([week(5)], 5, (5, 1), id="the first week with data is the first look"),
        pytest.param([week(5), week(6), week(7)], 7, (5, 3), id="weeks count on"),
        pytest.param([week(5), week(7)], 7, (5, 3), id="a week without data is a look not taken"),
        pytest.param([week(5), week(6)], 5, (5, 1), id="what came later does not matter"),
        pytest.param([week(5), week(17)], 17, (5, 13), id="the thirteenth week is the last look"),
        pytest.param([week(5), week(18)], 18, (18, 1), id="the fourteenth begins anew"),
        pytest.param([week(5), week(6, guard="2")], 6, (6, 1), id="a new guard version begins anew"),
        pytest.param([week(5), week(6, models="b")], 6, (6, 1), id="a new model begins anew"),
        pytest.param([week(5), week(6, models="ab")], 6, (6, 1), id="so does a model taken into use beside"),
        pytest.param([week(5, models="ab"), week(6)], 6, (5, 2), id="a model that is used less does not"),
        pytest.param(
            [week(5, models="ab"), week(6), week(7, models="ab")], 7, (5, 3), id="nor one that comes back"
        ),
    ],
)
def test_look_of_a_week(known: list[Week], asked: int, block: tuple[int, int]) -> None:
    found = block_of(known, asked)
    assert (found.first, found.look) == block
    assert isinstance(found, Block)


def test_a_week_without_turns_is_an_error_that_names_those_with_turns() -> None:
    with pytest.raises(InputError, match=r"1970-W08: no turn in scope .*: 1970-W07 to 1970-W09"):
        block_of([week(5), week(7)], 6)
    with pytest.raises(InputError, match="weeks with turns: none"):
        block_of([], 6)


@given(st.integers(0, 10_000))
def test_a_week_is_named_and_found_again(number: int) -> None:
    assert week_number(week_text(number)) == number


@pytest.mark.parametrize("text", ["2026", "2026-49", "2026-W54", "W49", "2026-W4x", ""])
def test_what_is_no_week_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="an ISO week such as 2026-W49"):
        week_number(text)


def spread(weeks: int, each: int = 20) -> list[dict[str, object]]:
    """As many turns a week as `each`, all halted wrongly, of users of their own."""
    return [turn(repeating(101), session=i, label="rerun") for i in range(weeks * each)]


def dated(weeks: int, each: int = 20) -> str:
    return f"UPDATE turns SET started_at = {STARTED} + ((seq - 1) // {each}) * {WEEK} WHERE {weeks} > 0"


def test_a_week_is_judged_by_all_weeks_of_its_block_at_its_own_level(tmp_path: Path) -> None:
    path = database(tmp_path / "t.duckdb", spread(3), dated(3))
    for number in range(3):
        found = verdict(validated(path, week=week_text(FIRST + number)), Question.STUCK_THRESHOLD)
        assert found.first.n == 20 * (number + 1)
        assert (found.look.number, found.look.week) == (number + 1, week_text(FIRST + number))
        assert found.look.level == stats.look_levels()[number]
    once = verdict(validated(path), Question.STUCK_THRESHOLD)
    assert (once.look.level, once.look.number, once.look.week) == (0.05, None, None)
    assert once.first.n == 60


def test_a_new_guard_version_leaves_the_turns_of_the_old_one_out(tmp_path: Path) -> None:
    path = database(
        tmp_path / "t.duckdb", spread(3), dated(3), "UPDATE turns SET guard_version = '2' WHERE seq > 40"
    )
    found = validated(path, week=week_text(FIRST + 2))
    assert found.case.look.number == 1
    assert len(found.population.turns) == 20
    assert found.case.scope["guard_versions"] == ["2"]


def test_a_look_is_written_once_and_then_stands_whatever_comes(tmp_path: Path) -> None:
    path = database(tmp_path / "t.duckdb", spread(3), dated(3))
    asked = week_text(FIRST + 2)

    def look(now: int) -> list[tuple[Word, float | None]]:
        with open_database(path, read_only=False) as connection:
            found = validate(connection, Replay.of(connection), read_settings(), week=asked)
            kept = keep_once(connection, found.verdicts, scope=found.case.scope_key, now=now)
            return [(one.word, one.first.estimate) for one in kept]

    first = look(now=10**18)
    assert first[1] == (Word.TOO_LOW, 1.0)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE labels SET stuck = TRUE, kind = 'stuck'")
    assert verdict(validated(path, week=asked), Question.STUCK_THRESHOLD).first.estimate == 0
    assert look(now=2 * 10**18) == first
    with duckdb.connect(str(path)) as connection:
        rows = connection.execute("SELECT question, look, level, looked_at, verdict FROM looks").fetchall()
    assert len(rows) == 3
    assert {row[3] for row in rows} == {10**18}
    assert {row[1:3] for row in rows} == {(3, stats.look_levels()[2])}
