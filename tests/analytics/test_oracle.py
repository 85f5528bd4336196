"""Whatever a guard may emit, and in whatever pieces it arrives: the loader comes to what the oracle says."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cli import main
from analytics.dialects.turncap import TABLES
from tests.analytics import oracle
from tests.analytics.telemetry import START, Event, event, log_line, span, span_line

TOOLS = ("read", "edit", "shell", "search", "plan")
HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b'{"resourceLogs":null}',
    b'{"resourceLogs":[{}]}',
    b"\xff\xfe",
    b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"turncap.turn.ended","attributes":[]}]}]}]}',
    b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"turncap.turn","events":[null]}]}]}]}',
    b"[" * 3000,
    b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":5}]}]}]}]}',
    b"1e999",
    b"\0\0\0",
    b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"turncap.calls","sum":{"dataPoints":[{"asInt":"x"}]}}]}]}]}',
    b'{"resourceLogs":"x","resourceSpans":7}',
    b'{"resource_logs":[{"scope_logs":[[]]}]}',
    b"\\",
    b'{"a":\xc3\x28}',
]


class Lived:
    """A turn that was lived at random: what its guard would emit."""

    def __init__(self, chance: random.Random, guard: str, seq: int) -> None:
        self._chance, self._who = chance, (guard, seq)
        self._ordinal = iter(range(1, 1000))
        self.events: list[Event] = []
        self._emit(
            "turn.started",
            mode=chance.choice(["enforce", "shadow"]),
            holdout__rate=chance.choice([None, 0.2]),
        )
        self._live(chance.randint(0, 30))

    def _emit(self, name: str, **attributes: Any) -> None:
        guard, seq = self._who
        number = next(self._ordinal)
        self.events.append(event(name, guard, seq, number, START + number, **attributes))

    def _live(self, calls: int) -> None:
        chance, tools, results = self._chance, dict[str, int](), dict[tuple[int, int], int]()
        chunk: dict[str, list[Any]] = defaultdict(list)
        waiting: list[tuple[int, int]] = []
        first, index, batch, settles, retries = 1, 0, 0, 0, 0
        for n in range(1, calls + 1):
            batch += n == 1 or chance.random() < 0.7
            key, tool = chance.randint(0, 4), chance.choice(TOOLS)
            if tool not in tools:
                tools[tool] = len(tools)
                chunk["tools"].append(tool)
                chunk["tools__class"].append("unknown")
            for name, value in (
                ("key", key),
                ("tool", tools[tool]),
                ("mutating", chance.choice([-1, 0, 1])),
                ("offset_ms", chance.choice([-1, n])),
                ("batch", batch),
            ):
                chunk[f"calls__{name}"].append(value)
            waiting.append((n, key))
            while waiting and chance.random() < 0.5:
                call, of = waiting.pop(chance.randrange(len(waiting)))
                settles += 1
                for name, value in (
                    ("call", call),
                    ("error", chance.choice([0, 1])),
                    ("after", n),
                    ("result", results.setdefault((of, chance.randint(0, 2)), len(results))),
                ):
                    chunk[f"settled__{name}"].append(value)
            if chance.random() < 0.1:
                retries += 1
                chunk["retry__at"].append(n)
                chunk["retry__total"].append(chance.randint(0, n))
            if chance.random() < 0.2 or n == calls:
                self._emit("turn.calls", chunk__index=index, chunk__first_call=first, **chunk)
                chunk, first, index = defaultdict(list), n + 1, index + 1
            if chance.random() < 0.08:
                self._emit(
                    "loop_detected",
                    threshold="soft-stuck",
                    enforced=chance.random() < 0.5,
                    call__number=n,
                    mode="enforce",
                    level=6,
                )
        if chance.random() < 0.8:
            reached = range(2, chance.randint(2, 6))
            self._emit(
                "turn.ended",
                outcome="completed",
                calls=calls,
                ran=calls,
                settled=settles,
                retries=retries,
                milestones__k=list(reached),
                milestones__call=[3 * k for k in reached],
                milestones__epoch=[0 for _ in reached],
                milestones__batch_first_call=[3 * k for k in reached],
            )


def exported(chance: random.Random, guard: str) -> list[bytes]:
    """Some turns as lines: partly lost, partly told twice, on logs and spans, in any order."""
    logs: list[Event] = []
    spans = []
    for seq in range(1, chance.randint(2, 5)):
        events = Lived(chance, guard, seq).events
        on_span = [one for one in events if chance.random() < 0.4]
        kept = [one for one in events if chance.random() < 0.85]
        logs += kept if chance.random() < 0.8 else []
        logs += [one for one in kept if chance.random() < 0.1]
        if on_span and chance.random() < 0.7:
            spans.append(span(on_span, seq))
    chance.shuffle(logs)
    lines = [log_line(logs[at : at + 4]) for at in range(0, len(logs), 4)]
    lines += [span_line([one]) for one in spans]
    chance.shuffle(lines)
    return lines


def stored(db: Path, guard: str) -> dict[str, dict[str, Any]]:
    """What the tables say of a guard's turns, in the oracle's form."""
    with duckdb.connect(str(db), read_only=True) as connection:

        def rows(query: str, turn: str) -> list[dict[str, Any]]:
            found = connection.execute(query, [turn])
            names = [column[0] for column in found.description or []]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        out = {}
        for (turn,) in connection.execute("SELECT turn_id FROM turns WHERE guard_id = ?", [guard]).fetchall():
            (one,) = rows(
                "SELECT has_started, has_ended, mode, outcome, calls, ran, halted_call, threshold, "
                "would_halt_call, chunks_seen, least_calls, grade FROM turns WHERE turn_id = ?",
                turn,
            )
            one["rows"] = rows("SELECT * EXCLUDE turn_id FROM calls WHERE turn_id = ? ORDER BY n", turn)
            for name, columns in (
                ("retries", "epoch, at_call, total"),
                ("milestones", "epoch, k, call, batch_first_call"),
            ):
                found = rows(f"SELECT {columns} FROM {name} WHERE turn_id = ? ORDER BY ALL", turn)
                one[name] = [tuple(row.values()) for row in found]
            found = rows(
                "SELECT event_id, call_number, enforced FROM loop_events WHERE turn_id = ? ORDER BY 2, 1",
                turn,
            )
            one["halts"] = [tuple(row.values()) for row in found]
            out[turn] = one
        return out


def expected(lines: list[bytes]) -> dict[str, dict[str, Any]]:
    """The same by the oracle."""
    of_turn: dict[str, list[oracle.Told]] = defaultdict(list)
    for one in oracle.told(lines):
        of_turn[one.attributes["turn.id"]].append(one)
    return {turn: oracle.turn(events) for turn, events in of_turn.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all examples: every guard has a name of its own."""
    return tmp_path_factory.mktemp("oracle")


