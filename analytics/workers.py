"""Processes of their own for what takes most of the time of a load: what other products wrote.

A worker is this module run by the same Python, a request and an answer at a time over its standard input and
output. It ends when its input does, so that none outlives the load, however that ends. What a worker cannot
do any more (it was killed) is done here.
"""

from __future__ import annotations

import gc
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from analytics.dialects.blocks import Recognised, recognise
from analytics.dialects.rows import Assembled, assembled

MOST = 4  # processes
START = 24 << 20  # bytes to be read from which it pays to start some
_LENGTH = 8  # bytes in front of each message


def useful(expected: int | None) -> int:
    """How many workers there is something to gain from: none for little input (`expected` bytes, None where
    that cannot be known), nor where only one processor may be used."""
    if expected is not None and expected < START:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST) if cores > 1 and sys.executable else 0


class Workers:
    """At most so many processes, which start when they are first needed; usable from several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self.started: list[subprocess.Popen[bytes]] = []  # all of them
        self._idle: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of them; no thread may be asking any more."""
        for process in self.started:
            with suppress(OSError), process:  # closes its pipes and waits
                if kind is not None:
                    process.kill()

    def recognise(self, path: str, offset: int, pieces: Sequence[bytes]) -> Recognised:
        """`blocks.recognise`, in an idle worker; here when there is none."""
        answer = self._answer("recognise", path, offset, list(pieces))
        return Recognised(*answer) if answer is not None else recognise(path, offset, pieces)

    def assembled(self, stored: Sequence[tuple[Any, ...]]) -> list[Assembled]:
        """`rows.assembled`, in an idle worker; here when there is none."""
        answer: list[Assembled] | None = self._answer("assembled", list(stored))
        return answer if answer is not None else assembled(stored)

    def _answer(self, what: str, *about: Any) -> Any:
        """What a worker says; None when there is no idle one or it fails."""
        process = self._take()
        if process is None:
            return None
        with suppress(OSError, EOFError, ValueError):
            answer = _ask(process, (what, *about))
            with self._lock:
                self._idle.append(process)
            return answer
        return None

    def _take(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if len(self.started) >= self.most:
                return None
            code = f"import sys; sys.path[:] = {sys.path!r}; from analytics.workers import serve; serve()"
            # In a session of its own: Ctrl-C is for the load, which ends its workers.
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self.started.append(process)
            return process


def _ask(process: subprocess.Popen[bytes], request: tuple[Any, ...]) -> Any:
    if process.stdin is None or process.stdout is None:
        raise OSError("a worker without pipes")
    _write(process.stdin, request)
    return _read(process.stdout)


def _write(to: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    to.write(len(data).to_bytes(_LENGTH, "big"))
    to.write(data)
    to.flush()


def _read(source: IO[bytes]) -> Any:
    """The next message; EOFError when there is none."""
    head = source.read(_LENGTH)
    data = source.read(int.from_bytes(head, "big"))
    if len(head) < _LENGTH or len(data) < int.from_bytes(head, "big"):
        raise EOFError
    return marshal.loads(data)


def serve() -> None:
    """Be a worker: answer until there is nothing more to read."""
    gc.disable()  # nothing here refers to itself
    source, to = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            what, *about = _read(source)
            if what == "assembled":
                _write(to, assembled(*about))
                continue
            told = recognise(*about)
            _write(
                to,
                (told.rows, told.records, told.foreign, told.tool_like, told.looks_like, told.left),
            )
    sys.stdout = None  # nothing is left to be flushed at exit
