"""What was seen of a group -> its turns with their calls. Pure: the same set gives the same turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from analytics.dialects import sequence, tree
from analytics.dialects.base import LINE, LOG, SPAN, DialectTurn, StoredSeen
from analytics.dialects.draft import Draft, best


def assemble(seen: Sequence[StoredSeen]) -> Sequence[DialectTurn]:
    """The turns of one group; `seen` is everything ever seen of it, ordered by (dialect, id).

    A session that was written in several ways (logs, spans, a transcript) counts once: by the way that
    knows most of its calls. Of the others only turns are added that it lacks under the same kind of key.
    """
    by_origin: defaultdict[str, list[StoredSeen]] = defaultdict(list)
    for one in seen:
        by_origin[one.origin].append(one)
    sources = [
        sequence.drafts(by_origin[LINE], promised=True),
        sequence.drafts(by_origin[LOG], promised=False),
        tree.drafts(by_origin[SPAN]),
    ]
    by_session: dict[str | None, list[list[Draft]]] = {}
    for number, drafts in enumerate(sources):
        for draft in drafts:
            by_session.setdefault(draft.session, [[] for _ in sources])[number].append(draft)
    return [draft.finish() for ways in by_session.values() for draft in _once(ways)]


def _once(ways: Sequence[list[Draft]]) -> list[Draft]:
    """The turns of one session, each counted once."""
    order = [way for way in ways if way]
    if len(order) > 1:
        order.sort(key=best, reverse=True)
    chosen = {draft.turn_id: draft for draft in order[0]}
    if len(order) > 1 and all(draft.explicit for draft in order[0]):
        for way in order[1:]:
            added = {draft.turn_id for draft in way if draft.explicit} - chosen.keys()
            for draft in way:
                if draft.turn_id in added or draft.parent in added:
                    chosen.setdefault(draft.turn_id, draft)
    return list(chosen.values())
