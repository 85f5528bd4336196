"""Run as a program: send N spans, log events and counter points to a receiver by the real exporters."""

from __future__ import annotations

import sys
import time

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def main(url: str, compression: str, count: int) -> None:
    """Send and stop; every provider is shut down, which flushes it."""
    how = Compression(compression)
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces", compression=how))
    )
    loggers.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{url}/v1/logs", compression=how))
    )
    metrics = OTLPMetricExporter(endpoint=f"{url}/v1/metrics", compression=how)
    meters = MeterProvider([PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)])
    tracer, logger = tracers.get_tracer("test"), loggers.get_logger("test")
    for number in range(count):
        with tracer.start_as_current_span("work", attributes={"ratio": 0.5, "list": [1, 2]}):
            logger.emit(
                timestamp=time.time_ns(),
                event_name="test.event",
                attributes={"big": 2**53 + 1, "number": number, "nan": float("nan")},
            )
    meters.get_meter("test").create_counter("test.calls").add(count, {"tool": "shell"})
    for provider in (tracers, loggers, meters):
        provider.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
