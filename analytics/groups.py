"""What the dialects saw -> the tables: every touched group is assembled anew from all that was seen of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import pyarrow as pa

from analytics import packed
from analytics.dialects.rows import CALL, MILESTONE, TURN, Assembled, assembled
from analytics.packed import Packed
from analytics.warehouse import Warehouse
from analytics.workers import Workers

BATCH = 2_000  # groups at a time …
ROWS = 50_000  # … or as many as hold so many rows, so that memory does not grow with what was loaded
PART = 4_000  # rows that are assembled at once; more than that, and workers do it


def assemble_pending(warehouse: Warehouse, workers: Workers) -> int:
    """Assemble every pending group; how many turns they hold. Each batch is one transaction."""
    total = 0
    while True:
        with warehouse.transaction() as connection:
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE batch AS WITH counted AS ("
                "SELECT id AS group_id, count(seen_id) AS held FROM "
                f"(SELECT DISTINCT id FROM pending WHERE kind = 'group' ORDER BY id LIMIT {BATCH}) "
                "LEFT JOIN raw_seen ON group_id = id GROUP BY id) SELECT group_id, held FROM "
                f"counted QUALIFY sum(held) OVER (ORDER BY group_id) - held < {ROWS}"
            )
            if not warehouse.rows("FROM batch LIMIT 1"):
                return total
            stored = connection.sql(
                'SELECT group_id, dialect, seen_id, kind, "at", data FROM raw_seen '
                "SEMI JOIN batch USING (group_id) ORDER BY group_id, dialect, seen_id"
            ).to_arrow_table()
            held = [count for (count,) in warehouse.rows("SELECT held FROM batch ORDER BY group_id")]
            total += _replace(warehouse, _assembled(stored.combine_chunks(), held, workers))
            connection.execute(
                "DELETE FROM pending WHERE kind = 'group' AND id IN (SELECT group_id FROM batch)"
            )


def _assembled(stored: pa.Table, held: Sequence[int], workers: Workers) -> list[Assembled]:
    if stored.num_rows <= PART:
        return assembled(packed.unpack(packed.of_arrow(stored))) if stored.num_rows else []
    with ThreadPoolExecutor(max(1, workers.most)) as pool:
        return [one for part in pool.map(workers.assembled, _parts(stored, held)) for one in part]


def _parts(stored: pa.Table, held: Sequence[int]) -> Iterator[Packed]:
    """The rows in parts of whole groups, which hold so many rows each."""
    begin = 0
    for end in accumulate(held):
        if end - begin >= PART or end == stored.num_rows > begin:
            yield packed.of_arrow(stored.slice(begin, end - begin))
            begin = end


def _replace(warehouse: Warehouse, assembled: Sequence[Assembled]) -> int:
    """Put the turns in place of those that the groups of `batch` had, and of any of the same id."""
    found = {turn[0]: (group, turn, calls, milestones) for group, turn, calls, milestones in assembled}
    connection = warehouse.connection
    owned = [(group, turn_id) for turn_id, (group, *_) in found.items()]
    warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    for table in ("turns", "calls", "milestones"):
        connection.execute(
            f"DELETE FROM {table} WHERE turn_id IN "
            "(SELECT turn_id FROM group_turns SEMI JOIN batch USING (group_id))"
        )
    connection.execute("DELETE FROM group_turns WHERE group_id IN (SELECT group_id FROM batch)")
    warehouse.append("turns", TURN, [turn for _, turn, _, _ in found.values()])
    warehouse.append("group_turns", ("group_id", "turn_id"), owned)
    warehouse.append("calls", CALL, [call for _, _, calls, _ in found.values() for call in calls])
    warehouse.append("milestones", MILESTONE, [one for *_, told in found.values() for one in told])
    return len(found)


def insert_seen(warehouse: Warehouse, rows: Sequence[tuple[Any, ...]], more: Sequence[Packed]) -> None:
    """Store rows of `raw_seen`, each natural key once."""
    seen = pa.concat_tables(map(packed.to_arrow, [packed.pack(rows), *more]))
    warehouse.fold("raw_seen", seen, key=("group_id", "dialect", "seen_id"))
    with warehouse.staged(seen.select(["group_id"])):
        warehouse.connection.execute("INSERT INTO pending SELECT DISTINCT 'group', group_id FROM staged")
