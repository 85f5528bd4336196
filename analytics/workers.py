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
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from analytics.packed import Packed, pack, unpack
from analytics.paths import STDIN, size

if TYPE_CHECKING:  # what they need takes longer to import than to start a worker, which imports it meanwhile
    from analytics.dialects.blocks import Recognised
    from analytics.dialects.rows import Assembled

Bytes = bytes | memoryview
Task = Callable[[tuple[Any, ...], bytes], Any]  # what is asked, in values that marshal knows, and a block

MOST = 4  # processes
START = 24 << 20  # bytes to be read from which it pays to start some
PIPE = 1 << 20  # bytes that may be under way, so that few switches between processes move a block
_HEAD = 1 << 16  # bytes by which a file is judged
_OWN = b"turncap."  # in every name of turncap's
_LENGTH = 8  # bytes in front of each message


def useful(paths: Sequence[str]) -> int:
    """How many workers there is something to gain from: none for little input, nor where only one processor
    may be used."""
    if STDIN not in paths and size(paths) < START:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST) if cores > 1 and sys.executable else 0


def foreign(path: str) -> bool:
    """Whether a file begins with lines of another product: then workers will be needed. False where it
    would take more than a look, or a look would take something away."""
    if path == STDIN or not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
    return head.startswith(b"{") and _OWN not in head


class Workers:
    """At most so many processes, which start when they are first needed, or told to; usable from several
    threads."""

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

    def start(self) -> None:
        """Start all of them now."""
        with self._lock:
            while len(self.started) < self.most:
                self._idle.append(self._begun())

    def recognise(self, parts: Sequence[tuple[str, int, Bytes]]) -> list[Recognised]:
        """`blocks.recognise` of lines that are still one behind the other, its rows packed; in an idle
        worker, here when there is none."""
        from analytics.dialects.blocks import Recognised

        about = [(path, offset, len(data)) for path, offset, data in parts]
        told = self._answer(_recognise, (about,), [data for _, _, data in parts])
        return [Recognised(*one) for one in told]

    def assembled(self, stored: Packed) -> Assembled:
        """`rows.assembled`, in an idle worker; here when there is none."""
        from analytics.dialects.rows import Assembled

        return Assembled(*self._answer(_assembled, (stored,), ()))

    def _answer(self, what: Task, about: tuple[Any, ...], data: Sequence[Bytes]) -> Any:
        """What a worker says, or where there is no idle one or it fails, this process."""
        answer = self._asked(_TASKS.index(what), about, data)
        return answer if answer is not None else what(about, b"".join(data))

    def _asked(self, task: int, about: tuple[Any, ...], data: Sequence[Bytes]) -> Any:
        process = self._take()
        if process is None:
            return None
        with suppress(OSError, EOFError, ValueError):
            answer = _ask(process, (task, about, sum(map(len, data))), data)
            with self._lock:
                self._idle.append(process)
            return answer
        return None

    def _take(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            return self._begun() if len(self.started) < self.most else None

    def _begun(self) -> subprocess.Popen[bytes]:
        code = f"import sys; sys.path[:] = {sys.path!r}; from analytics.workers import serve; serve()"
        # In a session of its own: Ctrl-C is for the load, which ends its workers.
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pipesize=PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process


def _ask(process: subprocess.Popen[bytes], request: tuple[Any, ...], data: Sequence[Bytes]) -> Any:
    if process.stdin is None or process.stdout is None:
        raise OSError("a worker without pipes")
    _write(process.stdin, request, data)
    return _read(process.stdout)


def _write(to: IO[bytes], message: Any, data: Sequence[Bytes] = ()) -> None:
    """A message, and bytes behind it whose length it tells."""
    told = marshal.dumps(message)
    to.write(len(told).to_bytes(_LENGTH, "big") + told)
    for part in data:
        to.write(part)
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
    sys.modules["numpy"] = None  # type: ignore[assignment] # Arrow goes without it, imported in half the time
    import_module("analytics.dialects.blocks")  # before the first block comes
    import_module("analytics.dialects.rows")

    gc.disable()  # nothing here refers to itself
    source, to = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            task, about, length = _read(source)
            _write(to, _TASKS[task](about, source.read(length)))
    sys.stdout = None  # nothing is left to be flushed at exit


def _recognise(about: tuple[Any, ...], data: bytes) -> list[tuple[Any, ...]]:
    from analytics.dialects.blocks import recognise
    from analytics.dialects.rows import SEEN
    from analytics.otlp.framing import lines

    parts, at = [], 0
    for path, offset, length in about[0]:
        parts.append((path, offset, lines(data[at : at + length])))
        at += length
    return [
        ([], [pack(SEEN, told.rows)] if told.rows else [], told.records, told.foreign, told.tool_like,
         told.looks_like, told.left, told.lines)
        for told in recognise(parts)
    ]  # fmt: skip


def _assembled(about: tuple[Any, ...], _: bytes) -> tuple[Any, ...]:
    from analytics.dialects.rows import assembled

    told = assembled(unpack(*about))
    return told.groups, told.turns, told.calls, told.milestones


_TASKS: tuple[Task, ...] = (_recognise, _assembled)
