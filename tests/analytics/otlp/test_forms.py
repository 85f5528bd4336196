"""Every form that OTLP files come in: packed, framed, and spelled by writers that do not conform."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from analytics.cli import main
from analytics.dialects.base import Record
from analytics.dialects.turncap import Collector
from analytics.otlp import read, streams
from analytics.otlp.records import Item, Unreadable, hexadecimal
from tests.analytics.telemetry import (
    START,
    Event,
    counter,
    log_line,
    metric_line,
    small_turn,
    span,
    span_line,
)
from tests.analytics.test_load import dump, query

EVENTS = small_turn()
LINES = [
    log_line(EVENTS[:2]),
    log_line(EVENTS[2:]),
    span_line([span(EVENTS[3:], 1)]),
    metric_line([counter("turncap.calls", [({"gen_ai.agent.name": "a"}, 5)], at=START + 9)]),
]
PLAIN = b"".join(LINES)
Tables = dict[str, list[tuple[Any, ...]]]
KINDS = {"resourceLogs": LogsData, "resourceSpans": TracesData, "resourceMetrics": MetricsData}


def message(line: bytes) -> bytes:
    """A line as the protobuf message that it stands for."""

    def ids(key: str, value: Any) -> Any:
        return base64.b64encode(bytes.fromhex(value)).decode() if key in ("traceId", "spanId") else value

    parsed = changed(json.loads(line), ids)
    (kind,) = parsed
    return bytes(ParseDict(parsed, KINDS[kind]()).SerializeToString())


def framed(*pieces: bytes) -> bytes:
    """The Collector's framing: four bytes of length before each piece."""
    return b"".join(len(piece).to_bytes(4, "big") + piece for piece in pieces)


def delimited(*pieces: bytes) -> bytes:
    """protobuf's framing: a varint of length before each piece."""
    out = b""
    for piece in pieces:
        length = len(piece)
        while length > 0x7F:
            out += bytes([length & 0x7F | 0x80])
            length >>= 7
        out += bytes([length]) + piece
    return out


def zstd(data: bytes) -> bytes:
    """One zstd frame."""
    return zstandard.ZstdCompressor().compress(data)


def respelled(change: Callable[[str], str]) -> bytes:
    """All lines with the names of fields changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {change(key): walk(inner) for key, inner in value.items()}
        return [walk(one) for one in value] if isinstance(value, list) else value

    return b"".join(json.dumps(walk(json.loads(line))).encode() + b"\n" for line in LINES)


def snake(name: str) -> str:
    """camelCase as snake_case."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def changed(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """A JSON value with the values of its fields changed."""
    if isinstance(value, dict):
        return {key: change(key, changed(inner, change)) for key, inner in value.items()}
    return [changed(one, change) for one in value] if isinstance(value, list) else value


def rewritten(change: Callable[[str, Any], Any]) -> bytes:
    """All lines with the values of fields changed."""
    return b"".join(json.dumps(changed(json.loads(line), change)).encode() + b"\n" for line in LINES)


def with_every_member(key: str, value: Any) -> Any:
    """An attribute's value with all other members of the oneof as null, as Phoenix writes it."""
    if key != "value" or not isinstance(value, dict):
        return value
    names = ("stringValue", "intValue", "boolValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")
    return {**dict.fromkeys(names), **value}


def as_numbers(key: str, value: Any) -> Any:
    """64-bit integers as numbers instead of strings."""
    return int(value) if key in ("intValue", "asInt") or key.endswith("UnixNano") else value


def as_floats(key: str, value: Any) -> Any:
    """Integers as numbers with a fraction of zero."""
    return float(value) if key == "intValue" else value


def bare() -> bytes:
    """Records without their envelope, a line each."""
    out = []
    for line in LINES:
        ((kind, (group,)),) = json.loads(line).items()
        inner = {"resourceLogs": "logRecords", "resourceSpans": "spans", "resourceMetrics": "metrics"}[kind]
        (scope,) = group[kind.replace("resource", "scope")]
        out += [{**one, "resource": group["resource"], "scope": scope["scope"]} for one in scope[inner]]
    return b"".join(json.dumps(one).encode() + b"\n" for one in out)


