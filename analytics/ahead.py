"""Files -> their blocks, in order, each with what was read of it in bulk: some blocks ahead, over files too.

Arrow (`turncap_bulk`) works without the lock that Python's threads share, and `workers` are processes, so
that reading goes on while the loader stores what came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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
WORKER = 1 << 15  # from which it pays to hand it to another process
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


@dataclass(slots=True)
class Ahead:
    """One block, where its file stood on disk behind it (None: it cannot tell), and what is known of it."""

    file: File
    block: streams.Block
    tell: int | None
    bulk: Future[Bulk | Recognised | None] | None


def blocks(files: Iterable[File], workers: Workers) -> Iterator[Ahead]:
    """The blocks of one file after the other."""
    waiting: deque[Ahead] = deque()
    held = 0
    with ExitStack() as closing:
        pool = ThreadPoolExecutor(max(2, workers.most))
        closing.callback(pool.shutdown, cancel_futures=True)
        for file in files:
            for block in file.content.blocks():
                size = block.end - block.offset
                one = Ahead(file, block, file.raw.tell() if file.raw.seekable() else None, None)
                if isinstance(file.content.split, Lines) and size >= WORKER:
                    one.bulk = pool.submit(_read, file.path, block, workers)
                waiting.append(one)
                held += size
                while held > AHEAD or len(waiting) > FILES:
                    held -= waiting[0].block.end - waiting[0].block.offset
                    yield waiting.popleft()
                if file.given_up:
                    break
        yield from waiting


def _read(path: str, block: streams.Block, workers: Workers) -> Bulk | Recognised | None:
    # Not looked for in all of a block: what stands only behind is found record by record.
    if block.data.find(_MARK, 0, min(block.end - block.offset, ARROW)) >= 0:
        from analytics.dialects import turncap_bulk  # other products do without

        large = block.end - block.offset >= ARROW
        return turncap_bulk.read(block.pieces) if large else None
    return workers.recognise(path, block.offset, block.view)
