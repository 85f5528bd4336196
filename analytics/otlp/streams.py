"""A file -> blocks of pieces: lines or frames, whatever the compression and framing.

Offsets count bytes of the uncompressed content and lines (or frames) count from 1, so that the same
content is the same whether it is packed or not, and an error can name its place.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import zstandard

BLOCK = 4 << 20  # bytes of uncompressed content in one block, give or take a line
_READ = 1 << 20


class Hash(Protocol):
    """What hashlib's objects share."""

    def update(self, data: bytes, /) -> None:
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
    """Consecutive whole lines. `offset` and `line` are those of the first piece; `end` is the offset after
    the last one, `digest` the state of the content's hash there. `torn` is what follows the last newline
    at the end of the content, not part of the block."""

    offset: int
    line: int
    pieces: list[bytes]
    end: int
    digest: Hash
    torn: bytes = b""


class CutShortError(ValueError):
    """The compressed stream ends before its end marker; what came before it was given out."""


def open_content(path: str) -> IO[bytes]:
    """The file's bytes as they lie on disk; `-` is standard input."""
    return sys.stdin.buffer if path == "-" else Path(path).open("rb")


def unpacked(raw: IO[bytes]) -> Iterator[bytes]:
    """The uncompressed content in pieces of any size. Raises CutShortError after the last good byte."""
    head = raw.read(_READ)
    if head.startswith(b"\x1f\x8b"):
        yield from _gunzip(head, raw)
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
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
            head = head.lstrip(b"\0") or raw.read(_READ)  # padding between members is allowed
            engine = zlib.decompressobj(wbits=31)
            continue
        head = raw.read(_READ)
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
            head = engine.unused_data or raw.read(_READ)
            engine = context.decompressobj()
            continue
        head = raw.read(_READ)
        if not head:
            raise CutShortError("zstd: the file ends in the middle of the compressed data")


class Content:
    """Uncompressed content, read once from front to back.

    Call `skip` to pass what is known, then iterate `blocks`. `position` and `lines` say how far it is.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self.position = 0
        self.lines = 0
        self.digest = new_hash()
        self.cut_short: CutShortError | None = None

    def first_line(self, limit: int = 1 << 16) -> bytes:
        """The first line without its newline, at most `limit` bytes; nothing is consumed."""
        while b"\n" not in self._buffer and len(self._buffer) < limit and self._fill():
            pass
        return self._buffer.split(b"\n", 1)[0][:limit]

    def skip(self, offset: int) -> bool:
        """Pass over content up to `offset`, taking it into the digest; False when it ends before."""
        while self.position < offset:
            if not self._buffer and not self._fill():
                return False
            part = self._buffer[: offset - self.position]
            self.digest.update(part)
            self.position += len(part)
            self._buffer = self._buffer[len(part) :]
        return True

    def blocks(self) -> Iterator[Block]:
        """The rest, in blocks of whole lines; the last block carries what follows the last newline."""
        parts = [self._buffer] if self._buffer else []
        held, newline = len(self._buffer), b"\n" in self._buffer
        self._buffer = b""
        while True:
            chunk = self._next()
            if chunk:
                parts.append(chunk)
                held += len(chunk)
                newline = newline or b"\n" in chunk
            if chunk and (held < BLOCK or not newline):
                continue
            data = b"".join(parts)
            cut = data.rfind(b"\n") + 1
            yield self._block(data[:cut], b"" if chunk else data[cut:])
            if not chunk:
                return
            parts, held, newline = [data[cut:]], len(data) - cut, False

    def take(self, torn: bytes) -> None:
        """Count a last line without newline as read."""
        self.digest.update(torn)
        self.position += len(torn)

    def _block(self, data: bytes, torn: bytes) -> Block:
        offset, line = self.position, self.lines + 1
        pieces = data.split(b"\n")
        pieces.pop()
        self.digest.update(data)
        self.position += len(data)
        self.lines += len(pieces)
        return Block(
            offset=offset, line=line, pieces=pieces, end=self.position, digest=self.digest.copy(), torn=torn
        )

    def _fill(self) -> bool:
        chunk = self._next()
        self._buffer += chunk
        return bool(chunk)

    def _next(self) -> bytes:
        try:
            return next(self._chunks, b"")
        except CutShortError as error:
            self.cut_short = error
            return b""


def content_of(raw: IO[bytes] | bytes) -> Content:
    """The content of an open file, or of bytes."""
    return Content(unpacked(io.BytesIO(raw) if isinstance(raw, bytes) else raw))
