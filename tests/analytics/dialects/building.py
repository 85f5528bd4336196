"""Records built by hand, for what no real payload in tests/data shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analytics.dialects.assemble import assemble
from analytics.dialects.base import DialectTurn, Record, Source, SpanEvent
from tests.analytics.dialects.reading import stored

SECOND = 1_000_000_000
DAY = "2026-11-30T00:00:"


def span(
    name: str,
    *,
    span: str,
    parent: str = "",
    start: float = 0,
    end: float = 1,
    trace: str = "t",
    scope: str = "",
    failed: bool | None = None,
    events: Iterable[SpanEvent] = (),
    **attributes: Any,
) -> Record:
    """A span; in attribute names two underscores stand for a dot. Times in seconds."""
    return Record(
        source=Source.SPAN,
        name=name,
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
        scope=scope,
        trace_id=trace,
        span_id=span,
        parent_id=parent,
        started_at=int(start * SECOND) + SECOND,
        at=int(end * SECOND) + SECOND,
        failed=failed,
        events=list(events),
    )


def agent(name: str, **more: Any) -> Record:
    """An agent's run."""
    about = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name}
    return span(f"invoke_agent {name}", **{"span": name, "end": 100, **about, **more})


def tool(name: str, arguments: str | None = "{}", result: str | None = "ok", **more: Any) -> Record:
    """A tool's span; None leaves arguments or result out."""
    about: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    if arguments is not None:
        about["gen_ai__tool__call__arguments"] = arguments
    if result is not None:
        about["gen_ai__tool__call__result"] = result
    return span(f"execute_tool {name}", **{**about, **more})


def log(at: float, scope: str = "", trace: str = "", span: str = "", **attributes: Any) -> Record:
    """A log record."""
    return Record(
        source=Source.LOG,
        name=str(attributes.get("event__name", "")),
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
        scope=scope,
        trace_id=trace,
        span_id=span,
        at=int(at * SECOND) + SECOND,
    )


def line(body: dict[str, Any], offset: int = 0, path: str = "session.jsonl") -> Record:
    """A line of a transcript."""
    return Record(source=Source.LINE, name="", body=body, offset=offset, path=path)


def turns(found: Iterable[Record]) -> list[DialectTurn]:
    """The turns of records, oldest first."""
    groups = stored(list(found))
    made = [turn for seen in groups.values() for turn in assemble(seen)]
    return sorted(made, key=lambda turn: (turn.started_at or 0, turn.turn_id))


def names(turn: DialectTurn) -> list[str | None]:
    """The tools of a turn's calls."""
    return [call.tool for call in turn.calls]


def keys(turn: DialectTurn) -> list[int | None]:
    """The keys of a turn's calls."""
    return [call.key for call in turn.calls]


def results(turn: DialectTurn) -> list[int | None]:
    """The results of a turn's calls."""
    return [call.result for call in turn.calls]
