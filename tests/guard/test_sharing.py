"""One turn shared by threads and tasks: counts are exact, and the lock is never held while calling out."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guard import ToolCall, ToolCallGuard, Turn, Verdict
from tests.guard.receiving import Receiver

WORKERS, CALLS = 8, 150


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def work(turn: Turn, worker: int) -> list[Verdict]:
    """Single calls, batches, settles by id and by verdict."""
    found = []
    for n in range(CALLS // 3):
        verdict = turn.admit("tool", {"k": n % 10}, f"{worker}-{n}")
        pair = turn.admit_batch([ToolCall("tool", {"k": 10}), ToolCall("tool", {"k": 11})])
        turn.settle(f"{worker}-{n}", result=n)
        for other in pair:
            turn.settle(other, error="no")
        found += [verdict, *pair]
    return found


def together(act: Callable[[int], list[Verdict]]) -> list[Verdict]:
    barrier = threading.Barrier(WORKERS)

    def begin(worker: int) -> list[Verdict]:
        barrier.wait()
        return act(worker)

    with ThreadPoolExecutor(WORKERS) as pool:
        return [verdict for found in pool.map(begin, range(WORKERS)) for verdict in found]


def check(receiver: Receiver, verdicts: list[Verdict], turn: Turn) -> None:
    calls = WORKERS * CALLS
    assert sorted(verdict.call_number for verdict in verdicts) == list(range(1, calls + 1))
    turn.end()
    ended = receiver.log("turncap.turn.ended").attributes
    names = ("calls", "ran", "total", "settled", "errors", "refused", "batches", "distinct_keys")
    assert {name: ended[f"turncap.{name}"] for name in names} == {
        "calls": calls,
        "ran": calls,
        "total": calls,
        "settled": calls,
        "errors": calls * 2 // 3,
        "refused": 0,
        "batches": calls * 2 // 3,
        "distinct_keys": 12,
    }
    assert ended["turncap.repeat.count"] == calls // 3
    chunks = sorted(
        (event.attributes for event in receiver.logs if event.name == "turncap.turn.calls"),
        key=lambda chunk: chunk["turncap.chunk.index"],
    )
    keys = Counter(key for chunk in chunks for key in chunk["turncap.calls.key"])
    assert sum(keys.values()) == calls
    assert sorted(keys.values()) == [calls // 30] * 10 + [calls // 3] * 2
    settled = [call for chunk in chunks for call in chunk.get("turncap.settled.call", ())]
    assert sorted(settled) == list(range(1, calls + 1))
    assert turn._guard.faults == {}
    ids = [event.attributes["turncap.event.id"] for event in receiver.logs]
    assert sorted(ids, key=lambda text: int(text.split("/")[1])) == [
        f"{turn.id}/{n}" for n in range(len(ids))
    ]


def test_threads_sharing_a_turn_are_counted_exactly() -> None:
    receiver = Receiver("logs")
    turn = receiver.guard(max_tool_calls=0).start_turn()
    check(receiver, together(lambda worker: work(turn, worker)), turn)


def test_tasks_sharing_a_turn_are_counted_exactly() -> None:
    receiver = Receiver("logs")
    turn = receiver.guard(max_tool_calls=0).start_turn()

    async def task(worker: int) -> list[Verdict]:
        found = []
        for n in range(CALLS // 3):
            verdict = turn.admit("tool", {"k": n % 10}, f"{worker}-{n}")
            await asyncio.sleep(0)
            pair = turn.admit_batch([ToolCall("tool", {"k": 10}), ToolCall("tool", {"k": 11})])
            await asyncio.sleep(0)
            turn.settle(verdict, result=n)
            for other in pair:
                turn.settle(other, error="no")
            found += [verdict, *pair]
        return found

    async def main() -> list[Verdict]:
        found = await asyncio.gather(*map(task, range(WORKERS)))
        return [verdict for verdicts in found for verdict in verdicts]

    check(receiver, asyncio.run(main()), turn)


def test_exactly_the_cap_runs_however_many_ask_at_once() -> None:
    turn = ToolCallGuard(max_tool_calls=500).start_turn()
    verdicts = together(lambda worker: [turn.admit("tool", {"k": n}) for n in range(100)])
    assert sum(verdict.allowed for verdict in verdicts) == 500
    assert len({verdict for verdict in verdicts if verdict.halted}) == 1


def test_one_end_wins_and_one_ended_event_is_sent() -> None:
    receiver = Receiver("logs")
    guard = receiver.guard()
    turn = guard.start_turn()
    outcomes = set()

    def end(worker: int) -> list[Verdict]:
        outcomes.add(turn.end("errored" if worker % 2 else "completed"))
        return []

    together(end)
    assert len(outcomes) == 1
    assert receiver.log("turncap.turn.ended").attributes["turncap.outcome"] in outcomes


class Asking:
    """Called out to by a turn, it asks the same turn from another thread, which a held lock would stop."""

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.answered = 0
        self.busy = False

    def ask(self, *_: Any, **__: Any) -> None:
        if self.turn is None or self.busy:
            return
        self.busy = True
        turn = self.turn
        thread = threading.Thread(target=turn.reply_finished, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), "the lock was held while calling out"
        self.answered += 1
        self.busy = False


def test_the_lock_is_never_held_while_calling_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking()

    class Clock:
        def unix_ns(self) -> int:
            return 0

        def monotonic(self) -> float:
            asking.ask()
            return 0.0

    class Args:
        def __repr__(self) -> str:
            asking.ask()
            return "args"

    def told(name: str) -> None:
        asking.ask()

    def mask(text: str) -> str:
        asking.ask()
        return text

    receiver = Receiver("logs")
    emit = receiver._logs.export

    def export(batch: Any) -> Any:
        asking.ask()
        return emit(batch)

    monkeypatch.setattr(receiver._logs, "export", export)
    guard = receiver.guard(soft_cap=2, stuck_at=1, clock=Clock(), tool_info=told, mask=mask)
    turn = asking.turn = guard.start_turn()
    verdicts = [turn.admit(name, {"a": Args()}, name) for name in "abcd"]
    turn.settle(verdicts[0], result="r")
    turn.settle("nobody", result="r")
    turn.extend(1, "ann")
    turn.admit_batch([ToolCall("e", Args())])
    turn.retry()
    asking.turn = turn
    turn.end()
    turn.admit("late")
    assert asking.answered > 20
    assert set(guard.faults) <= {"unknown_call", "admitted_after_end"}
