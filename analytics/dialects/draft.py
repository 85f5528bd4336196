"""A turn while it is put together, and how it becomes a `DialectTurn`: order, numbers, grade."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.dialects.base import DialectCall, DialectTurn, StoredSeen
from guard.tools import TOOLS, UNKNOWN

Asked = tuple[int, int, int, DialectCall]
"""A call behind that by which it is put in order: when it was asked for, its place at that time, a number."""

_BY_GRADE = ("names-only", "no-results", "exact")


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
    calls: list[DialectCall] = field(default_factory=list)
    parent: str | None = None  # the parent's turn_id
    continues: str | None = None  # the turn_id of the turn that a hook did not let end
    started: int | None = None
    ended: int | None = None
    outcome: str | None = None
    agent: str | None = None
    model: str | None = None
    cluster: str | None = None
    explicit: bool = False  # the key is the product's own: other sources of the session have it too

    @property
    def turn_id(self) -> str:
        """Unique over products, the same however often it is assembled."""
        return turn_id(self.product, self.session, self.key)

    def learn(self, one: StoredSeen) -> None:
        """Take what a record says of the turn as a whole, where nothing was known."""
        self.agent = self.agent or one.agent
        self.model = self.model or one.model
        self.cluster = self.cluster or one.cluster

    def finish(self) -> DialectTurn:
        """The turn with numbered keys and results."""
        asked = sorted(
            (call.start if call.start is not None else call.end or 0, call.place, n, call)
            for n, call in enumerate(self.calls)
        )
        calls = [call for _, _, _, call in asked]
        began = self.started
        if began is None:
            began = next((call.start for call in calls if call.start is not None), None)
        ended = self.ended
        if ended is None:
            ended = max((call.end for call in calls if call.end is not None), default=None)
        grade = _number(calls, began, self.promised)
        _settle(asked)
        return DialectTurn(
            turn_id=self.turn_id,
            dialect=self.product,
            grade=grade,
            calls=calls,
            cluster_id=self.cluster,
            session_id=self.session,
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


def _number(calls: Sequence[DialectCall], began: int | None, promised: bool) -> str:
    """Number what the calls asked for, got and belong to; what is known of every call, which is the least
    that is known of any."""
    keys: dict[str, int] = {}
    results: dict[tuple[int, str], int] = {}
    batches: dict[str, int] = {}
    grade = 2
    for call in calls:
        if call.arguments is None:
            grade = 0
        else:
            call.key = key = keys.setdefault(call.arguments, len(keys))
            if call.returned is not None:
                call.result = results.setdefault((key, call.returned), len(results))
            elif grade and (call.settled or not promised):
                grade = 1
        if call.reply is not None:
            call.batch = batches.setdefault(call.reply, len(batches) + 1)
        if call.start is not None and began is not None:
            call.offset_ms = (call.start - began) // 1_000_000 if call.start > began else 0
        call.tool_class, call.mutating = TOOLS.get(call.tool or "", UNKNOWN)
    return _BY_GRADE[grade]


def _settle(asked: Sequence[Asked]) -> None:
    """Say of each call that settled its place among these, and how many calls had been asked for."""
    count, before = len(asked), 0
    # `count` stands where `asked` has smaller numbers: what was asked for at the same time comes before.
    ends = sorted(
        (call.end, call.end_place, count, position)
        for position, (_, _, _, call) in enumerate(asked)
        if call.settled and call.end is not None
    )
    for order, settled in enumerate(ends):
        while before < count and asked[before] < settled:
            before += 1
        position = settled[3]
        call = asked[position][3]
        call.settled_order, call.settled_after = order, max(before, position + 1)


def best(drafts: Iterable[Draft]) -> tuple[Any, ...]:
    """How much a source knows: share of calls with arguments, with results, then the number of calls."""
    calls = [(draft, call) for draft in drafts for call in draft.calls]
    if not calls:
        return (0, 0.0, 0.0, 0)
    with_key = sum(call.arguments is not None for _, call in calls) / len(calls)
    with_result = sum(
        call.returned is not None or (draft.promised and not call.settled) for draft, call in calls
    ) / len(calls)
    return (1, round(with_key, 2), round(with_result, 2), len(calls))
