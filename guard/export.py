"""Opt-in: providers and exporters for people who have none. The only file that imports the SDK.

    from guard.export import set_up

    set_up()                         # OTLP, where OTEL_EXPORTER_OTLP_ENDPOINT says (default: this machine)
    set_up(directory="telemetry")    # OTLP/JSON lines in files, for `turncap load`

A provider that exists already is left as it is. Needs the extra: `pip install 'turncap[otlp]'`.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from guard.errors import PolicyError, TurncapError

try:
    from opentelemetry import _logs, metrics, trace
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs import export as logs_export
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import (
        MetricExporter,
        MetricExportResult,
        PeriodicExportingMetricReader,
    )
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    from guard.otlp_json import to_json
except ImportError as missing:
    raise TurncapError(
        f"guard.export needs a package that is not installed ({missing.name}): pip install 'turncap[otlp]'"
    ) from missing

# The result had another name before 1.39.
_LOGGED: Final = (getattr(logs_export, "LogRecordExportResult", None) or logs_export.LogExportResult).SUCCESS
SIGNALS: Final = ("logs", "traces", "metrics")
EXPORT_SECONDS: Final = 1.5  # one export, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise
EXIT_SECONDS: Final = 2.0  # what the interpreter's exit waits for all of them together
_PROTOCOLS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class Exporting:
    """What `set_up` set up; ends by itself when the interpreter does."""

    def __init__(self, providers: Mapping[str, Any]) -> None:
        self.providers = dict(providers)  # signal -> provider, those that were made here
        self._closing = threading.Event()
        self._closers: list[threading.Thread] = []
        self._start_closers()
        atexit.register(self.shut_down)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_closers)

    def flush(self, seconds: float = EXIT_SECONDS) -> bool:
        """Send what is queued, waiting at most so long; whether all of it was handed over in that time.

        Not for a request's path: it waits. An exporter that fails counts as done: what it loses is seen
        in the data as a gap.
        """
        return _within(seconds, [provider.force_flush for provider in self.providers.values()])

    def shut_down(self, seconds: float = EXIT_SECONDS) -> None:
        """Send what is queued and stop, waiting at most so long. What then is not sent is lost."""
        deadline = time.monotonic() + seconds
        self._closing.set()
        for closer in self._closers:
            closer.join(max(0.0, deadline - time.monotonic()))

    def _start_closers(self) -> None:
        # Started now, because a thread cannot be started any more when the interpreter is going down.
        self._closers = [
            threading.Thread(
                target=self._close, args=(provider,), daemon=True, name=f"turncap-close-{signal}"
            )
            for signal, provider in self.providers.items()
        ]
        for closer in self._closers:
            closer.start()

    def _close(self, provider: Any) -> None:
        self._closing.wait()
        provider.shutdown()


def set_up(*, directory: str | Path | None = None, service_name: str | None = None) -> Exporting:
    """Set global providers for the signals that have none, and say which.

    Args:
        directory: write OTLP/JSON lines there (one file a signal and process) instead of sending OTLP.
        service_name: the resource's; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES beat it.

    OTEL_SDK_DISABLED, OTEL_{LOGS,TRACES,METRICS}_EXPORTER (otlp, none, or any installed exporter's name),
    OTEL_EXPORTER_OTLP_* and the batch processors' variables are honoured; the default protocol is
    http/protobuf.

    Raises:
        PolicyError: an OTEL_ variable names an exporter or protocol that is not installed.
        TurncapError: the directory cannot be made.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Exporting({})
    wanted = [signal for signal in SIGNALS if not _has_provider(signal)]
    exporters = _files(directory, wanted) if directory is not None else _of_environment(wanted)
    given = {} if service_name is None else {SERVICE_NAME: service_name}
    resource = (
        Resource(given).merge(Resource.create()) if _service_in_environment() else Resource.create(given)
    )
    made: dict[str, Any] = {}
    if "logs" in exporters:
        logs = LoggerProvider(resource, shutdown_on_exit=False)
        logs.add_log_record_processor(logs_export.BatchLogRecordProcessor(exporters["logs"]))
        _logs.set_logger_provider(logs)
        made["logs"] = logs
    if "traces" in exporters:
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        traces.add_span_processor(BatchSpanProcessor(exporters["traces"]))
        trace.set_tracer_provider(traces)
        made["traces"] = traces
    if "metrics" in exporters:
        reader = PeriodicExportingMetricReader(exporters["metrics"])
        metered = MeterProvider([reader], resource, shutdown_on_exit=False)
        metrics.set_meter_provider(metered)
        made["metrics"] = metered
    return Exporting(made)


def _has_provider(signal: str) -> bool:
    provider: Any = {
        "logs": _logs.get_logger_provider,
        "traces": trace.get_tracer_provider,
        "metrics": metrics.get_meter_provider,
    }[signal]()
    return hasattr(provider, "shutdown")  # the API's own stand-ins have none


def _service_in_environment() -> bool:
    return bool(os.environ.get("OTEL_SERVICE_NAME")) or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )


