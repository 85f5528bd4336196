"""The first screen is useful with 300 turns that nobody read, and true of a single one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analytics.evidence_db import STARTED, evidence_rows
from tests.analytics.validation.judged import Judged, database, diverse, judged, repeating, turn

GOLDEN = Path(__file__).parent / "first_screen_300.txt"
DAYS = 21


@pytest.fixture(scope="module")
def three_hundred(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """300 turns of an interactive agent over three weeks, without a label."""
    rows = [row for row in evidence_rows() if not row["length_limited"]][::5][:300]
    for row in rows:
        row.update(label=None, source="my-agent")
    dates = f"UPDATE turns SET started_at = {STARTED} + (seq - 1) * {DAYS * 24 * 3600 * 10**9 // 299}"
    return judged(database(tmp_path_factory.mktemp("first") / "t.duckdb", rows, dates))


def lines(found: Judged) -> Iterator[str]:
    """Everything on the first screen, as text."""
    screen = found.screen
    for name in ("answers", "words", "excluded", "waits"):
        yield f"[{name}]"
        yield from getattr(screen, name)
    for name in ("repetitive", "longest"):
        yield f"[{name}]"
        for near in getattr(screen, name):
            yield (
                f"{near.turn_id[-4:]}: {near.calls} calls, one of them {near.repeats} times; halted by "
                f"K up to {near.at_k}, by S up to {near.at_s}"
            )
    yield "[compared]"
    yield from (f"{one.what} {one.quantile}: {one.here}, bundled {one.bundled}" for one in screen.compared)
    yield "[to label]"
    yield from (f"{one.turn_id[-4:]}: {one.why} ({one.moves})" for one in screen.to_label)


def test_300_turns_without_a_label(three_hundred: Judged) -> None:
    """The file holds what was read and found right once; a change of it is to be read as carefully."""
    assert "\n".join(lines(three_hundred)) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_counts_are_those_of_a_plain_count(three_hundred: Judged) -> None:
    rows = [row for row in evidence_rows() if not row["length_limited"]][::5][:300]
    over = [len(row["key"]) for row in rows if len(row["key"]) > 100]
    effect = three_hundred.screen.effect
    assert (effect.turns, effect.halted, effect.all_stuck) == (300, 0, 0)
    assert (effect.cut_by_hard_cap, effect.beyond_hard_cap) == (len(over), sum(over) - 100 * len(over))
    longest = sorted((len(row["key"]) for row in rows), reverse=True)[:5]
    assert [near.calls for near in three_hundred.screen.longest] == longest
    repeats = sorted((max(map(row["key"].count, row["key"])) for row in rows), reverse=True)[:5]
    assert [near.repeats for near in three_hundred.screen.repetitive] == repeats


@pytest.mark.parametrize(
    ("keys", "halted", "at_k", "at_s"),
    [
        pytest.param(diverse(3), False, None, None, id="neither long nor repetitive"),
        pytest.param(repeating(50), False, None, 49, id="repetitive and short: a lower S"),
        pytest.param(repeating(110, 4), False, 4, None, id="long and less repetitive: a lower K"),
        pytest.param(repeating(110), True, 6, 109, id="both: halted as it is"),
    ],
)
def test_a_single_turn_has_its_nearest_thresholds(
    keys: list[int], halted: bool, at_k: int | None, at_s: int | None, tmp_path: Path
) -> None:
    found = judged(database(tmp_path / "t.duckdb", [turn(keys)]))
    (near,) = found.screen.longest
    assert (near.halted, near.at_k, near.at_s) == (halted, at_k, at_s)
    assert found.screen.excluded == ("1 turn of 1 user cannot exclude anything yet.",)
    effect = found.screen.effect
    assert (effect.turns, effect.halted, effect.unread) == (1, int(halted), int(halted))


def test_unread_halts_come_first_among_the_turns_to_label(tmp_path: Path) -> None:
    rows = [turn(diverse(3), session=i) for i in range(50)]
    rows += [turn(repeating(110, 5), session=100), turn(repeating(110), session=101)]
    rows += [turn(repeating(110), session=102, label="stuck")]
    found = judged(database(tmp_path / "t.duckdb", rows)).screen.to_label
    assert [(one.turn_id[-2:], one.why) for one in found] == [
        ("34", "the rule halts it: decides K and S"), ("33", "K = 5 would halt it")
    ]  # fmt: skip
    assert [one.moves for one in found] == sorted((one.moves for one in found), reverse=True)


def test_nothing_is_said_of_no_turns(tmp_path: Path) -> None:
    screen = judged(database(tmp_path / "t.duckdb", [])).screen
    assert screen.effect.turns == 0
    assert (screen.longest, screen.repetitive, screen.to_label, screen.compared) == ((), (), (), ())


def test_what_cannot_be_known_of_turns_by_tool_names_is_said(tmp_path: Path) -> None:
    """Thirty turns are long enough to be halted; nothing tells whether they repeat themselves."""
    rows = [turn(repeating(110), session=i) for i in range(30)]
    rows += [turn(diverse(3), session=100 + i) for i in range(50)]
    path = database(
        tmp_path / "t.duckdb", rows,
        "UPDATE turns SET grade = 'names-only', max_repeat = NULL, dialect = 'claude-code', guard_id = NULL, "
        "policy_hash = NULL, mode = NULL, would_halt_call = NULL",
        "UPDATE calls SET key = NULL, result = NULL", "DELETE FROM milestones", "DELETE FROM policies",
    )  # fmt: skip
    screen = judged(path).screen
    assert (screen.effect.halted, screen.effect.unknown) == (0, 30)
    assert "of 30 it cannot be known" in screen.answers[1]
    assert not any("halted by the rule is excluded" in claim for claim in screen.excluded)
    assert "turns that tell what the signal needs" in screen.waits[1]
