"""Events -> log records, span events and metrics. The only file of the guard that imports opentelemetry.

Every entry may raise what a backend raises; the caller has the one boundary that keeps it from the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from guard import events, names
from guard.policy import CapPolicy, Mode

try:  # the logs API is not declared stable: it may move
    from opentelemetry._logs import SeverityNumber, get_logger

    HAS_LOGS = True
except ImportError:
    HAS_LOGS = False

try:
    VERSION = version("turncap")
except PackageNotFoundError:
    VERSION = "unknown"

MOST_CHUNKS_ON_SPAN = 60  # an SDK keeps the last 128 events of a span by default
MOST_NAMES = 50  # agents, and models, that metrics tell apart in a process
OTHER = "other"
_SECONDS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0)


class Observed(Protocol):
    """A guard, as its gauges see it."""

    policy: CapPolicy
    mode: Mode
    agent_name: str | None
    model: str | None


@dataclass(slots=True)
class TurnSpan:
    """The span of one turn, and how many chunks it has."""

    span: Span
    context: Context
    chunks: int = 0


class _Few:
    """The first 50 words, then `other`."""

    def __init__(self) -> None:
        self.words: set[str] = set()

    def get(self, word: str) -> str:
        if word not in self.words:
            if len(self.words) >= MOST_NAMES:
                return OTHER
            self.words.add(word)
        return word


_agents, _models = _Few(), _Few()


def caller(agent_name: str | None, model: str | None) -> dict[str, Any]:
    """The attributes of every metric."""
    found = {}
    if agent_name is not None:
        found[names.AGENT_NAME] = _agents.get(agent_name)
    if model is not None:
        found[names.REQUEST_MODEL] = _models.get(model)
    return found


class _Instruments:
    """The instruments of one meter provider, shared by all its guards."""

    def __init__(self, provider: MeterProvider | None) -> None:
        self.guards: WeakSet[Any] = WeakSet()
        meter = metrics.get_meter(names.SCOPE, VERSION, provider, names.SCHEMA_URL)
        counter = meter.create_counter
        self.started = counter(names.M_TURNS_STARTED, "{turn}", "Turns begun.")
        self.turns = counter(names.M_TURNS, "{turn}", "Turns ended.")
        self.halts = counter(names.M_HALTS, "{halt}", "Thresholds reached, once a threshold and turn.")
        self.crossings = counter(
            names.M_SOFT_CAP_CROSSINGS, "{turn}", "Turns whose total passed the soft cap."
        )
        self.calls = counter(names.M_CALLS, "{call}", "Numbered calls.")
        self.refused = counter(names.M_CALLS_REFUSED, "{call}", "Refused calls.")
        self.errors = counter(
            names.M_ERRORS, "{error}", "Faults of the guard or its callers that were passed over."
        )
        self.tool_calls = meter.create_histogram(
            names.M_TOOL_CALLS,
            "{call}",
            "Numbered calls a turn.",
            explicit_bucket_boundaries_advisory=list(names.TOOL_CALLS_BUCKETS),
        )
        self.max_repeat = meter.create_histogram(
            names.M_MAX_REPEAT,
            "{call}",
            "Largest count of one key a turn.",
            explicit_bucket_boundaries_advisory=list(names.MAX_REPEAT_BUCKETS),
        )
        self.guard_time = meter.create_histogram(
            names.M_GUARD_TIME,
            "s",
            "Time in admit and settle, summed a turn.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        meter.create_observable_gauge(
            names.M_POLICY_LIMIT, [self._limits], "{call}", "Limits in force, one a name."
        )
        meter.create_observable_gauge(names.M_GUARD_INFO, [self._info], "{guard}", "1 for every guard.")

    def _limits(self, options: CallbackOptions) -> Iterator[Observation]:
        for guard in list(self.guards):
            policy = guard.policy
            for limit in ("soft_cap", "stuck_at", "backstop", "hard_cap"):
                value = getattr(policy, limit)
                if value is not None:
                    yield Observation(
                        value, {names.METRIC_LIMIT: limit, **caller(guard.agent_name, guard.model)}
                    )

    def _info(self, options: CallbackOptions) -> Iterator[Observation]:
        for guard in list(self.guards):
            found = {
                names.MODE: str(guard.mode),
                names.POLICY_KIND: str(guard.policy.kind),
                names.METRIC_VERSION: VERSION,
                **caller(guard.agent_name, guard.model),
            }
            if guard.policy.signal is not None:
                found[names.SIGNAL] = guard.policy.signal
            yield Observation(1, found)


_by_provider: WeakKeyDictionary[Any, _Instruments] = WeakKeyDictionary()
_of_global: list[_Instruments] = []


def _instruments(provider: MeterProvider | None) -> _Instruments:
    if provider is None:
        if not _of_global:
            _of_global.append(_Instruments(None))
        return _of_global[0]
    found = _by_provider.get(provider)
    if found is None:
        found = _by_provider[provider] = _Instruments(provider)
    return found


class Telemetry:
    """The three signals of one guard; `destination` (both, logs, spans) says where its events go."""

    def __init__(
        self,
        *,
        destination: str,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: Any = None,
    ) -> None:
        self._spans = destination != "logs"
        self._tracer = trace.get_tracer(names.SCOPE, VERSION, tracer_provider, names.SCHEMA_URL)
        self._metrics = _instruments(meter_provider)
        self._logger = None
        if HAS_LOGS and destination != "spans":
            self._logger = get_logger(names.SCOPE, VERSION, logger_provider, names.SCHEMA_URL)

    def observe(self, guard: Observed) -> None:
        """Let the gauges report this guard while it lives."""
        self._metrics.guards.add(guard)

    # Spans

    def start(self, started: events.TurnStarted, parent: Mapping[str, int] | None = None) -> TurnSpan:
        """Start the turn's span, in the current context or under `parent` (trace_id, span_id, flags)."""
        context = otel_context.get_current()
        if parent is not None:
            remote = SpanContext(parent["trace_id"], parent["span_id"], True, TraceFlags(parent["flags"]))
            context = trace.set_span_in_context(NonRecordingSpan(remote), context)
        span = self._tracer.start_span(
            names.SPAN_TURN,
            context,
            SpanKind.INTERNAL,
            {
                names.TURN_ID: started.turn_id or "",
                names.GUARD_ID: started.guard_id or "",
                names.TURN_SEQ: started.turn_seq or 0,
                names.MODE: started.mode,
                names.POLICY_KIND: str(started.policy.kind),
                names.POLICY_HASH: started.policy.hash,
                **_caller_attributes(started),
            },
            start_time=started.at,
        )
        return TurnSpan(span, trace.set_span_in_context(span, context))

    def finish(self, turn: TurnSpan, ended: events.TurnEnded, threshold: str | None) -> None:
        """Put the final counts on the span and end it; an error when a halt was enforced."""
        span = turn.span
        final = {
            names.OUTCOME: ended.outcome,
            names.THRESHOLD: threshold,
            names.CALLS: ended.calls,
            names.RAN: ended.ran,
            names.TOTAL: ended.total,
            names.REFUSED: ended.refused,
            names.SETTLED: ended.settled,
            names.ERRORS: ended.errors,
            names.DISTINCT_KEYS: ended.distinct_keys,
            names.REPEAT_COUNT: ended.repeat_count,
            names.CHUNKS_SENT: ended.chunks_sent,
            names.CHUNKS_ON_SPAN: ended.chunks_on_span,
        }
        span.set_attributes({name: value for name, value in final.items() if value is not None})
        if ended.outcome == "halted":
            span.set_status(Status(StatusCode.ERROR, f"halted by {threshold}"))
        span.end(ended.at)

    # Events

    def emit(self, event: events.Event, turn: TurnSpan | None) -> None:
        """The event as a log record, and on the span where it belongs or where no log record was made."""
        logged = self._emit_log(event, None if turn is None else turn.context)
        if turn is None or not self._spans or not turn.span.is_recording():
            return
        if isinstance(event, events.CallsObserved):
            if logged or turn.chunks >= MOST_CHUNKS_ON_SPAN:
                return
            turn.chunks += 1
        elif not (
            event.spans or (isinstance(event, events.TurnStarted | events.TurnExtended) and not logged)
        ):
            return
        turn.span.add_event(event.name, events.attributes(event), event.at)

    def emit_label(self, label: events.TurnLabelled) -> None:
        """A label as a log record, or without a logger as a span of no length."""
        if not self._emit_log(label, None) and self._spans:
            found = events.attributes(label)
            self._tracer.start_span(names.SPAN_LABEL, attributes=found, start_time=label.at).end(label.at)

    def _emit_log(self, event: events.Event, context: Context | None) -> bool:
        if self._logger is None:
            return False
        enabled = getattr(self._logger, "enabled", None)
        if enabled is not None and not enabled():
            return False
        warning = isinstance(event, events.LoopDetectedEvent)
        self._logger.emit(
            timestamp=event.at,
            context=context,
            severity_number=SeverityNumber.WARN if warning else SeverityNumber.INFO,
            severity_text="WARN" if warning else "INFO",
            event_name=event.name,
            attributes=events.attributes(event),
        )
        return True

    # Metrics

    def count(self, event: events.Event, turn: TurnSpan | None, *, mode: Mode, policy: CapPolicy) -> None:
        """What of the event is counted; `TurnEnded` brings the turn's totals."""
        context = None if turn is None else turn.context
        who = _few_caller(event)
        made = self._metrics
        if isinstance(event, events.TurnStarted):
            made.started.add(1, who, context)
        elif isinstance(event, events.LoopDetectedEvent):
            made.halts.add(
                1, {**who, names.THRESHOLD: str(event.threshold), names.ENFORCED: event.enforced}, context
            )
        elif isinstance(event, events.TurnEnded):
            ended = {names.OUTCOME: event.outcome, names.MODE: str(mode), names.POLICY_KIND: str(policy.kind)}
            made.turns.add(1, {**who, **ended}, context)
            made.calls.add(event.calls, who, context)
            made.refused.add(event.refused, who, context)
            made.tool_calls.record(event.calls, who, context)
            made.max_repeat.record(event.repeat_count, who, context)

    def count_crossing(
        self, crossed: events.SoftCapCrossed, who: dict[str, Any], turn: TurnSpan | None
    ) -> None:
        """A turn whose total passed the soft cap."""
        context = None if turn is None else turn.context
        self._metrics.crossings.add(1, {**who, names.STUCK: crossed.stuck}, context)

    def time(self, seconds: float, who: dict[str, Any], turn: TurnSpan | None) -> None:
        """What the guard itself took of a turn."""
        self._metrics.guard_time.record(seconds, who, None if turn is None else turn.context)

    def error(self, kind: str, who: dict[str, Any]) -> None:
        """A fault that was passed over."""
        self._metrics.errors.add(1, {**who, names.METRIC_KIND: kind})


def attach(turn: TurnSpan) -> object:
    """Make the turn's span current; give what is returned to `detach`."""
    return otel_context.attach(turn.context)


def detach(token: object) -> None:
    """Make current what was before."""
    with suppress(ValueError):
        otel_context.detach(token)  # type: ignore[arg-type]


def carried(turn: TurnSpan | None) -> dict[str, int] | None:
    """The span's identity, to continue its trace in another process."""
    found = turn.span.get_span_context() if turn is not None else None
    if found is None or not found.is_valid:
        return None
    return {"trace_id": found.trace_id, "span_id": found.span_id, "flags": int(found.trace_flags)}


def _caller_attributes(event: events.Caller) -> dict[str, Any]:
    found = {
        names.CONVERSATION_ID: event.conversation_id,
        names.AGENT_NAME: event.agent_name,
        names.REQUEST_MODEL: event.model,
    }
    return {name: value for name, value in found.items() if value is not None}


def _few_caller(event: events.Event) -> dict[str, Any]:
    return caller(event.agent_name, event.model) if isinstance(event, events.Caller) else {}
