"""Odd values, and what counts as the same call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.dialects import codex, gemini, genai
from analytics.dialects.results import Result
from analytics.dialects.values import (
    Volatile,
    argument_key,
    begun,
    boolean,
    nanoseconds,
    number,
    result_key,
    text,
    whole,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"a":1,"b":2}', '{ "b": 2, "a": 1 }', id="the order and spacing of JSON"),
        pytest.param({"a": 1}, '{"a":1}', id="a map and its JSON"),
        pytest.param(json.dumps('{"a":1}'), '{"a":1}', id="JSON inside JSON"),
        pytest.param('{"a":1}', '{"a":1.0}', id="one and 1.0"),
        pytest.param("x", "x", id="plain text"),
    ],
)
def test_the_same_arguments_have_the_same_key(one: Any, other: Any) -> None:
    assert argument_key("t", one) == argument_key("t", other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"a":1}', '{"a":"1"}', id="a number and a string"),
        pytest.param("[1]", "[1,1]", id="lists"),
        pytest.param("{}", "[]", id="an empty map and list"),
        pytest.param("x", "y", id="texts"),
    ],
)
def test_other_arguments_have_another_key(one: Any, other: Any) -> None:
    assert argument_key("t", one) != argument_key("t", other)
    assert argument_key("t", one) != argument_key("u", one)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param("<REDACTED>", id="hidden"),
        pytest.param("<not specified>", id="not specified"),
        pytest.param("N/A", id="not applicable"),
        pytest.param('{"command":"echo aaaa', id="JSON that was cut"),
        pytest.param('{"content":"abc…[9000 chars]"}', id="a value that was cut"),
        pytest.param('{"items":["a","…[40 items]"]}', id="a list that was cut"),
        pytest.param('{"deep":"<nested>"}', id="nesting that was cut"),
        pytest.param({"content": "abc…[9000 chars]"}, id="a value that was cut, in a map"),
        pytest.param("some text ...(truncated)", id="text that was cut"),
    ],
)
def test_what_is_hidden_or_cut_is_unknown_and_never_a_repeat(arguments: Any) -> None:
    assert argument_key("t", arguments) is None


def test_a_call_of_unknown_name_is_unknown() -> None:
    assert argument_key(None, "{}") is None


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(None, id="absent"),
        pytest.param("<REDACTED>", id="hidden"),
        pytest.param("a long text…[truncated, original 9000 chars]", id="cut"),
        pytest.param('{"rows": [1, 2', id="JSON that was cut"),
    ],
)
def test_an_unknown_result(result: Any) -> None:
    assert result_key(result, error=False) is None


def of_text(result: str, *, error: bool = False) -> str:
    key = result_key(result, error=error)
    assert isinstance(key, Result)
    return key.identity()


def test_results_differ_by_error_and_not_by_what_is_volatile() -> None:
    assert of_text("x", error=True) != of_text("x")
    at = "done at 2026-01-01T00:00:00Z"
    assert of_text(at) == of_text(at.replace("2026", "2027"))
    assert of_text("") != of_text(" ")
    assert of_text("[{'a': 1}]"), "what Python prints is no JSON that was cut"
    assert result_key({"a": 1}, error=False) == of_text('{"a":1}')


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), ("False", False), ("yes", None), (1, None), (None, None)],
)
def test_booleans(value: Any, expected: bool | None) -> None:
    assert boolean(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("12", 12.0), (3, 3.0), ("x", None), (True, None), ("inf", None), ("nan", None), ("9" * 400, None)],
)
def test_numbers(value: Any, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12", 12), (3, 3), (-3, -3), ("3.9", 3), (2**53 - 1, 2**53 - 1), (2**60 + 1, 2**60), (True, None),
        ("x", None), (10**400, None), ("1e200", None), ("9" * 30, None),
    ],
)  # fmt: skip
def test_whole_numbers_are_those_that_a_double_holds(value: Any, expected: int | None) -> None:
    assert whole(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01", 1_000_000_000),
        ("today", None),
        ("2262-01-01T00:00:00Z", 9_214_646_400_000_000_000),
        ("2263-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00Z", None),
        (12, None),
    ],
)
def test_times(value: Any, expected: int | None) -> None:
    assert nanoseconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", "a"), (7, "7"), ("unknown", None), ("", None), (True, None), (["a"], None)],
)
def test_names_and_ids(value: Any, expected: str | None) -> None:
    assert text(value) == expected


pieces = st.sampled_from(
    [
        "Chunk ID: ", "Wall time: ", '"duration_seconds":', '"duration_seconds": 1.5', "Process Group PGID: ",
        "<shellId: ", "12", " ", "\n", "\r\n", "x", "é",
    ]
)  # fmt: skip


@given(st.lists(pieces, max_size=12).map("".join))
@pytest.mark.parametrize("volatile", [codex.VOLATILE, gemini.VOLATILE, *genai.VOLATILE.values()])
def test_only_what_matches_is_left_out_wherever_it_stands(volatile: Volatile, result: str) -> None:
    assert volatile.without(result) == volatile.pattern.sub("", result)


@pytest.mark.parametrize(
    ("at", "duration", "expected"),
    [
        (5_000_000, 2, 3_000_000),
        (5_000_000, "2.5", 2_500_000),
        (5_000_000, None, 5_000_000),
        (5_000_000, "1e200", 5_000_000),
        (None, 2, None),
    ],
)
def test_when_something_began(at: int | None, duration: Any, expected: int | None) -> None:
    assert begun(at, duration) == expected
