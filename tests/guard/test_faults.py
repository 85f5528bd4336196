"""Telemetry that fails: the agent's calls neither block nor fail, and what is lost is seen as lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from analytics.cli import main
from guard import ToolCallGuard
from guard.otlp_json import to_json

# A backend that raises


class Raising:
    """A provider whose instruments exist and fail at every use."""

    def __init__(self, when: str) -> None:
        self.when = when

    def __getattr__(self, name: str) -> Any:
        if name == "enabled":
            return lambda *args, **kwargs: True
        if name.startswith(("get_", "create_")):
            return lambda *args, **kwargs: Raising(self.when)
        if name in ("emit", "start_span", "add", "record"):
            return self._fail
        raise AttributeError(name)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(self.when)


@pytest.mark.parametrize("signal", ["logger_provider", "tracer_provider", "meter_provider"])
def test_a_backend_that_raises_costs_its_telemetry_alone(
    signal: str, caplog: pytest.LogCaptureFixture
) -> None:
    providers: dict[str, Any] = {signal: Raising("disk full")}
    guard = ToolCallGuard(max_tool_calls=60, **providers)
    with guard.turn() as turn:
        verdicts = [turn.admit("tool", {"n": n}, str(n)) for n in range(62)]
        turn.settle("1", result="r")
        turn.retry()
    assert [verdict.halted for verdict in verdicts] == [False] * 60 + [True] * 2
    assert turn.outcome == "halted"
    assert set(guard.faults) == {"telemetry"}
    assert len(caplog.records) == 1
    assert "disk full" not in caplog.text


# Processes


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNCAP_"))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_providers_that_are_set_late_get_what_comes_after() -> None:
    done = run(
        """
from guard import ToolCallGuard
guard = ToolCallGuard()
guard.start_turn().end()  # nobody listens yet
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
logs, spans, reader = InMemoryLogRecordExporter(), InMemorySpanExporter(), InMemoryMetricReader()
loggers, tracers = LoggerProvider(), TracerProvider()
loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
tracers.add_span_processor(SimpleSpanProcessor(spans))
_logs.set_logger_provider(loggers)
trace.set_tracer_provider(tracers)
metrics.set_meter_provider(MeterProvider([reader]))
turn = guard.start_turn()
turn.admit("tool")
turn.end()
print([r.log_record.event_name for r in logs.get_finished_logs()])
print([span.name for span in spans.get_finished_spans()])
metered = reader.get_metrics_data().resource_metrics
found = [m.name for r in metered for s in r.scope_metrics for m in s.metrics]
print("turncap.turns" in found, "turncap.guard.info" in found, guard.faults)
"""
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['turncap.turn.started', 'turncap.turn.calls', 'turncap.turn.ended']",
        "['turncap.turn']",
        "True True {}",
    ]


def test_a_forked_child_is_a_guard_of_its_own_and_no_lock_is_left_held() -> None:
    done = run(
        """
import os, sys, threading
from guard import ToolCallGuard
guard = ToolCallGuard(max_tool_calls=5)
turn = guard.start_turn()
held = turn._core.lock
held.acquire()  # as if another thread were inside at the fork
before = guard.id
child = os.fork()
if child == 0:
    assert guard.id != before
    own = guard.start_turn()
    assert own.id == f"{guard.id}-1"
    assert turn.admit("tool").allowed
    assert own.admit("tool").allowed
    sys.exit(7)
held.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert (guard.id, guard.start_turn().id) == (before, f"{before}-2")
print("fine")
"""
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


TURNS = """
import os, sys, time
from guard import ToolCallGuard
from guard.export import set_up
exporting = set_up({where})
guard = ToolCallGuard()
slowest = 0.0
for number in range({turns}):
    turn = guard.start_turn()
    for n in range({calls}):
        began = time.thread_time()
        verdict = turn.admit("Bash", dict(n=n % 7), str(n))
        turn.settle(str(n), result=n)
        slowest = max(slowest, time.thread_time() - began)
        if n % 60 == 59: time.sleep({pause})
    {end}
