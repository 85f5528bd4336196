"""What was seen of a group -> its turns with their calls. Pure: the same set gives the same turns."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.dialects.base import DialectTurn, StoredSeen


def assemble(group: str, seen: Sequence[StoredSeen]) -> Sequence[DialectTurn]:
    """The turns of one group; `seen` is everything ever seen of it, ordered by (dialect, id)."""
    return ()
