"""An OTLP/HTTP receiver that writes OTLP/JSON lines: one file a signal, on disk before it says 200.

`turncap collect` runs it on its own; in a program it is a context manager:

    with Collector(out=Path("telemetry")) as collector:
        ...  # point an exporter at collector.url
        print(collector.counts)

It is the embedded default for people without an OpenTelemetry Collector: loopback, no TLS, no
authentication, three paths. docs/collect.md shows what to run in production.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from analytics.collect_http import Handler
from analytics.collect_payload import SIGNALS, Refused, Signal, Tally, read_payload
from analytics.errors import InputError
from analytics.line_file import LineFile

_log = logging.getLogger(__name__)

MAX_BODY = 16 << 20  # bytes of one request, also after decompression
MAX_HELD = 64 << 20  # bytes of all request bodies held at a time
MAX_CONNECTIONS = 128
STOP_SECONDS = 5.0  # how long a stop waits for requests that are being written


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was received and is on disk. A request sent again after a lost answer counts again."""

    events: dict[str, int]  # log records by event name; "" where a record has none
    spans: int
    points: int  # data points of metrics
    requests: int
    refused: dict[int, int]  # requests by HTTP status other than 200

    @property
    def records(self) -> int:
        """Log records of any name."""
        return sum(self.events.values())


class Collector:
    """Receives while its block runs. `url` is the base to which exporters add /v1/logs and so on.

    `out` is made where it is missing; port 0 takes any free port. Raises InputError when the address or
    the directory cannot be used, or another collector writes there.
    """

    def __init__(
        self,
        out: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        max_megabytes: int = 100,
        max_body: int = MAX_BODY,
    ) -> None:
        self._out = Path(out)
        self._address = (host, port)
        self._max_bytes = max_megabytes * 1_000_000
        self._max_body = max_body
        self._lock = threading.Lock()
        self._events: Counter[str] = Counter()
        self._spans = self._points = self._requests = 0
        self._refused: Counter[int] = Counter()
        self._failing = False
        self._convert = threading.Lock()  # one body at a time is unpacked: the memory bound
        self._budget = _Budget(max(MAX_HELD, max_body))

    def __enter__(self) -> Self:
        self._directory = _take_directory(self._out)
        try:
            self._server = _listen(self._address, self)
        except BaseException:
            os.close(self._directory)
            raise
        try:
            self._files = {
                signal.path: LineFile(self._out, signal.stem, max_bytes=self._max_bytes) for signal in SIGNALS
            }
        except OSError as error:
            self._server.server_close()
            os.close(self._directory)
            raise InputError(
                f"cannot write to {self._out}: {error.strerror}; choose another --out"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._budget.wait_idle(STOP_SECONDS)
        for file in self._files.values():
            file.close()
        os.close(self._directory)

    @property
    def url(self) -> str:
        """Such as http://127.0.0.1:4318."""
        host, port = self._server.server_address[:2]
        shown = str(host)
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    @property
    def counts(self) -> Counts:
        """What has been acknowledged so far; may be read from any thread."""
        with self._lock:
            return Counts(
                events=dict(self._events),
                spans=self._spans,
                points=self._points,
                requests=self._requests,
                refused=dict(self._refused),
            )

    # What the HTTP side calls.

    @property
    def max_body(self) -> int:
        """Bytes accepted in one request."""
        return self._max_body

    @property
    def budget(self) -> _Budget:
        """Where the bytes of bodies are reserved before they are read."""
        return self._budget

    def receive(self, signal: Signal, body: bytes, *, encoding: str, is_json: bool) -> None:
        """Keep one request's telemetry; returns when it is on disk. Raises Refused."""
        with self._convert:
            line, tally = read_payload(signal, body, encoding=encoding, is_json=is_json, limit=self._max_body)
        if line:
            try:
                self._files[signal.path].append(line)
            except OSError as error:
                raise self._unwritable(error) from error
        self._add(tally)

    def refuse(self, status: int) -> None:
        """Count an answer other than 200."""
        with self._lock:
            self._refused[status] += 1

    def _add(self, tally: Tally) -> None:
        with self._lock:
            self._events.update(tally.events)
            self._spans += tally.spans
            self._points += tally.points
            self._requests += 1
            recovered, self._failing = self._failing, False
        if recovered:
            _log.warning("writing to %s works again", self._out)

    def _unwritable(self, error: OSError) -> Refused:
        with self._lock:
            known, self._failing = self._failing, True
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        reason = "no space left" if full else error.strerror or str(error)
        if not known:
            _log.warning("cannot write to %s (%s): answering 503, exporters will retry", self._out, reason)
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"cannot write: {reason}; free space, then retry")


class _Budget:
    """Bytes of request bodies that may be in memory at a time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._changed = threading.Condition()

    def take(self, size: int, *, patience: float) -> bool:
        """Reserve `size` bytes, waiting up to `patience` seconds; False when they did not become free."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._free >= size, patience):
                return False
            self._free -= size
            return True

    def give(self, size: int) -> None:
        """Return what `take` reserved."""
        with self._changed:
            self._free += size
            self._changed.notify_all()

    def wait_idle(self, patience: float) -> bool:
        """Wait until nothing is reserved."""
        with self._changed:
            return self._changed.wait_for(lambda: self._free == self._size, patience)


class _Server(ThreadingHTTPServer):
    """Threads with an upper bound; a connection past it is closed, and exporters try again."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    collector: Collector

    def __init__(self, address: tuple[str, int], family: socket.AddressFamily, collector: Collector) -> None:
        self.address_family = family
        self.collector = collector
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.collector.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("connection from %s failed", client_address, exc_info=True)


def _listen(address: tuple[str, int], collector: Collector) -> _Server:
    host, port = address
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _Server((host, port), found[0][0], collector)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}; "
            "choose another --host or --port (0 takes any free port)"
        ) from error


def _take_directory(out: Path) -> int:
    """Make and lock the directory, so that two collectors do not rotate each other's files."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"--out {out}: {error.strerror}; accepted: a directory that can be written"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise InputError(f"--out {out}: another collector writes there; stop it or choose another") from error
    return descriptor
