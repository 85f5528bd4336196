"""What the dialects saw -> the tables: every touched group is assembled anew from all that was seen of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from analytics import packed
from analytics.dialects.rows import SEEN, Assembled, assembled
from analytics.packed import Packed
from analytics.warehouse import Warehouse
from analytics.workers import Workers

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 10_000  # groups at a time …
ROWS = 150_000  # … or as many as hold so many rows, so that memory does not grow with what was loaded
PART = 4_000  # rows that are assembled at once; more than that, and workers do it


def assemble_pending(warehouse: Warehouse, workers: Workers) -> int:
    """Assemble every pending group; how many turns they hold. Each batch is one transaction."""
    total, connection = 0, warehouse.connection
    while True:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE batch AS WITH counted AS ("
            "SELECT id AS group_id, count(seen_id) AS held FROM "
            f"(SELECT DISTINCT id FROM pending WHERE kind = 'group' ORDER BY id LIMIT {BATCH}) "
            "LEFT JOIN raw_seen ON group_id = id GROUP BY id) "
            "SELECT group_id, held, row_number() OVER (ORDER BY group_id) - 1 AS place FROM "
            f"counted QUALIFY sum(held) OVER (ORDER BY group_id) - held < {ROWS}"
        )
        if not warehouse.rows("FROM batch LIMIT 1"):
            return total
        found = _assembled(warehouse, workers)
        with warehouse.transaction():
            total += _replace(warehouse, found)
            connection.execute(
                "DELETE FROM pending WHERE kind = 'group' AND id IN (SELECT group_id FROM batch)"
            )


def _assembled(warehouse: Warehouse, workers: Workers) -> list[Assembled]:
    """The turns of the groups of `batch`; no turn twice, the last group's stays."""
    stored = warehouse.connection.sql(
        'SELECT place, seen_id, kind, "at", data FROM raw_seen '
        "JOIN batch USING (group_id) ORDER BY place, dialect, seen_id"
    ).to_arrow_table()
    stored = stored.combine_chunks()
    if stored.num_rows <= PART:
        return [assembled(packed.unpack(packed.of_arrow(stored)))] if stored.num_rows else []
    held = [count for (count,) in warehouse.rows("SELECT held FROM batch ORDER BY place")]
    with ThreadPoolExecutor(max(1, workers.most)) as pool:
        found = pool.map(workers.assembled, _parts(stored, held))
        warehouse.connection.execute("CHECKPOINT")  # which the next commit would do while workers wait
        parts = list(found)
    known: set[str] = set()
    for at, part in reversed(list(enumerate(parts))):
        if not known.isdisjoint(part.groups):
            parts[at] = part.without(known)
        known.update(part.groups)
    return parts


def _parts(stored: pa.Table, held: Sequence[int]) -> Iterator[Packed]:
    """The rows in parts of whole groups."""
    begin = 0
    for end in accumulate(held):
        if end - begin >= PART or end == stored.num_rows > begin:
            yield packed.of_arrow(stored.slice(begin, end - begin))
            begin = end


def _replace(warehouse: Warehouse, found: Sequence[Assembled]) -> int:
    """Put the turns in place of those that the groups of `batch` had, and of any of the same id."""
    connection = warehouse.connection
    names = [name for (name,) in warehouse.rows("SELECT group_id FROM batch ORDER BY place")]
    pairs = [(names[place], turn_id) for part in found for turn_id, place in part.groups.items()]
    owned = warehouse.unpacked("group_turns", [packed.pack(("group_id", "turn_id"), pairs)])
    warehouse.append("group_turns", owned)
    for table in ("turns", "calls", "milestones"):
        connection.execute(
            f"DELETE FROM {table} WHERE turn_id IN "
            "(SELECT turn_id FROM group_turns SEMI JOIN batch USING (group_id))"
        )
    connection.execute("DELETE FROM group_turns WHERE group_id IN (SELECT group_id FROM batch)")
    if pairs:
        warehouse.append("turns", warehouse.unpacked("turns", [part.turns for part in found]))
        warehouse.append("group_turns", owned)
        warehouse.append("calls", warehouse.unpacked("calls", [part.calls for part in found]))
        warehouse.append("milestones", warehouse.unpacked("milestones", [part.milestones for part in found]))
    return len(pairs)


def insert_seen(warehouse: Warehouse, rows: Sequence[tuple[Any, ...]], more: Sequence[Packed]) -> None:
    """Store rows of `raw_seen`, each natural key once."""
    seen = warehouse.unpacked("raw_seen", [packed.pack(SEEN, rows), *more] if rows else more)
    warehouse.fold("raw_seen", seen, key=("group_id", "dialect", "seen_id"))
    with warehouse.staged(seen.select(["group_id"])):
        warehouse.connection.execute("INSERT INTO pending SELECT DISTINCT 'group', group_id FROM staged")
