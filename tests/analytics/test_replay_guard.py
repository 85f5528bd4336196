"""Replaying what a guard emitted equals the guard run live: same halts, thresholds and calls that ran."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from analytics.cli import main
from analytics.database import open_database
from analytics.recording import NEVER, Ints
from analytics.replay import Badge, Halts, Replay
from guard import CapPolicy, Threshold, ToolCall, ToolCallGuard, Verdict
from guard.policy import SIGNALS
from tests.analytics.recorded import Ask, Finished, Retry, Settle, Step
from tests.analytics.telemetry import Event, log_line


@dataclass(frozen=True, slots=True)
class Ran:
    """What one turn came to: halting call and threshold (None: no halt), calls that ran."""

    turn_id: str
    halted: int | None
    threshold: str | None
    ran: int


def drive(guard: ToolCallGuard, script: Sequence[Step]) -> Ran:
    """One turn of the guard."""
    turn = guard.start_turn()
    verdicts: list[Verdict] = []
    for step in script:
        match step:
            case Ask(keys):
                numbered = len(verdicts)
                asked = turn.admit_batch([ToolCall(name="T", args={"k": key}) for key in keys])
                verdicts += [v for v in asked if v.call_number > numbered]
            case Settle(call, result) if call <= len(verdicts) and verdicts[call - 1].allowed:
                turn.settle(verdicts[call - 1], result=f"result {'abcdefghij'[result]}")
            case Finished():
                turn.reply_finished()
            case Retry():
                turn.retry()
    halt = turn.verdict
    turn.end()
    ran = sum(verdict.allowed for verdict in verdicts)
    return Ran(turn.id, halt and halt.call_number, halt and str(halt.threshold), ran)


def record(folder: Path, runs: Sequence[tuple[CapPolicy, str, Sequence[Step]]]) -> tuple[Path, list[Ran]]:
    """Run each script under its policy and mode; a database of all that was emitted."""
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    ran = [
        drive(ToolCallGuard(policy=policy, mode=mode, logger_provider=provider), script)
        for policy, mode, script in runs
    ]
    events = []
    for emitted in exporter.get_finished_logs():
        one = emitted.log_record
        events.append(
            Event(name=one.event_name or "", at=one.timestamp or 0, attributes=dict(one.attributes or {}))
        )
    (folder / "logs.jsonl").write_bytes(log_line(events))
    db = folder / "turns.duckdb"
    assert main(["load", str(folder / "logs.jsonl"), "--db", str(db)]) == 0
    return db, ran


def new(calls: int, first: int = 1000) -> list[Step]:
    """So many diverse calls, one by one."""
    return [Ask((first + n,)) for n in range(calls)]


def mixed(times: int, first: int = 5000) -> list[Step]:
    """One key again and again, with another call after each."""
    return [step for n in range(times) for step in (Ask((0,)), Ask((first + n,)))]


def settled(script: Sequence[Step]) -> list[Step]:
    """The same, with each batch settled at once; a result depends on the key alone."""
    out: list[Step] = []
    calls = 0
    for step in script:
        out.append(step)
        if isinstance(step, Ask):
            out += [Settle(calls + n, key % 10) for n, key in enumerate(step.keys, start=1)]
            calls += len(step.keys)
    return out


def soft(soft_cap: int, signal: str = "repeat", stuck_at: int = 6) -> CapPolicy:
    return CapPolicy.adaptive(soft_cap=soft_cap, signal=signal, stuck_at=stuck_at)


# Row of the origin's behaviour table -> policy, script, halting call and calls that ran.
TABLE: dict[str, tuple[CapPolicy, list[Step], int | None, int]] = {
    "31: a retry rolls the total back": (
        soft(10), [*new(6), Retry(), *new(101, 2000)], 107, 106),
    "32: it rolls back to what was committed": (
        soft(10), [*new(6), Finished(), *new(4, 2000), Retry(), *new(95, 3000)], 105, 104),
    "33: a retry wipes the repeats": (
        soft(20), [*mixed(6), Retry(), *new(25)], None, 37),
    "34: a finished reply keeps them": (
        soft(10), [*(step for n in range(3) for step in (*mixed(2, 100 * n), Finished()))], 11, 10),
    "35: the backstop halts in the middle of a reply": (
        soft(10), [*(step for n in range(12) for step in (*new(15, 100 * n), Finished()))], 101, 100),
    "36: five and five repeats are not six": (
        soft(10), [*new(10), *[Ask((0,))] * 5, Retry(), *[Ask((0,))] * 5], None, 20),
    "47: a batch past a hard cap is skipped whole": (
        CapPolicy.hard(10), [Ask(tuple(range(8))), Ask(tuple(range(8, 13)))], 11, 8),
    "48: six equal calls in one batch past the cap": (
        soft(100), [*new(98), Ask((0,) * 6)], 104, 98),
    "49: six equal calls in the first batch are allowed, and count": (
        soft(100), [Ask((0,) * 6), *new(100)], 101, 100),
    "51: a diverse batch of 150 is allowed": (soft(100), [Ask(tuple(range(150)))], None, 150),
    "52: a batch of 3,451 is halted before any runs": (soft(100), [Ask(tuple(range(3451)))], 1001, 0),
    "53: a batch over the backstop is skipped whole": (
        soft(100), [*new(998), Ask((1, 2, 3, 4, 5))], 1001, 998),
}  # fmt: skip

POLICIES = [
    *(soft(cap, signal, k) for signal in SIGNALS for cap, k in ((10, 2), (20, 3), (100, 6))),
    CapPolicy.adaptive(soft_cap=0, stuck_at=4, backstop=50),
    CapPolicy.adaptive(soft_cap=50, stuck_at=5, backstop=120),
    CapPolicy.hard(10),
    CapPolicy.hard(300),
    CapPolicy.disabled(),
]


def test_there_are_20_policies() -> None:
    assert len(POLICIES) == 20


Answer = tuple[Halts, Ints, Ints, list[Threshold | None]]
Table = tuple[Replay, list[Ran], Callable[[CapPolicy], Answer]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Each row recorded twice: as it ran enforced, and in shadow, where it runs to its end."""
    scripts = [(policy, settled(script)) for policy, script, _, _ in TABLE.values()]
    runs = [(policy, mode, script) for mode in ("enforce", "shadow") for policy, script in scripts]
    db, ran = record(tmp_path_factory.mktemp("table"), runs)
    replay = Replay.of(open_database(db))

    @cache
    def answer(policy: CapPolicy) -> Answer:
        halts = replay.halts(policy)
        return halts, *replay.ran(halts), replay.thresholds(policy, halts)

    return replay, ran, answer


