"""Logs and transcripts -> turns: a walk through what happened, in order.

A turn begins at a prompt. A call belongs to the turn whose key it names, else to the turn that is open in
its thread (a sub-agent's thread has turns of its own, whose parent is the turn that was open when it began).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.dialects.base import Seen
from analytics.dialects.draft import Call, Draft, turn_id

MAIN = ""  # the thread of the session itself
_UNPROMPTED = "start"  # the key of the turn of calls that no prompt precedes


def drafts(seen: Iterable[Seen], *, promised: bool) -> list[Draft]:
    """The turns of one source. `promised`: it keeps a result for every call that settled."""
    walk = _Walk(promised=promised)
    ones = _merged(seen)
    for one in sorted((one for one in ones if one.kind != "node"), key=_order):
        walk.take(one)
    for one in sorted((one for one in ones if one.kind == "node"), key=lambda one: one.id):
        walk.node(one)
    return walk.turns


def _order(one: Seen) -> tuple[int, int, str]:
    start = one.data.get("start", one.at)
    return (start or 0, one.data.get("seq", 0), one.id)


def _merged(seen: Iterable[Seen]) -> list[Seen]:
    """One `Seen` a call and prompt, with what other records say of it."""
    ones = _whole_sessions(seen)
    strong = {_thread(one) for one in ones if one.kind == "prompt" and not one.data.get("weak")}
    within = {
        (one.data.get("session"), one.data.get("turn")): one.data["within"]
        for one in ones
        if one.kind == "prompt" and "within" in one.data
    }
    asked = {_call_of(one): one for one in ones if one.kind == "asked"}
    out = []
    for one in ones:
        if one.kind == "call" and (earlier := asked.pop(_call_of(one), None)) is not None:
            # It was asked for when the earlier record says.
            one = _with(one, start=earlier.at, seq=earlier.data.get("seq", 0), after=one.data.get("seq", 0))
        if one.kind == "asked" or (one.data.get("weak") and _thread(one) in strong):
            continue
        out.append(_in_thread(one, within))
    return out + list(asked.values())


def _whole_sessions(seen: Iterable[Seen]) -> list[Seen]:
    """Everything under the whole id of its session, where one record tells it and others a part."""
    ones = list(seen)
    whole = {one.data.get("session"): one.data["whole"] for one in ones if one.kind == "session"}
    told = [one for one in ones if one.kind != "session"]
    if not whole:
        return told
    return [
        _with(one, session=whole[one.data.get("session")]) if one.data.get("session") in whole else one
        for one in told
    ]


def _in_thread(one: Seen, within: Mapping[tuple[Any, Any], Any]) -> Seen:
    """A call logged inside another span than its prompt is a sub-agent's."""
    span, turn = one.data.get("within"), one.data.get("turn")
    main = within.get((one.data.get("session"), turn))
    if one.kind != "call" or span is None or main is None or span == main:
        return one
    return _with(one, thread=f"sub:{span}", parent_turn=turn)


def _with(one: Seen, **data: Any) -> Seen:
    return Seen(group=one.group, id=one.id, kind=one.kind, at=one.at, data={**one.data, **data})


def _name(one: Seen) -> tuple[str | None, str, str]:
    """Session, thread and the product's own key of the turn a `Seen` is about."""
    return (one.data.get("session"), one.data.get("thread", MAIN), one.data.get("turn", ""))


def _thread(one: Seen) -> tuple[Any, Any]:
    return (one.data.get("session"), one.data.get("thread", MAIN))


def _call_of(one: Seen) -> tuple[Any, Any]:
    return (one.data.get("session"), one.data.get("call", one.id))


