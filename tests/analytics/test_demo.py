"""The demo on a small file, end to end: guard, SDK, OTLP over HTTP, files, database, report."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics.cli import ExitCode, main


def recorded(keys: list[int], **changes: Any) -> dict[str, Any]:
    """A recorded turn with these keys, whose results are fixed by the key."""
    turn = {
        "source": "s",
        "session": "one",
        "turn": 0,
        "length_limited": False,
        "outcome": "end_turn",
        "label": None,
        "tool": ["shell"] * len(keys),
        "key": keys,
        "result_norm": keys,
        "error": [0] * len(keys),
        "mutating": [0] * len(keys),
        "gap_s": None,
    }
    return turn | changes


STUCK = [n % 2 for n in range(102)]
TURNS = [
    recorded(
        [0, 1, 0],
        gap_s=[None, 1.5, 2.5],
        error=[0, 1, 0],
        outcome="interrupted",
        tool=["shell", "read", "odd"],
    ),
    recorded(STUCK, label="stuck", outcome="reward1", length_limited=True),
    recorded(list(range(101)), label="rerun", outcome="unheard of", session="two"),
]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    file = folder / "turns.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, TURNS)).encode()))
    assert main(["demo", "--turns", str(file), "--out", str(folder / "out")]) == ExitCode.DONE
    return folder / "out"


def rows(out: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(out / "turns.duckdb"), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_the_report_counts_what_was_sent(out: Path) -> None:
    report = json.loads((out / "report.json").read_text())
    assert report["coverage"] == {
        "turns_started": 3,
        "turns_ended": 3,
        "turns": 3,
        "calls": 206,
        "rejects": 0,
    }
    assert report["length"]["over_soft_cap"] == 2
    assert report["repeats"] | {"counts": 0} == {"k": 6, "turns_at_or_over_k": 1, "counts": 0}
    halt = {"threshold": "soft-stuck", "mode": "shadow", "enforced": False, "turns": 1}
    assert report["halts"] == [halt | {"labelled_stuck": 1, "labelled_not_stuck": 0, "unlabelled": 0}]
    assert (out / "report.html").stat().st_size > 1_000
    assert (out / "report.md").read_text().startswith("#")


def test_outcomes_labels_clusters_and_limits_are_mapped(out: Path) -> None:
    found = rows(
        out,
        """SELECT t.seq, t.outcome, t.length_limited, l.stuck, l.productive, l.kind, l.task_outcome, l.by
        FROM turns t JOIN labels l USING (turn_id) ORDER BY t.seq""",
    )
    assert found == [
        (1, "aborted", False, None, None, None, "interrupted", "import"),
        (2, "completed", True, True, False, "stuck", "reward1", "import"),
        (3, "completed", False, False, None, "rerun", "unheard of", "import"),
    ]
    clusters = [cluster for (cluster,) in rows(out, "SELECT cluster_id FROM turns ORDER BY seq")]
    assert clusters[0] == clusters[1] != clusters[2]


def test_calls_keep_time_error_tool_and_result(out: Path) -> None:
    found = rows(
        out,
        """SELECT n, key, tool, mutating, error, offset_ms, result, settled_after
        FROM calls JOIN turns USING (turn_id) WHERE seq = 1 ORDER BY n""",
    )
    assert found == [
        (1, 0, "shell", False, False, 0, 0, 1),
        (2, 1, "read", False, True, 1500, 1, 2),
        (3, 2, "odd", False, False, 4000, 2, 3),
    ]
    assert rows(
        out, "SELECT count(*) FROM calls JOIN turns USING (turn_id) WHERE seq = 2 AND offset_ms IS NULL"
    ) == [(102,)]
    assert rows(out, "SELECT seq, duration_ms FROM turns ORDER BY seq") == [(1, 4000.0), (2, None), (3, None)]


def test_it_can_be_run_again_into_the_same_folder(out: Path) -> None:
    file = out.parent / "turns.jsonl.gz"
    assert main(["demo", "--turns", str(file), "--out", str(out)]) == ExitCode.DONE
    assert rows(out, "SELECT count(*) FROM turns") == [(3,)]


BAD = [
    ("no JSON", "{", ":2: "),
    ("a list", "[]", "no JSON object"),
    ("a missing field", json.dumps({"source": "s"}), "'session' is missing"),
    ("lists of different lengths", json.dumps(recorded([0]) | {"error": []}), "one length"),
    ("an unknown label", json.dumps(recorded([0]) | {"label": "lost"}), "label 'lost'"),
]


@pytest.mark.parametrize(("line", "said"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_line_is_named_and_nothing_is_written(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text(json.dumps(TURNS[0]) + "\n" + line + "\n")
    assert main(["demo", "--turns", str(file), "--out", str(tmp_path / "out")]) == ExitCode.FAILED
    error = capsys.readouterr().err
    assert said in error
    assert f"{file}:2: " in error
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_and_a_folder_of_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--turns", str(tmp_path / "none"), "--out", str(tmp_path)]) == ExitCode.FAILED
    file = tmp_path / "turns.jsonl"
    file.write_text(json.dumps(TURNS[0]))
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "mine.txt").write_text("keep")
    assert main(["demo", "--turns", str(file), "--out", str(tmp_path)]) == ExitCode.FAILED
    assert (tmp_path / "telemetry" / "mine.txt").read_text() == "keep"
    assert "mine.txt" in capsys.readouterr().err
