"""What the guard emits, as a receiver gets it: through the real SDK and the real exporters' protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    LogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from guard import ToolCallGuard

SIGNALS = ("logs", "traces", "metrics")
_TYPES = {
    "string_value": "string",
    "int_value": "int",
    "bool_value": "boolean",
    "double_value": "double",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One log record or span event; `size` is its protobuf form's, `types` the attributes' in OTLP."""

    name: str
    at: int
    attributes: dict[str, Any]
    types: dict[str, str]
    size: int
    severity: tuple[int, str] = (0, "")
    trace_id: str = ""
    span_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span."""

    name: str
    kind: int
    start: int
    end: int
    status: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    types: dict[str, str]
    events: list[Event]


class _Logs(LogRecordExporter):
    def __init__(self) -> None:
        self.requests: list[bytes] = []

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        self.requests.append(encode_logs(batch).SerializeToString())
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True

    def shutdown(self) -> None: ...


class _Spans(SpanExporter):
    def __init__(self) -> None:
        self.requests: list[bytes] = []

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        self.requests.append(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


class Receiver:
    """Providers for some signals, and what came through them."""

    def __init__(self, *signals: str) -> None:
        chosen = signals or SIGNALS
        self._logs, self._spans, self._reader = _Logs(), _Spans(), InMemoryMetricReader()
        loggers, tracers = (
            LoggerProvider(shutdown_on_exit=False),
            TracerProvider(shutdown_on_exit=False),
        )
        if "logs" in chosen:
            loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        if "traces" in chosen:
            tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.providers = {
            "logger_provider": loggers,
            "tracer_provider": tracers if "traces" in chosen else None,
            "meter_provider": MeterProvider([self._reader], shutdown_on_exit=False),
        }

    def guard(self, **settings: Any) -> ToolCallGuard:
        """A guard that emits here."""
        return ToolCallGuard(**{**self.providers, **settings})

    @property
    def raw(self) -> bytes:
        """Everything that was exported."""
        return b"".join(self._logs.requests + self._spans.requests) + self._metrics().SerializeToString()

    @property
    def logs(self) -> list[Event]:
        """Log records, in order."""
        found = []
        for request in self._logs.requests:
            for resource in ExportLogsServiceRequest.FromString(request).resource_logs:
                for scope in resource.scope_logs:
                    for record in scope.log_records:
                        attributes, types = _read(record.attributes)
                        found.append(
                            Event(
                                name=record.event_name,
                                at=record.time_unix_nano,
                                attributes=attributes,
                                types=types,
                                size=record.ByteSize(),
                                severity=(record.severity_number, record.severity_text),
                                trace_id=record.trace_id.hex(),
                                span_id=record.span_id.hex(),
                            )
                        )
        return found

    @property
    def dropped(self) -> int:
        """Attributes that the SDK says it dropped."""
        logs = sum(
            record.dropped_attributes_count
            for request in self._logs.requests
            for resource in ExportLogsServiceRequest.FromString(request).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        )
        return logs + sum(
            span.dropped_attributes_count
            + span.dropped_events_count
            + sum(event.dropped_attributes_count for event in span.events)
            for request in self._spans.requests
            for resource in ExportTraceServiceRequest.FromString(request).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        )

    def log(self, name: str) -> Event:
        """The one log record of this name."""
        (found,) = [event for event in self.logs if event.name == name]
        return found

    @property
    def spans(self) -> list[Span]:
        """Spans, in the order in which they ended."""
        found = []
        for request in self._spans.requests:
            for resource in ExportTraceServiceRequest.FromString(request).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        attributes, types = _read(span.attributes)
                        found.append(
                            Span(
                                name=span.name,
                                kind=span.kind,
                                start=span.start_time_unix_nano,
                                end=span.end_time_unix_nano,
                                status=span.status.code,
                                trace_id=span.trace_id.hex(),
                                span_id=span.span_id.hex(),
                                parent_id=span.parent_span_id.hex(),
                                attributes=attributes,
                                types=types,
                                events=[
                                    Event(
                                        name=event.name,
                                        at=event.time_unix_nano,
                                        attributes=_read(event.attributes)[0],
                                        types=_read(event.attributes)[1],
                                        size=event.ByteSize(),
                                    )
                                    for event in span.events
                                ],
                            )
                        )
        return found

    @property
    def scopes(self) -> set[tuple[str, str, str]]:
        """Name, version and schema URL of every instrumentation scope seen."""
        found = set()
        for request in self._logs.requests:
            for logs in ExportLogsServiceRequest.FromString(request).resource_logs:
                found |= {(s.scope.name, s.scope.version, s.schema_url) for s in logs.scope_logs}
        for request in self._spans.requests:
            for spans in ExportTraceServiceRequest.FromString(request).resource_spans:
                found |= {(s.scope.name, s.scope.version, s.schema_url) for s in spans.scope_spans}
        for resource in self._metrics().resource_metrics:
            found |= {(s.scope.name, s.scope.version, s.schema_url) for s in resource.scope_metrics}
        return found

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics by name."""
        return {
            metric.name: metric
            for resource in self._metrics().resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """Attributes and value of each point (of a histogram: its count)."""
        metric = self.metrics.get(name)
        if metric is None:
            return []
        if metric.HasField("histogram"):
            return [(_read(point.attributes)[0], point.count) for point in metric.histogram.data_points]
        data = metric.sum if metric.HasField("sum") else metric.gauge
        return [(_read(point.attributes)[0], point.as_int) for point in data.data_points]

    def _metrics(self) -> ExportMetricsServiceRequest:
        data = self._reader.get_metrics_data()
        if data is None:
            return ExportMetricsServiceRequest()
        return ExportMetricsServiceRequest.FromString(encode_metrics(data).SerializeToString())


def _read(pairs: Iterable[Any]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    types: dict[str, str] = {}
    for pair in pairs:
        assert pair.key not in values, f"{pair.key} twice"
        kind = pair.value.WhichOneof("value")
        if kind == "array_value":
            items = pair.value.array_value.values
            inner = {item.WhichOneof("value") for item in items}
            assert len(inner) == 1, f"{pair.key} is empty or mixed"
            values[pair.key] = [getattr(item, item.WhichOneof("value")) for item in items]
            types[pair.key] = _TYPES[inner.pop()] + "[]"
        else:
            values[pair.key] = getattr(pair.value, kind)
            types[pair.key] = _TYPES[kind]
    return values, types


class ManualClock:
    """A clock that a test moves; a `second` of None says that time is unknown."""

    def __init__(self, unix_ns: int = 1_764_547_200_000_000_000) -> None:
        self.unix, self.second = unix_ns, 0.0
        self.known = True

    def unix_ns(self) -> int:
        """The wall's."""
        return self.unix

    def monotonic(self) -> float | None:
        """Seconds moved."""
        return self.second if self.known else None
