"""The receiver, by the real exporters in another process and by hand-made requests."""

from __future__ import annotations

import errno
import gzip
import http.client
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

from analytics.collect import MAX_CONNECTIONS, Collector
from analytics.collect_payload import to_line
from analytics.errors import InputError
from guard.otlp_json import to_json

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
LIMIT = 100_000


def logs(*names: str, padding: int = 0) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for name in names:
        record = scope.log_records.add(time_unix_nano=10**18 + 1, event_name=name, trace_id=b"\xab" * 16)
        if padding:
            record.body.string_value = "x" * padding
    return request


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with Collector(tmp_path / "out", max_body=LIMIT) as running:
        yield running


def connect(collector: Collector) -> http.client.HTTPConnection:
    host, port = collector.url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def post(
    collector: Collector,
    body: Any,
    *,
    path: str = "/v1/logs",
    media: str | None = PROTOBUF,
    method: str = "POST",
    **headers: str,
) -> tuple[int, bytes, http.client.HTTPResponse]:
    connection = connect(collector)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if media:
        fields["Content-Type"] = media
    connection.request(method, path, body, fields, encode_chunked=not isinstance(body, bytes))
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, answer, response


def lines(collector: Collector, tmp_path: Path, stem: str = "logs") -> list[dict[str, Any]]:
    text = (tmp_path / "out" / f"{stem}.jsonl").read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_the_real_exporters_send_from_another_process_is_on_disk(
    collector: Collector, tmp_path: Path, compression: str
) -> None:
    sender = Path(__file__).with_name("sdk_sender.py")
    subprocess.run([sys.executable, str(sender), collector.url, compression, "700"], check=True, timeout=60)
    counts = collector.counts
    assert (counts.events, counts.spans, counts.points) == ({"test.event": 700}, 700, 1)
    assert (counts.records, counts.refused) == (700, {})

    records = [
        record
        for line in lines(collector, tmp_path)
        for resource in line["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert len(records) == 700
    values = {item["key"]: item["value"] for item in records[0]["attributes"]}
    assert values == {
        "big": {"intValue": "9007199254740993"},
        "number": {"intValue": "0"},
        "nan": {"doubleValue": "NaN"},
    }
    assert re.fullmatch("[0-9a-f]{32}", records[0]["traceId"])
    assert re.fullmatch("[0-9]{19}", records[0]["timeUnixNano"])
    span = lines(collector, tmp_path, "traces")[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["kind"] == 1
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
    metric = lines(collector, tmp_path, "metrics")[0]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
    assert metric["sum"]["dataPoints"][0]["asInt"] == "700"
    assert metric["sum"]["aggregationTemporality"] == 2


def chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), 7):
        yield data[start : start + 7]


LARGE = b"x" * (LIMIT + 1)
BOMB = gzip.compress(b"0" * (LIMIT * 100))
BODY = logs("a", "b").SerializeToString()
TEXT = (
    b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[\r\n{"eventName":"a","timeUnixNano":"1",'
    b'"attributes":[{"key":"n","value":{"intValue":1180591620717411303424}}]},'
    b'{"attributes":[{"key":"event.name","value":{"stringValue":"b"}}]}]}]}]}'
)


@pytest.mark.parametrize(
    ("body", "options"),
    [
        pytest.param(BODY, {}, id="protobuf"),
        pytest.param(gzip.compress(BODY), {"Content_Encoding": "gzip"}, id="gzip protobuf"),
        pytest.param(
            gzip.compress(BODY[:5]) + gzip.compress(BODY[5:]), {"Content_Encoding": "GZIP"}, id="two members"
        ),
        pytest.param(chunks(BODY), {"Transfer_Encoding": "chunked"}, id="chunked transfer"),
        pytest.param(TEXT, {"media": JSON + "; charset=utf-8"}, id="JSON over two lines"),
        pytest.param(gzip.compress(TEXT), {"media": JSON, "Content_Encoding": "gzip"}, id="gzip JSON"),
        pytest.param(TEXT.replace(b'"1"', b'"\\ud800"'), {"media": JSON}, id="JSON with half a surrogate"),
        pytest.param(BODY, {"path": "/v1/logs?x=1"}, id="a query after the path"),
    ],
)
def test_an_accepted_request_is_one_line(
    collector: Collector, tmp_path: Path, body: Any, options: dict[str, str]
) -> None:
    status, answer, response = post(collector, body, **options)
    media = options.get("media", PROTOBUF).partition(";")[0]
    assert (status, response.headers["Content-Type"]) == (200, media)
    if media == JSON:
        assert json.loads(answer) == {}
    else:
        assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
    assert collector.counts.events == {"a": 1, "b": 1}
    (line,) = lines(collector, tmp_path)
    record = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    if media == JSON:
        assert record["attributes"][0]["value"]["intValue"] == 2**70, "a number is kept as it was written"
    else:
        assert record["traceId"] == "ab" * 16


@pytest.mark.parametrize(
    ("status", "says", "body", "options"),
    [
        pytest.param(404, "/v1/logs", BODY, {"path": "/v1/log"}, id="another path"),
        pytest.param(405, "POST", None, {"method": "GET"}, id="GET of a known path"),
        pytest.param(404, "/v1/traces", None, {"method": "GET", "path": "/"}, id="GET of another path"),
        pytest.param(415, "text/plain", BODY, {"media": "text/plain"}, id="another content type"),
        pytest.param(415, JSON, BODY, {"media": None}, id="no content type"),
        pytest.param(415, "gzip", BODY, {"Content_Encoding": "br"}, id="another compression"),
        pytest.param(400, "ExportLogsServiceRequest", b"\xff" * 9, {}, id="no protobuf"),
        pytest.param(400, "no JSON", b"{", {"media": JSON}, id="no JSON"),
        pytest.param(400, "no JSON", b"[" * 5000 + b"]" * 5000, {"media": JSON}, id="JSON nested too deep"),
        pytest.param(400, "an object", b"[]", {"media": JSON}, id="a JSON list"),
        pytest.param(400, "resource_logs", b'{"resource_logs":[]}', {"media": JSON}, id="snake case"),
        pytest.param(400, "resourceSpans", b'{"resourceSpans":[]}', {"media": JSON}, id="another signal"),
        pytest.param(400, "list of objects", b'{"resourceLogs":[1]}', {"media": JSON}, id="a wrong shape"),
        pytest.param(400, "no gzip", BODY, {"Content_Encoding": "gzip"}, id="no gzip"),
        pytest.param(
            400, "too early", gzip.compress(BODY)[:-9], {"Content_Encoding": "gzip"}, id="torn gzip"
        ),
        pytest.param(413, "smaller", LARGE, {}, id="a body too large"),
        pytest.param(
            413,
            "smaller",
            BOMB,
            {"Content_Encoding": "gzip"},
            id="a gzip bomb",
        ),
        pytest.param(
            413,
            "smaller",
            chunks(LARGE),
            {"Transfer_Encoding": "chunked"},
            id="chunks too large",
        ),
        pytest.param(400, "Content-Length", b"", {"Content_Length": "ten"}, id="a length that is no number"),
    ],
)
def test_a_refused_request_says_why_and_leaves_nothing(
    collector: Collector, tmp_path: Path, status: int, says: str, body: Any, options: dict[str, Any]
) -> None:
    given, answer, response = post(collector, body, **options)
    assert given == status
    if response.headers["Content-Type"] == JSON:
        message = json.loads(answer)["message"]
    else:
        message = Status.FromString(answer).message
    assert says in message
    assert (status != 405) or response.headers["Allow"] == "POST"
    assert collector.counts.refused == {status: 1}
    assert collector.counts.requests == 0
    assert lines(collector, tmp_path) == []
    assert post(collector, BODY)[0] == 200, "the receiver goes on"


def test_an_empty_request_is_accepted_and_writes_nothing(collector: Collector, tmp_path: Path) -> None:
    assert post(collector, b"")[0] == 200
    assert post(collector, b"{}", media=JSON)[0] == 200
    assert lines(collector, tmp_path) == []


def test_one_connection_serves_many_requests(collector: Collector) -> None:
    connection = connect(collector)
    for _ in range(20):
        connection.request("POST", "/v1/logs", BODY, {"Content-Type": PROTOBUF})
        response = connection.getresponse()
        response.read()
        assert (response.status, response.will_close) == (200, False)
    connection.close()
    assert collector.counts.records == 40


def test_many_senders_at_a_time_lose_nothing(collector: Collector, tmp_path: Path) -> None:
    def send(name: str) -> None:
        for _ in range(25):
            assert post(collector, logs(name).SerializeToString())[0] == 200

    threads = [threading.Thread(target=send, args=(f"sender{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collector.counts.events == {f"sender{number}": 25 for number in range(8)}
    assert len(lines(collector, tmp_path)) == 200


def test_connections_past_the_bound_are_turned_away(collector: Collector) -> None:
    held = [connect(collector) for _ in range(MAX_CONNECTIONS)]
    for connection in held:
        connection.request("POST", "/v1/logs", BODY, {"Content-Type": PROTOBUF})
        assert connection.getresponse().read() == b""
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        post(collector, BODY)
    for connection in held:
        connection.close()
    assert collector.counts.refused == {503: 1}


def test_a_full_file_is_rotated_and_every_line_is_kept(tmp_path: Path) -> None:
    body = logs("a", padding=90_000).SerializeToString()
    with Collector(tmp_path, max_megabytes=1, max_body=LIMIT) as collector:
        for _ in range(30):
            assert post(collector, body)[0] == 200
    files = sorted(path.name for path in tmp_path.glob("logs*.jsonl"))
    assert len(files) == 3, "12 lines of 90 kB pass 1 MB"
    assert all(re.fullmatch(r"logs(-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})?\.jsonl", name) for name in files)
    assert sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("logs*.jsonl")) == 30


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b'{"a":1}\n', b'{"a":1}\n', id="whole lines stay"),
        pytest.param(b'{"a":1}\n{"b":', b'{"a":1}\n', id="a torn line was never acknowledged"),
        pytest.param(b'{"a":', b"", id="nothing but a torn line"),
        pytest.param(b'{"a":1}\n{"b":2}', b'{"a":1}\n{"b":2}\n', id="a whole line without its end"),
        pytest.param(b'{"a":1}\n{"b":"' + b"x" * 200_000, b'{"a":1}\n', id="a torn line longer than a block"),
    ],
)
def test_a_file_left_by_a_crash_is_continued_at_a_lines_end(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    (tmp_path / "logs.jsonl").write_bytes(before)
    with Collector(tmp_path) as collector:
        assert post(collector, BODY)[0] == 200
    text = (tmp_path / "logs.jsonl").read_bytes()
    assert text.startswith(after)
    assert text.removeprefix(after).count(b"\n") == 1


def _fail_write(descriptor: int, data: Any, real: Callable[..., int] = os.write) -> int:
    real(descriptor, bytes(data)[:10])  # what a full disk does: a part, then the error
    raise OSError(errno.ENOSPC, "No space left on device")


def _fail_sync(descriptor: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("call", "failing"), [pytest.param("write", _fail_write), pytest.param("fsync", _fail_sync)]
)
def test_what_cannot_be_kept_is_answered_503_taken_back_and_accepted_later(
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
    failing: Any,
) -> None:
    assert post(collector, BODY)[0] == 200
    with monkeypatch.context() as patch:
        patch.setattr(f"analytics.line_file.os.{call}", failing)
        for _ in range(3):
            status, answer, response = post(collector, BODY)
            assert (status, response.headers["Retry-After"]) == (503, "1")
            assert "cannot write" in Status.FromString(answer).message
    assert len(lines(collector, tmp_path)) == 1
    assert post(collector, BODY)[0] == 200
    assert len(lines(collector, tmp_path)) == 2
    assert collector.counts.records == 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"], "told once, and its end"


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from analytics.cli import main
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def started(arguments: list[str], out: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, *arguments, "collect", "--out", str(out), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()  # whatever the test found
        process.communicate()


class _At:
    """Where a collector of another process listens."""

    def __init__(self, url: str) -> None:
        self.url = url


def test_a_file_size_limit_is_answered_503_and_nothing_torn_is_left(tmp_path: Path) -> None:
    with started(["-c", LIMITED], tmp_path / "out") as (process, url):
        at: Any = _At(url)
        body = logs("a", padding=9_000).SerializeToString()
        statuses = [post(at, body)[0] for _ in range(8)]
        assert statuses == [200] * 5 + [503] * 3
        assert post(at, logs("small").SerializeToString())[0] == 200
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "received 6 log records" in out
        assert "503: 3" in out
        assert errors.count("no space left") == 1
        assert len(lines(at, tmp_path)) == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_says_where_it_listens_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with started(["-m", "analytics"], tmp_path / "out") as (process, url):
        at: Any = _At(url)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert post(at, BODY)[0] == 200
        idle = connect(at)
        idle.connect()  # a connection that is kept alive does not hold the stop up
        process.send_signal(number)
        out, errors = process.communicate(timeout=20)
        idle.close()
        assert (process.returncode, errors) == (0, "")
        assert "received 2 log records, 0 spans, 0 metric points" in out


def test_a_second_collector_on_the_same_directory_or_port_is_told_so(
    collector: Collector, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="another collector writes there"), Collector(tmp_path / "out"):
        pass
    port = int(collector.url.rpartition(":")[2])
    with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}"):  # noqa: SIM117
        with Collector(tmp_path / "other", port=port):
            pass


def test_an_out_that_is_a_file_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="accepted: a directory"), Collector(tmp_path / "file"):
        pass


def test_spans_and_points_are_counted() -> None:
    # Guards the counting itself, which the demo relies on, with shapes the Python SDK does not send.
    from analytics.collect_payload import SIGNALS, read_payload

    traces = ExportTraceServiceRequest()
    spans = traces.resource_spans.add().scope_spans.add()
    for _ in range(3):
        spans.spans.add(name="x")
    metrics = ExportMetricsServiceRequest()
    scope = metrics.resource_metrics.add().scope_metrics.add()
    scope.metrics.add(name="g").gauge.data_points.add(as_double=1.5)
    scope.metrics.add(name="h").histogram.data_points.add(count=2)
    scope.metrics.add(name="e").exponential_histogram.data_points.add(count=2)
    scope.metrics.add(name="s").summary.data_points.add(count=2)
    by_stem = {signal.stem: signal for signal in SIGNALS}
    for stem, request, spans_, points in (("traces", traces, 3, 0), ("metrics", metrics, 0, 4)):
        _, tally = read_payload(
            by_stem[stem], request.SerializeToString(), encoding="identity", is_json=False, limit=LIMIT
        )
        assert (tally.spans, tally.points) == (spans_, points)


@pytest.mark.parametrize("large", [0, 1 << 20], ids=["every part", "records whole"])
@pytest.mark.parametrize("levels", range(4))
def test_a_line_written_part_by_part_is_the_same(
    levels: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.collect_payload.LARGE", large)
    monkeypatch.setattr("analytics.collect_payload.TOGETHER", 2)
    request = logs("a", "b")
    request.resource_logs[0].resource.attributes.add(key="service.name").value.string_value = "x"
    request.resource_logs[0].schema_url = "u"
    request.resource_logs[0].scope_logs[0].scope.name = "scope"
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.time_unix_nano, record.trace_id = 2**63, bytes(range(16))
    record.severity_number = SeverityNumber.SEVERITY_NUMBER_WARN
    value = record.attributes.add(key="values").value.array_value.values
    for number in range(5):
        value.add(int_value=number)
    value.add(double_value=math.nan)
    value.add(bytes_value=b"\xff")
    value.add()
    record.body.kvlist_value.values.add(key="on").value.bool_value = True
    request.resource_logs.add()
    assert json.loads(to_line(request, levels)) == to_json(request)
