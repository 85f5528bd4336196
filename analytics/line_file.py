"""A file of whole lines: durable before it is acknowledged, rotated, with nothing torn left behind."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

_BLOCK = 1 << 16


class LineFile:
    """Appends lines to `directory/stem.jsonl` from any thread; raises OSError when they cannot be kept.

    One fsync serves every line written while the last one ran. Past `max_bytes` the file is renamed to
    `stem-<UTC time>.jsonl` and a new one is begun. A write or sync that fails is taken back whole.
    """

    def __init__(self, directory: Path, stem: str, *, max_bytes: int) -> None:
        self.path = directory / f"{stem}.jsonl"
        self._max_bytes = max_bytes
        self._write_lock = threading.Lock()  # taken last
        self._sync_lock = threading.Lock()  # taken first
        self._batch = _Batch()  # of lines written and not yet synced
        self._closed = False
        self._open()
        _mend_tail(self._descriptor)
        self._synced_size = os.fstat(self._descriptor).st_size

    def append(self, line: bytes) -> None:
        """Write one line (without its newline) and return when it is on disk."""
        with self._write_lock:
            if self._closed:
                raise OSError(f"{self.path} is closed")
            self._write(line + b"\n")
            batch = self._batch
        with self._sync_lock:
            if not batch.done:
                self._sync()
        if batch.error is not None:
            raise OSError(batch.error.errno, batch.error.strerror) from batch.error

    def close(self) -> None:
        """Refuse further lines; what was appended is on disk already."""
        with self._sync_lock, self._write_lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self.path, flags, 0o600)
        _sync_directory(self.path.parent)

    def _write(self, data: bytes) -> None:
        before = os.fstat(self._descriptor).st_size
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise

    def _sync(self) -> None:
        """Bring the current batch to disk, or take it back; the caller holds the sync lock."""
        with self._write_lock:
            batch, size = self._next_batch(), os.fstat(self._descriptor).st_size
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            # What the kernel kept of the failed pages is unknown: everything unsynced is taken back,
            # with the lines that were written meanwhile.
            with self._write_lock:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, self._synced_size)
                for lost in (batch, self._next_batch()):
                    lost.done, lost.error = True, error
            return
        batch.done, self._synced_size = True, size
        if size >= self._max_bytes:
            self._rotate()

    def _rotate(self) -> None:
        with self._write_lock:
            try:
                os.fsync(self._descriptor)
                self.path.rename(_rotated_name(self.path))
            except OSError:
                return  # a full file that goes on growing loses nothing; the next sync tries again
            os.close(self._descriptor)
            self._open()
            self._next_batch().done = True
            self._synced_size = 0

    def _next_batch(self) -> _Batch:
        batch, self._batch = self._batch, _Batch()
        return batch


class _Batch:
    """Lines that one sync serves."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: OSError | None = None


def _rotated_name(path: Path) -> Path:
    """`logs-2026-12-01T03-56-25.173.jsonl`, the Collector's form; a later millisecond where it is taken."""
    now = datetime.now(UTC)
    for step in range(1_000_000):
        moment = datetime.fromtimestamp(now.timestamp() + step / 1000, UTC)
        stamp = moment.strftime("%Y-%m-%dT%H-%M-%S.") + f"{moment.microsecond // 1000:03d}"
        rotated = path.with_name(f"{path.stem}-{stamp}{path.suffix}")
        if not rotated.exists():
            return rotated
    raise OSError(f"no free name to rotate {path} to")


def _mend_tail(descriptor: int) -> None:
    """End the file at a line's end: a crash while writing leaves a torn line that was never acknowledged."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    end = size
    tail = b""
    while end and b"\n" not in tail:
        begin = max(0, end - _BLOCK)
        tail = os.pread(descriptor, end - begin, begin) + tail
        end = begin
    last = tail.rpartition(b"\n")[2]
    try:
        json.loads(last)
    except ValueError:
        os.ftruncate(descriptor, size - len(last))
    else:
        os.write(descriptor, b"\n")


def _sync_directory(directory: Path) -> None:
    """Make a new name durable too; file systems that cannot sync a directory are left alone."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
