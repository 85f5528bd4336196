"""Each gate in each of its states, by turns that were changed after they were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from analytics.validation.gates import Question, State
from analytics.validation.verdicts import Word
from tests.analytics.evidence_db import STARTED
from tests.analytics.validation.judged import (
    case,
    database,
    diverse,
    gate,
    repeating,
    turn,
    validated,
    validated_in,
    verdict,
)

DAY = 24 * 3600 * 10**9
LATER = STARTED + 30 * DAY
ROWS = [turn(diverse(3), session=i) for i in range(1000)] + [
    turn(repeating(110), session=5000 + i, label="stuck") for i in range(60)
]
GREEN, AMBER, RED, NONE = State.GREEN, State.AMBER, State.RED, State.NOT_APPLICABLE


def lose_ends(turns: int) -> str:
    """So many of the short turns have no end."""
    lost = "has_ended = FALSE, outcome = NULL, calls = NULL, ended_at = NULL"
    return f"UPDATE turns SET {lost} WHERE seq <= {turns}"


def lose_numbers(turns: int) -> str:
    return f"DELETE FROM turns WHERE seq BETWEEN 2 AND {turns + 1}"


def hold_out(explored: int) -> tuple[str, ...]:
    """Enforced with a holdout of 0.5; so many of the 60 would-be halts ran on."""
    return (
        "UPDATE turns SET mode = 'enforce', holdout_rate = 0.5, explored = FALSE WHERE TRUE",
        f"UPDATE turns SET explored = TRUE WHERE would_halt_call IS NOT NULL AND seq <= {1000 + explored}",
        "UPDATE turns SET outcome = 'halted', halted_call = would_halt_call, threshold = 'soft-stuck' "
        "WHERE would_halt_call IS NOT NULL AND NOT explored",
    )


def plan(planned: int, done: int) -> tuple[str, ...]:
    return (
        f"INSERT INTO label_plan SELECT turn_id, 'halts', 0.5, 0, 1, FALSE FROM turns WHERE seq <= {planned}",
        'INSERT INTO labels (label_id, turn_id, stuck, "by") '
        f"SELECT 'h1', turn_id, FALSE, 'human' FROM turns WHERE seq <= {done}",
    )


def read_twice(differ: int) -> tuple[str, ...]:
    """Forty turns read by two people, half of them stuck, who differ on some."""
    return tuple(
        'INSERT INTO labels (label_id, turn_id, stuck, "by", labelled_at) '
        f"SELECT 'h{reader}', turn_id, (seq % 2 = 0) <> ({reader} = 2 AND seq <= {differ}), "
        f"'human', {reader} FROM turns WHERE seq <= 40"
        for reader in (1, 2)
    )


def judge(*versions: str) -> tuple[str, ...]:
    return tuple(
        f'INSERT INTO labels (label_id, turn_id, stuck, "by", judge_version) '
        f"SELECT 'j{v}', turn_id, FALSE, 'judge', '{v}' FROM turns WHERE seq = 1"
        for v in versions
    )


@pytest.mark.parametrize(
    ("name", "state", "statements"),
    [
        pytest.param("ended turns", GREEN, [lose_ends(1)], id="1 of 1,060 ends lost is green"),
        pytest.param("ended turns", AMBER, [lose_ends(2)], id="2 of 1,060 ends lost are amber"),
        pytest.param("ended turns", AMBER, [lose_ends(10)], id="10 of 1,060 ends lost are amber"),
        pytest.param("ended turns", RED, [lose_ends(11)], id="11 of 1,060 ends lost are red"),
        pytest.param("turn numbers", GREEN, [lose_numbers(1)], id="1 number of 1,060 missing is green"),
        pytest.param("turn numbers", AMBER, [lose_numbers(2)], id="2 numbers missing are amber"),
        pytest.param("turn numbers", RED, [lose_numbers(11)], id="11 numbers missing are red"),
        pytest.param("turn numbers", NONE, ["UPDATE turns SET seq = NULL"], id="no numbers, no gate"),
        pytest.param(
            "conflicting duplicates", AMBER, ["UPDATE turns SET seq = 1 WHERE seq = 2"], id="one number twice"
        ),
        pytest.param(
            "conflicting duplicates", RED, ["UPDATE turns SET seq = seq // 2"], id="every number twice"
        ),
        pytest.param("call chunks", GREEN, [], id="all chunks seen"),
        pytest.param(
            "call chunks", AMBER, ["UPDATE turns SET chunks_sent = 9 WHERE seq <= 10"], id="10 lack a chunk"
        ),
        pytest.param(
            "call chunks", RED, ["UPDATE turns SET chunks_sent = 9 WHERE seq <= 22"], id="22 lack a chunk"
        ),
        pytest.param("sampling", NONE, [], id="logs are not sampled"),
        pytest.param(
            "sampling", AMBER, ["UPDATE turns SET grade = 'spans-only' WHERE seq <= 9"], id="some by spans"
        ),
        pytest.param("sampling", RED, ["UPDATE turns SET grade = 'spans-only'"], id="all by spans"),
        pytest.param("mixed policies", GREEN, [], id="one policy"),
        pytest.param(
            "mixed policies", AMBER, ["UPDATE turns SET mode = 'enforce' WHERE seq <= 9"], id="two modes"
        ),
        pytest.param(
            "mixed policies", AMBER, ["UPDATE turns SET guard_version = '2' WHERE seq <= 9"],
            id="two versions",
        ),
        pytest.param(
            "mixed policies", RED, ["UPDATE turns SET policy_hash = NULL WHERE seq <= 11"], id="11 unknown"
        ),
        pytest.param(
            "mixed policies", NONE,
            ["UPDATE turns SET dialect = 'claude-code', policy_hash = NULL, mode = NULL, guard_id = NULL"],
            id="no guard ran",
        ),
        pytest.param("reproduced halts", GREEN, [], id="60 of 60 halts reproduced"),
        pytest.param(
            "reproduced halts", RED, ["UPDATE turns SET would_halt_call = 102 WHERE seq = 1060"],
            id="one of 60 halts at another call",
        ),
        pytest.param(
            "reproduced halts", RED, ["UPDATE turns SET would_halt_call = NULL WHERE seq = 1060"],
            id="one of 60 halts not logged",
        ),
        pytest.param(
            "reproduced halts", NONE, ["DELETE FROM turns WHERE would_halt_call IS NOT NULL"], id="no halt"
        ),
        pytest.param("holdout ratio", NONE, [], id="shadow tosses no coin"),
        pytest.param("holdout ratio", GREEN, hold_out(30), id="30 of 60 at 0.5"),
        pytest.param("holdout ratio", AMBER, hold_out(41), id="41 of 60 at 0.5"),
        pytest.param("holdout ratio", RED, hold_out(45), id="45 of 60 at 0.5"),
        pytest.param("labels", NONE, [], id="nothing planned"),
        pytest.param("labels", GREEN, plan(10, 9), id="9 of 10 planned are read"),
        pytest.param("labels", AMBER, plan(10, 8), id="8 of 10 planned are read"),
        pytest.param("labels", RED, plan(10, 6), id="6 of 10 planned are read"),
        pytest.param("labels", GREEN, read_twice(4), id="two readers agree"),
        pytest.param("labels", AMBER, read_twice(10), id="two readers agree by half"),
        pytest.param("labels", RED, read_twice(20), id="two readers agree by chance"),
        pytest.param("labels", GREEN, judge("1"), id="one judge"),
        pytest.param("labels", RED, judge("1", "2"), id="the judge changed"),
        pytest.param("maturity", GREEN, [], id="all turns have ended"),
    ],
)  # fmt: skip
def test_gate(name: str, state: State, statements: list[str], turns: duckdb.DuckDBPyConnection) -> None:
    found = gate(case(changed(turns, *statements), as_of=LATER), name)
    assert found.state is state, found.text
    assert found.text


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(database(tmp_path_factory.mktemp("gates") / "t.duckdb", ROWS))) as connection:
        yield connection


@pytest.fixture
def turns(recorded: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The recorded turns, to be changed at will: afterwards they are as they were."""
    recorded.execute("BEGIN")
    yield recorded
    recorded.execute("ROLLBACK")


