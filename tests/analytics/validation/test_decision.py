"""One recommendation, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.decision import Answer
from analytics.validation.settings import read_settings
from tests.analytics.validation.judged import Judged, database, judged, repeating, turn

Rows = list[dict[str, Any]]


def many(turns: int, keys: list[int], label: str | None, first: int, *, same: bool = False) -> Rows:
    """Turns alike, each of a user of its own; with `same` a repeated call has the same result each time."""
    results = keys if same else None
    return [turn(keys, label=label, session=first + i, results=results) for i in range(turns)]


def looping(stuck: int, wrong: int) -> Rows:
    """Stuck turns that get nothing new, re-runs with a new result each time, polling, and many others."""
    return (
        many(700, [0, 1], None, 10_000)
        + many(stuck, [0] * 90, "stuck", 0, same=True)
        + many(wrong, repeating(110, 8), "rerun", 1000)
        + many(5, [0, 1, 2], "poll", 2000)
    )


def test_a_signal_that_is_better_on_enough_known_turns_is_recommended(tmp_path: Path) -> None:
    decided = judged(database(tmp_path / "t.duckdb", looping(40, 40))).decided
    assert decided.answer is Answer.CHANGE, decided.reason
    assert decided.policy is not None
    assert decided.policy.signal in ("no_progress", "same_result_repeat")
    assert decided.saves is not None
    assert decided.saves.low > 0
    assert decided.leading is not None
    assert (decided.leading.stuck, decided.leading.others) == (40, 0)
    assert decided.running.others == 40
    assert "40 stuck and 0 other turns (what runs: 0 and 40)" in decided.reason


def no_polling() -> Rows:
    return [row for row in looping(40, 40) if row["label"] != "poll"]


def unlabelled() -> Rows:
    return [{**row, "label": None} for row in looping(40, 40)]


def of_few_users() -> Rows:
    return [{**row, "session": str(int(row["session"]) % 19)} for row in looping(40, 40)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(no_polling, "no labelled turn waits by polling", id="a kind that hurts it is unseen"),
        pytest.param(lambda: looping(20, 40), "only 20 of the turns", id="too few of its halts are known"),
        pytest.param(of_few_users, "come from only 19 users (20 are needed)", id="they come from few users"),
        pytest.param(unlabelled, "no turn is labelled stuck", id="nothing is labelled"),
    ],
)
def test_the_data_cannot_say_because(rows: Callable[[], Rows], said: str, tmp_path: Path) -> None:
    decided = judged(database(tmp_path / "t.duckdb", rows())).decided
    assert (decided.answer, decided.policy) == (Answer.CANNOT_SAY, None)
    assert said in decided.reason


def test_what_runs_is_kept_where_nothing_on_the_grid_is_cheaper(tmp_path: Path) -> None:
    """Stuck turns beyond any grid's reach: only one call past the largest soft cap, and no wrong halt."""
    rows = many(100, [0, 1], None, 1000) + many(40, list(range(90)), "stuck", 0)
    decided = judged(database(tmp_path / "t.duckdb", rows)).decided
    assert (decided.answer, decided.policy) == (Answer.KEEP, None)
    assert decided.leading == decided.running


def test_a_difference_within_chance_is_not_distinguished(tmp_path: Path) -> None:
    """One turn of many is all that tells two policies apart."""
    rows = (
        many(700, [0, 1], None, 10_000)
        + many(40, [0] * 101, "stuck", 0, same=True)
        + many(1, repeating(110, 8), "rerun", 1000)
        + many(5, [0, 1, 2], "poll", 2000)
    )
    settings = read_settings()
    grid = replace(settings.grid, soft_cap=(100,))
    decided = judged(database(tmp_path / "t.duckdb", rows), settings=replace(settings, grid=grid)).decided
    assert (decided.answer, decided.policy) == (Answer.NOT_DISTINGUISHABLE, None), decided.reason
    assert decided.saves is not None
    assert decided.saves.low <= 0 < decided.saves.total


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """With re-runs that end before the running soft cap: a lower one saves more and harms more."""
    rows = looping(40, 40) + many(40, repeating(60), "rerun", 3000)
    return judged(database(tmp_path_factory.mktemp("d") / "t.duckdb", rows))


def test_no_policy_of_the_frontier_is_beaten_by_another(found: Judged) -> None:
    frontier = found.decided.frontier
    for one in frontier:
        assert not any(
            other.others <= one.others and other.calls_saved >= one.calls_saved
            for other in frontier
            if other is not one
        )


def test_at_the_break_even_price_a_policy_costs_what_the_running_one_does(found: Judged) -> None:
    running = found.decided.running
    priced = [one for one in found.costed if one.break_even is not None]
    assert priced
    for one in priced:
        price = one.break_even or 0.0
        assert price * one.others + one.waste == pytest.approx(price * running.others + running.waste)
