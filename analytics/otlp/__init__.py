"""OTLP files and streams -> records, whatever wrote them.

`streams` unpacks a file and cuts it into blocks, `framing` tells lines from frames, `jsonform` and
`protoform` decode a piece into `analytics.dialects.base.Record` and `records.Point` values. Nothing here
knows what a record means.
"""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

from analytics.otlp import jsonform
from analytics.otlp.framing import ZSTD
from analytics.otlp.records import Item, UnreadablePieceError

__all__ = ["UnreadablePieceError", "read"]


def read(piece: bytes) -> Iterator[Item]:
    """Everything in one line or frame.

    Raises:
        UnreadablePieceError: it is neither JSON nor protobuf.
    """
    try:
        if piece.startswith(ZSTD):
            return read(zstandard.ZstdDecompressor().decompressobj().decompress(piece))
        if piece.startswith(b"\n"):
            from analytics.otlp import protoform  # few files need it, and it takes a while

            return protoform.read(piece)
        return jsonform.read(piece)
    except zstandard.ZstdError as error:
        raise UnreadablePieceError(str(error)) from None
