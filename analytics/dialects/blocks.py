"""Whole blocks of lines -> what the dialects see in them: rows of `raw_seen`, without a database at hand.

It is the way of `analytics.loading`, record by record, for lines that hold nothing but records of other
products, and may run in a process of its own (`analytics.workers`). All other lines are left to the loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.dialects import BY_SOURCE, likeness, tool_like
from analytics.dialects.base import Record, Seen, row
from analytics.dialects.results import Result, identify
from analytics.dialects.turncap import PREFIX
from analytics.otlp import UnreadablePieceError, jsonform, read
from analytics.packed import Packed

Part = tuple[str, int, Sequence[bytes]]  # a file, where in it these lines begin, and the lines
Looked = tuple[str, Sequence[Seen]]  # a dialect, and what it sees in a record


@dataclass(slots=True)
class Recognised:
    """What a block gave: rows of `raw_seen`, one by one or packed, how many records were known and how many
    not, of those how many look like tool calls and what the first looks like, the indexes of the pieces that
    are left, and how many lines it had."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    packed: list[Packed] = field(default_factory=list)
    records: int = 0
    foreign: int = 0
    tool_like: int = 0
    looks_like: str = ""
    left: list[int] = field(default_factory=list)
    lines: int = 0


def recognise(parts: Iterable[Part]) -> list[Recognised]:
    """Read lines of files; what each part gave, in order."""
    found = [_part(*part) for part in parts]
    # All results in a few calls; then each row asks for its own.
    values = (one.data.get("result") for _, looked in found for _, seen in looked for one in seen)
    identify([value for value in values if isinstance(value, Result)])
    for out, looked in found:
        out.rows = [row(dialect, one) for dialect, seen in looked for one in seen]
    return [out for out, _ in found]


def _part(path: str, offset: int, pieces: Sequence[bytes]) -> tuple[Recognised, list[Looked]]:
    """All but the rows, and what they are made of."""
    out = Recognised(lines=len(pieces))
    looked: list[Looked] = []
    for index, piece in enumerate(pieces):
        if piece and not piece.isspace():
            line = jsonform.line(piece)
            records = [line] if line is not None else _records(piece)
            if records is None:
                out.left.append(index)
            else:
                for record in records:
                    record.path, record.offset = path, offset
                    looked.append(_seen(out, record))
        offset += len(piece) + 1
    return out, looked


def _records(piece: bytes) -> list[Record] | None:
    """All records of a piece; None when it holds anything else, or turncap's own."""
    try:
        found = list(read(piece))
    except UnreadablePieceError:
        return None
    records = [one for one in found if isinstance(one, Record) and not one.name.startswith(PREFIX)]
    return records if len(records) == len(found) else None


def take(out: Recognised, record: Record) -> None:
    """Note what the dialects see in a record that is none of turncap's."""
    dialect, ones = _seen(out, record)
    out.rows += [row(dialect, one) for one in ones]


def _seen(out: Recognised, record: Record) -> Looked:
    """The first dialect that knows the record, by name, and what it sees; `out` counts the record."""
    for dialect in BY_SOURCE[record.source]:
        if (seen := dialect.recognise(record)) is not None:
            out.records += 1
            return dialect.name, seen
    out.foreign += 1
    out.tool_like += tool_like(record)
    out.looks_like = out.looks_like or likeness(record)
    return "", ()