assert not guard.faults, guard.faults
print(slowest, flush=True)
print(time.time(), flush=True)
{last}
"""


def loaded(lines: Path, folder: Path) -> list[tuple[Any, ...]]:
    """seq, has_started, has_ended, outcome, calls, least_calls of each turn that analytics knows."""
    database = folder / "turns.duckdb"
    assert main(["load", str(lines), "--db", str(database)]) == 0
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(
            "SELECT seq, has_started, has_ended, outcome, calls, least_calls FROM turns ORDER BY seq"
        ).fetchall()


def never_shorter(turns: list[tuple[Any, ...]], calls: int) -> None:
    for _, _, has_ended, outcome, counted, least in turns:
        assert counted == (calls if has_ended else None)
        assert (outcome is None) == (not has_ended)
        assert least <= calls


def test_an_exit_sends_what_is_queued(tmp_path: Path) -> None:
    program = TURNS.format(
        where=f"directory={str(tmp_path / 'out')!r}",
        turns=3,
        calls=70,
        pause=0,
        end="turn.end()",
        last="sys.exit(3)",
    )
    done = run(program)
    assert (done.returncode, done.stderr) == (3, "")
    turns = loaded(tmp_path / "out", tmp_path)
    assert [(turn[0], turn[2], turn[4]) for turn in turns] == [(1, True, 70), (2, True, 70), (3, True, 70)]


def test_what_os_exit_loses_is_an_open_turn_or_none_and_never_a_shorter_one(tmp_path: Path) -> None:
    program = TURNS.format(
        where=f"directory={str(tmp_path / 'out')!r}",
        turns=3,
        calls=70,
        pause=0,
        end="""turn.end() if number < 2 else exporting.flush(20)
    if number == 2: guard.start_turn()""",
        last="os._exit(0)",
    )
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")
    turns = loaded(tmp_path / "out", tmp_path)
    assert [(turn[0], turn[2]) for turn in turns] == [(1, True), (2, True), (3, False)]
    assert turns[2][5] == 50  # the chunk that was full; the turn begun after the last export is unseen
    never_shorter(turns, 70)


# Collectors


class Collector(ThreadingHTTPServer):
    """An OTLP/HTTP receiver that fails in one way."""

    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way = way
        self.kept: list[bytes] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what this is about."""


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.way == "hangs":
            self.server.closing.wait(30)
            return
        logs = self.path.endswith("/logs")
        with self.server.lock:
            dead = self.server.way == "dies mid-way" and len(self.server.kept) >= 1
            if logs and not dead and self.server.way != "answers 503":
                self.server.kept.append(body)
        if dead or self.server.way == "hangs up":
            self.connection.close()
            return
        self.send_response(503 if self.server.way == "answers 503" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def collector(way: str) -> Iterator[tuple[str, list[bytes]]]:
    if way == "refuses":
        yield "http://127.0.0.1:9", []
        return
    server = Collector(way)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.kept
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["works", "refuses", "hangs", "hangs up", "answers 503", "dies mid-way"])
def test_a_collector_that_fails_slows_no_call_and_holds_no_exit(way: str, tmp_path: Path) -> None:
    program = TURNS.format(where="", turns=40, calls=90, pause=0.05, end="turn.end()", last="")
    with collector(way) as (url, kept):
        done = run(program, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_BLRP_SCHEDULE_DELAY="300")
        ended = time.time()
    assert done.returncode == 0, done.stderr
    slowest, finished = map(float, done.stdout.split())
    assert slowest < 0.1  # CPU seconds of the slowest call
    assert ended - finished < 3
    if not kept:
        assert way in ("refuses", "hangs", "answers 503")
        return
    lines = tmp_path / "logs.jsonl"
    lines.write_text(
        "".join(json.dumps(to_json(ExportLogsServiceRequest.FromString(body))) + "\n" for body in kept)
    )
    turns = loaded(lines, tmp_path)
    never_shorter(turns, 90)
    if way != "dies mid-way":  # what was not acknowledged came again, and counts once
        assert [turn[0] for turn in turns if turn[2]] == list(range(1, 41))
    else:
        assert len([turn for turn in turns if turn[2]]) < 40