INDENTED = [json.dumps(json.loads(line), indent=2).encode() + b"\n" for line in LINES]
MESSAGES = [message(line) for line in LINES]
FORMS = {
    "gzip": gzip.compress(PLAIN),
    "gzip of several members": b"".join(map(gzip.compress, LINES)),
    "gzip with padding between members": b"\0\0".join(map(gzip.compress, LINES)),
    "zstd": zstd(PLAIN),
    "zstd of several frames": b"".join(map(zstd, LINES)),
    "the Collector's frames of JSON": framed(*(line.strip() for line in LINES)),
    "the Collector's frames of JSON, each zstd": framed(*(zstd(line.strip()) for line in LINES)),
    "the Collector's frames of protobuf": framed(*MESSAGES),
    "the Collector's frames of protobuf, each zstd": framed(*map(zstd, MESSAGES)),
    "frames of protobuf inside one zstd": zstd(framed(*MESSAGES)),
    "delimited protobuf": delimited(*MESSAGES),
    "delimited protobuf, gzip": gzip.compress(delimited(*MESSAGES)),
    "no newline at the end": PLAIN.rstrip(b"\n"),
    "CRLF": PLAIN.replace(b"\n", b"\r\n"),
    "a byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "blank lines": b"\n \n" + PLAIN.replace(b"\n", b"\n\n"),
    "NULs at the beginning, as rotation leaves them": b"\0" * 300 + PLAIN,
    "NULs at the end": PLAIN + b"\0" * 300,
    "a list on one line": b"[" + b",".join(line.strip() for line in LINES) + b"]\n",
    "one indented value after the other": b"".join(INDENTED),
    "a list, an element a line": b"[\n" + b",\n".join(line.strip() for line in LINES) + b"\n]\n",
    "an indented list": json.dumps([json.loads(line) for line in LINES], indent=2).encode(),
    "an indented list, four spaces": json.dumps([json.loads(line) for line in LINES], indent=4).encode()
    + b"\n",
    "snake case": respelled(snake),
    "instrumentationLibrary instead of scope": respelled(
        lambda name: (
            name.replace("scopeLogs", "instrumentationLibraryLogs")
            .replace("scopeSpans", "instrumentationLibrarySpans")
            .replace("scopeMetrics", "instrumentationLibraryMetrics")
            .replace("scope", "instrumentationLibrary")
        )
    ),
    "all members of a value, most of them null": rewritten(with_every_member),
    "integers as numbers": rewritten(as_numbers),
    "integers as floats": rewritten(as_floats),
    "records without envelope": bare(),
    "all signals in one line": json.dumps(
        {key: value for line in (log_line(EVENTS), *LINES[2:]) for key, value in json.loads(line).items()}
    ).encode(),
    "spaces after commas and colons": b"".join(
        json.dumps(json.loads(line)).encode() + b"\n" for line in LINES
    ),
    "members in another order": b"".join(
        json.dumps(json.loads(line), sort_keys=True).encode() + b"\n" for line in LINES
    ),
}


def items(data: bytes) -> list[Item]:
    """Everything that content holds, a last line without newline included."""
    found: list[Item] = []
    for block in streams.content_of(data).blocks():
        pieces = [*block.pieces, block.torn]
        for piece in pieces:
            if piece.strip(b"\0 \r\n\t"):
                found += read(piece)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_like_plain_lines(form: str) -> None:
    assert items(FORMS[form]) == items(PLAIN)


@pytest.mark.parametrize(
    "form",
    [
        "gzip of several members",
        "zstd of several frames",
        "the Collector's frames of protobuf",
        "frames of protobuf inside one zstd",
        "delimited protobuf",
        "no newline at the end",
        "an indented list",
        "NULs at the end",
    ],
)
def test_what_was_read_of_a_form_is_known_again(form: str, tmp_path: Path, plain: Tables) -> None:
    path, db = tmp_path / "file", tmp_path / "t.duckdb"
    path.write_bytes(FORMS[form])
    for _ in range(2):
        assert main(["load", str(path), "--db", str(db)]) == 0
        assert dump(db) == plain
        assert query(db, 'SELECT count(*), min("offset") > 0 FROM files') == [(1, True)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of the plain lines."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.jsonl").write_bytes(PLAIN)
    assert main(["load", str(folder / "plain.jsonl"), "--db", str(folder / "t.duckdb")]) == 0
    return dump(folder / "t.duckdb")


@pytest.mark.parametrize("line", range(4))
def test_the_body_of_one_request_is_a_file_too(line: int) -> None:
    assert items(MESSAGES[line]) == items(LINES[line])


