"""What the guard costs an agent: `admit` beside a bare floor, long turns, the real SDK, memory a key.

    python -m tools.bench.guard [--write]

Both wheels are measured: the one in which what is done for every call is compiled (`tools.compiled`), and
the one of pure Python. Times are seconds of CPU of this thread, medians over rounds in which floor and guard
take turns, so that a busy machine slows both. The floor is what any guard must do: write the same arguments
as JSON with sorted keys, hash them with BLAKE2b-128 and count the hash in a dict. `--write` puts the figures
into docs/bench/.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from guard import ToolCallGuard, Turn
from guard.keys import plain_by_json
from tools import compiled
from tools.bench.measure import Sheet

DOCS = Path(__file__).resolve().parents[2] / "docs" / "bench"
ROUNDS = 41
ADMIT_BAR, LATE_BAR = 2.5, 1.2
COMPILED, PURE = "compiled", "pure Python"  # the two wheels
TURN_CALLS = 17  # the mean of the bundled turns
ANSWERED_AFTER = (0.0, 0.25, 1.0)  # seconds; a Collector at hand, a busy one, one that is overloaded


class Row(NamedTuple):
    """A figure in words, and where there is a bar the ratio that it bars."""

    name: str
    words: str
    ratio: float | None = None
    bar: float | None = None


RECEIVER = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
records = 0
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        global records
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(float(sys.argv[1]))
        if self.path.endswith("logs"):
            request = ExportLogsServiceRequest.FromString(body)
            records += sum(len(s.log_records) for r in request.resource_logs for s in r.scope_logs)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def do_GET(self):
        text = str(records).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *args): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def arguments(count: int) -> list[dict[str, Any]]:
    """About 300 bytes of JSON each, every fifth one as before."""
    return [
        {
            "command": f"python -m pytest tests/unit/test_mod_{n // 5 * 4 + min(n % 5, 3)}.py -x -q",
            "description": "Run the unit tests of one module, stop at the first failure, with short traces",
            "timeout": 120_000,
            "run_in_background": False,
            "cwd": "/srv/checkout/service/backend",
            "env": "CI=1 PYTHONHASHSEED=0 PYTHONPATH=src",
        }
        for n in range(count)
    ]


def floor_by(write: Callable[[Any], bytes], calls: list[dict[str, Any]]) -> float:
    """CPU seconds a call of the bare floor."""
    counts: dict[bytes, int] = {}
    began = time.thread_time()
    for args in calls:
        key = blake2b(write(args), digest_size=16).digest()
        counts[key] = counts.get(key, 0) + 1
    return (time.thread_time() - began) / len(calls)


def by_orjson(args: Any) -> bytes:
    """The floor's own writer."""
    return orjson.dumps(args, option=orjson.OPT_SORT_KEYS)


