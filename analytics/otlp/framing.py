"""Uncompressed content -> pieces: a line, a frame or a document each, by what the first bytes look like.

A splitter takes the bytes at hand and whether more will follow. It answers the pieces that are whole, each
with its place, and how many bytes they and what separates them took; the rest is offered again with more.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ZSTD = b"\x28\xb5\x2f\xfd"
GZIP = b"\x1f\x8b"
_LONGEST_FRAME = 1 << 26  # bytes; so that no text is a length: its first byte would make it longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """`places` holds (number from 0, offset) of each piece, relative to the bytes at hand, and `count` is how
    many lines or frames were passed. All but `used` is None for lines: it follows from the pieces, which
    `lines` cuts when they are asked for."""

    used: int
    count: int | None = None
    pieces: Sequence[bytes] | None = None
    places: Sequence[tuple[int, int]] | None = None


class Splitter(Protocol):
    """One framing."""

    word: str  # what a piece is called in a message

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """The whole pieces at the head of `data`; `last` when nothing will follow."""


class Lines:
    """A JSON value a line."""

    word = "line"

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """All but what follows the last newline."""
        return Split(used=data.rfind(b"\n") + 1)


def lines(data: bytes) -> list[bytes]:
    """All that end in `data`."""
    pieces = data.split(b"\n")
    pieces.pop()
    return pieces


class Documents:
    """JSON values over several lines, one after the other or in one list, indented as usual."""

    word = "line"

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """Each value ends with a line that holds its closing bracket at the indentation it began with."""
        pieces, places, taken, begin, number, indent = [], [], 0, 0, 0, b""
        inside, at = False, 0
        for count, line in enumerate(data.splitlines(keepends=True)):
            text = line.strip()
            if not inside and text in (b"{", b"[{"):
                inside, begin, number = True, at, count
                indent = line[: len(line) - len(line.lstrip())]
            at += len(line)
            if inside and text.rstrip(b",]") == b"}" and line.startswith(indent + b"}"):
                piece = data[begin:at].strip().removeprefix(b"[")
                pieces.append(piece[: piece.rindex(b"}") + 1])
                places.append((number, begin))
                inside, taken = False, at
        if last and not inside:
            taken = len(data)
        return Split(pieces=pieces, used=taken, count=data[:taken].count(b"\n"), places=places)


class Frames:
    """Messages, each behind its length in four bytes, the most significant first: the Collector's file
    exporter with `format: proto` or with compression."""

    word = "frame"

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """All whole frames."""
        pieces: list[bytes] = []
        places: list[tuple[int, int]] = []
        at = 0
        while at + 4 <= len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            pieces.append(data[at + 4 : end])
            places.append((len(places), at))
            at = end
        return Split(pieces=pieces, used=at, count=len(pieces), places=places)


class Delimited:
    """Messages, each behind its length as a protobuf varint."""

    word = "frame"

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """All whole messages."""
        pieces: list[bytes] = []
        places: list[tuple[int, int]] = []
        at = 0
        while (head := varint(data, at)) is not None:
            length, begin = head
            if begin + length > len(data):
                break
            pieces.append(data[begin : begin + length])
            places.append((len(places), at))
            at = begin + length
        return Split(pieces=pieces, used=at, count=len(pieces), places=places)


class Whole:
    """One protobuf message: the body of an export request."""

    word = "frame"

    def __call__(self, data: bytes, *, last: bool) -> Split:
        """Everything, once nothing more follows."""
        if not last:
            return Split(pieces=(), used=0, count=0)
        return Split(pieces=[data], used=len(data), count=1, places=[(0, 0)])


def varint(data: bytes, at: int) -> tuple[int, int] | None:
    """(value, offset behind it) of the varint at `at`; None when it is not whole."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return None
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return None


def splitter(head: bytes) -> Splitter:
    """The framing that content beginning with `head` (some kilobytes, or all of it) has."""
    end = 4 + int.from_bytes(head[:4], "big")
    if _framed(head, 0) and (end + 8 > len(head) or _framed(head, end)):
        return Frames()
    # No protobuf message looks like blanks and a bracket: a part is never longer than the whole.
    text = head.lstrip(b"\xef\xbb\xbf\0 \t\r\n")
    if text.startswith((b"{", b"[")):
        opening, _, next_line = text.partition(b"\n")
        alone = opening.strip() in (b"{", b"[", b"[{")
        return Documents() if alone and next_line[:1] in (b" ", b"\t") else Lines()
    if b'\n{"resource' in head:
        return Lines()  # whatever stands before them
    if _message(head, 0, None):
        return Whole()
    first = varint(head, 0)
    if first and _message(head, first[1], first[0]):
        return Delimited()
    return Lines()


def _message(head: bytes, at: int, length: int | None) -> bool:
    """Whether an export request in protobuf may stand here: its first part within it, and the first part of
    that within that. Text that happens to begin with the same byte does not nest."""
    outer = _part(head, at, b"\n")
    if outer is None or (length is not None and outer[1] - at > length):
        return False
    inner = _part(head, outer[0], b"\n\x12")
    return inner is not None and inner[1] <= outer[1]


def _part(head: bytes, at: int, tags: bytes) -> tuple[int, int] | None:
    """(begin, end) of the length-delimited field at `at`; None when it has none of the tags."""
    if not head[at : at + 1] or head[at] not in tags or (length := varint(head, at + 1)) is None:
        return None
    return length[1], length[1] + length[0]


def _framed(head: bytes, at: int) -> bool:
    """Whether four bytes of length and the beginning of a message stand here."""
    length = int.from_bytes(head[at : at + 4], "big")
    begins = head[at + 4 : at + 5] == b"{" or head[at + 4 : at + 8] == ZSTD or _message(head, at + 4, length)
    return begins and 0 < length <= _LONGEST_FRAME


_MAGIC = {
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"PK\x03\x04": "a zip archive",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
    b"<?xml": "XML",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
}


def likeness(head: bytes) -> str:
    """What content that holds no record looks like, in words; never any of its text."""
    for magic, word in _MAGIC.items():
        if head.startswith(magic):
            return word
    if head[8:12] == b"DUCK":
        return "a DuckDB database"
    if head[257:262] == b"ustar":
        return "a tar archive"
    if not head.strip(b"\0 \t\r\n"):
        return "an empty file"
    start = head[:4096].lstrip(b"\xef\xbb\xbf\0 \t\r\n")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # a character cut in two is no fault
    except UnicodeDecodeError:
        return "binary data"
    if any(letter < " " and letter not in "\t\r\n\f\x1b" for letter in text):
        return "binary data"
    first = text.split("\n", 1)[0]
    if first.startswith(("{", "[")):
        return "JSON"
    return "a table of comma-separated values" if first.count(",") >= 2 and "{" not in first else "plain text"
