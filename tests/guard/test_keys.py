"""Keys: equal JSON values and no others are one call; the same bytes whichever library writes them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.keys import (
    KeyFailure,
    _Writer,
    call_key,
    canonical,
    plain_by_json,
    plain_by_orjson,
    result_id,
)
from guard.masking import masked

TEXT = st.text(max_size=8) | st.sampled_from(
    ["\ud800", "\x00", "\x1f\x7f", '"\\/', "é", "e\u0301", "😀", "1"]
)
NUMBERS = (
    st.integers(-3, 3)
    | st.integers()
    | st.floats()
    | st.sampled_from([1.0, -0.0, 2.0**63, 2**63, 2**64, 1e21, 10**21, 1e-7])
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
FEW = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, math.nan, math.inf, "1", "a", "", "null"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=3,
)


def value(given_: Any) -> Any:
    """The JSON value that `given_` is, so that == is the contract's equality."""
    if isinstance(given_, dict):
        return "object", frozenset((key, value(item)) for key, item in given_.items())
    if isinstance(given_, list):
        return "array", tuple(map(value, given_))
    if isinstance(given_, bool) or given_ is None:
        return "word", given_
    if isinstance(given_, int | float):
        return ("number", given_) if math.isfinite(given_) else ("word", None)
    return "text", given_


def reordered(given_: Any) -> Any:
    """The same value with the fields of every object in the reverse order."""
    if isinstance(given_, dict):
        return {key: reordered(item) for key, item in reversed(given_.items())}
    return [reordered(item) for item in given_] if isinstance(given_, list) else given_


@given(FEW, FEW)
@settings(max_examples=500, deadline=None)
def test_two_calls_are_one_key_exactly_if_their_arguments_are_one_json_value(one: Any, other: Any) -> None:
    assert (call_key("t", [one]) == call_key("t", [other])) == (value(one) == value(other))


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_the_order_of_fields_is_nothing(given_: Any) -> None:
    assert call_key("t", given_) == call_key("t", reordered(given_))
    assert call_key("t", given_) != call_key("t", [given_])


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_every_writer_writes_the_same_bytes(given_: Any) -> None:
    """Where a library refuses, or would write floats its own way, the tree's own writer decides."""
    written = _Writer().write(given_)
    assert canonical(given_) == written
    if not _has_float(given_):
        for plain in (plain_by_json, plain_by_orjson):
            assert plain(given_) in (None, written)


def _has_float(given_: Any) -> bool:
    if isinstance(given_, dict):
        return any(map(_has_float, given_.values()))
    if isinstance(given_, list):
        return any(map(_has_float, given_))
    return isinstance(given_, float)


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_the_key_is_the_same_with_and_without_orjson(given_: Any) -> None:
    keys = set()
    for plain in (plain_by_json, plain_by_orjson):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("guard.keys._plain", plain)
            keys.add(call_key("t", {"a": given_}))
    assert len(keys) == 1


@pytest.mark.parametrize("bits", [63, 64, 4_095, 4_096, 4_097, 14_000, 40_000])
def test_long_integers_are_written_alike_and_told_apart(bits: int) -> None:
    for number in (2**bits, -(2**bits)):
        for place in ({"a": number}, [number], {"a": [number], "b": "1" * 2_000}):
            written = _Writer().write(place)
            assert plain_by_json(place) in (None, written)
            assert canonical(place) == written
        assert call_key("t", {"a": number}) != call_key("t", {"a": number + 1})


def nested(levels: int) -> Any:
    found: Any = []
    for _ in range(levels - 1):
        found = [found]
    return found


def test_too_deep_means_more_than_1_000_levels() -> None:
    assert call_key("t", nested(1_000)) == call_key("t", nested(1_000))
    for levels in (1_001, 10_000):
        keys = []
        for _ in range(2):
            with pytest.raises(KeyFailure) as caught:
                call_key("t", nested(levels))
            keys.append(caught.value.key)
        assert keys[0] != keys[1]  # a key of its own: never a repeat


NAMES = [("a", "A"), ("a", " a"), ("a", "a\0"), ("", "a"), ("é", "e\u0301"), ("\ud800", "?")]


@pytest.mark.parametrize(("one", "other"), NAMES, ids=lambda name: repr(name))
def test_names_are_taken_as_they_are(one: str, other: str) -> None:
    assert call_key(one) != call_key(other)
    assert call_key(one) == call_key(one, {})


MASKED: list[tuple[str, str, str, bool]] = [
    ("a timestamp", "at 2026-12-01T04:15:56Z done", "at 2027-01-02T05:16:57.123Z done", True),
    ("a timestamp with an offset", "2026-12-01 04:15:56+01:00", "2026-12-02 05:15:56+02:00", True),
    ("a date", "on 2026-12-01", "on 2026-11-30", True),
    ("a duration", "3 passed in 0.12s", "3 passed in 0.15s", True),
    ("a duration in words", "took 5 seconds", "took 61 seconds", True),
    ("a process id", "pid 4242 died", "pid 17 died", True),
    ("a process id in brackets", "sshd[123]: no", "sshd[456]: no", True),
    ("an address", "<X at 0x7f00aa>", "<X at 0x7f11bb>", True),
    ("a hexadecimal id", "commit 9f8e7d6 ok", "commit 0a1b2c3 ok", True),
    ("a UUID", "id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-4000-8000-00000000000f", True),
    ("counts stay", "3 passed", "4 passed", False),
    ("line numbers stay", "line 10: error", "line 11: error", False),
    ("sizes stay", "1024 bytes", "2048 bytes", False),
    ("words stay", "deadbeef", "feedface", False),
    ("text stays", "yes", "no", False),
    ("versions stay", "v1.2.3", "v1.2.4", False),
]


@pytest.mark.parametrize(("one", "other", "same"), [r[1:] for r in MASKED], ids=[r[0] for r in MASKED])
def test_what_is_masked_in_a_result(one: str, other: str, same: bool) -> None:
    assert (result_id(one) == result_id(other)) is same


def test_a_function_can_replace_the_masking() -> None:
    assert result_id("a1") != result_id("a2")
    assert result_id("a1", mask=lambda text: text[:1]) == result_id("a2", mask=lambda text: text[:1])
    with pytest.raises(KeyFailure):
        result_id("a", mask=lambda text: str(1 // 0))
    with pytest.raises(KeyFailure):
        result_id("a", mask=lambda text: None)  # type: ignore[arg-type,return-value]


def test_what_is_masked_is_never_all_digits() -> None:
    text = "12345 678 9.5 0"
    assert masked(text) == text
