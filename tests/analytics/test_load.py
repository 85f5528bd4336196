"""`turncap load` on turncap's own telemetry: counted once, whatever comes twice and in whatever order."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics.cli import main
from guard.policy import CapPolicy
from tests.analytics.evidence_db import build, evidence_rows
from tests.analytics.telemetry import (
    START,
    Event,
    counter,
    event,
    log_line,
    metric_line,
    small_turn,
    span,
    span_line,
    turn_events,
)

ON_SPAN = {"turncap.turn.ended", "turncap.loop_detected", "turncap.soft_cap.crossed"}
TABLES = (
    "turns", "calls", "retries", "milestones", "candidates", "policies", "labels", "loop_events", "counters"
)  # fmt: skip


def dump(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that is read, in an order of their own."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return {t: connection.execute(f"SELECT * FROM {t} ORDER BY ALL").fetchall() for t in TABLES}


def query(db: Path, text: str) -> list[tuple[Any, ...]]:
    """The rows of one query."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.execute(text).fetchall()


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., Path]:
    """Load lines (each list is one file, in this order, one load a file) and return the database."""
    serial = iter(range(1_000_000))

    def load(*files: Sequence[bytes], expect: int = 0, db: str = "") -> Path:
        target = tmp_path / (db or f"{next(serial)}.duckdb")
        for lines in files:
            path = tmp_path / f"{next(serial)}.jsonl"
            path.write_bytes(b"".join(lines))
            assert main(["load", str(path), "--db", str(target)]) == expect
        return target

    return load


def telemetry(rows: Iterable[dict[str, Any]], guard: str = "g") -> tuple[list[Event], list[bytes]]:
    """All events of some bundled turns, and their span lines."""
    events, spans = [], []
    for number, row in enumerate(rows, start=1):
        one = turn_events(row, guard, number, START + number * 10**9)
        events += one
        spans.append(span([e for e in one if e.name in ON_SPAN], number))
    return events, [span_line(spans)]


LONG = [row for row in evidence_rows() if len(row["key"]) > 100]
SOME = LONG[:3] + evidence_rows()[:40]


def test_bundled_turns_loaded_say_what_they_say(tmp_path: Path) -> None:
    rows = LONG + evidence_rows()[:200]
    events, spans = telemetry(rows)
    logs = tmp_path / "logs.jsonl.gz"
    with gzip.open(logs, "wb", compresslevel=1) as out:
        for at in range(0, len(events), 512):
            out.write(log_line(events[at : at + 512]))
    traces = tmp_path / "traces.jsonl"
    traces.write_bytes(b"".join(spans))
    db, direct = tmp_path / "turns.duckdb", build(tmp_path / "direct.duckdb", rows)
    assert main(["load", str(logs), str(traces), "--db", str(db)]) == 0
    calls = (
        "SELECT seq, n, key, result, tool, mutating, error, offset_ms, c.refused, settled_after, "
        "settled_order, batch, epoch FROM calls c JOIN turns USING (turn_id) ORDER BY ALL"
    )
    turns = (
        "SELECT seq, cluster_id, agent, mode, grade, length_limited, has_started, has_ended, calls, total, "
        "ran, settled, errors, distinct_keys, max_repeat, would_halt_call, would_halt_threshold, batches, "
        "chunks_sent, chunks_seen, least_calls FROM turns ORDER BY ALL"
    )
    halts = "SELECT seq, e.threshold, call_number, level, repeat_tool, repeat_first_call, repeat_last_call "
    halts += "FROM loop_events e JOIN turns USING (turn_id) ORDER BY ALL"
    for text in (calls, turns, halts):
        assert query(db, text) == query(direct, text)
    assert len(query(db, halts)) == 10


