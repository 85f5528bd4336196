"""The main job on recorded turns: guard -> OpenTelemetry -> files -> database -> report.

Every turn goes through a `ToolCallGuard` in shadow mode, so that it runs to its recorded end, and out through
the SDK and the OTLP/HTTP exporters to a receiver on loopback. Nothing else reaches the report.
"""

from __future__ import annotations

import gzip
import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from analytics.collect import Collector
from analytics.errors import InputError
from analytics.paths import unreadable
from guard import ToolCallGuard
from guard.labels import KINDS

FORM = "each line is a turn as analytics/evidence/README.md of the source describes it"
BEGINNING_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z: the recorded turns have no dates
SLICE = 1_000  # events between two flushes: half of what the SDK's queues hold
LONGEST_FLUSH_MS = 30_000
ABORTED = frozenset({"maxsteps", "interrupted", "open"})
PRODUCTIVE = frozenset({"end_turn", "resolved", "patch", "reward1", "submitted"})
UNPRODUCTIVE = frozenset({"unresolved", "nopatch", "patch_error", "reward0", "maxsteps"})
MADE = ("turns.duckdb", "turns.duckdb.wal", "report.html", "report.md", "report.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One line of a file of recorded turns; lists have one entry a call. analytics/evidence says more."""

    source: str
    session: str
    length_limited: bool
    outcome: str
    label: str | None
    tool: list[str]
    key: list[int]
    result_norm: list[int]
    error: list[int]
    mutating: list[int | None]
    gap_s: list[float | None] | None

    @classmethod
    def read(cls, line: bytes) -> Self:
        """One JSON object.

        Raises:
            ValueError: it is none, lacks a field, or its lists differ in length.
        """
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("no JSON object")
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"field {missing[0]!r} is missing")
        turn = cls(**{name: found[name] for name in names})
        lists: list[Any] = [turn.tool, turn.key, turn.result_norm, turn.error, turn.mutating]
        if turn.gap_s is not None:
            lists.append(turn.gap_s)
        if not all(isinstance(values, list) and len(values) == len(turn.key) for values in lists):
            raise ValueError("tool, key, result_norm, error, mutating and gap_s must be lists of one length")
        if turn.label is not None and turn.label not in KINDS:
            raise ValueError(f"label {turn.label!r} is none of {', '.join(KINDS)}, null")
        return turn


def read_turns(source: Path | Traversable) -> Iterator[RecordedTurn]:
    """The turns of a file, JSON lines, plain or gzip.

    Raises:
        InputError: the file cannot be read, or a line is no turn; file and line are named.
    """
    try:
        data = source.read_bytes()
        lines = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines()
    except (OSError, EOFError) as error:
        raise unreadable(str(source), error, "give a file of recorded turns") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield RecordedTurn.read(line)
        except (ValueError, TypeError) as error:
            why = "no JSON" if isinstance(error, json.JSONDecodeError) else error
            raise InputError(f"{source}:{number}: {why}; {FORM}") from None


class RecordedClock:
    """Shows the time that the driver sets."""

    def __init__(self) -> None:
        self.seconds: float | None = None  # since the turn began

    def unix_ns(self) -> int:
        """Every turn begins at one fixed date."""
        return BEGINNING_NS

    def monotonic(self) -> float | None:
        """What the driver set, or None in a turn without times."""
        return self.seconds