def _of_environment(wanted: Sequence[str]) -> dict[str, Any]:
    found = {}
    for signal in wanted:
        variable = f"OTEL_{signal.upper()}_EXPORTER"
        name = os.environ.get(variable, "").strip() or "otlp"
        if name == "none":
            continue
        timed: dict[str, Any] = {}
        if name == "otlp":
            variable, protocol = _protocol(signal)
            if protocol not in _PROTOCOLS:
                raise PolicyError(variable, protocol, " or ".join(_PROTOCOLS))
            name = _PROTOCOLS[protocol]
            if not (
                os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT")
                or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_TIMEOUT")
            ):
                timed["timeout"] = EXPORT_SECONDS
        installed = {point.name: point for point in entry_points(group=f"opentelemetry_{signal}_exporter")}
        if name not in installed:
            raise PolicyError(
                variable, name, ", ".join(("otlp", "none", *sorted(installed))) + " (what is installed)"
            )
        found[signal] = installed[name].load()(**timed)
    return found


def _protocol(signal: str) -> tuple[str, str]:
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        value = os.environ.get(variable, "").strip()
        if value:
            return variable, value
    return "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"


def _files(directory: str | Path, wanted: Sequence[str]) -> dict[str, Any]:
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TurncapError(
            f"set_up: directory {str(directory)!r} cannot be made ({error.strerror}); name another"
        ) from None
    kinds: dict[str, Callable[[Path], Any]] = {"logs": LogFile, "traces": SpanFile, "metrics": MetricFile}
    return {signal: kinds[signal](folder) for signal in wanted}


def _within(seconds: float, acts: Sequence[Callable[[], Any]]) -> bool:
    """Do all of these side by side; whether they ended in time. The SDK's own time limits are not kept."""
    threads = [threading.Thread(target=act, daemon=True) for act in acts]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


class _LineFile:
    """OTLP/JSON lines of one signal, one file a process, each line written whole."""

    signal: str
    encode: Callable[[Any], Any]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._open()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._open)

    def _open(self) -> None:
        self._lock = threading.Lock()
        self.path = self._folder / f"{self.signal}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"

    def write(self, batch: Any) -> None:
        """Append one line; what cannot be written whole is taken back."""
        line = (
            json.dumps(to_json(type(self).encode(batch)), ensure_ascii=False, separators=(",", ":")).encode()
            + b"\n"
        )
        with self._lock, self.path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(line) != len(line):
                    raise OSError("disk full")
            except OSError:
                file.truncate(before)
                raise

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is held open."""

    def force_flush(self, *args: Any, **kwargs: Any) -> bool:
        """Nothing is held back."""
        return True


class LogFile(_LineFile):
    """An exporter of log records."""

    signal = "logs"
    encode = staticmethod(encode_logs)

    def export(self, batch: Sequence[Any]) -> Any:
        """Write a batch."""
        self.write(batch)
        return _LOGGED


class SpanFile(_LineFile):
    """An exporter of spans."""

    signal = "traces"
    encode = staticmethod(encode_spans)

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Write a batch."""
        self.write(spans)
        return SpanExportResult.SUCCESS


class MetricFile(_LineFile, MetricExporter):
    """An exporter of metrics."""

    signal = "metrics"
    encode = staticmethod(encode_metrics)

    def __init__(self, folder: Path) -> None:
        MetricExporter.__init__(self)
        _LineFile.__init__(self, folder)

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """Write a batch."""
        self.write(metrics_data)
        return MetricExportResult.SUCCESS
