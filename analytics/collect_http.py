"""The HTTP side of the receiver: OTLP/HTTP as its specification says, over http.server."""

from __future__ import annotations

import contextlib
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import orjson
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from analytics.collect_payload import SIGNALS, Refused, Signal

if TYPE_CHECKING:
    from analytics.collect import Collector

_PATHS = {signal.path: signal for signal in SIGNALS}
_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"
_GRPC_CODES = {  # google.rpc.Code of each answer
    HTTPStatus.BAD_REQUEST: 3,
    HTTPStatus.NOT_FOUND: 5,
    HTTPStatus.METHOD_NOT_ALLOWED: 12,
    HTTPStatus.LENGTH_REQUIRED: 3,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 3,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}
_PATIENCE = 10.0  # seconds a request waits for memory before 503
_LINGER_BYTES = 1 << 20
_LINGER_SECONDS = 2.0


class Handler(BaseHTTPRequestHandler):
    """One connection, kept alive."""

    protocol_version = "HTTP/1.1"
    server_version = "turncap"
    sys_version = ""
    timeout = 30.0  # seconds a silent connection is kept
    disable_nagle_algorithm = True

    @property
    def _collector(self) -> Collector:
        collector: Collector = self.server.collector  # type: ignore[attr-defined]
        return collector

    def do_POST(self) -> None:
        """One export request."""
        try:
            signal, encoding, is_json = self._accepted()
            length = self._declared_length()
            held = self._collector.max_body if length is None else length
            if not self._collector.budget.take(held, patience=_PATIENCE):
                raise Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at a time; retry", close=True
                )
            try:
                body = self._read_chunks() if length is None else self._read(length)
                self._collector.receive(signal, body, encoding=encoding, is_json=is_json)
                self._answer(HTTPStatus.OK, b"{}" if is_json else b"")
            finally:
                self._collector.budget.give(held)
        except Refused as refused:
            self._refuse(refused)

    def _refuse_method(self) -> None:
        known = self._path() in _PATHS
        status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
        message = "only POST is accepted" if known else _not_found(self._path())
        self._refuse(Refused(status, message, close=True))

    do_GET = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _refuse_method  # noqa: N815

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _accepted(self) -> tuple[Signal, str, bool]:
        """(signal, content encoding, whether JSON) of the request; Refused with 404 or 415."""
        signal = _PATHS.get(self._path())
        if signal is None:
            raise Refused(HTTPStatus.NOT_FOUND, _not_found(self._path()), close=True)
        media = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media not in {_JSON, _PROTOBUF}:
            message = f"Content-Type {media!r}; accepted: {_PROTOBUF} or {_JSON}"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, close=True)
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
        if encoding not in {"identity", "gzip"}:
            message = f"Content-Encoding {encoding!r}; accepted: gzip or none"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, close=True)
        return signal, encoding, media == _JSON

    def _declared_length(self) -> int | None:
        """Bytes of the body, None where it comes in chunks; Refused with 400, 411 or 413."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return None
        given = self.headers.get("Content-Length")
        if given is None:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing", close=True)
        if not given.isascii() or not given.isdigit():
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is no number", close=True)
        if int(given) > self._collector.max_body:
            raise self._too_large()
        return int(given)

    def _too_large(self) -> Refused:
        message = f"more than {self._collector.max_body} bytes; make the exporter's batches smaller"
        return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message, close=True)

    def _read(self, size: int) -> bytes:
        body = self.rfile.read(size)
        if len(body) < size:
            raise Refused(HTTPStatus.BAD_REQUEST, "the body ends too early", close=True)
        return body

    def _read_chunks(self) -> bytes:
        """A body in chunked transfer coding."""
        body = bytearray()
        while True:
            line = self.rfile.readline(1024)
            try:
                size = int(line.partition(b";")[0].strip(), 16)
            except ValueError:
                raise Refused(HTTPStatus.BAD_REQUEST, "a chunk without its size", close=True) from None
            if size == 0:
                break
            if size < 0 or len(body) + size > self._collector.max_body:
                raise self._too_large()
            body += self._read(size)
            if self.rfile.readline(3).strip():
                raise Refused(HTTPStatus.BAD_REQUEST, "a chunk longer than its size", close=True)
        for _ in range(100):  # trailers
            if not self.rfile.readline(1 << 16).strip():
                return bytes(body)
        raise Refused(HTTPStatus.BAD_REQUEST, "too many trailers", close=True)

    def _refuse(self, refused: Refused) -> None:
        self._collector.refuse(refused.status)
        if self.headers.get("Content-Type", "").partition(";")[0].strip().lower() == _JSON:
            body = orjson.dumps({"code": _GRPC_CODES[refused.status], "message": refused.message})
        else:
            body = Status(code=_GRPC_CODES[refused.status], message=refused.message).SerializeToString()
        if refused.close:
            self.close_connection = True
        self._answer(refused.status, body)
        if refused.close:
            self._linger()

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        is_json = self.headers.get("Content-Type", "").partition(";")[0].strip().lower() == _JSON
        self.send_response(status)
        self.send_header("Content-Type", _JSON if is_json else _PROTOBUF)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
            self.send_header("Accept-Encoding", "gzip")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _linger(self) -> None:
        """Read a little of what is still being sent: closing at once would destroy the answer on its way."""
        left, deadline = _LINGER_BYTES, time.monotonic() + _LINGER_SECONDS
        with contextlib.suppress(OSError):
            self.connection.settimeout(0.2)
            while left > 0 and time.monotonic() < deadline:
                got = self.connection.recv(min(left, 1 << 16))
                if not got:
                    break
                left -= len(got)

    def log_message(self, format: str, *args: Any) -> None:
        """No access log: answers other than 200 are counted."""


def _not_found(path: str) -> str:
    return f"no {path[:80]!r} here; accepted: {', '.join(_PATHS)}"