def compare(seed: int, folder: Path, hostile: int) -> None:
    """Load one guard's telemetry in one to three loads, hostile lines among it, and compare."""
    chance, guard = random.Random(seed), f"g{seed}.{hostile}"
    lines = exported(chance, guard)
    parts: list[list[bytes]] = [[] for _ in range(chance.randint(1, 3))]
    for line in lines:
        chance.choice(parts).append(line)
    db = folder / "t.duckdb"
    for number, part in enumerate(parts):
        if part:
            for _ in range(hostile):
                part.insert(chance.randint(0, len(part)), chance.choice(HOSTILE) + b"\n")
            path = folder / f"{guard}.{number}.jsonl"
            path.write_bytes(b"".join(part))
            assert main(["load", str(path), "--db", str(db)]) in ((0, 3) if hostile else (0,))
    assert stored(db, guard) == expected(lines) if lines else True


@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_turns_load_as_the_oracle_reads_them(folder: Path, seed: int) -> None:
    compare(seed, folder, hostile=0)


@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_hostile_lines_among_them_change_nothing(folder: Path, seed: int) -> None:
    compare(seed, folder, hostile=4)


EXTREME: dict[str, list[Any]] = {
    "BIGINT": [2**63 - 1, -(2**63), 0],
    "DOUBLE": [float("nan"), float("inf"), 1e308],
    "TEXT": ["", "\0", "x" * 5000],
    "BOOLEAN": [True, False, True],
    "BIGINT[]": [[2**63 - 1], [-(2**63), -1], []],
    "TEXT[]": [[""], ["\0", "\0"], []],
}


@pytest.mark.parametrize("which", range(3))
def test_extreme_values_and_ids_used_twice_stop_nothing(which: int, folder: Path) -> None:
    """Every attribute of every event at the ends of its type; and one event id under two turns."""
    db, events = folder / "extreme.duckdb", []
    for number, (name, table) in enumerate(TABLES.items()):
        extreme = event(name.removeprefix("turncap."), "x", which, number, START)
        values = {attribute: EXTREME[kind][which] for attribute, kind in table.attributes.items()}
        extreme = Event(name=name, at=2**63 - 1, attributes={**values, **extreme.attributes})
        events += [extreme, extreme.but(turn__id="another", source="x")]
    good = Lived(random.Random(which), f"good{which}", 1).events
    for source, lines in (("log", [log_line(events + good)]), ("span", [span_line([span(events, 7)])])):
        path = folder / f"{which}.{source}"
        path.write_bytes(b"".join(lines))
        assert main(["load", str(path), "--db", str(db)]) in (0, 3)
    assert stored(db, f"good{which}") == expected([log_line(good)])


@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_many_random_turns_load_as_the_oracle_reads_them(folder: Path) -> None:
    for seed in range(120):
        compare(seed, folder, hostile=seed % 3)
