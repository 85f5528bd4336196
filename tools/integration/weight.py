"""What one guard adds, counted from its own output: `python -m tools.integration.weight` prints the tables.

Bytes are those of the protobuf records themselves, before a batch's few hundred bytes of resource and scope
and before compression. Events and spans are a turn's; series are a process', for one agent and model.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guard import ToolCallGuard

CALLS = (5, 20, 100, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What one turn of `calls` calls, all of them different, sends under a setting of TURNCAP_EVENTS."""

    events_setting: str
    calls: int
    records: int
    log_bytes: int
    log_bytes_gzip: int
    span_bytes: int
    series: int

    @property
    def row(self) -> tuple[str, ...]:
        a_call = (self.log_bytes + self.span_bytes) / self.calls
        sizes = (self.log_bytes, self.log_bytes_gzip, self.span_bytes)
        return (
            self.events_setting,
            f"{self.calls:,}",
            f"{self.records}",
            *(f"{n:,}" for n in sizes),
            f"{a_call:.0f}",
        )


def measure(calls: int, setting: str) -> Weight:
    """Play one turn and weigh what it sent."""
    logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    logger, tracer = LoggerProvider(shutdown_on_exit=False), TracerProvider(shutdown_on_exit=False)
    logger.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    guard = ToolCallGuard(
        agent_name="agent",
        model="model",
        events=setting,
        logger_provider=logger,
        tracer_provider=tracer,
        meter_provider=MeterProvider([reader], shutdown_on_exit=False),
    )
    with guard.turn(user="user") as turn:
        for n in range(calls):
            verdict = turn.admit(("Bash", "Read", "Edit", "Grep")[n % 4], {"n": n})
            turn.settle(verdict, result=f"result {n}")
    found = logs.get_finished_logs()
    packed = encode_logs(found)
    records = [
        record for group in packed.resource_logs for scope in group.scope_logs for record in scope.log_records
    ]
    traced = encode_spans(spans.get_finished_spans())
    made = [span for group in traced.resource_spans for scope in group.scope_spans for span in scope.spans]
    return Weight(
        events_setting=setting,
        calls=calls,
        records=len(records),
        log_bytes=sum(record.ByteSize() for record in records),
        log_bytes_gzip=len(gzip.compress(packed.SerializeToString())) if records else 0,
        span_bytes=sum(span.ByteSize() for span in made),
        series=_series(reader),
    )


def _series(reader: InMemoryMetricReader) -> int:
    """How many series Prometheus keeps of it: a histogram's are its buckets, sum and count."""
    data = reader.get_metrics_data()
    points = [
        point
        for group in (data.resource_metrics if data else ())
        for scope in group.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ]
    return sum(len(p.bucket_counts) + 2 if isinstance(p, HistogramDataPoint) else 1 for p in points)


def weights() -> Iterator[Weight]:
    """Every row of the table."""
    for setting in ("both", "logs", "spans"):
        for calls in CALLS:
            yield measure(calls, setting)


def table(rows: Sequence[Weight]) -> str:
    """As Markdown."""
    head = (
        "`TURNCAP_EVENTS`",
        "calls",
        "log records",
        "bytes of logs",
        "the same, gzip",
        "bytes of span",
        "bytes a call",
    )
    lines = [head, ("---",) * len(head), *(row.row for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    found = list(weights())
    print(table(found))
    print(f"\n{found[0].series} series a process, agent and model")
