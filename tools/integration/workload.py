"""One agent process of the bench: a real guard, the real SDK and exporters, a scripted agent.

    python -m tools.integration.workload SCENARIO JOURNAL [ROUNDS] [PACE]

Every event id that the guard hands to the logs goes into JOURNAL (a line each, written before the record is
queued for export), so that what was emitted can be compared with what arrived. OTEL_… and TURNCAP_… variables
configure the rest, as in any agent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from opentelemetry import _logs
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord

from guard import ToolCallGuard, names
from guard.export import Exporting, set_up


class Journal(LogRecordProcessor):
    """Writes the id and name of each event to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        record = log_record.log_record
        self._file.write(f"{(record.attributes or {})[names.EVENT_ID]!s} {record.event_name}\n")
        self._file.flush()

    def shutdown(self) -> None:
        self._file.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def _work(
    guard: ToolCallGuard, calls: int, *, distinct: int, results: int = 10**9, who: str = "builder"
) -> None:
    """One turn of `calls` calls over `distinct` different requests, until it is halted."""
    with guard.turn(agent_name=who, model="model-a", user=f"user-{calls % 5}") as turn:
        for n in range(calls):
            verdict = turn.admit("Bash", {"command": f"step {n % distinct}"}, call_id=str(n))
            if verdict.halted:
                turn.admit("Bash", {"command": "once more"})  # a stubborn agent: refused again
                return
            turn.settle(str(n), result=f"answer {chr(97 + n % 26)} {n % results}")


def diverse(guard: ToolCallGuard, round_: int) -> None:
    """Turns that keep doing new things, one of them past the soft cap."""
    for calls in (3, 12, 40, 75, 130 + round_ % 40):
        _work(guard, calls, distinct=calls)


def stuck(guard: ToolCallGuard, round_: int) -> None:
    """One request over and over, halted at the soft cap."""
    _work(guard, 150, distinct=3, results=2, who="fixer")


def backstop(guard: ToolCallGuard, round_: int) -> None:
    """New requests for ever, halted at the last limit."""
    _work(guard, 1200, distinct=1200, who="crawler")


def explicit(guard: ToolCallGuard, round_: int) -> None:
    """Past a fixed limit (TURNCAP_MAX_TOOL_CALLS_PER_TURN)."""
    _work(guard, 30, distinct=30, who="runner")


def errors(guard: ToolCallGuard, round_: int) -> None:
    """Faults that are passed over, and turns that an exception or a person ends."""
    with guard.turn(agent_name="clumsy") as turn:
        turn.settle("never asked", result="")
        cycle: list[Any] = []
        cycle.append(cycle)
        turn.admit("Bash", {"command": cycle})
    with suppress(ValueError), guard.turn(agent_name="clumsy") as turn:
        turn.admit("Read", {"path": "a"})
        raise ValueError
    with guard.turn(agent_name="clumsy") as turn:
        turn.admit("Read", {"path": "a"})
        turn.retry()
        turn.admit("Read", {"path": "a"})
        turn.abort()


SCENARIOS: dict[str, Callable[[ToolCallGuard, int], None]] = {
    "diverse": diverse,
    "stuck": stuck,
    "backstop": backstop,
    "explicit": explicit,
    "errors": errors,
}


def main(scenario: str, journal: str, rounds: int = 1, pace: float = 0.0) -> None:
    """Play a scenario `rounds` times; `killed` is a stuck agent killed in the middle of its second turn."""
    exporting = set_up()
    provider: Any = _logs.get_logger_provider()
    with open(journal, "a", encoding="utf-8") as file:  # noqa: PTH123 - closed by the processor's shutdown too
        # first in line: what is written down is at least what is sent
        provider._multi_log_record_processor._log_record_processors = (
            Journal(file),
            *provider._multi_log_record_processor._log_record_processors,
        )
        guard = ToolCallGuard(agent_name="bench")
        if scenario == "killed":
            _die(guard, exporting)
        for round_ in range(rounds):
            SCENARIOS[scenario](guard, round_)
            if pace:
                time.sleep(pace)
        time.sleep(float(os.environ.get("BENCH_LINGER", "0")))
        exporting.shut_down(60)


def _die(guard: ToolCallGuard, exporting: Exporting) -> None:
    _work(guard, 20, distinct=20, who="doomed")
    turn = guard.start_turn(agent_name="doomed")
    for n in range(120):
        turn.admit("Bash", {"command": str(n)}, call_id=str(n))
    exporting.flush(30)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    name, path, *numbers = sys.argv[1:]
    main(name, path, *(int(numbers[0]), float(numbers[1])) if numbers else ())
