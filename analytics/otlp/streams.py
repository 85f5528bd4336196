"""A file -> blocks of pieces: lines or frames, whatever the compression and framing.

Offsets count bytes of the uncompressed content and lines (or frames) count from 1, so that the same
content is the same whether it is packed or not, and an error can name its place.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Protocol

import zstandard

from analytics.otlp.framing import GZIP, ZSTD, Split, lines, splitter

BLOCK = 4 << 20  # bytes of uncompressed content in one block, give or take a line
HEAD = 1 << 16  # bytes by which content is looked at and known again
_READ = 1 << 20
_READ_PACKED = 1 << 15  # telemetry packs well: this much unfolds to a megabyte


class Hash(Protocol):
    """What hashlib's objects share."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take in more bytes."""

    def copy(self) -> Hash:
        """The state so far, to go on from."""

    def hexdigest(self) -> str:
        """The digest of what was taken in."""


def new_hash() -> Hash:
    """The hash by which content is known again."""
    return hashlib.sha256()


@dataclass(slots=True, kw_only=True)
class Block:
    """Consecutive whole pieces: lines, frames or documents.

    `offset` is where the block begins, `end` how far the content is read after it and `digest` the state of
    its hash there. `torn` is what follows the last whole piece at the content's end; it is no part of the
    block.
    """

    offset: int
    end: int
    digest: Hash
    data: bytes  # and what follows, of which some may not be the block's
    cut: Sequence[bytes] | None  # None for lines, until `pieces` is asked for
    places: Sequence[tuple[int, int]] | None
    count: int | None  # of lines or frames; None for lines, unless somebody has counted them
    torn: bytes = b""

    @property
    def passed(self) -> int:
        """How many lines or frames the block takes."""
        return len(self.pieces) if self.count is None else self.count

    @property
    def pieces(self) -> Sequence[bytes]:
        """The lines, frames or documents."""
        if self.cut is None:
            self.cut = lines(self.data)
        return self.cut

    @property
    def view(self) -> memoryview:
        """The bytes from the first piece to the last, with what separates them."""
        return memoryview(self.data)[: self.end - self.offset]

    def place(self, index: int) -> tuple[int, int]:
        """(lines or frames of the block before it, offset) of a piece, or of what is torn for the index
        behind the last."""
        if index == len(self.pieces):
            return self.passed, self.end
        if self.places is None:
            self.places = list(enumerate(accumulate((len(one) + 1 for one in self.pieces), initial=0)))
        number, offset = self.places[index]
        return number, self.offset + offset


class CutShortError(ValueError):
    """The compressed stream ends before its end marker; what came before it was given out."""


def open_content(path: str) -> IO[bytes]:
    """The file's bytes as they lie on disk; `-` is standard input."""
    return sys.stdin.buffer if path == "-" else Path(path).open("rb")


def unpacked(raw: IO[bytes]) -> Iterator[bytes]:
    """The uncompressed content in pieces of any size. Raises CutShortError after the last good byte."""
    head = raw.read(HEAD)
    if head.startswith(GZIP):
        yield from _gunzip(head, raw)
    elif head.startswith(ZSTD):
        yield from _unzstd(head, raw)
    else:
        while head:
            yield head
            head = raw.read(_READ)


def _gunzip(head: bytes, raw: IO[bytes]) -> Iterator[bytes]:
    """All members of a gzip stream, one after the other."""
    engine = zlib.decompressobj(wbits=31)
    while head:
        try:
            out = engine.decompress(head)
        except zlib.error as error:
            raise CutShortError(f"gzip: {error}") from None
        if out:
            yield out
        head = engine.unused_data
        if engine.eof:
            head = head.lstrip(b"\0") or raw.read(_READ_PACKED)  # padding between members is allowed
            engine = zlib.decompressobj(wbits=31)
            continue
        head = raw.read(_READ_PACKED)
        if not head:
            raise CutShortError("gzip: the file ends in the middle of the compressed data")


def _unzstd(head: bytes, raw: IO[bytes]) -> Iterator[bytes]:
    """All frames of a zstd stream, one after the other."""
    context = zstandard.ZstdDecompressor()
    engine = context.decompressobj()
    while head:
        try:
            out = engine.decompress(head)
        except zstandard.ZstdError as error:
            raise CutShortError(f"zstd: {error}") from None
        if out:
            yield out
        if engine.eof:
            head = engine.unused_data or raw.read(_READ_PACKED)
            engine = context.decompressobj()
            continue
        head = raw.read(_READ_PACKED)
        if not head:
            raise CutShortError("zstd: the file ends in the middle of the compressed data")


class Content:
    """Uncompressed content, read once from front to back.

    Call `skip` to pass what is known, then iterate `blocks`. `position` says how far it is.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.position = 0
        self.digest = new_hash()
        self.cut_short: CutShortError | None = None
        self._buffer = b""
        while len(self._buffer) < HEAD and (chunk := self._next()):
            self._buffer += chunk
        self.head = self._buffer[:HEAD]
        self.split = splitter(self.head)

    def skip(self, offset: int) -> bool:
        """Pass over content up to `offset`, taking it into the digest; False when it ends before."""
        while self.position < offset:
            if not self._buffer:
                self._buffer = self._next()
                if not self._buffer:
                    return False
            part = self._buffer[: offset - self.position]
            self.digest.update(part)
            self.position += len(part)
            self._buffer = self._buffer[len(part) :]
        return True

    def blocks(self) -> Iterator[Block]:
        """The rest, in blocks of whole pieces; the last block carries what follows the last of them."""
        parts, held, goal = [self._buffer], len(self._buffer), BLOCK
        self._buffer = b""
        while True:
            chunk = self._next()
            parts.append(chunk)
            held += len(chunk)
            if chunk and held < goal:
                continue
            data = b"".join(parts)
            found = self.split(data, last=not chunk)
            rest = data[found.used :]
            if found.used or not chunk:
                yield self._block(data, found, b"" if chunk else rest)
            if not chunk:
                return
            # A piece longer than the block: wait for twice as much before looking again.
            parts, held, goal = [rest], len(rest), BLOCK if found.used else 2 * goal

    def take(self, torn: bytes) -> None:
        """Count a last line without newline as read."""
        self.digest.update(torn)
        self.position += len(torn)

    def _block(self, data: bytes, found: Split, torn: bytes) -> Block:
        offset = self.position
        self.digest.update(memoryview(data)[: found.used])
        self.position += found.used
        return Block(
            offset=offset,
            end=self.position,
            digest=self.digest.copy(),
            data=data,
            cut=found.pieces,
            places=found.places,
            count=found.count,
            torn=torn,
        )

    def _next(self) -> bytes:
        try:
            return next(self._chunks, b"")
        except CutShortError as error:
            self.cut_short = error
            return b""


def content_of(raw: IO[bytes] | bytes) -> Content:
    """The content of an open file, or of bytes."""
    return Content(unpacked(io.BytesIO(raw) if isinstance(raw, bytes) else raw))
