"""Spans -> turns: every call belongs to the nearest agent's run above it.

Where a span between is missing, the run that encloses the call in time takes its place; where there is no
run, the workflow at the top does; where there is none, the trace is one turn. Runs inside runs are turns
with a parent. Instrumentations that write one call twice (a framework's span and a protocol client's inside
it, two libraries at once) are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analytics.dialects.base import DialectCall, StoredSeen
from analytics.dialects.draft import Draft, turn_id
from analytics.dialects.facts import AGENT, WORKFLOW


def drafts(seen: Sequence[StoredSeen]) -> list[Draft]:
    """The turns of all spans of a group."""
    return _Tree(seen).turns() if seen else []


def _key(owner: StoredSeen) -> str:
    """The key of a run's turn: the product's own, else the span."""
    return owner.turn or owner.span or ""


def _begun(one: StoredSeen) -> tuple[int, str]:
    return (one.start or 0, one.id)


class _Tree:
    def __init__(self, seen: Sequence[StoredSeen]) -> None:
        self.by_span: dict[str | None, StoredSeen] = {}
        for one in seen:
            if one.span is not None and (one.kind == "node" or one.kind == "call"):
                self.by_span.setdefault(one.span, one)
        self.calls = [one for one in self.by_span.values() if one.kind == "call"]
        self.details = [one for one in seen if one.kind == "result"]
        self.agents = sorted([one for one in self.by_span.values() if one.role == AGENT], key=_begun)
        self.outer_selves: dict[str | None, StoredSeen | None] = {}  # by the span of a run
        self.sessions: dict[str | None, set[str]] | None = None  # by trace, when they were asked for
        self.drafts: dict[str, Draft] = {}  # by the key of a turn
        self.draft_of: dict[str | None, Draft] = {}  # by the span of a run

    def turns(self) -> list[Draft]:
        for agent in self.agents:
            if self._outer_self(agent) is None:
                self._draft(agent)
        for one, call in self._counted():
            owner, call.reply = self._made_in(one)
            if owner is None and one.carrier:
                continue  # a server's view of calls, or a client's without its agent: nobody's turn
            call.settled = call.end is not None
            if owner is None or (one.turn is not None and one.turn != _key(owner)):
                draft = self._rootless(one, owner)
            else:
                draft = self._draft(owner)
            draft.calls.append(call)
        self._learn_models()
        return list(self.drafts.values())

    # Which calls count.

    def _counted(self) -> Iterator[tuple[StoredSeen, DialectCall]]:
        """Every call once, with what its copies know of it."""
        copies: dict[str | None, list[StoredSeen]] = {}
        outer_of: dict[str | None, StoredSeen] = {}
        for one in self.calls:
            outer = top = self._outer_call(one)
            while top is not None and top.span in outer_of:
                top = outer_of[top.span]
            if outer is not None and top is not one:  # else they are inside each other
                outer_of[one.span] = outer
        for span, outer in outer_of.items():
            while outer.span in outer_of:
                outer = outer_of[outer.span]
            copies.setdefault(outer.span, []).append(self.by_span[span])
        for detail in self.details:
            above = self.by_span.get(detail.parent)
            if above is not None:
                copies.setdefault(above.span, []).append(detail)
        for one in sorted(self.calls, key=_begun):
            if one.span in outer_of:
                continue
            call = one.as_call(one.start)
            for copy in copies.get(one.span, ()):
                call.tool = copy.tool if call.tool is None else call.tool
                call.arguments = copy.key if call.arguments is None else call.arguments
                call.returned = copy.result if call.returned is None else call.returned
                call.error = copy.error if call.error is None else call.error
            yield one, call

    def _outer_call(self, one: StoredSeen) -> StoredSeen | None:
        """The call of which this one is a copy: above it without an agent between, and of the same name,
        of the same id, or of a protocol that only carries calls."""
        for above in self._above(one):
            if above.kind == "call":
                same_id = one.call is not None and one.call == above.call
                return above if above.tool == one.tool or same_id or one.carrier else None
            if above.role == AGENT or above.role == WORKFLOW:
                return None
        return None

    # Whose turn.

    def _above(self, one: StoredSeen) -> Iterator[StoredSeen]:
        """What is above a span, nearest first; a gap is bridged by the agent's run that encloses it."""
        visited = {one.span}
        while one.parent is not None:
            above = self.by_span.get(one.parent) or self._enclosing(one)
            if above is None or above.span in visited:
                return
            visited.add(above.span)
            yield above
            one = above

    def _enclosing(self, one: StoredSeen) -> StoredSeen | None:
        if one.start is None or one.end is None:
            return None
        found = None
        for agent in self.agents:
            if agent is one or agent.trace != one.trace or agent.start is None or agent.end is None:
                continue
            if agent.start <= one.start and one.end <= agent.end:
                found = agent  # agents are in order of their start: the last one is the innermost
        return found

    def _outer_self(self, agent: StoredSeen) -> StoredSeen | None:
        """The run that this one is a copy of: the same agent directly around it, with no call between."""
        if agent.span not in self.outer_selves:
            self.outer_selves[agent.span] = None  # where two runs are around each other
            self.outer_selves[agent.span] = self._find_outer_self(agent)
        return self.outer_selves[agent.span]

    def _find_outer_self(self, agent: StoredSeen) -> StoredSeen | None:
        for above in self._above(agent):
            if above.kind == "call":
                return None
            if above.role == AGENT:
                return (self._outer_self(above) or above) if above.agent == agent.agent else None
        return None

    def _made_in(self, one: StoredSeen) -> tuple[StoredSeen | None, str | None]:
        """The run a call or run was made in: the nearest agent's above it, else the workflow at the top; a
        workflow inside a call is a run of its own. And the reply that asked for a call, where the spans
        between say."""
        workflow: StoredSeen | None = None
        reply: str | None = None
        between = True
        for above in self._above(one):
            agent, call = above.role == AGENT, above.kind == "call"
            if between:
                reply = above.batch
                between = reply is None and not agent and not call
            if agent:
                return self._outer_self(above) or above, reply
            if above.role == WORKFLOW:
                workflow = above
            elif call and workflow is not None:
                break
        return workflow, reply

    def _parent(self, run: StoredSeen) -> StoredSeen | None:
        """The run that started this one."""
        for above in self._above(run):
            if above.role == AGENT:
                return self._outer_self(above) or above
            if above.kind == "call":
                return self._made_in(above)[0]
        return None

    def _draft(self, owner: StoredSeen) -> Draft:
        if (known := self.draft_of.get(owner.span)) is not None:
            return known
        key = _key(owner)
        draft = self.drafts.get(key)
        if draft is None:
            session = self._session(owner)
            draft = Draft(product=owner.product, session=session, key=key, explicit=owner.turn is not None)
            self.drafts[key] = draft
            above = self._parent(owner)
            if above is not None and _key(above) != key:
                draft.parent = turn_id(above.product, self._session(above), _key(above))
        self.draft_of[owner.span] = draft
        if owner.start is not None:
            draft.started = owner.start if draft.started is None else min(owner.start, draft.started)
        if owner.end is not None:
            draft.ended = max(owner.end, draft.ended or 0)
            draft.outcome = draft.outcome or "completed"
        if owner.error:
            draft.outcome = "errored"
        draft.learn(owner)
        return draft

    def _rootless(self, one: StoredSeen, owner: StoredSeen | None) -> Draft:
        """The turn of a call that names it, or that no run is above of."""
        key = one.turn or one.trace or "start"
        draft = self.drafts.get(key)
        if draft is None:
            explicit = one.turn is not None and owner is None
            draft = Draft(product=one.product, session=self._session(one), key=key, explicit=explicit)
            self.drafts[key] = draft
            if owner is not None:
                draft.parent = self._draft(owner).turn_id
        draft.learn(one)
        return draft

    # What the turn as a whole is known by.

    def _session(self, one: StoredSeen) -> str:
        """The session of the outermost run: what an agent does inside another's call belongs to that."""
        session = one.session
        for above in self._above(one):
            session = above.session or session
        return session or self._session_of_trace(one.trace) or f"trace:{one.trace or ''}"

    def _session_of_trace(self, trace: str | None) -> str | None:
        """The session of a trace in which every span that names one names the same."""
        if self.sessions is None:
            self.sessions = {}
            for one in self.by_span.values():
                if one.session is not None:
                    self.sessions.setdefault(one.trace, set()).add(one.session)
        named = self.sessions.get(trace, ())
        return next(iter(named)) if len(named) == 1 else None

    def _learn_models(self) -> None:
        """A run that does not name its model has that of the first request made in it."""
        wanting = {key for key, draft in self.drafts.items() if draft.model is None}
        if not wanting:
            return
        told = [one for one in self.by_span.values() if one.model is not None and one.kind != "call"]
        for one in sorted(told, key=_begun):
            owner, _ = self._made_in(one)
            if owner is not None and _key(owner) in wanting:
                draft = self.drafts[_key(owner)]
                draft.model = draft.model or one.model