@dataclass(slots=True)
class _Walk:
    promised: bool
    turns: list[Draft] = field(default_factory=list)
    open: dict[tuple[str | None, str], Draft] = field(default_factory=dict)  # by (session, thread)
    named: dict[tuple[str | None, str, str], Draft] = field(default_factory=dict)  # by the turn's own key
    bearing: dict[tuple[str | None, str, str], list[Draft]] = field(default_factory=dict)  # all that ever did
    waiting: dict[tuple[str | None, str], list[Call]] = field(default_factory=dict)  # by call id
    position: int = 0

    def take(self, one: Seen) -> None:
        self.position += 1
        if one.kind == "prompt":
            self.prompt(one)
        elif one.kind in ("call", "asked"):
            self.call(one)
        elif one.kind == "result":
            self.result(one)
        elif one.kind == "end":
            draft = self.current(one)
            if draft is not None:
                draft.outcome = one.data.get("outcome") or draft.outcome
                draft.ended = max(draft.ended or 0, one.at or 0) or None

    def node(self, one: Seen) -> None:
        """What is known of a turn as a whole holds for all turns that bear its key."""
        for draft in self.bearing.get(_name(one), ()):
            draft.learn(one.data)

    def current(self, one: Seen) -> Draft | None:
        thread = one.data.get("thread", MAIN)
        session, own = one.data.get("session"), one.data.get("turn")
        if own is not None and (found := self.named.get((session, thread, own))) is not None:
            return found
        return self.open.get((session, thread)) if own is None else None

    def begin(self, one: Seen, key: str, *, explicit: bool, prompted: bool) -> Draft:
        data = one.data
        session, thread = data.get("session"), data.get("thread", MAIN)
        draft = Draft(
            product=data.get("product", ""),
            session=session,
            key=f"{thread}/{key}" if thread else key,
            promised=self.promised,
            started=one.at if prompted else None,
            explicit=explicit,
            conversation=data.get("conversation"),
        )
        if thread != MAIN:
            draft.parent = self.parent_of(one)
        elif data.get("parent_turn") is not None:
            draft.parent = turn_id(draft.product, data.get("parent_session", session), data["parent_turn"])
        draft.learn(data)
        self.turns.append(draft)
        self.open[(session, thread)] = draft
        if data.get("turn") is not None:
            self.named[_name(one)] = draft
            self.bearing.setdefault(_name(one), []).append(draft)
        return draft

    def parent_of(self, one: Seen) -> str | None:
        """The turn that started a sub-agent's thread: the one it names, else the one open in the session."""
        session, above = one.data.get("session"), one.data.get("above", MAIN)
        named = self.named.get((session, above, one.data.get("parent_turn", "")))
        found = named or self.open.get((session, above))
        return found.turn_id if found is not None else None

    def prompt(self, one: Seen) -> None:
        session, thread = one.data.get("session"), one.data.get("thread", MAIN)
        own = one.data.get("turn")
        running = self.open.get((session, thread)) if one.data.get("continues") else None
        if own is None:
            draft = self.begin(one, str(one.data.get("key", one.at or one.id)), explicit=False, prompted=True)
            draft.continues = running.turn_id if running is not None else None
            return
        before = self.named.get((session, thread, own))
        if before is not None and one.data.get("steers"):
            return  # a message to a turn that is running, under its own key
        # Some products number prompts per process: the second one of a name is another turn.
        key = own if before is None else f"{own}@{one.at}"
        draft = self.begin(one, key, explicit=before is None or running is not None, prompted=True)
        draft.continues = running.turn_id if running is not None else None

    def call(self, one: Seen) -> None:
        draft = self.current(one)
        if draft is None:
            own = one.data.get("turn")
            in_main = one.data.get("thread", MAIN) == MAIN  # other sources call the other threads otherwise
            draft = self.begin(one, own or _UNPROMPTED, explicit=own is not None and in_main, prompted=False)
        draft.learn(one.data)
        call = Call.of(one.data, (self.position,))
        if call.start is None:
            call.start = one.at
        if one.kind == "call" and call.end is not None:
            call.settled = True
            call.end_order = (one.data.get("after", one.data.get("seq", 0)),)
        draft.calls.append(call)
        identifier = one.data.get("call")
        if identifier is not None:
            self.waiting.setdefault((draft.session, identifier), []).append(call)

    def result(self, one: Seen) -> None:
        key = (one.data.get("session"), one.data.get("call", ""))
        waiting: Sequence[Call] = self.waiting.get(key, ())
        for call in waiting:
            if not call.settled:
                call.settled = True
                call.end, call.end_order = one.at, (self.position,)
                call.result, call.error = one.data.get("result"), one.data.get("error")
                return
