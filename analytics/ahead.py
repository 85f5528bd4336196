"""Files -> their blocks, in order, each with what was read of it in bulk: some blocks ahead, over files too.

Arrow (`turncap_bulk`) works without the lock that Python's threads share, and `workers` are processes, so
that reading goes on while the loader stores what came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from analytics import ledger
from analytics.dialects.blocks import Recognised
from analytics.dialects.turncap import PREFIX
from analytics.otlp import streams
from analytics.otlp.framing import Lines
from analytics.workers import Workers

if TYPE_CHECKING:
    from analytics.dialects.turncap_bulk import Bulk

ARROW = 1 << 18  # bytes of a block from which reading in bulk pays
TOGETHER = 4 << 20  # bytes of blocks from which they are handed over, small ones of several files in one go
AHEAD = 32 << 20  # bytes that may be read ahead, so that there is something to do while a slice is committed
FILES = 256  # blocks that may, for small files

_MARK = PREFIX.encode()


@dataclass(slots=True, eq=False)
class File:
    """A file while it is read. Whoever sets `given_up` gets no more of it."""

    path: str
    raw: IO[bytes]
    content: streams.Content
    mark: ledger.Mark
    known: int  # bytes that an earlier load had read
    given_up: bool = False


@dataclass(slots=True, eq=False)
class Ahead:
    """One block, and where its file stood on disk behind it (None: it cannot tell)."""

    file: File
    block: streams.Block
    tell: int | None
    reading: Future[None] | None = None
    found: Bulk | Recognised | None = None

    @property
    def bulk(self) -> Bulk | Recognised | None:
        """What was read of it in bulk, once that is done; None when that is to be done piece by piece."""
        if self.reading is not None:
            self.reading.result()
        return self.found


def blocks(files: Iterable[File], workers: Workers) -> Iterator[Ahead]:
    """The blocks of one file after the other."""
    waiting: deque[Ahead] = deque()
    held = 0
    together: list[Ahead] = []  # the last of them, which nobody reads yet
    with ExitStack() as closing:
        pool = ThreadPoolExecutor(max(2, workers.most))
        closing.callback(pool.shutdown, cancel_futures=True)

        def hand_over() -> None:
            nonlocal together
            reading = pool.submit(_read, together, workers)
            for one in together:
                one.reading = reading
            together = []

        for file in files:
            for block in file.content.blocks():
                one = Ahead(file, block, file.raw.tell() if file.raw.seekable() else None)
                waiting.append(one)
                held += _size(one)
                if isinstance(file.content.split, Lines):
                    together.append(one)
                    if sum(map(_size, together)) >= TOGETHER:
                        hand_over()
                while held > AHEAD or len(waiting) > FILES:
                    if waiting[0] in together:
                        hand_over()
                    held -= _size(waiting[0])
                    yield waiting.popleft()
                if file.given_up:
                    break
        if together:
            hand_over()
        yield from waiting


def _size(one: Ahead) -> int:
    return one.block.end - one.block.offset


def _read(together: Sequence[Ahead], workers: Workers) -> None:
    others = []
    for one in together:
        # Not looked for in all of a block: what stands only behind is found piece by piece.
        if one.block.data.find(_MARK, 0, min(_size(one), ARROW)) < 0:
            others.append(one)
        elif _size(one) >= ARROW:
            from analytics.dialects import turncap_bulk  # other products do without

            one.found = turncap_bulk.read(one.block.pieces)
    parts = [(one.file.path, one.block.offset, one.block.view) for one in others]
    for one, told in zip(others, workers.recognise(parts) if parts else (), strict=True):
        one.found = told