def test_a_folder_a_pattern_and_standard_input(
    tmp_path: Path, plain: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs" / "deeper"
    folder.mkdir(parents=True)
    for number, line in enumerate(LINES):
        (folder / f"otel-2026-09-14T05-02-14.17{number}.json").write_bytes(line)
    (folder / "old.duckdb").write_bytes(b"no telemetry")

    class Stdin:
        buffer = io.BytesIO(PLAIN)

    monkeypatch.setattr(sys, "stdin", Stdin)
    for number, name in enumerate(
        (str(tmp_path / "logs"), str(tmp_path / "logs" / "*" / "otel-*.json"), "-")
    ):
        db = tmp_path / f"{number}.duckdb"
        assert main(["load", name, "--db", str(db)]) == 0
        assert dump(db) == plain


def one(attributes: str, **fields: str) -> bytes:
    """A log line of turn.started with hand-written attributes and fields."""
    common = (
        '{"key":"turncap.schema.version","value":{"intValue":"1"}},'
        '{"key":"turncap.event.id","value":{"stringValue":"g-1/1"}},'
        '{"key":"turncap.turn.id","value":{"stringValue":"g-1"}},'
    )
    own = {"eventName": '"turncap.turn.started"', "timeUnixNano": '"5"', **fields}
    record = "".join(f'"{name}":{value},' for name, value in own.items() if value)
    return (
        f'{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{{record}"attributes":[{common}{attributes}]}}]}}]}}]}}\n'
    ).encode()


def text(name: str, value: str) -> str:
    """An attribute with a hand-written value."""
    return f'{{"key":"turncap.{name}","value":{value}}}'


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        pytest.param(one(text("mode", '{"stringValue":"a"}'), timeUnixNano=""), "at", None, id="no time"),
        pytest.param(
            one(text("mode", '{"stringValue":"a"}'), timeUnixNano='"0"', observedTimeUnixNano='"7"'),
            "at",
            7,
            id="time zero: the observed time",
        ),
        pytest.param(one(text("holdout.rate", '{"doubleValue":0.25}')), "holdout_rate", 0.25, id="a double"),
        pytest.param(
            one(text("holdout.rate", '{"doubleValue":"0.5"}')), "holdout_rate", 0.5, id="a double as text"
        ),
        pytest.param(one(text("holdout.rate", '{"intValue":"1"}')), "holdout_rate", 1.0, id="a whole double"),
        pytest.param(
            one(text("holdout.rate", '{"doubleValue":"Infinity"}')),
            "holdout_rate",
            float("inf"),
            id="infinity",
        ),
        pytest.param(one(text("mode", "{}")), "mode", None, id="an empty value is null"),
        pytest.param(one('{"key":"turncap.mode"}'), "mode", None, id="an attribute without value"),
        pytest.param(
            one(text("mode", '{"stringValue":"a"}') + "," + text("mode", '{"stringValue":"b"}')),
            "mode",
            "b",
            id="of equal keys the last",
        ),
        pytest.param(one(text("mode", r'{"stringValue":"a\ud800b"}')), "mode", "a?b", id="a lone surrogate"),
        pytest.param(one(text("mode", r'{"stringValue":"a\u0000b"}')), "mode", "a\0b", id="an escaped NUL"),
        pytest.param(one(text("mode", '{"stringValue":"é"}')), "mode", "é", id="UTF-8"),
        pytest.param(
            one(text("mode", '{"stringValue":"\N{LATIN SMALL LETTER E WITH ACUTE}"}')).replace(
                "é".encode(), b"\xff"
            ),
            "mode",
            "\ufffd",
            id="a byte that is no UTF-8",
        ),
        pytest.param(
            one(
                text("x", '{"intValue":"1180591620717411303424"}') + "," + text("mode", '{"stringValue":"a"}')
            ),
            "mode",
            "a",
            id="an integer past 64 bits that nobody needs",
        ),
        pytest.param(
            one(
                text("x", '{"kvlistValue":{"values":[{"key":"k","value":{"intValue":"1"}},{"key":"k"}]}}')
                + ","
                + text("y", '{"bytesValue":"AQI="}')
                + ","
                + text("mode", '{"stringValue":"a"}')
            ),
            "mode",
            "a",
            id="a map with equal keys, and bytes",
        ),
        pytest.param(
            one(
                text("mode", '{"stringValue":"a"},"more":1'),
                eventName="",
                body='{"stringValue":"turncap.turn.started"}',
            ),
            "mode",
            "a",
            id="the event's name as body, unknown members",
        ),
        pytest.param(
            one(
                '{"key":"event.name","value":{"stringValue":"turncap.turn.started"}},'
                + text("mode", '{"stringValue":"a"}'),
                eventName="",
            ),
            "mode",
            "a",
            id="the event's name as attribute",
        ),
        pytest.param(
            one(text("policy.soft_cap", '{"intValue":7}')), "seq", None, id="what was not told is null"
        ),
    ],
)
def test_values_as_writers_spell_them(line: bytes, column: str, expected: Any) -> None:
    collector = Collector()
    (record,) = items(line)
    assert isinstance(record, Record)
    assert collector.add(record)
    assert collector.problems == []
    started = collector.rows["turncap.turn.started"]
    (row,) = started.rows
    assert dict(zip(started.columns, row, strict=True))[column] == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(
            one(text("policy.soft_cap", '{"intValue":"12.5"}')), "12.5", id="an integer with a fraction"
        ),
        pytest.param(one(text("policy.soft_cap", '{"intValue":"abc"}')), "abc", id="an integer that is none"),
        pytest.param(
            one(text("policy.soft_cap", '{"intValue":"9223372036854775808"}')),
            "turncap.policy.soft_cap",
            id="an integer past 64 bits",
        ),
        pytest.param(one(text("mode", '{"intValue":"1"}')), "turncap.mode", id="a number for a text"),
        pytest.param(one(text("schema.version", '{"intValue":"2"}')), "newer", id="a newer schema"),
        pytest.param(one(text("event.id", "{}")), "turncap.event.id", id="no event id"),
        pytest.param(one(text("mode", '{"stringValue":["a"]}')), "stringValue", id="a list for a text"),
        pytest.param(one(text("mode", '{"doubleValue":"wide"}')), "wide", id="a double that is none"),
        pytest.param(one("", timeUnixNano='"-"').replace(b"},]", b"}]"), "-", id="a time that is none"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(line: bytes, reason: str) -> None:
    collector = Collector()
    problems = []
    for item in items(line):
        if isinstance(item, Record):
            collector.add(item)
        elif isinstance(item, Unreadable):
            problems.append(item.reason)
    assert len(collector) == 0
    (why,) = problems + collector.problems
    assert reason in why


DEEP = one("", body="[" * 5000 + "]" * 5000)


def test_a_bad_line_is_named_and_the_others_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, db = tmp_path / "f", tmp_path / "t.duckdb"
    path.write_bytes(LINES[0] + one(text("mode", '{"intValue":"1"}')) + b"{broken\n" + DEEP + LINES[1])
    assert main(["load", str(path), "--db", str(db)]) == 3
    assert query(db, "SELECT count(*), max(calls) FROM turns") == [(1, 5)]
    begins = [len(LINES[0]), len(LINES[0]) + len(one(text("mode", '{"intValue":"1"}')))]
    begins.append(begins[1] + len(b"{broken\n"))
    assert query(db, 'SELECT line, "offset" FROM rejects ORDER BY line') == list(enumerate(begins, start=2))
    told = capsys.readouterr().err
    assert f"{path}:2: event turncap.turn.started: attribute turncap.mode" in told
    assert f"{path}:3: a line that is no OTLP" in told
    assert main(["load", str(path), "--db", str(db)]) == 0, "told once"
    assert query(db, "SELECT count(*) FROM rejects") == [(3,)]


def test_one_bad_record_costs_only_itself(tmp_path: Path) -> None:
    good = json.loads(LINES[0])
    bad = {"timeUnixNano": "5", "eventName": 7, "attributes": []}
    good["resourceLogs"][0]["scopeLogs"][0]["logRecords"].insert(1, bad)
    (tmp_path / "f").write_text(json.dumps(good) + "\n")
    assert main(["load", str(tmp_path / "f"), "--db", str(tmp_path / "t.duckdb")]) == 3
    assert query(tmp_path / "t.duckdb", "SELECT has_started, chunks_seen FROM turns") == [(True, 1)]


def test_ids_in_base64_and_upper_case_are_the_same_ids() -> None:
    assert hexadecimal("5B8EFFF798038103D269B633813FC60C") == "5b8efff798038103d269b633813fc60c"
    assert hexadecimal("W47/95gDgQPSabYzgT/GDA==") == "5b8efff798038103d269b633813fc60c"
    assert hexadecimal("7uR1fj8jkRg=") == "eee4757e3f239118"
    assert hexadecimal("EEE19B7EC3C1B174") == "eee19b7ec3c1b174"
    assert [hexadecimal(value) for value in ("", None, "0" * 32)] == ["", "", ""]


def test_status_and_times_of_spans_are_read_by_number_and_by_name() -> None:
    def failed(status: str) -> Any:
        line = f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"name":"x","status":{status}}}]}}]}}]}}'
        (record,) = read(line.encode())
        assert isinstance(record, Record)
        return record.failed

    values = (
        "{}",
        '{"code":1}',
        '{"code":2}',
        '{"code":"STATUS_CODE_ERROR"}',
        '{"code":"STATUS_CODE_UNSET"}',
    )
    assert [failed(status) for status in values] == [None, False, True, True, None]


def test_an_event_of_a_later_version_one_is_no_fault(tmp_path: Path) -> None:
    more = Event(name="turncap.turn.rested", at=START, attributes={"turncap.turn.id": "h-7"})
    (tmp_path / "f").write_bytes(log_line([*EVENTS, more]))
    assert main(["load", str(tmp_path / "f"), "--db", str(tmp_path / "t.duckdb")]) == 0
