"""Spans -> turns: every call belongs to the nearest agent's run above it.

Where a span between is missing, the run that encloses the call in time takes its place; where there is no
run, the workflow at the top does; where there is none, the trace is one turn. Runs inside runs are turns
with a parent. Instrumentations that write one call twice (a framework's span and a protocol client's inside
it, two libraries at once) are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analytics.dialects.base import Seen
from analytics.dialects.draft import Call, Draft, turn_id
from analytics.dialects.facts import AGENT, WORKFLOW

_MERGED = ("tool", "key", "result", "error")


def drafts(seen: Iterable[Seen]) -> list[Draft]:
    """The turns of all spans of a group."""
    return _Tree(list(seen)).turns()


def _key(owner: Seen) -> str:
    """The key of a run's turn: the product's own, else the span."""
    return str(owner.data.get("turn") or owner.data["span"])


class _Tree:
    def __init__(self, seen: list[Seen]) -> None:
        self.by_span: dict[str, Seen] = {}
        for one in seen:
            span = one.data.get("span")
            if span is not None and one.kind in ("node", "call"):
                self.by_span.setdefault(span, one)
        self.calls = [one for one in self.by_span.values() if one.kind == "call"]
        self.details = [one for one in seen if one.kind == "result"]
        agents = [one for one in self.by_span.values() if one.data.get("role") == AGENT]
        self.agents = sorted(agents, key=lambda one: (one.data.get("start") or 0, one.id))
        self.session_of_trace = self._sessions()

    def turns(self) -> list[Draft]:
        drafts: dict[str, Draft] = {}
        for agent in self.agents:
            if self._outer_self(agent) is None:
                self._draft(drafts, agent)
        for one, data in self._counted():
            owner = self._owner(one)
            if owner is None and one.data.get("carrier"):
                continue  # a server's view of calls, or a client's without its agent: nobody's turn
            call = Call.of(data)
            call.settled = call.end is not None
            call.batch = self._reply(one)
            if owner is None or one.data.get("turn") not in (None, _key(owner)):
                draft = self._rootless(drafts, one, owner)
            else:
                draft = self._draft(drafts, owner)
            draft.calls.append(call)
        self._learn_models(drafts)
        return list(drafts.values())

    # Which calls count.

    def _counted(self) -> Iterator[tuple[Seen, Mapping[str, Any]]]:
        """Every call once, with what its copies know of it."""
        copies: dict[str, list[Seen]] = {}
        outer_of: dict[str, Seen] = {}
        for one in self.calls:
            outer = self._outer_call(one)
            if outer is not None:
                outer_of[one.data["span"]] = outer
        for span, outer in outer_of.items():
            while outer.data["span"] in outer_of:
                outer = outer_of[outer.data["span"]]
            copies.setdefault(outer.data["span"], []).append(self.by_span[span])
        for detail in self.details:
            above = self.by_span.get(detail.data.get("parent", ""))
            if above is not None:
                copies.setdefault(above.data.get("span", ""), []).append(detail)
        for one in sorted(self.calls, key=lambda one: (one.data.get("start") or 0, one.id)):
            if one.data["span"] in outer_of:
                continue
            data = dict(one.data)
            for copy in copies.get(one.data["span"], ()):
                for name in _MERGED:
                    if data.get(name) is None and copy.data.get(name) is not None:
                        data[name] = copy.data[name]
            yield one, data

    def _outer_call(self, one: Seen) -> Seen | None:
        """The call of which this one is a copy: above it without an agent between, and of the same name,
        of the same id, or of a protocol that only carries calls."""
        for above in self._above(one):
            if above.kind == "call":
                same = above.data.get("tool") == one.data.get("tool")
                same_id = one.data.get("call") is not None and one.data.get("call") == above.data.get("call")
                return above if same or same_id or one.data.get("carrier") else None
            if above.data.get("role") in (AGENT, WORKFLOW):
                return None
        return None

    # Whose turn.

    def _above(self, one: Seen) -> Iterator[Seen]:
        """What is above a span, nearest first; a gap is bridged by the agent's run that encloses it."""
        visited = {one.data.get("span")}
        current = one
        while True:
            parent = current.data.get("parent")
            above = self.by_span.get(parent) if parent is not None else None
            if above is None and parent is not None:
                above = self._enclosing(current)
            if above is None or above.data.get("span") in visited:
                return
            visited.add(above.data.get("span"))
            yield above
            current = above

    def _enclosing(self, one: Seen) -> Seen | None:
        start, end = one.data.get("start"), one.data.get("end")
        if start is None or end is None:
            return None
        found = None
        for agent in self.agents:
            if agent is one or agent.data.get("trace") != one.data.get("trace"):
                continue
            begin, stop = agent.data.get("start"), agent.data.get("end")
            if begin is not None and stop is not None and begin <= start and end <= stop:
                found = agent  # agents are in order of their start: the last one is the innermost
        return found

    def _outer_self(self, agent: Seen) -> Seen | None:
        """The run that this one is a copy of: the same agent directly around it, with no call between."""
        for above in self._above(agent):
            if above.kind == "call":
                return None
            if above.data.get("role") == AGENT:
                same = above.data.get("agent") == agent.data.get("agent")
                return (self._outer_self(above) or above) if same else None
        return None

    def _owner(self, one: Seen) -> Seen | None:
        """The run a call or run was made in: the nearest agent's above it, else the workflow at the top; a
        workflow inside a call is a run of its own."""
        workflow = None
        for above in self._above(one):
            if above.data.get("role") == AGENT:
                return self._outer_self(above) or above
            if above.data.get("role") == WORKFLOW:
                workflow = above
            elif above.kind == "call" and workflow is not None:
                return workflow
        return workflow

    def _parent(self, run: Seen) -> Seen | None:
        """The run that started this one."""
        for above in self._above(run):
            if above.data.get("role") == AGENT:
                return self._outer_self(above) or above
            if above.kind == "call":
                return self._owner(above)
        return None

    def _reply(self, one: Seen) -> str | None:
        """The reply that asked for a call, where the spans between say."""
        for above in self._above(one):
            if (batch := above.data.get("batch")) is not None:
                return str(batch)
            if above.kind == "call" or above.data.get("role") == AGENT:
                return None
        return None

    def _draft(self, drafts: dict[str, Draft], owner: Seen) -> Draft:
        key = _key(owner)
        draft = drafts.get(key)
        if draft is None:
            session = self._session(owner)
            product = owner.data.get("product", "")
            draft = Draft(product=product, session=session, key=key, explicit="turn" in owner.data)
            drafts[key] = draft
            above = self._parent(owner)
            if above is not None:
                parent_key = _key(above)
                if parent_key != key:
                    draft.parent = turn_id(above.data.get("product", ""), self._session(above), parent_key)
        start, end = owner.data.get("start"), owner.data.get("end")
        if start is not None:
            draft.started = min(start, draft.started) if draft.started is not None else start
        if end is not None:
            draft.ended = max(end, draft.ended or 0)
            draft.outcome = draft.outcome or "completed"
        if owner.data.get("error"):
            draft.outcome = "errored"
        draft.learn(owner.data)
        draft.conversation = draft.conversation or owner.data.get("conversation")
        return draft

    def _rootless(self, drafts: dict[str, Draft], one: Seen, owner: Seen | None) -> Draft:
        """The turn of a call that names it, or that no run is above of."""
        key = one.data.get("turn") or one.data.get("trace") or "start"
        draft = drafts.get(key)
        if draft is None:
            draft = Draft(
                product=one.data.get("product", ""),
                session=self._session(one),
                key=key,
                explicit="turn" in one.data and owner is None,
            )
            drafts[key] = draft
            if owner is not None:
                draft.parent = self._draft(drafts, owner).turn_id
        draft.learn(one.data)
        return draft

    # What the turn as a whole is known by.

    def _sessions(self) -> dict[str, str]:
        """The session of each trace in which every span that names one names the same."""
        named: dict[str, set[str]] = {}
        for one in self.by_span.values():
            if (session := one.data.get("session")) is not None:
                named.setdefault(one.data.get("trace", ""), set()).add(session)
        return {trace: next(iter(sessions)) for trace, sessions in named.items() if len(sessions) == 1}

    def _session(self, one: Seen) -> str:
        """The session of the outermost run: what an agent does inside another's call belongs to that."""
        sessions = [here.data["session"] for here in (one, *self._above(one)) if "session" in here.data]
        if sessions:
            return str(sessions[-1])
        trace = one.data.get("trace", "")
        return self.session_of_trace.get(trace) or f"trace:{trace}"

    def _learn_models(self, drafts: dict[str, Draft]) -> None:
        """A run that does not name its model has that of the first request made in it."""
        wanting = {key for key, draft in drafts.items() if draft.model is None}
        if not wanting:
            return
        for one in sorted(self.by_span.values(), key=lambda one: (one.data.get("start") or 0, one.id)):
            if one.data.get("model") is None or one.kind == "call":
                continue
            owner = self._owner(one)
            if owner is not None:
                key = _key(owner)
                if key in wanting:
                    drafts[key].learn({"model": one.data["model"]})
