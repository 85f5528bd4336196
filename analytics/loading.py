"""Files in, tables filled: `turncap load` without its command line.

Each slice of input (whole blocks of one or more files) is staged and committed together with its ledger
rows; the turns it touched wait in `pending`, and are derived when all files are read. Killed anywhere,
the next load goes on from the last committed slice and derives what waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from analytics import groups, ledger
from analytics.derive import derive
from analytics.dialects import DIALECTS
from analytics.dialects.base import Record
from analytics.dialects.turncap import PREFIX, TABLES, Collector
from analytics.errors import InputError
from analytics.otlp import jsonform, streams
from analytics.otlp.records import Item, Point, Unreadable
from analytics.warehouse import Warehouse

SLICE = 64 << 20  # bytes of uncompressed content committed at once
HOPELESS = 1000  # unreadable pieces after which a file that gave nothing else is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """What could not be read, and where: a line (or frame) from 1, and the byte where it begins."""

    path: str
    line: int | None
    offset: int | None
    reason: str

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"


@dataclass(slots=True, kw_only=True)
class FileSummary:
    """What became of one file."""

    path: str
    lines: int = 0  # read in this load
    events: int = 0  # of turncap's, and of other products, read in this load
    points: int = 0
    foreign: int = 0  # records of nobody that turncap knows
    known: int = 0  # bytes that an earlier load had read
    size: int = 0  # bytes of uncompressed content up to where it was read
    looks_like: str = ""


@dataclass(slots=True, kw_only=True)
class Summary:
    """What a load did."""

    files: list[FileSummary] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    products: dict[tuple[str, str], int] = field(default_factory=dict)  # (dialect, grade) -> turns derived
    turns: int = 0
    seconds: float = 0.0

    def lines(self) -> list[str]:
        """What to tell a person."""
        read = sum(one.size - one.known for one in self.files)
        events, points = sum(one.events for one in self.files), sum(one.points for one in self.files)
        known = sum(1 for one in self.files if one.known and one.size == one.known)
        told = [
            f"{len(self.files)} files, {read / 1e6:,.1f} MB in {self.seconds:.1f} s: {events:,} events, "
            f"{points:,} metric points, {self.turns:,} turns new or changed"
        ]
        if known:
            told.append(f"{known} files hold nothing new")
        if foreign := sum(one.foreign for one in self.files):
            told.append(f"{foreign:,} records of no product that turncap knows were passed over")
        told += [f"{dialect} ({grade}): {turns:,} turns" for (dialect, grade), turns in self.products.items()]
        return told


class Loader:
    """Loads files into an open warehouse."""

    def __init__(self, warehouse: Warehouse, *, strict: bool = False) -> None:
        self.warehouse = warehouse
        self.strict = strict
        self.summary = Summary()
        self._collector = Collector()
        self._seen: list[tuple[Any, ...]] = []
        self._counters: dict[tuple[str, str, str, int], tuple[int, float]] = {}
        self._marks: dict[str, ledger.Mark] = {}
        self._waiting: list[tuple[Reject, str]] = []
        self._bytes = 0

    def load(self, paths: Sequence[str]) -> Summary:
        """Load every file, then derive. InputError, with nothing written, when no file held a record."""
        began = time.monotonic()
        for path in paths:
            with streams.open_content(path) as raw:
                self._file(path, raw)
        self._refuse_the_unrecognised()
        self._flush()
        self.summary.turns = derive(self.warehouse) + groups.assemble_pending(self.warehouse)
        self.summary.products = {
            (dialect, grade): turns
            for dialect, grade, turns in self.warehouse.rows(
                "SELECT dialect, grade, count(*) FROM turns GROUP BY ALL ORDER BY ALL"
            )
        }
        self.summary.seconds = time.monotonic() - began
        return self.summary

    def _file(self, path: str, raw: IO[bytes]) -> None:
        content = streams.content_of(raw)
        told = FileSummary(path=path)
        self.summary.files.append(told)
        first_line = content.first_line()
        if not first_line:
            told.looks_like = "empty"
        mark = ledger.Mark(fingerprint=ledger.fingerprint(first_line), path=path)
        mark, content = ledger.resume(self.warehouse, mark, content, path)
        told.known = content.position
        rejected = 0
        for block in content.blocks():
            place = block.offset
            for number, piece in enumerate(block.pieces, start=block.line):
                if piece and not piece.isspace():
                    reason = self._piece(piece, path, place, told)
                    for one in reason:
                        self._reject(Reject(path=path, line=number, offset=place, reason=one), mark)
                        rejected += 1
                place += len(piece) + 1
            mark = mark.at(block.end, content.lines, block.digest.hexdigest(), told.events + told.points)
            if block.torn.strip(b"\0 \t\r\n"):
                mark = self._torn(block, content, mark, told)
            self._marks[mark.fingerprint + mark.path] = mark
            told.lines, told.size = content.lines, mark.offset
            self._bytes += block.end - block.offset
            if rejected >= HOPELESS and not (told.events or told.points or told.foreign):
                break
            if self._bytes >= SLICE and (told.events or told.points):
                self._flush()
        if content.cut_short is not None:
            self._reject(
                Reject(path=path, line=None, offset=content.position, reason=str(content.cut_short)), mark
            )

    def _torn(
        self, block: streams.Block, content: streams.Content, mark: ledger.Mark, told: FileSummary
    ) -> ledger.Mark:
        """A last line without newline: read when it is whole, else left for the next load."""
        try:
            problems = self._piece(block.torn, mark.path, block.end, told, raising=True)
        except jsonform.NotJsonError:
            reason = "the last line is cut short; it is left for the next load"
            self._reject(
                Reject(path=mark.path, line=content.lines + 1, offset=block.end, reason=reason), mark
            )
            return mark
        for one in problems:
            place = Reject(path=mark.path, line=content.lines + 1, offset=block.end, reason=one)
            self._reject(place, mark)
        content.take(block.torn)
        return mark.at(content.position, content.lines, content.digest.hexdigest(), told.events + told.points)

    def _piece(
        self, piece: bytes, path: str, offset: int, told: FileSummary, *, raising: bool = False
    ) -> list[str]:
        """Take in one line; the reasons why parts of it could not be."""
        problems: list[str] = []
        try:
            for item in jsonform.read(piece):
                self._item(item, path, offset, told, problems)
        except jsonform.NotJsonError as error:
            if raising:
                raise
            problems.append(f"no JSON: {error}")
        return problems

    def _item(self, item: Item, path: str, offset: int, told: FileSummary, problems: list[str]) -> None:
        match item:
            case Record():
                before = self._collector.events
                if self._collector.add(item):
                    told.events += self._collector.events - before
                    if self._collector.problems:
                        problems += self._collector.problems
                        self._collector.problems.clear()
                elif not self._offer(item, path, offset, told):
                    told.foreign += 1
                    told.looks_like = told.looks_like or _likeness(item)
            case Point():
                if item.metric.startswith(PREFIX):
                    self._count(item)
                    told.points += 1
                else:
                    told.foreign += 1
                    told.looks_like = told.looks_like or f"OTLP metrics such as {item.metric!r}"
            case Unreadable():
                problems.append(item.reason)

    def _offer(self, record: Record, path: str, offset: int, told: FileSummary) -> bool:
        """Offer a record to every dialect; False when none knows it."""
        record.path, record.offset = path, offset
        for dialect in DIALECTS:
            if (seen := dialect.recognise(record)) is not None:
                told.events += 1
                self._seen += [groups.row(dialect.name, one) for one in seen]
                return True
        return False

    def _count(self, point: Point) -> None:
        attributes = json.dumps(point.attributes, sort_keys=True, default=str)
        since = point.at if point.delta and not point.started_at else point.started_at
        series = (self._resource(point.resource), point.metric, attributes, since)
        self._counters[series] = max(
            self._counters.get(series, (point.at, point.value)), (point.at, point.value)
        )

    def _resource(self, resource: Mapping[str, Any]) -> str:
        kept = {key: value for key, value in resource.items() if key.startswith(_RESOURCE)}
        return json.dumps(kept, sort_keys=True, default=str)

    def _reject(self, reject: Reject, mark: ledger.Mark) -> None:
        if self.strict:
            raise InputError(f"{reject} (--strict)")
        self.summary.rejects.append(reject)
        self._waiting.append((reject, mark.fingerprint))

    def _refuse_the_unrecognised(self) -> None:
        """InputError when nothing at all was recognised."""
        recognised = any(one.events or one.points or one.known for one in self.summary.files)
        if not recognised and self.summary.files:
            first = self.summary.files[0]
            more = f" (and {len(self.summary.files) - 1} more files)" if len(self.summary.files) > 1 else ""
            likeness = first.looks_like or (str(self.summary.rejects[0]) if self.summary.rejects else "empty")
            raise InputError(
                f"{first.path}{more}: no record that turncap knows; it looks like {likeness}. "
                "Give files of OTLP as a Collector or an SDK exports it"
            )

    def _flush(self) -> None:
        """Commit what was collected, with its ledger rows."""
        if not (self._marks or self._waiting):
            return
        now = time.time_ns()
        with self.warehouse.transaction():
            for event, rows in self._collector.rows.items():
                if len(rows):
                    table = TABLES[event]
                    self.warehouse.fold(table.name, rows.columns, key=("event_id", "source"))
                    self.warehouse.connection.execute(
                        "INSERT INTO pending SELECT DISTINCT 'turn', turn_id FROM fresh"
                    )
            if self._seen:
                groups.insert_seen(self.warehouse, self._seen)
            _insert_counters(self.warehouse, self._counters)
            ledger.write(self.warehouse, list(self._marks.values()), now)
            ledger.write_rejects(
                self.warehouse,
                [(r.path, r.line, r.offset, r.reason, now, fingerprint) for r, fingerprint in self._waiting],
            )
        self._collector.clear()
        self._seen.clear()
        self._counters.clear()
        self._marks.clear()
        self._waiting.clear()
        self._bytes = 0


# What tells one process from another; other attributes of a resource may hold text.
_RESOURCE = ("service.", "process.pid", "host.name", "k8s.pod.name", "container.id")


def _likeness(record: Record) -> str:
    if record.source == "line":
        body = record.body
        keys = ", ".join(list(body)[:6]) if isinstance(body, dict) else type(body).__name__
        return f"JSON lines with the keys {keys}"
    return f"OTLP {record.source}s such as {record.name!r} of {record.scope or 'no scope'}"


def _insert_counters(
    warehouse: Warehouse, counters: Mapping[tuple[str, str, str, int], tuple[int, float]]
) -> None:
    if not counters:
        return
    names = ("resource", "metric", "attributes", "started_at", "at", "value")
    rows = [(*series, *last) for series, last in counters.items()]
    warehouse.stage("staged", "counters", dict(zip(names, zip(*rows, strict=True), strict=True)))
    warehouse.connection.execute(
        "INSERT INTO counters BY NAME SELECT * FROM staged "
        "ON CONFLICT (resource, metric, attributes, started_at) "
        'DO UPDATE SET "at" = excluded."at", value = excluded.value '
        'WHERE (excluded."at", excluded.value) > (counters."at", counters.value)'
    )
    warehouse.connection.unregister("staged")


def load(warehouse: Warehouse, paths: Sequence[str], *, strict: bool = False) -> Summary:
    """Load `paths` (files, in this order) and derive.

    Raises:
        InputError: no file held a record, or with `strict` the first input that could not be read.
    """
    return Loader(warehouse, strict=strict).load(paths)