def test_a_turn_with_batches_retry_and_halt_reads_as_the_contract_says(loaded: Callable[..., Path]) -> None:
    db = loaded([log_line(small_turn())])
    assert query(db, "SELECT * EXCLUDE turn_id FROM calls ORDER BY n") == [
        (1, 0, 1, 0, None, "read", "read", False, False, 0, False, 3, 2),
        (2, 0, 1, 1, 0, "edit", "edit", True, True, None, False, 2, 0),
        (3, 1, 2, 0, 1, "read", "read", None, False, 20, False, 3, 1),
        (4, 1, 3, 2, None, "shell", "shell", None, None, 30, True, None, None),
        (5, 1, 3, 2, None, "read", "read", False, None, 30, True, None, None),
    ]
    assert query(db, "SELECT epoch, at_call, total FROM retries") == [(1, 2, 0)]
    assert query(db, "SELECT epoch, k, call, batch_first_call FROM milestones ORDER BY ALL") == [
        (0, 2, 3, 3), (1, 2, 5, 4)
    ]  # fmt: skip
    assert query(
        db,
        "SELECT turn_id, guard_id, seq, mode, policy_hash, outcome, calls, ran, halted_call, threshold, "
        "would_halt_call, chunks_sent, chunks_seen, least_calls, grade, has_started, has_ended FROM turns",
    ) == [("h-7", "h", 7, "enforce", "ab", "halted", 5, 3, 5, "soft-stuck", 5, 2, 2, 5, "exact", True, True)]


def test_a_lost_chunk_leaves_the_names_of_later_tools_right(loaded: Callable[..., Path]) -> None:
    events = [one for one in small_turn() if one.attributes["turncap.event.id"] != "h-7/2"]
    db = loaded([log_line(events)])
    assert query(db, "SELECT n, tool FROM calls ORDER BY n") == [(4, "shell"), (5, None)]
    assert query(db, "SELECT chunks_sent, chunks_seen FROM turns") == [(2, 1)]


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        pytest.param({5}, (True, False, None, 5, 2), id="no end: open, with what its chunks say"),
        pytest.param({1, 4, 5}, (False, False, None, 5, 2), id="chunks alone"),
        pytest.param(
            {1, 2, 3, 5}, (False, False, None, 5, 0), id="a halt alone: as many calls as its number"
        ),
        pytest.param({2, 3, 4, 5}, (True, False, None, 0, 0), id="a start alone"),
        pytest.param({1, 2, 3, 4}, (False, True, 5, 5, 0), id="an end alone"),
    ],
)
def test_a_turn_of_which_a_part_is_known(
    left_out: set[int], expected: tuple[Any, ...], loaded: Callable[..., Path]
) -> None:
    events = [one for n, one in enumerate(small_turn(), start=1) if n not in left_out]
    db = loaded([log_line(events)])
    assert query(db, "SELECT has_started, has_ended, calls, least_calls, chunks_seen FROM turns") == [
        expected
    ]


def test_a_copy_on_the_span_counts_once_and_the_log_has_the_last_word(loaded: Callable[..., Path]) -> None:
    ended = small_turn()[-1]
    copy = ended.but(calls=99, milestones__k=None)
    more = ended.but(errors=None)
    expected = [(5, 1, "exact", True)]
    for files in (
        [log_line([ended]), span_line([span([copy], 1)])],
        [span_line([span([copy], 1)]), log_line([ended])],
    ):
        db = loaded(files)
        assert query(db, "SELECT calls, errors, grade, has_ended FROM turns") == expected
    db = loaded([log_line([more]), span_line([span([ended], 1)])])
    assert query(db, "SELECT calls, errors FROM turns") == [(5, 1)], "what the log lacks, the span gives"
    assert query(db, "SELECT count(*) FROM milestones") == [(2,)]


def test_what_only_spans_tell_is_graded_so(loaded: Callable[..., Path]) -> None:
    db = loaded([span_line([span(small_turn(), 1, {"turncap.outcome": "halted"})])])
    assert query(db, "SELECT grade, outcome, calls FROM turns") == [("spans-only", "halted", 5)]
    assert query(db, "SELECT count(*) FROM calls") == [(5,)]


def test_neither_order_nor_division_nor_repetition_changes_a_table(loaded: Callable[..., Path]) -> None:
    events, spans = telemetry(SOME)
    events += small_turn()
    logs = [log_line(events[at : at + 7]) for at in range(0, len(events), 7)]
    clean = dump(loaded([*logs, *spans]))
    chance = random.Random(5)
    shuffled = [*logs, *spans, *chance.sample(logs, 20)]
    chance.shuffle(shuffled)
    parts = [shuffled[at::6] for at in range(6)]
    again = loaded(*parts, db="again.duckdb")
    assert dump(again) == clean
    assert dump(loaded(*parts[::-1], db="again.duckdb")) == clean, "loaded once more into the same"


