"""Slices of input, written to the database in a thread of their own while the next one is read.

A slice is whole: its rows and the ledger rows that say how far its files were read go into one transaction,
which several slices may share. What is committed is therefore always a state that a load can go on from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics import groups, ledger
from analytics.dialects.turncap import RowList
from analytics.packed import Packed
from analytics.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT = 256 << 20  # bytes of uncompressed content after which what was written is committed

Series = tuple[str, str, str, int]  # of a counter: resource, metric, attributes, begin


@dataclass(slots=True, kw_only=True)
class Slice:
    """What some consecutive input gave."""

    bulk: dict[str, list[pa.Table]] = field(default_factory=dict)  # raw table -> rows read in bulk
    rows: Mapping[str, RowList] = field(default_factory=dict)  # raw table -> rows read one by one
    seen: list[tuple[Any, ...]] = field(default_factory=list)  # rows of raw_seen
    packed: list[Packed] = field(default_factory=list)  # and more of them
    counters: dict[Series, tuple[int, float]] = field(default_factory=dict)
    marks: dict[str, ledger.Mark] = field(default_factory=dict)
    rejects: list[tuple[Any, ...]] = field(default_factory=list)  # path, line, offset, reason, fingerprint
    size: int = 0  # bytes of uncompressed content

    def write(self, warehouse: Warehouse) -> None:
        """Write everything, in the transaction that is open."""
        import pyarrow as pa

        now = time.time_ns()
        for name in self.bulk.keys() | self.rows.keys():
            found = self.bulk.get(name, [])
            if name in self.rows:
                found = [*found, warehouse.arrow(name, *self.rows[name])]
            data = pa.concat_tables(found)
            warehouse.fold(name, data, key=("event_id", "source"))
            with warehouse.staged(data.select(["turn_id"])):
                warehouse.connection.execute(
                    "INSERT INTO pending SELECT DISTINCT 'turn', turn_id FROM staged"
                )
        if self.seen or self.packed:
            groups.insert_seen(warehouse, self.seen, self.packed)
        _insert_counters(warehouse, self.counters)
        ledger.write(warehouse, list(self.marks.values()), now)
        ledger.write_rejects(warehouse, [(*where, now, fingerprint) for *where, fingerprint in self.rejects])


def _insert_counters(warehouse: Warehouse, counters: Mapping[Series, tuple[int, float]]) -> None:
    if not counters:
        return
    names = ("resource", "metric", "attributes", "started_at", "at", "value")
    rows = [(*series, *last) for series, last in counters.items()]
    with warehouse.staged(warehouse.arrow("counters", names, rows)):
        warehouse.connection.execute(
            "INSERT INTO counters BY NAME SELECT * FROM staged "
            "ON CONFLICT (resource, metric, attributes, started_at) "
            'DO UPDATE SET "at" = excluded."at", value = excluded.value '
            'WHERE (excluded."at", excluded.value) > (counters."at", counters.value)'
        )


class Writer:
    """Writes slices in the order in which they are given. Until `wait` returns the database is its own.

    With `whole` nothing is committed before the end.
    """

    def __init__(self, warehouse: Warehouse, *, whole: bool) -> None:
        self._warehouse = warehouse
        self._whole = whole
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._uncommitted = 0  # bytes
        self._open = False  # whether a transaction is

    def put(self, one: Slice) -> None:
        """Write a slice once the one before it is written. Raises what that one met."""
        self.wait()
        self._writing = self._pool.submit(self._write, one)

    def wait(self) -> None:
        """Return when nothing is being written. Raises what the last slice met."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def finish(self) -> None:
        """Commit everything, and end."""
        self.wait()
        self._commit()
        self._pool.shutdown()

    def give_up(self, *, keep: bool) -> None:
        """End before the end; keep the slices that are written if it may be."""
        self._pool.shutdown()
        failed = self._writing is not None and self._writing.exception() is not None
        if keep and not self._whole and not failed:
            self._commit()
        elif self._open:
            self._warehouse.rollback()

    def _write(self, one: Slice) -> None:
        if not self._open:
            self._warehouse.begin()
            self._open = True
        one.write(self._warehouse)
        self._uncommitted += one.size
        if self._uncommitted >= COMMIT and not self._whole:
            self._commit()

    def _commit(self) -> None:
        if self._open:
            self._open, self._uncommitted = False, 0
            self._warehouse.commit()
