"""Turns with an explicit cap and runs of sub-agents have rates of their own, and enter no verdict."""

from __future__ import annotations

import duckdb
import pytest

from analytics.report.build import build_report
from analytics.report.render import to_html, to_markdown
from analytics.validation.settings import read_settings
from analytics.validation.validate import Validation
from guard.policy import CapPolicy
from tests.analytics.recorded import Loss, database, letters, live
from tests.analytics.validation.judged import validated_in

RULE = CapPolicy.adaptive(soft_cap=4, stuck_at=3, backstop=8)
TURNS = [
    live(letters("abc"), RULE),
    live(letters("ababa"), RULE),
    # explicit caps: two are halted at their own number, one labelled not stuck, one unread; one is not
    live(letters("abcd"), CapPolicy.hard(3)),
    live(letters("abcdef"), CapPolicy.hard(5)),
    live(letters("abcdef"), CapPolicy.hard(6)),
    # sub-agents: a stuck halt that was stuck, one past the backstop, two that are not halted
    live(letters("ababa"), RULE),
    live(letters("abcdefghi"), RULE),
    live(letters("abc"), RULE),
    live(letters("abcd"), RULE),
]
LABELS = [None, False, False, None, None, True, None, None, None]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    found = database(TURNS, labels=LABELS)
    found.execute("UPDATE turns SET parent_id = '000000' WHERE turn_id >= '000005'")
    return found


@pytest.fixture(scope="module")
def found(connection: duckdb.DuckDBPyConnection) -> Validation:
    return validated_in(connection)


def test_each_group_is_judged_under_the_policy_that_ran_on_each_turn(found: Validation) -> None:
    explicit, sub_agents = found.strata
    assert (explicit.name, explicit.turns) == ("explicit cap", 3)
    assert (explicit.halted.least, explicit.halted.most, explicit.halted.n) == (2, 2, 3)
    assert (explicit.fdr.least, explicit.fdr.most, explicit.fdr.n) == (1, 2, 2)
    assert (explicit.fhr.least, explicit.fhr.most) == (1, 2)
    assert (sub_agents.name, sub_agents.turns) == ("sub-agent", 4)
    assert (sub_agents.halted.least, sub_agents.halted.n) == (2, 4), "the backstop's halt is one too"
    assert (sub_agents.fdr.least, sub_agents.fdr.n) == (0, 1), (
        "a stuck halt alone can be wrongly called stuck"
    )
    assert (sub_agents.fhr.least, sub_agents.fhr.n) == (0, 3)


def test_none_of_them_enters_a_verdict(found: Validation) -> None:
    assert list(found.population.turns.frame["turn_id"]) == ["000000", "000001"]
    assert dict(found.population.left_out) == {"sub-agent": 4, "explicit cap": 3}


def test_a_halt_that_lost_calls_hide_is_a_bound() -> None:
    connection = database(
        [live(letters("abc"), RULE), live(letters("abcd" * 4), CapPolicy.hard(15))],
        [Loss(), Loss(chunk=0, end=True)],
    )
    connection.execute("UPDATE turns SET would_halt_call = NULL, halted_call = NULL, least_calls = 9")
    (explicit,) = validated_in(connection).strata
    assert (explicit.halted.least, explicit.halted.most) == (0, 1)


def test_the_report_shows_them(connection: duckdb.DuckDBPyConnection) -> None:
    report = build_report(connection, read_settings())
    page, text = to_html(report), to_markdown(report)
    assert "Turns that no verdict speaks of" in page
    assert "Turns with an explicit cap were stopped by a number that somebody chose for them; a sub-" in page
    assert "- Left out, explicit cap: 3 turns; halted 2 of 3 (" in text
    assert "- Left out, sub-agent: 4 turns; halted 2 of 4 (" in text


def test_without_such_turns_nothing_is_said() -> None:
    report = build_report(database(TURNS[:2]), read_settings())
    assert report.strata == ()
    assert "no verdict speaks of" not in to_html(report)


def test_where_every_turn_has_an_explicit_cap_no_rule_is_said_to_have_run() -> None:
    text = to_markdown(build_report(database(TURNS[2:5]), read_settings()))
    assert text.splitlines()[2].startswith(
        "The rule as released, under which no turn here ran: After 100 calls"
    )
    assert text.splitlines()[2].endswith("No turn is in scope; left out: 3 explicit cap.")