def test_an_event_told_in_two_ways_reads_the_same_in_either_order(loaded: Callable[..., Path]) -> None:
    ended = small_turn()[-1]
    tellings = [log_line([ended]), log_line([ended.but(errors=3)]), log_line([ended.but(errors=2)])]
    dumps = [dump(loaded(*([one] for one in order))) for order in (tellings, tellings[::-1])]
    assert dumps[0] == dumps[1]
    db = loaded(tellings, [tellings[1]])
    assert dump(db) == dumps[0]
    assert query(db, "SELECT count(*) FROM conflicts") == [(2,)]


def test_the_label_of_the_better_judge_decides(loaded: Callable[..., Path]) -> None:
    def label(number: str, **attributes: Any) -> Event:
        return event(
            "turn.labelled", "h", 7, f"label/{number}", START + int(number), label__id=number, **attributes
        )

    labels = [
        label("1", by="human", task_outcome="by a human", stuck=True),
        label("2", by="import", task_outcome="imported", kind="rerun"),
        label("3", by="import", task_outcome="imported later"),
        label("4", by="judge", task_outcome="judged", probability=0.5, stratum="long"),
    ]
    db = loaded([log_line(labels), log_line(small_turn())])
    assert query(db, "SELECT task_outcome FROM turns") == [("by a human",)]
    assert query(db, 'SELECT label_id, "by", stuck, kind, probability FROM labels ORDER BY ALL') == [
        ("1", "human", True, None, None), ("2", "import", None, "rerun", None),
        ("3", "import", None, None, None), ("4", "judge", None, None, 0.5),
    ]  # fmt: skip
    db = loaded([log_line(small_turn())], [log_line(labels[1:3])])
    assert query(db, "SELECT task_outcome FROM turns") == [("imported later",)], "labels may come later"
    db = loaded([log_line(labels)])
    assert query(db, "SELECT count(*) FROM turns") == [(0,)], "a label alone makes no turn"


def test_candidates_and_policies_are_named_by_their_hash(loaded: Callable[..., Path]) -> None:
    policy = CapPolicy.adaptive(soft_cap=0, stuck_at=8, backstop=1000, signal="no_progress")
    ended = small_turn()[-1].but(candidates=[policy.text, "disabled"], candidates__halt_call=[4, -1])
    db = loaded([log_line([small_turn()[0], ended])])
    assert query(db, "SELECT policy_hash, halt_call FROM candidates ORDER BY halt_call") == [
        (policy.hash, 4), (CapPolicy.disabled().hash, None)
    ]  # fmt: skip
    told = query(
        db, "SELECT policy_hash, kind, signal, soft_cap, stuck_at, backstop FROM policies ORDER BY 4, 2"
    )
    assert told == [
        (policy.hash, "adaptive", "no_progress", 0, 8, 1000),
        ("ab", "adaptive", "repeat", 2, 2, 20),
        (CapPolicy.disabled().hash, "disabled", None, None, None, None),
    ]


def test_counters_keep_the_last_value_of_each_process_and_every_delta(loaded: Callable[..., Path]) -> None:
    who = {"gen_ai.agent.name": "a"}

    def line(value: int, at: int, since: int = START, *, delta: bool = False) -> bytes:
        return metric_line([counter("turncap.calls", [(who, value)], at=at, since=since, delta=delta)])

    later, earlier = line(9, START + 20), line(4, START + 10)
    restarted = line(2, START + 50, since=START + 40)
    for files in ([later, earlier, restarted], [restarted, earlier, later]):
        db = loaded(files, [earlier])
        assert query(db, "SELECT value FROM counters ORDER BY started_at") == [(9.0,), (2.0,)]
    deltas = [line(3, START + 10, delta=True), line(4, START + 20, since=START + 10, delta=True)]
    assert query(loaded(deltas, deltas), "SELECT sum(value) FROM counters") == [(7.0,)]


def test_other_telemetry_beside_ours_is_passed_over(
    loaded: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = Event(name="app.started", at=START, attributes={"x": 1})
    db = loaded([log_line([*small_turn(), other])])
    assert query(db, "SELECT count(*) FROM turns") == [(1,)]
    assert "1 records of no product" in capsys.readouterr().out
