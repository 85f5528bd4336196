"""A turn while it is put together, and how it becomes a `DialectTurn`: order, numbers, grade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analytics.dialects.base import DialectCall, DialectTurn, Value
from guard.tools import TOOLS, UNKNOWN

_BY_GRADE = ("names-only", "no-results", "exact")


@dataclass(slots=True, kw_only=True)
class Call:
    """One call: what was asked, and what came of it as far as it is known. Times in nanoseconds."""

    tool: str | None = None
    key: str | None = None
    result: str | None = None
    error: bool | None = None
    start: int | None = None
    end: int | None = None
    order: tuple[int, ...] = ()  # among what happened at the same time: where the call was asked for
    end_order: tuple[int, ...] = ()  # and where it settled
    batch: str | None = None
    settled: bool = False

    @classmethod
    def of(cls, data: Mapping[str, Value], order: tuple[int, ...] = ()) -> Call:
        """From the `data` of a `Seen` of kind call or asked."""
        return cls(
            tool=data.get("tool"),
            key=data.get("key"),
            result=data.get("result"),
            error=data.get("error"),
            start=data.get("start"),
            end=data.get("end"),
            order=order,
            batch=data.get("batch"),
        )


@dataclass(slots=True, kw_only=True)
class Draft:
    """One turn. `key` is its own key within product and session.

    `promised` says whether the source keeps a result for every call that settled: then a call without
    one did not settle, and where it does not, its result is unknown.
    """

    product: str
    session: str | None
    key: str
    promised: bool = False
    calls: list[Call] = field(default_factory=list)
    parent: str | None = None  # the parent's turn_id
    continues: str | None = None  # the turn_id of the turn that a hook did not let end
    started: int | None = None
    ended: int | None = None
    outcome: str | None = None
    agent: str | None = None
    model: str | None = None
    cluster: str | None = None
    conversation: str | None = None
    explicit: bool = False  # the key is the product's own: other sources of the session have it too

    @property
    def turn_id(self) -> str:
        """Unique over products, the same however often it is assembled."""
        return turn_id(self.product, self.session, self.key)

    @property
    def grade(self) -> str:
        """What is known of every call: the least that is known of any."""
        grade = 2
        for call in self.calls:
            if call.key is None:
                return _BY_GRADE[0]
            if call.result is None and (call.settled or not self.promised):
                grade = 1
        return _BY_GRADE[grade]

    def learn(self, data: Mapping[str, Value]) -> None:
        """Take what a record says of the turn as a whole, where nothing was known."""
        self.agent = self.agent or data.get("agent")
        self.model = self.model or data.get("model")
        self.cluster = self.cluster or data.get("cluster")

    def finish(self) -> DialectTurn:
        """The turn with numbered keys and results."""
        calls = sorted(self.calls, key=_when)
        began = self.started
        if began is None:
            began = next((call.start for call in calls if call.start is not None), None)
        ended = self.ended
        if ended is None:
            ended = max((call.end for call in calls if call.end is not None), default=None)
        return DialectTurn(
            turn_id=self.turn_id,
            dialect=self.product,
            grade=self.grade,
            calls=tuple(_numbered(calls, began)),
            cluster_id=self.cluster,
            session_id=self.session,
            conversation_id=self.conversation,
            parent_id=self.parent,
            continues=self.continues,
            agent=self.agent,
            model=self.model,
            started_at=began,
            ended_at=ended,
            outcome=self.outcome,
            duration_ms=(ended - began) / 1e6 if ended is not None and began is not None else None,
        )


def turn_id(product: str, session: str | None, key: str) -> str:
    """The name of a turn in the database."""
    return f"{product}:{session or ''}:{key}"


def _when(call: Call) -> tuple[int, tuple[int, ...]]:
    return (call.start if call.start is not None else call.end or 0, call.order)


def _numbered(calls: list[Call], began: int | None) -> Iterable[DialectCall]:
    keys: dict[str, int] = {}
    results: dict[tuple[int, str], int] = {}
    batches: dict[str, int] = {}
    settled = _settling(calls)
    for position, call in enumerate(calls):
        key = None if call.key is None else keys.setdefault(call.key, len(keys))
        result = None
        if key is not None and call.result is not None:
            result = results.setdefault((key, call.result), len(results))
        order, after = settled.get(position, (None, None))
        about = TOOLS.get(call.tool or "", UNKNOWN)
        yield DialectCall(
            tool=call.tool,
            key=key,
            result=result,
            tool_class=about.tool_class,
            mutating=about.mutating,
            error=call.error,
            offset_ms=_offset(call.start, began),
            batch=None if call.batch is None else batches.setdefault(call.batch, len(batches) + 1),
            settled_after=after,
            settled_order=order,
        )


def _offset(start: int | None, began: int | None) -> int | None:
    if start is None or began is None:
        return None
    return max(0, (start - began) // 1_000_000)


def _settling(calls: list[Call]) -> dict[int, tuple[int, int]]:
    """Position of a call -> (its place among the settled ones, calls asked for when it settled)."""
    ends = sorted(
        (call.end, call.end_order, position)
        for position, call in enumerate(calls)
        if call.settled and call.end is not None
    )
    starts = [_when(call) for call in calls]
    out: dict[int, tuple[int, int]] = {}
    asked = 0
    for order, (end, end_order, position) in enumerate(ends):
        while asked < len(calls) and starts[asked] <= (end, end_order):
            asked += 1
        out[position] = (order, max(asked, position + 1))
    return out


def best(drafts: Iterable[Draft]) -> tuple[Any, ...]:
    """How much a source knows: share of calls with arguments, with results, then the number of calls."""
    calls = [(draft, call) for draft in drafts for call in draft.calls]
    if not calls:
        return (0, 0.0, 0.0, 0)
    with_key = sum(call.key is not None for _, call in calls) / len(calls)
    with_result = sum(
        call.result is not None or (draft.promised and not call.settled) for draft, call in calls
    ) / len(calls)
    return (1, round(with_key, 2), round(with_result, 2), len(calls))
