"""Files in, tables filled: `turncap load` without its command line.

Each slice of input (whole blocks of one or more files) is written together with its ledger rows while the
next one is read; the turns it touched wait in `pending`, and are derived when all files are read. Killed
anywhere, the next load goes on from what was committed last and derives what waits.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from analytics import groups
from analytics.ahead import Ahead, File, blocks
from analytics.derive import derive
from analytics.dialects.base import Record
from analytics.dialects.blocks import Recognised, take
from analytics.dialects.turncap import PREFIX, Collector
from analytics.errors import InputError, is_interrupt
from analytics.ledger import Ledger, Mark
from analytics.otlp import UnreadablePieceError, framing, read, streams
from analytics.otlp.records import Point, Unreadable
from analytics.paths import GIVE, unreadable
from analytics.slices import Slice, Writer
from analytics.warehouse import Warehouse
from analytics.workers import Workers

if TYPE_CHECKING:
    from analytics.dialects.turncap_bulk import Bulk

SLICE = 128 << 20  # bytes of uncompressed content written at once
REASON = 500  # characters of a reason that are kept
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
    lines: int = 0  # or frames, from the file's beginning to where it was read
    records: int = 0  # events and points of turncap's and records of other products, in this load
    recognised: bool = False  # whether this or an earlier load found a record of a known product
    foreign: int = 0  # records of no product that turncap knows
    tool_like: int = 0  # of these, those that look as if they told of a tool call
    unreadable: int = 0  # lines or frames
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
        records = sum(one.records for one in self.files)
        known = sum(1 for one in self.files if one.known and one.size == one.known)
        told = [
            f"{len(self.files)} files, {read / 1e6:,.1f} MB in {self.seconds:.1f} s: {records:,} records, "
            f"{self.turns:,} turns new or changed"
        ]
        if known:
            told.append(f"{known} files hold nothing new")
        if foreign := sum(one.foreign for one in self.files):
            alike = sum(one.tool_like for one in self.files)
            more = f"; {alike:,} of them look like tool calls: see docs/dialects.md" if alike else ""
            told.append(f"{foreign:,} records of no product that turncap knows were passed over{more}")
        told += [f"{dialect} ({grade}): {turns:,} turns" for (dialect, grade), turns in self.products.items()]
        return told


class Loader:
    """Loads files into an open warehouse."""

    def __init__(
        self,
        warehouse: Warehouse,
        *,
        workers: Workers,
        strict: bool = False,
        progress: Callable[[int, str], None] | None = None,
    ) -> None:
        self.warehouse = warehouse
        self.workers = workers
        self.strict = strict
        self._progress = progress or (lambda done, doing: None)
        self._done = 0  # bytes of whole files, as they lie on disk
        self.summary = Summary()
        self._collector = Collector()
        self._slice = Slice()
        self._ledger = Ledger(warehouse)
        self._writer = Writer(warehouse, whole=strict)

    def load(self, paths: Sequence[str]) -> Summary:
        """Load every file, then derive. InputError, with nothing written, when no file held a record."""
        began = time.monotonic()
        try:
            for file, found in groupby(blocks(self._opened(paths), self.workers), key=attrgetter("file")):
                self._file(file, found)
            self._refuse_the_unrecognised()
            self._flush()
            self._writer.finish()
        except BaseException as error:
            self._writer.give_up(keep=is_interrupt(error))
            raise
        self._progress(self._done, "deriving the turns that were touched")
        derived = derive(self.warehouse)
        self.summary.turns = derived + groups.assemble_pending(self.warehouse, self.workers)
        self.summary.products = {
            (dialect, grade): turns
            for dialect, grade, turns in self.warehouse.rows(
                "SELECT dialect, grade, count(*) FROM turns GROUP BY ALL ORDER BY ALL"
            )
        }
        self.summary.seconds = time.monotonic() - began
        return self.summary

    def _opened(self, paths: Sequence[str]) -> Iterator[File]:
        """Each file, standing behind what earlier loads read of it."""
        for path in paths:
            try:
                opened = streams.open_content(path)
            except OSError as error:  # it was there when the load began
                raise unreadable(path, error, GIVE) from None
            with opened as raw:
                mark, content = self._ledger.resume(streams.content_of(raw), path)
                yield File(path, raw, content, mark, content.position)

    def _file(self, file: File, found: Iterable[Ahead]) -> None:
        path, content, mark = file.path, file.content, file.mark
        told = FileSummary(path=path, known=file.known, recognised=mark.records > 0)
        self.summary.files.append(told)
        told_before, waited_before = len(self.summary.rejects), len(self._slice.rejects)
        tell = 0
        for one in found:
            block, tell = one.block, one.tell or 0
            for index in self._in_bulk(block, one.bulk, told):
                piece = block.pieces[index]
                if not piece or piece.isspace():
                    continue
                problems: list[str] = []
                try:
                    self._piece(piece, path, block, index, told, problems)
                except UnreadablePieceError as error:
                    problems.append(f"a {content.split.word} that is no OTLP: {error}")
                    told.unreadable += 1
                if problems:
                    before, offset = block.place(index)
                    self._reject(path, mark.lines + before + 1, offset, problems, mark)
            mark = mark.at(block.end, mark.lines + block.passed, block.digest.hexdigest(), told.records)
            if block.torn.strip(b"\0 \t\r\n"):
                mark = self._torn(block, content, mark, told)
            self._slice.marks[mark.fingerprint + mark.path] = mark
            told.lines, told.size = mark.lines, mark.offset
            self._slice.size += block.end - block.offset
            if told.unreadable >= HOPELESS and not told.recognised and not told.foreign:
                file.given_up = True
                break
            self._progress(self._done + (tell if one.tell is not None else told.size), "")
            if self._slice.size >= SLICE and told.records:
                self._flush()
                mark = mark.committed()
        if content.cut_short is not None:
            self._reject(path, None, content.position, [str(content.cut_short)], mark)
        if not told.recognised:
            # One word on the whole file instead of one on each of its lines, and no ledger row: a later
            # turncap may know it.
            told.looks_like = told.looks_like or framing.likeness(content.head)
            del self.summary.rejects[told_before:], self._slice.rejects[waited_before:]
            self._slice.marks.pop(mark.fingerprint + mark.path, None)
        self._done += tell

    def _in_bulk(
        self, block: streams.Block, bulk: Bulk | Recognised | None, told: FileSummary
    ) -> Sequence[int]:
        """Take in what was read in bulk; the indexes of the pieces that are left."""
        if bulk is None:
            return range(len(block.pieces))
        if isinstance(bulk, Recognised):
            block.count = bulk.lines
            self._recognised(bulk, told)
            return bulk.left
        for name, tables in bulk.tables.items():
            self._slice.bulk.setdefault(name, []).extend(tables)
        told.records += bulk.events
        told.recognised = told.recognised or bulk.events > 0
        return bulk.left

    def _torn(self, block: streams.Block, content: streams.Content, mark: Mark, told: FileSummary) -> Mark:
        """A last line without newline: read when it is whole, else left for the next load."""
        problems: list[str] = []
        try:
            if content.cut_short is not None or content.split.word != "line":
                raise UnreadablePieceError
            self._piece(block.torn, mark.path, block, len(block.pieces), told, problems)
        except UnreadablePieceError:
            reason = f"the last {content.split.word} is cut short; it is left for the next load"
            self._reject(mark.path, mark.lines + 1, block.end, [reason], mark)
            return mark
        if problems:
            self._reject(mark.path, mark.lines + 1, block.end, problems, mark)
        content.take(block.torn)
        return mark.at(content.position, mark.lines, content.digest.hexdigest(), told.records)

    def _piece(
        self,
        piece: bytes,
        path: str,
        block: streams.Block,
        index: int,
        told: FileSummary,
        problems: list[str],
    ) -> None:
        """Take in one line or frame; why parts of it could not be is left in `problems`."""
        for item in read(piece):
            match item:
                case Record():
                    self._record(item, path, block, index, told, problems)
                case Point():
                    self._point(item, told)
                case Unreadable():
                    problems.append(item.reason)

    def _record(
        self,
        record: Record,
        path: str,
        block: streams.Block,
        index: int,
        told: FileSummary,
        problems: list[str],
    ) -> None:
        before = self._collector.events
        if self._collector.add(record):
            told.recognised = True
            told.records += self._collector.events - before
            if self._collector.problems:
                problems += self._collector.problems
                self._collector.problems.clear()
            return
        record.path, record.offset = path, block.place(index)[1]
        found = Recognised()
        take(found, record)
        self._recognised(found, told)

    def _recognised(self, found: Recognised, told: FileSummary) -> None:
        """Take in what the dialects saw."""
        self._slice.seen += found.rows
        self._slice.packed += found.packed
        told.records += found.records
        told.recognised = told.recognised or found.records > 0
        told.foreign += found.foreign
        told.tool_like += found.tool_like
        told.looks_like = told.looks_like or found.looks_like

    def _point(self, point: Point, told: FileSummary) -> None:
        if not point.metric.startswith(PREFIX):
            told.foreign += 1
            told.looks_like = told.looks_like or f"OTLP metrics such as {point.metric!r}"
            return
        told.recognised = True
        told.records += 1
        attributes = json.dumps(point.attributes, sort_keys=True, default=str)
        resource = json.dumps(
            {key: value for key, value in point.resource.items() if key.startswith(_RESOURCE)},
            sort_keys=True, default=str,
        )  # fmt: skip
        since = point.at if point.delta and not point.started_at else point.started_at
        series, last = (resource, point.metric, attributes, since), (point.at, point.value)
        self._slice.counters[series] = max(self._slice.counters.get(series, last), last)

    def _reject(self, path: str, line: int | None, offset: int, reasons: Sequence[str], mark: Mark) -> None:
        """Note what could not be read; equal reasons of one place are told once, with their number."""
        for reason, times in Counter(reasons).items():
            text = reason if times == 1 else f"{reason} ({times} times)"
            reject = Reject(path=path, line=line, offset=offset, reason=text[:REASON])
            if self.strict:
                raise InputError(f"{reject} (--strict)")
            self.summary.rejects.append(reject)
            self._slice.rejects.append((path, line, offset, reject.reason, mark.fingerprint))

    def _refuse_the_unrecognised(self) -> None:
        """InputError when no file held a record; a reject for each that held none beside others."""
        empty = [one for one in self.summary.files if not one.recognised]
        if len(empty) == len(self.summary.files):
            first = empty[0]
            more = f" (nor in {len(empty) - 1} other files)" if len(empty) > 1 else ""
            raise InputError(
                f"{first.path}: no record that turncap knows{more}; it looks like {first.looks_like}. "
                "Give OTLP files as a Collector or an SDK exports them"
            )
        for one in empty:
            if one.lines:
                reason = f"no record that turncap knows; it looks like {one.looks_like}"
                reject = Reject(path=one.path, line=None, offset=None, reason=reason)
                self.summary.rejects.append(reject)
                self._slice.rejects.append((one.path, None, None, reason, ""))

    def _flush(self) -> None:
        """Have what was collected written, with its ledger rows."""
        if self._slice.marks or self._slice.rejects:
            self._slice.rows = self._collector.take()
            self._writer.put(self._slice)
            self._ledger.note(self._slice.marks.values())
            self._slice = Slice()


# What tells one process from another; other attributes of a resource may hold text.
_RESOURCE = ("service.", "process.pid", "host.name", "k8s.pod.name", "container.id")


def load(
    warehouse: Warehouse,
    paths: Sequence[str],
    *,
    workers: Workers | None = None,
    strict: bool = False,
    progress: Callable[[int, str], None] | None = None,
) -> Summary:
    """Load `paths` (files, in this order) and derive; `progress` is told the bytes read and what is done.
    Without `workers` all of it is done in this process.

    Raises:
        InputError: no file held a record, or with `strict` the first input that could not be read.
    """
    workers = Workers(0) if workers is None else workers
    return Loader(warehouse, workers=workers, strict=strict, progress=progress).load(paths)
