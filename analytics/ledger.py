"""What has been read of which content, so that a file is read once and a growing one is continued.

A content is known by its first line and by the hash of what was read of it, not by its name: a rotated
or packed file is known again, a truncated and rewritten one is not mistaken. The ledger only spares
work: natural keys in the tables keep a record that is read twice from counting twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.otlp import streams
from analytics.paths import STDIN
from analytics.warehouse import Warehouse

# What a mark holds for the ledger.
_STORED = ("fingerprint", "path", "offset", "digest", "lines", "records", "begun", "replaces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a content was read: `offset` bytes with the hash `digest`, `lines` lines, `records` of use."""

    fingerprint: str
    path: str
    offset: int = 0
    lines: int = 0
    records: int = 0
    digest: str = ""
    # Of the mark in the ledger that this one takes the place of:
    begun: int = 0
    replaces: str = ""
    records_before: int = 0

    def at(self, offset: int, lines: int, digest: str, records: int) -> Mark:
        """The mark further on; `records` counts those of this load."""
        return replace(self, offset=offset, lines=lines, digest=digest, records=self.records_before + records)

    def committed(self) -> Mark:
        """This mark once it is in the ledger; records go on being counted from the load's beginning."""
        return replace(self, begun=self.offset, replaces=self.digest)


def fingerprint(head: bytes) -> str:
    """By what a content is looked up: its first line, or as much of it as `head` holds."""
    return hashlib.sha256(head.split(b"\n", 1)[0]).hexdigest()


class Ledger:
    """What is in the table `files`, read once, and what this load adds to it."""

    def __init__(self, warehouse: Warehouse) -> None:
        # Fingerprint -> digest -> offset, lines, records.
        self._known: dict[str, dict[str, tuple[int, int, int]]] = {}
        for name, digest, *read in warehouse.rows(
            'SELECT fingerprint, digest, "offset", lines, records FROM files'
        ):
            self._known.setdefault(name, {})[digest] = (read[0], read[1], read[2])

    def note(self, marks: Iterable[Mark]) -> None:
        """Take in marks that are written, or will be before anything that is read from now on."""
        for mark in marks:
            known = self._known.setdefault(mark.fingerprint, {})
            known.pop(mark.replaces, None)
            known[mark.digest] = (mark.offset, mark.lines, mark.records)

    def resume(self, content: streams.Content, path: str) -> tuple[Mark, streams.Content]:
        """The mark to go on from and the content standing there; the start when the content is new."""
        mark = Mark(fingerprint=fingerprint(content.head), path=path)
        if path == STDIN:
            return mark, content  # cannot be read twice: what is known already folds in the tables
        best = mark
        known = self._known.get(mark.fingerprint, {})
        for digest, (offset, lines, records) in sorted(known.items(), key=lambda one: one[1]):
            if not content.skip(offset):
                break
            if content.digest.hexdigest() == digest:
                best = replace(mark, offset=offset, lines=lines, records=records, digest=digest,
                               records_before=records).committed()  # fmt: skip
        if content.position != best.offset:
            # Read past the last mark that fits: begin again, as far as it does fit.
            content = streams.content_of(streams.open_content(path))
            content.skip(best.offset)
        return best, content


def write(warehouse: Warehouse, marks: Sequence[Mark], now: int) -> None:
    """Store the marks, each in place of the one it goes on from; what was rejected behind that is void."""
    if not marks:
        return
    once = {(mark.fingerprint, mark.digest): mark for mark in marks}.values()
    columns = {name: [getattr(mark, name) for mark in once] for name in _STORED}
    fields = ", ".join(f'unnest(${name}) AS "{name}"' for name in _STORED)
    warehouse.connection.execute(f"CREATE OR REPLACE TEMP TABLE marks AS SELECT {fields}", columns)
    for statement in (
        "DELETE FROM rejects USING marks WHERE rejects.fingerprint = marks.fingerprint "
        'AND rejects."offset" >= marks.begun',
        "DELETE FROM files USING marks WHERE files.fingerprint = marks.fingerprint "
        "AND files.digest IN (marks.replaces, marks.digest)",
        'INSERT INTO files BY NAME SELECT fingerprint, path, "offset" AS size, "offset", digest, lines, '
        f"records, {now} AS loaded_at FROM marks",
    ):
        warehouse.connection.execute(statement)


def write_rejects(warehouse: Warehouse, rejects: Sequence[tuple[Any, ...]]) -> None:
    """Store rejects once each: (path, line, offset, reason, time, fingerprint)."""
    for path, line, offset, reason, now, fingerprint in rejects:
        warehouse.connection.execute(
            'INSERT INTO rejects BY NAME SELECT $path AS path, $line AS line, $offset AS "offset", '
            "$reason AS reason, $now AS loaded_at, $fingerprint AS fingerprint WHERE NOT EXISTS "
            '(FROM rejects r WHERE r.path = $path AND r."offset" IS NOT DISTINCT FROM $offset '
            "AND r.reason = $reason)",
            {"path": path, "line": line, "offset": offset, "reason": reason, "now": now,
             "fingerprint": fingerprint or None},
        )  # fmt: skip
