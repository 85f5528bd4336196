"""What a dialect sees is kept, and its groups are assembled anew whenever more of them is seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from analytics import groups
from analytics.cli import main
from analytics.dialects import BY_SOURCE, rows
from analytics.dialects.base import DialectCall, DialectTurn, Record, Seen, Source, StoredSeen, identity


class Toy:
    """Lines such as {"toy": session, "n": place, "tool": name, "args": text}."""

    name = "toy"

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        if record.source is not Source.LINE or "toy" not in record.body:
            return None
        if "tool" not in record.body:
            return ()
        session, tool = record.body["toy"], record.body["tool"]
        data = {"session": session, "tool": tool, "key": identity(record.body["args"])}
        return [Seen(group=session, id=f"{record.body['n']:04}", kind="call", data=data)]


def assemble(seen: Sequence[StoredSeen]) -> list[DialectTurn]:
    """One turn a group."""
    keys: dict[str, int] = {}
    calls = [
        DialectCall(
            tool=one.tool,
            key=keys.setdefault(one.key or "", len(keys)),
            batch=n // 2 + 1,
        )
        for n, one in enumerate(seen)
    ]
    return [
        DialectTurn(
            turn_id=f"toy:{seen[0].session}",
            dialect="toy",
            grade="no-results",
            calls=calls,
            outcome="completed",
        )
    ]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, list[tuple[Any, ...]]]]:
    """Load lists of lines, one file and load each, and return the tables."""
    monkeypatch.setitem(BY_SOURCE, Source.LINE, (Toy(),))
    monkeypatch.setattr(rows, "assemble", assemble)
    serial = iter(range(1000))

    def run(*files: Sequence[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
        db = tmp_path / f"{next(serial)}.duckdb"
        for lines in files:
            path = tmp_path / f"{next(serial)}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            assert main(["load", str(path), "--db", str(db)]) == 0
        with duckdb.connect(str(db), read_only=True) as connection:
            return {
                "turns": connection.execute(
                    "SELECT turn_id, dialect, grade, calls, max_repeat, distinct_keys, name_streak_max, "
                    "has_ended FROM turns ORDER BY ALL"
                ).fetchall(),
                "calls": connection.execute(
                    "SELECT turn_id, n, key, tool FROM calls ORDER BY ALL"
                ).fetchall(),
                "milestones": connection.execute(
                    "SELECT turn_id, k, call, batch_first_call FROM milestones ORDER BY ALL"
                ).fetchall(),
            }

    return run


LINES = [{"toy": "s", "n": n, "tool": "shell", "args": args} for n, args in enumerate("abaa")]


def test_a_group_is_assembled_from_all_that_was_seen_of_it(load: Callable[..., Any]) -> None:
    whole = load([{"toy": "s"}, *LINES])
    assert whole["turns"] == [("toy:s", "toy", "no-results", 4, 3, 2, 4, True)]
    assert whole["calls"] == [("toy:s", n, key, "shell") for n, key in enumerate([0, 1, 0, 0], start=1)]
    assert whole["milestones"] == [("toy:s", 2, 3, 3), ("toy:s", 3, 4, 3)]
    assert load(LINES[2:], LINES[:3], LINES) == whole


def test_groups_do_not_touch_each_other(load: Callable[..., Any]) -> None:
    other = [{**line, "toy": "t"} for line in LINES[:2]]
    tables = load(LINES, other, [LINES[0]])
    assert [(one[0], one[3]) for one in tables["turns"]] == [("toy:s", 4), ("toy:t", 2)]
    assert len(tables["calls"]) == 6


def test_a_turn_that_two_groups_tell_is_there_once(
    load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def same(seen: Sequence[StoredSeen]) -> list[DialectTurn]:
        return [msgspec.structs.replace(turn, turn_id="toy:one") for turn in assemble(seen)]

    monkeypatch.setattr(rows, "assemble", same)
    other = [{**line, "toy": "t", "args": "a"} for line in LINES[:2]]
    whole = load([*LINES, *other])
    assert [(one[0], one[3]) for one in whole["turns"]] == [("toy:one", 2)]
    assert (len(whole["calls"]), len(whole["milestones"])) == (2, 1)
    monkeypatch.setattr(groups, "PART", 1)
    assert load([*LINES, *other]) == whole