def by_json(args: Any) -> bytes:
    """The floor's own writer without orjson."""
    return json.dumps(args, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def admit_cost(turns: list[Turn], calls: list[dict[str, Any]]) -> float:
    """CPU seconds a call, over as many turns as there are, each with its share of the calls."""
    share = len(calls) // len(turns)
    began = time.thread_time()
    for place, turn in enumerate(turns):
        admit = turn.admit
        for args in calls[place * share : (place + 1) * share]:
            admit("Bash", args)
    return (time.thread_time() - began) / (share * len(turns))


def settle_cost(turn: Turn, count: int) -> float:
    """CPU seconds a settled call with 400 characters of result."""
    verdicts = [turn.admit("Bash", {"n": n}) for n in range(count)]
    lines = "tests/unit/test_module.py::test_one PASSED\n" * 9
    results = [f"{n} passed in 0.{n}s\n{lines}" for n in range(count)]
    began = time.thread_time()
    for verdict, result in zip(verdicts, results, strict=True):
        turn.settle(verdict, result=result)
    return (time.thread_time() - began) / count


@contextmanager
def without_orjson() -> Iterator[None]:
    """As where it is not installed."""
    with patch("guard.keys.HAS_ORJSON", False), patch("guard.keys._plain", plain_by_json):
        yield


def beside_the_floor(settings: dict[str, Any], write: Callable[[Any], bytes]) -> tuple[float, float, float]:
    """Medians: µs of the floor, µs of admit, and the ratio within a round."""
    guard = ToolCallGuard(**settings)
    calls = arguments(2_000)
    rows = []
    for _ in range(ROUNDS):
        turns = [guard.start_turn() for _ in range(20)]
        floor, admit = floor_by(write, calls), admit_cost(turns, calls)
        rows.append((floor * 1e6, admit * 1e6, admit / floor))
    return median(r[0] for r in rows), median(r[1] for r in rows), median(r[2] for r in rows[1:])


def late_calls() -> dict[str, float]:
    """µs a call around calls 100, 1,000, 10,000 and 20,000 of one turn, past its soft cap."""
    guard = ToolCallGuard(soft_cap=20, stuck_at=10**6, backstop=10**6)
    calls = arguments(20_400)
    spots = {100: [], 1_000: [], 10_000: [], 20_000: []}  # type: dict[int, list[float]]
    for _ in range(13):
        turn = guard.start_turn()
        at = 0
        for spot, found in spots.items():
            for args in calls[at : spot - 50]:
                turn.admit("Bash", args)
            began = time.thread_time()
            for args in calls[spot - 50 : spot + 350]:
                turn.admit("Bash", args)
            found.append((time.thread_time() - began) / 400 * 1e6)
            at = spot + 350
    return {f"call {spot:,}": median(found) for spot, found in spots.items()}


class Providers:
    """The real SDK with batch processors at their defaults, and a receiver in a process of its own.

    The receiver answers a request after `delay` seconds.
    """

    def __init__(self, delay: float = 0.0) -> None:
        command = [sys.executable, "-c", RECEIVER, str(delay)]
        self.receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.receiver.stdout is not None
        self.url = f"http://127.0.0.1:{self.receiver.stdout.readline().strip()}"
        self.loggers, self.tracers = LoggerProvider(), TracerProvider()
        self.loggers.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{self.url}/v1/logs"))
        )
        self.tracers.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{self.url}/v1/traces"))
        )
        self.meters = MeterProvider(
            [PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{self.url}/v1/metrics"))]
        )

    def guard(self) -> ToolCallGuard:
        """A guard that emits to them."""
        return ToolCallGuard(
            tracer_provider=self.tracers, logger_provider=self.loggers, meter_provider=self.meters
        )

    def received(self) -> int:
        """Log records that arrived, once all that is queued was sent."""
        import urllib.request

        self.loggers.force_flush()
        with urllib.request.urlopen(self.url) as answer:
            return int(answer.read())

    def close(self) -> None:
        """Stop all."""
        for provider in (self.loggers, self.tracers, self.meters):
            provider.shutdown()
        self.receiver.kill()
        self.receiver.wait()


def one_turn(guard: ToolCallGuard, calls: list[dict[str, Any]]) -> None:
    """A whole turn of the mean length, every call settled."""
    with guard.turn() as turn:
        for args in calls:
            turn.settle(turn.admit("Bash", args), result="ok")


def turn_cost(guard: ToolCallGuard, turns: int) -> tuple[float, float]:
    """µs of CPU a turn: of the agent's thread, and of the whole process (exporting included)."""
    calls = arguments(TURN_CALLS)
    one_turn(guard, calls)
    thread, process = time.thread_time(), time.process_time()
    for _ in range(turns):
        one_turn(guard, calls)
        time.sleep(0.001)  # as an agent waits for its model: the exporting threads get their turn
    return (time.thread_time() - thread) / turns * 1e6, (time.process_time() - process) / turns * 1e6


def dropping_rate(providers: Providers) -> tuple[int, int]:
    """Turns a second: the largest rate held for four seconds, and the first that lost records."""
    guard, calls, held = providers.guard(), arguments(TURN_CALLS), 0
    for rate in (100, 150, 200, 300, 400, 600, 800, 1_200, 1_600, 2_400, 3_200):
        before, turns = providers.received(), rate * 4
        began = time.perf_counter()
        for number in range(turns):
            one_turn(guard, calls)
            ahead = began + number / rate - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
        reached = turns / (time.perf_counter() - began)
        if providers.received() - before < turns * 3:
            return held, int(reached)
        held = int(reached)
        if reached < rate * 0.9:  # one thread makes no more
            break
    return held, 0


def memory_a_key() -> float:
    """Bytes a distinct key that a turn remembers, its settled result included."""
    turn = ToolCallGuard(max_tool_calls=0).start_turn()
    gc.collect()
    tracemalloc.start()
    try:
        for n in range(9_900):
            turn.settle(turn.admit("Bash", {"n": n}), result=n)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 9_900
    finally:
        tracemalloc.stop()


def measure(say: Callable[..., None]) -> None:
    """All that is measured of the guard which this process imports: a `Row` each, as arguments of `say`."""
    past: dict[str, Any] = {"soft_cap": 1, "stuck_at": 10**6, "backstop": 10**6}
    cases: list[tuple[str, dict[str, Any], Callable[[Any], bytes]]] = [
        ("admit, orjson installed", {}, by_orjson),
        ("admit past the soft cap, orjson installed", past, by_orjson),
        ("admit, standard library alone", {}, by_json),
        ("admit past the soft cap, standard library alone", past, by_json),
    ]
    for name, settings, writer in cases:
        if writer is by_json:
            with without_orjson():
                floor, admit, ratio = beside_the_floor(settings, writer)
        else:
            floor, admit, ratio = beside_the_floor(settings, writer)
        say(name, f"{ratio:.2f} × the floor ({admit:.1f} µs against {floor:.1f})", ratio, ADMIT_BAR)
    late = late_calls()
    for name, cost in late.items():
        say(f"admit at {name}", f"{cost:.1f} µs")
    ratio = late["call 10,000"] / late["call 100"]
    say("admit at call 10,000 beside call 100", f"{ratio:.2f} ×", ratio, LATE_BAR)
    settled = median(settle_cost(ToolCallGuard().start_turn(), 90) for _ in range(ROUNDS)) * 1e6
    say("settle, 400 characters of result", f"{settled:.1f} µs")
    alone, _ = turn_cost(ToolCallGuard(), 300)
    say(f"a turn of {TURN_CALLS} settled calls, no providers", f"{alone:.0f} µs")
    providers = Providers()
    try:
        thread, process = turn_cost(providers.guard(), 300)
        say("the same with the SDK and OTLP/HTTP, in the agent's thread", f"{thread:.0f} µs")
        say("the same, exporting threads included", f"{process:.0f} µs")
    finally:
        providers.close()
    for delay in ANSWERED_AFTER:
        providers = Providers(delay)
        try:
            held, lost = dropping_rate(providers)
        finally:
            providers.close()
        first = f"records lost at {lost:,}" if lost else "one thread makes no more"
        what = f"turns a second that the SDK's default queues hold, requests answered after {delay:g} s"
        say(what, f"{held:,}; {first}")
    size = memory_a_key()
    say("memory a distinct key with its result", f"{size:.0f} bytes")


def measured(build: str, environment: dict[str, str]) -> list[Row]:
    """`measure` in a process of its own; each row is printed as it is known."""
    command = [sys.executable, "-m", "tools.bench.guard", "--rows"]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout or ():
            rows.append(Row(*json.loads(line)))
            print(f"{build}: {rows[-1].name}: {rows[-1].words}", flush=True)
    if process.returncode:
        raise SystemExit(process.returncode)
    return rows


def main() -> int:
    """Measure both builds, print each figure as it is known, write what was asked for."""
    parser = argparse.ArgumentParser(prog="tools.bench.guard", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/bench/")
    parser.add_argument("--rows", action="store_true", help="measure the guard that is imported, print JSON")
    args = parser.parse_args()
    if args.rows:
        measure(lambda *row: print(json.dumps(row), flush=True))
        return 0
    sheet, builds = Sheet(), {}  # type: Sheet, dict[str, list[Row]]
    try:
        builds[COMPILED] = measured(COMPILED, compiled.environment(compiled.built()))
    except compiled.UnavailableError as error:
        print(f"the compiled guard was not measured: {error}", flush=True)
    builds[PURE] = measured(PURE, dict(os.environ))
    for build, rows in builds.items():
        for row in rows:
            if row.bar is not None and row.ratio is not None:
                text = f"{build}: {row.name}: {row.ratio:.2f}, at most {row.bar}"
                sheet.bar(text, holds=row.ratio <= row.bar)
    if args.write:
        write(builds)
    return sheet.code


def write(builds: dict[str, list[Row]]) -> None:
    """Keep the figures in docs/bench: a table and JSON."""
    found: dict[str, dict[str, str]] = {}
    for build, rows in builds.items():
        for row in rows:
            found.setdefault(row.name, {})[build] = row.words
    machine = f"Python {platform.python_version()}, {platform.machine()}; one run, medians, CPU time."
    lines = [f"| {name} | {' | '.join(words.values())} |" for name, words in found.items()]
    (DOCS / "guard.md").write_text(
        "# What the guard costs\n\nWritten by `python -m tools.bench --only guard --write`. "
        f"{machine} Ratios are what to read: absolute times depend on the machine. The bars: admit at "
        f"most {ADMIT_BAR} times the floor, call 10,000 at most {LATE_BAR} times call 100. Both builds are "
        "made of the same files: [compiled.md](../compiled.md).\n\n"
        f"| what | {' | '.join(builds)} |\n|---|{'---|' * len(builds)}\n" + "\n".join(lines) + "\n"
    )
    (DOCS / "guard.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
