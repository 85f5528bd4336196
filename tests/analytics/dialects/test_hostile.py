"""Whatever a record holds, reading it never raises, and what is kept can be stored as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.dialects.assemble import assemble
from analytics.dialects.base import Record, Source, SpanEvent
from tests.analytics.dialects.reading import DATA, records, stored

REAL = [record for path in sorted(DATA.glob("*.gz")) for record in list(records(path))[:40]]
NAMES = sorted({name for record in REAL for name in record.attributes})
FIELDS = sorted({name for record in REAL if isinstance(record.body, dict) for name in record.body})

TOO_MUCH = ["1e200", "-1e200", "9" * 30, "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", [2**62, 0]]
ODD = ['{"a": "b', "{}", "[1,", "execute_tool", "TOOL", "user", "\ud800", "1e999", "2026-13-01", *TOO_MUCH]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(ODD),
    st.binary(max_size=4),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def hostile(draw: st.DrawFn) -> Record:
    """A real record with some of its values replaced."""
    real = draw(st.sampled_from(REAL))
    attributes: dict[str, Any] = dict(real.attributes)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        attributes[name] = draw(values)
    body = real.body
    if isinstance(body, dict):
        body = dict(body)
        for name in draw(st.lists(st.sampled_from(FIELDS), max_size=3)):
            body[name] = draw(values)
    return Record(
        source=draw(st.sampled_from(list(Source))) if draw(st.booleans()) else real.source,
        name=draw(st.sampled_from([real.name, "", "execute_tool ", "Function: "])),
        attributes=attributes,
        scope=real.scope,
        trace_id=draw(st.sampled_from([real.trace_id, ""])),
        span_id=draw(st.sampled_from([real.span_id, "", "same"])),
        parent_id=draw(st.sampled_from([real.parent_id, "", "same"])),
        started_at=draw(st.sampled_from([real.started_at, None, 0])),
        at=draw(st.sampled_from([real.at, None, 0])),
        failed=draw(st.sampled_from([None, True, False])),
        body=body,
        events=[SpanEvent(name=event.name, at=None, attributes=attributes) for event in real.events],
        path=real.path,
        offset=draw(st.integers(0, 5)),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(hostile(), max_size=12))
def test_nothing_raises(found: list[Record]) -> None:
    for group, seen in stored(found).items():
        for one in seen:
            assert isinstance(one.id, str)
            assert isinstance(group, str)
            assert one.at is None or isinstance(one.at, int)
        for turn in assemble(seen):
            assert turn.grade in ("exact", "no-results", "names-only")
            known = [call.key for call in turn.calls if call.key is not None]
            assert set(known) == set(range(len(set(known)))), "numbered in order of first appearance"


@pytest.mark.parametrize("value", TOO_MUCH, ids=str)
def test_a_figure_that_passes_64_bits_is_not_kept_wherever_it_stands(value: Any) -> None:
    found = []
    for real in REAL:
        body = real.body if isinstance(real.body, dict) else {}
        found += [
            msgspec.structs.replace(real, attributes={**real.attributes, n: value}) for n in real.attributes
        ]
        found += [msgspec.structs.replace(real, body={**body, name: value}) for name in body]
    kept = [one for seen in stored(found).values() for one in seen]
    assert len(kept) > 300
    times = [time for one in kept for time in (one.at, one.start, one.end, one.seq)]
    assert all(time is None or -(2**63) <= time < 2**63 for time in times)
