"""Logs and transcripts -> turns: a walk through what happened, in order.

A turn begins at a prompt. A call belongs to the turn whose key it names, else to the turn that is open in
its thread (a sub-agent's thread has turns of its own, whose parent is the turn that was open when it began).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from analytics.dialects.base import DialectCall, StoredSeen
from analytics.dialects.draft import Draft, turn_id

MAIN = ""  # the thread of the session itself
_UNPROMPTED = "start"  # the key of the turn of calls that no prompt precedes

Thread = tuple[str | None, str]  # session, thread
Name = tuple[str | None, str, str]  # session, thread and the product's own key of a turn
Kinds = defaultdict[str, list[StoredSeen]]


def drafts(seen: Sequence[StoredSeen], *, promised: bool) -> list[Draft]:
    """The turns of one source. `promised`: it keeps a result for every call that settled."""
    if not seen:
        return []
    kinds: Kinds = defaultdict(list)
    for one in seen:
        kinds[one.kind].append(one)
    whole = {one.session: one.whole for one in kinds["session"]}
    if whole:  # one record tells the whole id of a session of which others tell a part
        for one in seen:
            one.session = whole.get(one.session, one.session)
    walk = _Walk(promised=promised)
    for place, (_, _, _, _, one) in enumerate(sorted(_happened(kinds)), start=1):
        if one.kind == "call" or one.kind == "asked":
            walk.call(one, place)
        elif one.kind == "result":
            walk.result(one, place)
        elif one.kind == "prompt":
            walk.prompt(one)
        else:
            walk.end(one)
    for one in sorted(kinds["node"], key=lambda one: one.id):
        walk.node(one)
    return walk.turns


def _happened(kinds: Kinds) -> list[tuple[int, int, str, int, StoredSeen]]:
    """What happened, behind that by which it is put in order: time, place at that time, id, a number. Each
    call and prompt once, with what other records say of it."""
    strong = {(one.session, one.thread) for one in kinds["prompt"] if not one.weak}
    within = {(one.session, one.turn): one.within for one in kinds["prompt"] if one.within is not None}
    asked = {(one.session, one.call or one.id): one for one in kinds["asked"]}
    found: list[tuple[int, int, str, int, StoredSeen]] = []
    for one in kinds["call"]:
        start, seq = one.start if one.start is not None else one.at, one.seq
        if asked and (earlier := asked.pop((one.session, one.call or one.id), None)) is not None:
            start = one.start = earlier.at  # it was asked for when the earlier record says
            seq = earlier.seq
        found.append((start or 0, seq, one.id, len(found), one))
        if one.within is not None and within.get((one.session, one.turn), one.within) != one.within:
            # A call logged inside another span than its prompt is a sub-agent's.
            one.thread, one.parent_turn = f"sub:{one.within}", one.turn
    for kind in ("prompt", "result", "end"):
        for one in kinds[kind]:
            if not one.weak or (one.session, one.thread) not in strong:
                found.append((one.at or 0, one.seq, one.id, len(found), one))
    for one in asked.values():
        found.append((one.at or 0, one.seq, one.id, len(found), one))
    return found


@dataclass(slots=True)
class _Walk:
    promised: bool
    turns: list[Draft] = field(default_factory=list)
    open: dict[Thread, Draft] = field(default_factory=dict)
    named: dict[Name, Draft] = field(default_factory=dict)
    bearing: dict[Name, list[Draft]] = field(default_factory=dict)  # all that ever had the name
    waiting: dict[tuple[str | None, str], list[DialectCall]] = field(default_factory=dict)  # by call id

    def end(self, one: StoredSeen) -> None:
        draft = self.current(one)
        if draft is not None:
            draft.outcome = one.outcome or draft.outcome
            draft.ended = max(draft.ended or 0, one.at or 0) or None

    def node(self, one: StoredSeen) -> None:
        """What is known of a turn as a whole holds for all turns that bear its key."""
        for draft in self.bearing.get((one.session, one.thread, one.turn or ""), ()):
            draft.learn(one)

    def current(self, one: StoredSeen) -> Draft | None:
        if one.turn is not None:
            return self.named.get((one.session, one.thread, one.turn))
        return self.open.get((one.session, one.thread))

    def begin(self, one: StoredSeen, key: str, *, explicit: bool, prompted: bool) -> Draft:
        session, thread = one.session, one.thread
        draft = Draft(
            product=one.product,
            session=session,
            key=f"{thread}/{key}" if thread else key,
            promised=self.promised,
            started=one.at if prompted else None,
            explicit=explicit,
        )
        if thread != MAIN:
            draft.parent = self.parent_of(one)
        elif one.parent_turn is not None:
            draft.parent = turn_id(draft.product, session, one.parent_turn)
        draft.learn(one)
        self.turns.append(draft)
        self.open[(session, thread)] = draft
        if one.turn is not None:
            name = (session, thread, one.turn)
            self.named[name] = draft
            self.bearing.setdefault(name, []).append(draft)
        return draft

    def parent_of(self, one: StoredSeen) -> str | None:
        """The turn that started a sub-agent's thread: the one it names, else the one open in the session."""
        named = self.named.get((one.session, MAIN, one.parent_turn or ""))
        found = named or self.open.get((one.session, MAIN))
        return found.turn_id if found is not None else None

    def prompt(self, one: StoredSeen) -> None:
        running = self.open.get((one.session, one.thread)) if one.continues else None
        if one.turn is None:
            key = one.key if one.key is not None else str(one.at or one.id)
            draft = self.begin(one, key, explicit=False, prompted=True)
        else:
            before = self.named.get((one.session, one.thread, one.turn))
            if before is not None and one.steers:
                return  # a message to a turn that is running, under its own key
            # Some products number prompts per process: the second one of a name is another turn.
            key = one.turn if before is None else f"{one.turn}@{one.at}"
            draft = self.begin(one, key, explicit=before is None or running is not None, prompted=True)
        draft.continues = running.turn_id if running is not None else None

    def call(self, one: StoredSeen, place: int) -> None:
        draft = self.current(one)
        if draft is None:
            # Other sources call the other threads otherwise.
            explicit = one.turn is not None and one.thread == MAIN
            draft = self.begin(one, one.turn or _UNPROMPTED, explicit=explicit, prompted=False)
        draft.learn(one)
        call = one.as_call(one.start if one.start is not None else one.at, place)
        if one.kind == "call" and one.end is not None:
            call.settled, call.end_place = True, one.seq
        draft.calls.append(call)
        if one.call is not None:
            self.waiting.setdefault((draft.session, one.call), []).append(call)

    def result(self, one: StoredSeen, place: int) -> None:
        for call in self.waiting.get((one.session, one.call or ""), ()):
            if not call.settled:
                call.settled, call.end, call.end_place = True, one.at, place
                call.returned, call.error = one.result, one.error
                return
