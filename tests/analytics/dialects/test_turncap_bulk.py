"""Reading in bulk gives what reading record by record gives, or leaves it alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.dialects import turncap_bulk
from analytics.dialects.base import Record
from analytics.dialects.turncap import Collector
from analytics.otlp import UnreadablePieceError, read
from tests.analytics.otlp.test_forms import FORMS, LINES
from tests.analytics.telemetry import START, Event, log_line, small_turn, span, span_line
from tests.analytics.test_load import SOME, telemetry

EVENTS, SPANS = telemetry(SOME[:6])
REGULAR = [log_line(EVENTS[:9]), log_line(EVENTS[9:]), *SPANS, log_line(small_turn())]
Rows = dict[str, list[tuple[Any, ...]]]


def by_record(lines: list[bytes]) -> tuple[Rows, list[str]]:
    """The rows of the raw tables, and what was wrong."""
    collector, problems = Collector(), []
    for line in lines:
        try:
            for item in read(line):
                if not (isinstance(item, Record) and collector.add(item)):
                    problems.append(f"not turncap's: {item}")
        except UnreadablePieceError as error:
            problems.append(str(error))
    rows = {
        one.table.name: sorted(map(plain, one.rows), key=repr) for one in collector.rows.values() if one.rows
    }
    return rows, problems + collector.problems


def plain(row: Any) -> tuple[Any, ...]:
    """A row without the types that only the decoder makes."""
    return tuple(list(v) if isinstance(v, list) else str(v) if isinstance(v, str) else v for v in row)


def in_bulk(lines: list[bytes]) -> tuple[Rows, list[int]] | None:
    """The same by the fast path, and which lines it left."""
    bulk = turncap_bulk.read([line.rstrip(b"\n") for line in lines])
    if bulk is None:
        return None
    rows: Rows = {}
    for name, tables in bulk.tables.items():
        rows[name] = sorted((plain(r.values()) for t in tables for r in t.to_pylist()), key=repr)
    assert bulk.events == sum(map(len, rows.values()))
    return rows, bulk.left


def test_regular_telemetry_is_read_in_bulk_and_read_alike() -> None:
    found = in_bulk(REGULAR)
    assert found is not None
    rows, left = found
    assert left == []
    expected, problems = by_record(REGULAR)
    assert problems == []
    assert rows == expected
    assert set(rows) >= {"raw_started", "raw_chunks", "raw_detected", "raw_ended", "raw_crossed"}


ENDED = small_turn()[-1]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(log_line([ENDED, Event(name="app.x", at=START)]), id="another product's record beside"),
        pytest.param(log_line([ENDED.but(calls="5")]), id="a text for a number"),
        pytest.param(log_line([ENDED.but(calls=5.5)]), id="a fraction for a number"),
        pytest.param(log_line([ENDED.but(calls=2**63)]), id="a number past 64 bits"),
        pytest.param(log_line([ENDED.but(milestones__k=[2, "x"])]), id="a mixed list"),
        pytest.param(log_line([ENDED.but(candidates=["x", 2])]), id="a mixed list that ends with a number"),
        pytest.param(
            log_line([ENDED.but(more=["x", 2, 3])]), id="a mixed list under a name that nobody uses"
        ),
        pytest.param(log_line([ENDED.but(schema__version=2)]), id="a newer schema"),
        pytest.param(log_line([ENDED.but(event__id="")]), id="an empty id"),
        pytest.param(log_line([ENDED.but(event__id=None)]), id="no id"),
        pytest.param(log_line([ENDED.but(outcome={"a": 1})]), id="a map for a text"),
        pytest.param(log_line([ENDED]).replace(b'"5"', b"5"), id="numbers as numbers"),
        pytest.param(log_line([ENDED]).replace(b'"5"', b'"+5"'), id="a sign"),
        pytest.param(log_line([ENDED]).replace(b'"5"', b'"0x5"'), id="hexadecimal"),
        pytest.param(log_line([ENDED]).replace(b'"5"', b'"5,6"'), id="a comma in a number"),
        pytest.param(log_line([ENDED]).replace(b"halted", b"\xff"), id="a byte that is no UTF-8"),
        pytest.param(log_line([ENDED]).replace(b"halted", b"\\ud800"), id="a lone surrogate"),
        pytest.param(
            log_line([ENDED]).replace(b'{"key":"turncap.ran"', b'{"key":"turncap.calls"'), id="a key twice"
        ),
        pytest.param(span_line([{**span([ENDED], 1), "name": "GET /"}]), id="another product's span"),
        pytest.param(span_line([{**span([ENDED], 1), "name": "turncap.label"}]), id="a label's span"),
        pytest.param(span_line([span([ENDED], 1), {**span([], 2)}]), id="a span without attributes"),
        pytest.param(b'{"resourceLogs":' + b"[" * 5000 + b"]" * 5000 + b"}", id="nested too deep"),
        *(pytest.param(form, id=name) for name, form in FORMS.items()),
    ],
)
def test_what_is_not_regular_is_left_or_read_alike(line: bytes) -> None:
    lines = [*REGULAR[:2], *line.splitlines()]
    found = in_bulk(lines)
    if found is None:
        return
    rows, left = found
    expected, problems = by_record([one for index, one in enumerate(lines) if index not in left])
    assert rows == expected
    assert problems == []


LINKED = span_line([span([ENDED], 1)]).replace(
    b'"events":', b'"links":[{"traceId":"","attributes":[{"key":"a","value":{"stringValue":"x"}}]}],"events":'
)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(log_line([ENDED]).replace(b"\n", b"\r\n"), id="lines that end as on Windows"),
        pytest.param(log_line([ENDED.but(outcome='x}}y"}},{"key":"')]), id="text that looks like an end"),
        pytest.param(log_line([ENDED.but(candidates=['"},{"intValue":"', "{}"])]), id="text like a list"),
        pytest.param(log_line([ENDED.but(outcome="\\\\", more='\\"')]), id="backslashes before quotes"),
        pytest.param(
            log_line([ENDED.but(candidates=[])]).replace(b'"arrayValue":{}', b'"arrayValue":{"values":[]}'),
            id="a list of nothing that says so",
        ),
        pytest.param(
            log_line([ENDED.but(candidates=[])]).replace(b'"arrayValue":{"values":[]}', b'"arrayValue":{}'),
            id="a list of nothing that says nothing",
        ),
        pytest.param(log_line([ENDED.but(duration_ms=-1.5e-7)]), id="a fraction with an exponent"),
        pytest.param(log_line([ENDED.but(duration_ms=3)]), id="an integer for a fraction"),
        pytest.param(log_line([ENDED.but(ran=-(2**63))]), id="the least number"),
        pytest.param(log_line([ENDED.but(more=True, less=False, none=0.5)]), id="names that nobody uses"),
        pytest.param(LINKED, id="attributes where nobody looks"),
    ],
)
def test_every_regular_form_is_read_in_bulk(line: bytes) -> None:
    lines = [*REGULAR[:2], *line.splitlines(keepends=True)]
    found = in_bulk(lines)
    assert found is not None
    rows, left = found
    assert left == []
    assert (rows, []) == by_record(lines)


def test_a_number_in_an_attribute_s_place_is_not_taken_for_one() -> None:
    """Where attributes were cut out numbers stand for them, which the text must not be able to name."""
    for number in (0, 1, 2**61):
        line = log_line([ENDED]).replace(b'"attributes":[', b'"attributes":[%d,' % number, 1)
        bare = log_line([ENDED]).replace(b'"attributes":[', b'"attributes":[%d],"links":[' % number, 1)
        assert in_bulk([line]) is None
        assert in_bulk([bare]) is None


def test_a_line_that_is_no_json_is_left_alone() -> None:
    found = in_bulk([REGULAR[0], REGULAR[1][:-5], b'{"resourceLogs":[{"a":"', REGULAR[2]])
    assert found is not None
    assert found[1] == [1, 2]


PIECES = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b'"},{"intValue":"',
    b"\\",
    b"5",
    b"-",
    b"",
    b"\xff",
]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_lines_that_were_damaged_are_left_or_read_alike(data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(LINES[:3]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        gone = data.draw(st.integers(0, 12))
        line = line[:at] + data.draw(st.sampled_from(PIECES)) + line[at + gone :]
    found = in_bulk([line.replace(b"\n", b""), REGULAR[0]])
    if found is None:
        return
    rows, left = found
    expected, problems = by_record([one for index, one in enumerate([line, REGULAR[0]]) if index not in left])
    assert rows == expected
    assert problems == []


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)), max_size=60), st.text(max_size=9)
)
def test_any_numbers_and_text_are_read_alike(numbers: list[int], text: str) -> None:
    event = ENDED.but(milestones__k=numbers, candidates=[text, "x"], outcome=text, calls=len(numbers))
    line = json.dumps(json.loads(log_line([event])), separators=(",", ":")).encode()
    found = in_bulk([line])
    expected, problems = by_record([line])
    assert found is not None or "\\ud" in json.dumps(text)
    assert found is None or (found[0] == expected and not problems)
