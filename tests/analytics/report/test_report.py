"""The report says what the data says, in all three renderings."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from analytics.database import open_database
from analytics.report import words
from analytics.report.build import build_report
from analytics.report.render import to_html, to_json, to_markdown
from analytics.report.turn import build_turn
from analytics.report.turn_policies import turn_policies
from analytics.report.value import WeeklyReport
from analytics.validation.settings import read_settings
from guard.policy import CapPolicy
from tests.analytics.evidence_db import build, evidence_rows
from tests.analytics.recorded import database, letters, live


@pytest.fixture(scope="module")
def report(evidence_db: Path) -> WeeklyReport:
    with open_database(evidence_db) as connection:
        return build_report(connection, read_settings())


@pytest.fixture(scope="module")
def page(report: WeeklyReport) -> str:
    return to_html(report)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> WeeklyReport:
    with open_database(build(tmp_path_factory.mktemp("empty") / "turns.duckdb", [])) as connection:
        return build_report(connection, read_settings())


def test_the_bundled_turns_come_to_these_figures(report: WeeklyReport) -> None:
    document = json.loads(to_json(report))
    assert document["schema"] == 1
    assert document["coverage"] == {
        "turns_started": 4018, "turns_ended": 4018, "turns": 4018, "calls": 69739, "rejects": 0
    }  # fmt: skip
    length = {name: document["length"][name] for name in ("over_soft_cap", "max", "p50", "p90", "p99")}
    assert length == {"over_soft_cap": 50, "max": 249, "p50": 6, "p90": 46, "p99": 115}
    assert document["repeats"]["k"] == 6
    assert document["repeats"]["turns_at_or_over_k"] == 111
    assert document["halts"] == [
        {
            "threshold": "soft-stuck", "mode": "shadow", "enforced": False, "turns": 10,
            "labelled_stuck": 1, "labelled_not_stuck": 9, "unlabelled": 0,
        }
    ]  # fmt: skip


def test_under_each_strip_a_link_leads_to_all_that_is_known_of_the_turn(
    report: WeeklyReport, page: str
) -> None:
    led_to = re.findall(r'href="#turn-([^"]+)"', page)
    told = re.findall(r'<details id="turn-([^"]+)">', page)
    drawn = page.partition('id="turns"')[0].count('<figure class="near">')
    assert len(led_to) == drawn > 20
    assert set(led_to) == set(told)
    assert len(told) == len(set(told)) == len(report.drawn)


def test_a_drawn_turn_says_what_turncap_turn_says_of_it(evidence_db: Path, report: WeeklyReport) -> None:
    halted = [one for one in report.drawn if one.turn.halts]
    diverse = [one for one in report.drawn if one.turn.repeats and one.turn.repeats[0].times < 4]
    assert halted
    assert diverse
    with open_database(evidence_db) as connection:
        for one in (*halted[:3], *diverse[:2]):
            turn = build_turn(connection, one.turn.turn_id)
            assert one.turn == turn
            assert one.found == turn_policies(connection, turn)


def test_the_figures_equal_a_count_over_the_bundled_lines(report: WeeklyReport) -> None:
    rows = evidence_rows()
    lengths = sorted(len(row["key"]) for row in rows)
    assert report.coverage.calls == sum(lengths)
    assert report.length.p50 == lengths[(len(lengths) + 1) // 2 - 1]
    assert report.length.over_soft_cap == sum(length > 100 for length in lengths)


def test_a_page_of_the_same_data_has_the_same_bytes(report: WeeklyReport, page: str) -> None:
    assert to_html(report) == page


def test_a_page_fetches_nothing(page: str) -> None:
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\((?!#)", page)
    assert set(re.findall(r'(?:href|src)="([^"#][^"]*)"', page)) == set()


def test_no_two_elements_of_a_page_share_an_id(page: str) -> None:
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert sorted(ids) == sorted(set(ids))


def test_what_the_bundled_turns_cannot_show_is_said(report: WeeklyReport, page: str) -> None:
    assert len(report.limits) == 4
    for text in (page, to_markdown(report)):
        assert "No polling turn is among the labelled ones" in text


def test_the_first_screen_comes_to_what_the_bundled_turns_show(page: str) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for said in (
        "1 call It would have met 1 of the 10 turns labelled stuck: 9 had ended by call 100.",
        "198 calls cut It would have halted 10 of 4,018 turns; 9 of these were not stuck. "
        "A hard cap of 100 would have cut 50 turns.",
        "568 saved, 0 cut",
        "0 of 1,570 turns without a step limit went past it. The true share may be as high as 0.30%;",
        "9 of 10 halts hit a turn that was not stuck.",
        "Leaning too low , which is no verdict.",
        "these data cannot tell 3× from 10×",
    ):
        assert said in text, said
    assert text.count("insufficient evidence") >= 3


def test_up_to_five_turns_of_each_kind_are_drawn_and_an_empty_kind_says_so(
    report: WeeklyReport, page: str
) -> None:
    drawn = Counter((one.population, one.kind) for one in report.examples)
    assert drawn == {
        ("halted", "stuck"): 1, ("halted", "re-run cycle"): 5, ("halted", "error burst"): 1,
        ("repeated", "stuck"): 5, ("repeated", "re-run cycle"): 5, ("repeated", "error burst"): 1,
    }  # fmt: skip
    assert "the rules say the same of 111; calling every one a re-run cycle would be right of 100" in page
    assert page.count("No turn of this kind was seen here.") == 4


def test_what_would_change_our_mind_is_said(report: WeeklyReport) -> None:
    text = " ".join(report.would_change)
    assert "If 4 of the 9 halts labelled not stuck turned out to be stuck" in text
    assert "A turn longer than 3× the soft cap" in text
    assert "A labelled turn that waits by polling" in text


def test_a_week_is_one_look_of_thirteen(evidence_db: Path) -> None:
    with open_database(evidence_db) as connection:
        week = build_report(connection, read_settings(), week="2025-W49")
    assert (week.look.number, week.week) == (1, "2025-W49")
    assert week.coverage.turns == 4018
    assert "Look 1 of 13 planned" in to_markdown(week) + to_html(week)


def test_a_database_without_turns_is_reported_as_such(empty: WeeklyReport) -> None:
    assert empty.coverage.turns == 0
    assert empty.length.p50 is None
    assert "No turn with a call was loaded" in to_markdown(empty)
    assert "No turn reached a threshold" in to_html(empty)


def test_other_peoples_data_has_no_limits_of_the_bundled_turns(tmp_path: Path) -> None:
    row = {**evidence_rows()[0], "source": "my-agent"}
    with open_database(build(tmp_path / "mine.duckdb", [row])) as connection:
        assert build_report(connection, read_settings()).limits == ()


def test_a_turn_counts_once_at_its_first_halt(tmp_path: Path) -> None:
    path = build(tmp_path / "one.duckdb", [row for row in evidence_rows() if len(row["key"]) > 200][:1])
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM loop_events")
        for name, call, threshold in (("b", 1001, "backstop"), ("a", 150, "soft-stuck")):
            connection.execute(
                "INSERT INTO loop_events (event_id, turn_id, threshold, mode, enforced, call_number) "
                "SELECT $1, turn_id, $3, 'shadow', false, $2 FROM turns",
                [name, call, threshold],
            )
    with open_database(path) as connection:
        halts = build_report(connection, read_settings()).halts
    assert [(halt.threshold, halt.turns) for halt in halts] == [("soft-stuck", 1)]


def test_the_command_writes_three_files_and_names_them(
    evidence_db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--db", str(evidence_db), "--out", str(tmp_path / "new" / "folder")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in written] == ["report.html", "report.md", "report.json"]
    assert all(path.read_text(encoding="utf-8") for path in written)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        path.name for path in written
    )


def test_a_policy_that_runs_and_that_none_beats_stands_once(report: WeeklyReport, tmp_path: Path) -> None:
    running = report.decision.running.policy
    assert [one.policy for one in words.compared_policies(report)].count(running) == 1
    assert words.compared_policies(report)[0].policy == running
    with open_database(build(tmp_path / "t.duckdb", [*evidence_rows()[:3]])) as connection:
        few = build_report(connection, read_settings())
    (one,) = words.compared_policies(few)
    assert (one.policy, one.same_as > 0) == (few.decision.running.policy, True)


def test_the_shares_of_kinds_have_95_per_cent_intervals(report: WeeklyReport) -> None:
    """None of ten halts by ten users polls: the exact upper end at 10 · (1.960 / 2.262)² turns is 38.8 %."""
    (polling,) = (one for one in report.false_stuck if (one.population, one.kind) == ("halted", "polling"))
    assert (polling.turns, polling.share, polling.low) == (0, 0, 0)
    assert polling.high == pytest.approx(1 - 0.025 ** (1 / (10 * (1.959964 / 2.262157) ** 2)), abs=1e-4)


@pytest.mark.parametrize(
    ("scripts", "policy"),
    [
        pytest.param(("", "", "abab"), CapPolicy.adaptive(soft_cap=4, stuck_at=3), id="turns without a call"),
        pytest.param(("",), CapPolicy.adaptive(), id="no turn has a call"),
        pytest.param(
            ("abababab", "abc"),
            CapPolicy.adaptive(signal="no_progress", soft_cap=0, stuck_at=3, backstop=8),
            id="a signal alone, without a soft cap",
        ),
        pytest.param(("abcab",), CapPolicy.hard(3), id="explicit caps alone"),
        pytest.param(("abcab",), CapPolicy.disabled(), id="no cap"),
        pytest.param(("a",), CapPolicy.adaptive(soft_cap=1, stuck_at=1, backstop=1), id="the least limits"),
    ],
)
def test_whatever_ran_can_be_reported(scripts: tuple[str, ...], policy: CapPolicy) -> None:
    found = build_report(database([live(letters(text), policy) for text in scripts]), read_settings())
    assert "Are the tool-call thresholds right?" in to_html(found)
    assert to_markdown(found).startswith("# Are the tool-call thresholds right?")
    asked = [len(set(text)) for text in scripts if text]
    assert sum(turns for _, turns in found.repeats.counts) == len(asked)