class _Emitted(LogRecordProcessor):
    """Counts the log records that go into the SDK, by event name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self.counts[log_record.log_record.event_name or ""] += 1

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


class _Sender:
    """The SDK with OTLP/HTTP exporters to one receiver. Paced by its caller: it never drops."""

    def __init__(self, url: str) -> None:
        resource = Resource({SERVICE_NAME: "turncap-demo"})
        self.emitted = _Emitted()
        self.logs = LoggerProvider(resource, shutdown_on_exit=False)
        self.logs.add_log_record_processor(self.emitted)
        self.logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs")))
        self.traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))
        self.metrics = MeterProvider([reader], resource, shutdown_on_exit=False)
        self._flushed = 0

    def pace(self) -> None:
        """Flush when a slice is full."""
        if self.emitted.counts.total() - self._flushed >= SLICE:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        self._flushed = self.emitted.counts.total()
        self.logs.force_flush(LONGEST_FLUSH_MS)
        self.traces.force_flush(LONGEST_FLUSH_MS)

    def close(self) -> None:
        """Send the rest, metrics too."""
        self.flush()
        for provider in (self.metrics, self.logs, self.traces):
            provider.shutdown()


def send(turns: Iterator[RecordedTurn], directory: Path, say: Callable[[str], None]) -> int:
    """Run recorded turns through a guard and keep what it emits in `directory`; how many there were.

    Raises:
        InputError: the receiver counted other events than were emitted.
    """
    clock = RecordedClock()
    count = 0
    with Collector(directory) as collector:
        # The loopback exporter logs each refused batch; the counts below say what that amounts to.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        sender = _Sender(collector.url)
        guard = ToolCallGuard(
            mode="shadow",
            digest_secret="bundled turns",
            clock=clock,
            logger_provider=sender.logs,
            tracer_provider=sender.traces,
            meter_provider=sender.metrics,
        )
        for count, turn in enumerate(turns, start=1):
            _drive(guard, clock, turn)
            sender.pace()
            if count % 1_000 == 0:
                say(f"{count:,} turns sent")
        sender.close()
        received, emitted = collector.counts, sender.emitted.counts
    if received.events != dict(emitted) or received.spans != count or guard.faults:
        raise InputError(
            f"{sum(emitted.values()):,} events and {count:,} spans were emitted, but the receiver counted "
            f"{received.records:,} and {received.spans:,} "
            f"(faults passed over: {guard.faults or 'none'}); run it again"
        )
    say(f"{count:,} turns sent: {received.records:,} events, {received.spans:,} spans")
    return count


def _drive(guard: ToolCallGuard, clock: RecordedClock, recorded: RecordedTurn) -> None:
    """One turn as it was recorded, each call settled before the next is asked, and its label."""
    clock.seconds = None if recorded.gap_s is None else 0.0
    turn = guard.start_turn(
        conversation_id=recorded.session,
        user=recorded.session,
        agent_name=recorded.source,
        sample="length-limited" if recorded.length_limited else None,
    )
    gaps: Sequence[float | None] = recorded.gap_s or [None] * len(recorded.key)
    for position, (tool, key, result, failed, mutating, gap) in enumerate(
        zip(
            recorded.tool,
            recorded.key,
            recorded.result_norm,
            recorded.error,
            recorded.mutating,
            gaps,
            strict=True,
        )
    ):
        if position:  # a gap that is not known leaves every later time unknown
            clock.seconds = None if clock.seconds is None or gap is None else clock.seconds + gap
        verdict = turn.admit(tool, {"key": key}, mutating=None if mutating is None else bool(mutating))
        text = f"r{result}"
        if failed:
            turn.settle(verdict, error=text)
        else:
            turn.settle(verdict, result=text)
    turn.end("aborted" if recorded.outcome in ABORTED else "completed")
    stuck = None if recorded.label is None else recorded.label == "stuck"
    productive = True if recorded.outcome in PRODUCTIVE else None
    if stuck or recorded.outcome in UNPRODUCTIVE:  # the label decides, whatever the outcome
        productive = False
    guard.label(
        turn.id,
        by="import",
        label_id="import",
        stuck=stuck,
        productive=productive,
        kind=recorded.label,
        task_outcome=recorded.outcome,
    )


def clear(out: Path) -> Path:
    """Remove what an earlier demo left in `out`, and nothing else; the folder for telemetry.

    Raises:
        InputError: `out` cannot be made or holds another program's `telemetry` folder.
    """
    telemetry = out / "telemetry"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in MADE:
            (out / name).unlink(missing_ok=True)
        if telemetry.exists():
            foreign = [
                path
                for path in telemetry.iterdir()
                if path.suffix != ".jsonl" and not path.name.startswith(".")
            ]
            if foreign:
                raise InputError(
                    f"{telemetry}: holds {foreign[0].name}, which no demo wrote; choose another --out"
                )
            shutil.rmtree(telemetry)
    except OSError as error:
        raise InputError(f"{out}: cannot be used ({error.strerror}); choose another --out") from None
    return telemetry