def changed(turns: duckdb.DuckDBPyConnection, *statements: str) -> duckdb.DuckDBPyConnection:
    for statement in statements:
        turns.execute(statement)
    return turns


def test_a_turn_without_an_end_is_open_for_48_hours_and_abandoned_then(
    turns: duckdb.DuckDBPyConnection,
) -> None:
    changed(turns, lose_ends(5))
    open_yet, over = (case(turns, as_of=STARTED + hours * DAY // 24) for hours in (47, 48))
    assert gate(open_yet, "maturity").state is AMBER
    assert gate(open_yet, "ended turns").state is GREEN
    assert open_yet.population.left_out == {"still open": 5}
    assert gate(over, "maturity").state is GREEN
    assert gate(over, "ended turns").state is AMBER
    assert over.population.left_out == {}
    assert over.lost == 5


@pytest.mark.parametrize(
    ("name", "statements", "blocked"),
    [
        ("labels", plan(10, 6), {Question.STUCK_THRESHOLD, Question.SOFT_CAP, Question.FALSE_STUCK}),
        ("ended turns", [lose_ends(11)], set(Question)),
        ("call chunks", ["UPDATE turns SET chunks_sent = 9"], {Question.FALSE_STUCK}),
    ],
)
def test_a_red_gate_blocks_only_what_it_names(
    name: str, statements: list[str], blocked: set[Question], turns: duckdb.DuckDBPyConnection
) -> None:
    found = validated_in(changed(turns, *statements), as_of=LATER)
    assert set(gate(found.case, name).blocks) == blocked
    for one in found.verdicts:
        named = any(f"gate {name!r} is red" in reason for reason in one.reasons)
        assert named == (one.question in blocked)
        assert not named or one.word is Word.INSUFFICIENT


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE turns SET parent_id = 'p' WHERE seq <= 7", "sub-agent"),
        ("UPDATE turns SET extended = TRUE WHERE seq <= 7", "extended"),
        ("UPDATE turns SET policy_hash = 'h' WHERE seq <= 7", "explicit cap"),
        ("UPDATE turns SET grade = 'spans-only' WHERE seq <= 7", "known from sampled spans alone"),
        ("UPDATE turns SET mode = 'enforce' WHERE seq <= 7", "another policy or mode"),
        ("UPDATE turns SET policy_hash = NULL WHERE seq <= 7", "policy unknown"),
    ],
)
def test_turns_of_another_stratum_are_left_out_and_counted(
    statement: str, reason: str, turns: duckdb.DuckDBPyConnection
) -> None:
    hard = "INSERT INTO policies (policy_hash, kind, text) VALUES ('h', 'hard', 'hard hard_cap=9')"
    population = case(changed(turns, hard, statement), as_of=LATER).population
    assert population.left_out == {reason: 7}
    assert len(population.turns) == 1053


def test_turns_without_a_guard_are_judged_under_the_released_rule(
    turns: duckdb.DuckDBPyConnection,
) -> None:
    without = (
        "UPDATE turns SET dialect = 'claude-code', policy_hash = NULL, mode = NULL, guard_id = NULL, "
        "guard_version = NULL, would_halt_call = NULL, would_halt_threshold = NULL, chunks_sent = NULL",
        "DELETE FROM milestones",
        "DELETE FROM policies",
    )
    found = validated_in(changed(turns, *without), as_of=LATER)
    population = found.population
    assert population.policy.text == "adaptive signal=repeat soft_cap=100 stuck_at=6 backstop=1000"
    assert not population.guarded
    assert gate(found.case, "reproduced halts").state is NONE
    assert verdict(found, Question.STUCK_THRESHOLD).first.n == 60


def test_a_database_without_turns_has_no_word_and_no_error(tmp_path: Path) -> None:
    found = validated(database(tmp_path / "t.duckdb", []))
    assert {one.word for one in found.verdicts} == {Word.INSUFFICIENT}
    assert {one.first.estimate for one in found.verdicts} == {None}
