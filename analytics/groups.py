"""What the dialects saw -> the tables: every touched group is assembled anew from all that was seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from analytics.dialects.rows import CALL, MILESTONE, TURN, Assembled, assembled
from analytics.warehouse import Warehouse
from analytics.workers import Workers

BATCH = 2_000  # groups at a time …
ROWS = 50_000  # … or as many as hold so many rows, so that memory does not grow with what was loaded
PART = 4_000  # rows that are assembled at once; more than that, and workers do it

SEEN = ("group_id", "dialect", "seen_id", "kind", "at", "data")


def assemble_pending(warehouse: Warehouse, workers: Workers) -> int:
    """Assemble every pending group; how many turns they hold. Each batch is one transaction."""
    total = 0
    while True:
        with warehouse.transaction() as connection:
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE group_batch AS WITH held AS ("
                "SELECT id AS group_id, count(seen_id) AS held FROM "
                f"(SELECT DISTINCT id FROM pending WHERE kind = 'group' ORDER BY id LIMIT {BATCH}) "
                "LEFT JOIN raw_seen ON group_id = id GROUP BY id) "
                f"SELECT group_id FROM held QUALIFY sum(held) OVER (ORDER BY group_id) - held < {ROWS}"
            )
            if not warehouse.rows("FROM group_batch LIMIT 1"):
                return total
            stored = warehouse.rows(
                'SELECT group_id, dialect, seen_id, kind, "at", data FROM raw_seen '
                "SEMI JOIN group_batch USING (group_id) ORDER BY group_id, dialect, seen_id"
            )
            total += _replace(warehouse, _assembled(stored, workers))
            connection.execute("DELETE FROM pending WHERE kind = 'group' AND id IN (FROM group_batch)")


def _assembled(stored: Sequence[tuple[Any, ...]], workers: Workers) -> list[Assembled]:
    if len(stored) <= PART:
        return assembled(stored)
    with ThreadPoolExecutor(max(1, workers.most)) as pool:
        return [one for part in pool.map(workers.assembled, _parts(stored)) for one in part]


def _parts(stored: Sequence[tuple[Any, ...]]) -> list[Sequence[tuple[Any, ...]]]:
    """The rows in parts of whole groups."""
    parts, begin = [], 0
    for at in range(1, len(stored) + 1):
        if at == len(stored) or (at - begin >= PART and stored[at][0] != stored[at - 1][0]):
            parts.append(stored[begin:at])
            begin = at
    return parts


def _replace(warehouse: Warehouse, assembled: Sequence[Assembled]) -> int:
    """Put the turns in place of those that the groups of `group_batch` had, and of any of the same id."""
    found = {turn[0]: (group, turn, calls, milestones) for group, turn, calls, milestones in assembled}
    connection = warehouse.connection
    owned = [(group, turn_id) for turn_id, (group, *_) in found.items()]
    warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    for table in ("turns", "calls", "milestones"):
        connection.execute(
            f"DELETE FROM {table} WHERE turn_id IN "
            "(SELECT turn_id FROM group_turns SEMI JOIN group_batch USING (group_id))"
        )
    connection.execute("DELETE FROM group_turns WHERE group_id IN (FROM group_batch)")
    warehouse.append("turns", TURN, [turn for _, turn, _, _ in found.values()])
    warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    warehouse.append("calls", CALL, [call for _, _, calls, _ in found.values() for call in calls])
    warehouse.append("milestones", MILESTONE, [one for *_, told in found.values() for one in told])
    return len(found)


def insert_seen(warehouse: Warehouse, rows: list[tuple[Any, ...]]) -> None:
    """Store rows of `raw_seen`, each natural key once."""
    seen = warehouse.arrow("raw_seen", SEEN, rows)
    warehouse.fold("raw_seen", seen, key=("group_id", "dialect", "seen_id"))
    warehouse.append("pending", ("kind", "id"), [("group", group) for group in {row[0] for row in rows}])