@pytest.mark.parametrize("row", range(len(TABLE)), ids=list(TABLE))
def test_replay_of_a_row_equals_the_guard_run_live(row: int, table: Table) -> None:
    replay, ran, answer = table
    policy, script, halted, let_run = list(TABLE.values())[row]
    place_of = {turn_id: place for place, turn_id in enumerate(replay.turns.turn_id)}
    assert (ran[row].halted, ran[row].ran) == (halted, let_run)
    enforced, shadow = place_of[ran[row].turn_id], place_of[ran[row + len(TABLE)].turn_id]
    for asked in [policy, *POLICIES]:
        live = drive(ToolCallGuard(policy=asked), settled(script))
        halts, least, most, thresholds = answer(asked)
        assert halts.badge(shadow) is Badge.EXACT
        assert halts.call(shadow) == live.halted
        assert thresholds[shadow] == live.threshold
        assert least[shadow] == most[shadow] == live.ran
        assert halts.low[enforced] <= (live.halted or NEVER) <= halts.high[enforced]
        assert least[enforced] <= live.ran <= most[enforced]
        if asked == policy and halted is not None:
            assert halts.call(enforced) == halted
            assert least[enforced] == most[enforced] == let_run


def scripts(seed: int) -> list[Step]:
    """A random turn: single calls and batches, results that settle late or never, commits and retries."""
    chance = random.Random(seed)
    steps: list[Step] = []
    calls = 0
    for _ in range(chance.randint(1, 80)):
        pick = chance.random()
        if pick < 0.6:
            size = 1 if chance.random() < 0.7 else chance.randint(2, 5)
            steps.append(Ask(tuple(chance.choice((0, 1, 2, 3 + calls)) for _ in range(size))))
            calls += size
        elif pick < 0.9:
            steps.append(Settle(max(calls - chance.randint(0, 4), 1), chance.randint(0, 1)))
        else:
            steps.append(Finished() if pick < 0.97 else Retry())
    return [*steps, Ask((0,))]


def test_random_turns_under_random_policies(tmp_path: Path) -> None:
    chance = random.Random(0)
    asked = [
        CapPolicy.adaptive(
            soft_cap=chance.randint(0, 40), stuck_at=chance.randint(1, 6), backstop=chance.randint(40, 80),
            signal=signal,
        )
        for signal in SIGNALS
    ]  # fmt: skip
    runs = [(chance.choice(asked), chance.choice(("enforce", "shadow")), scripts(n)) for n in range(80)]
    db, ran = record(tmp_path, runs)
    exact = 0
    with open_database(db) as connection:
        replay = Replay.of(connection)
        place_of = {turn_id: place for place, turn_id in enumerate(replay.turns.turn_id)}
        for policy in asked:
            halts = replay.halts(policy)
            least, most = replay.ran(halts)
            thresholds = replay.thresholds(policy, halts)
            for recorded, (under, mode, script) in zip(ran, runs, strict=True):
                place = place_of[recorded.turn_id]
                live = drive(ToolCallGuard(policy=policy), script)
                assert halts.low[place] <= (live.halted or NEVER) <= halts.high[place]
                assert least[place] <= live.ran <= most[place]
                told = not halts.lacking[place]  # a turn in which nothing settled tells nothing of results
                if told and (mode == "shadow" or (policy == under and live.halted is not None)):
                    assert halts.badge(place) is Badge.EXACT
                    assert halts.call(place) == live.halted
                    assert thresholds[place] == live.threshold
                    assert least[place] == most[place] == live.ran
                    exact += 1
    assert exact > len(runs)


def test_a_driven_guard_halts() -> None:
    halted, free = (
        drive(ToolCallGuard(policy=policy), new(5)) for policy in (CapPolicy.hard(3), CapPolicy.disabled())
    )
    assert (halted.halted, halted.ran) == (4, 3)
    assert (free.halted, free.ran) == (None, 5)
