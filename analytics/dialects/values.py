"""Odd values of attributes -> plain ones, and the identities that stand for arguments and results.

Writers send numbers and booleans as strings, JSON inside JSON, placeholders for what they hide and
marks where they cut. What is hidden or cut is unknown (None): two unknowns are never the same call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from analytics.dialects.base import Value
from analytics.dialects.results import Result
from guard.keys import KeyFailure, call_key, result_id

PLACEHOLDERS = frozenset({"", "<not specified>", "unknown", "N/A", "<REDACTED>", "[REDACTED]", "<redacted>"})
_LONGEST = max(map(len, PLACEHOLDERS))

# Marks of a value that was cut: by Claude Code, by the JavaScript and Python SDKs' own helpers.
_CUT = re.compile(
    r"…\[(?:\d+ (?:chars|items)|truncated[^\]]*)\]|\"<nested>\"|\"…\":\"\d+ keys\""
    r"|\[truncated\]\W*$|\.\.\. ?\(truncated\)\W*$|\[TRUNCATED\]\W*$"
)
_JSON_BEGINS = ('{"', '["', '[{"')
_BOOLEANS = {"true": True, "false": False}
_NUMBERS = (int, float, str)
_CONTAINERS = (dict, list)
_EXACT = 2**53  # below it, a double holds every whole number
_MOST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _placeholder(text: str) -> bool:
    """Whether the text stands for what is hidden; a long one is not hashed to find out."""
    return len(text) <= _LONGEST and text in PLACEHOLDERS


def _cut(text: str) -> bool:
    """Whether the text bears the mark of having been cut."""
    # Each mark has one of these words: most texts are not searched for more.
    words = "…" in text or "<nested>" in text or "runcated" in text or "RUNCATED" in text
    return words and _CUT.search(text) is not None


@dataclass(frozen=True, slots=True)
class Volatile:
    """What a product adds to its results that differs although nothing else does: a pattern that matches
    within lines, and the words of which every match has one."""

    pattern: re.Pattern[str]
    words: tuple[str, ...]

    def without(self, text: str) -> str:
        """The text less all that matches; nothing is looked for behind the last line with a word."""
        last = max(map(text.rfind, self.words))
        if last < 0:
            return text
        end = text.find("\n", last) + 1 or len(text)
        return self.pattern.sub("", text[:end]) + text[end:]


def first(attributes: Mapping[str, Value], names: Sequence[str]) -> Value:
    """The first of the attributes that has a value."""
    for name in names:
        value = attributes.get(name)
        if value is not None:
            return value
    return None


def text(value: Value) -> str | None:
    """A name or an id; None for placeholders and what is neither text nor a whole number."""
    if value is None:
        return None
    if isinstance(value, str):
        return None if value in PLACEHOLDERS else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def first_text(attributes: Mapping[str, Value], names: Sequence[str]) -> str | None:
    """The first of the attributes that holds a name or an id."""
    for name in names:
        if name in attributes and (found := text(attributes[name])) is not None:
            return found
    return None


def boolean(value: Value) -> bool | None:
    """A boolean, also as a string."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _BOOLEANS.get(value.lower())
    return None


def number(value: Value) -> float | None:
    """A number, also as a string; None for what is none, or no finite one."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) < 1e300 else None


def whole(value: Value) -> int | None:
    """A whole number, also as a string; None for one that cannot be stored."""
    if value is None:
        return None
    if type(value) is int and -_EXACT < value < _EXACT:
        return value
    found = number(value)
    return fitting(int(found)) if found is not None else None


def fitting(value: int) -> int | None:
    """The integer; None where it passes 64 bits, so that nothing can store it."""
    return value if -_MOST <= value <= _MOST else None


def nanoseconds(value: Value) -> int | None:
    """A time as ISO 8601 text -> nanoseconds since 1970; without an offset it is UTC. None beyond 64 bits,
    which is to say before 1677 and after 2262."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return fitting((since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000)


def begun(at: int | None, duration: Value) -> int | None:
    """When what ended at `at` began, by its duration in milliseconds; `at` itself where that says nothing."""
    taken = number(duration)
    if at is None or taken is None:
        return at
    began = fitting(at - int(taken * 1e6))
    return at if began is None else began


def decoded(value: Value) -> Value:
    """The value behind JSON text, also twice encoded; None where it was cut. Other values as they are."""
    if not isinstance(value, str):
        return value
    found = _parsed(value)
    return _parsed(found) if isinstance(found, str) and value.startswith('"') else found


def _parsed(text: str) -> Value:
    if _cut(text):
        return None
    if not text.startswith(("{", "[", '"')):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None if text[0] != '"' else text


def argument_key(tool: str | None, arguments: Value) -> str | None:
    """The key of a call in hexadecimal; None where tool or arguments are unknown."""
    if tool is None or arguments is None:
        return None
    value = arguments
    if isinstance(arguments, str):
        value = None if _placeholder(arguments) else decoded(arguments)
        if value is None:
            return None
    elif isinstance(arguments, _CONTAINERS) and _cut_inside(arguments):
        return None
    try:
        return call_key(tool, value if isinstance(value, _CONTAINERS) else {"": value}).hex()
    except KeyFailure:
        return None


def result_key(result: Value, *, error: bool | None, volatile: Volatile | None = None) -> Result | str | None:
    """What stands for a result, less what is `volatile` in it: its identity in hexadecimal, or for text what
    finds it; None where it is unknown."""
    if result is None:
        return None
    if isinstance(result, str):
        if result and _placeholder(result):
            return None
        if _cut(result[-200:]) or (result.startswith(_JSON_BEGINS) and decoded(result) is None):
            return None  # text that begins like JSON and is none was cut
        return Result(volatile.without(result) if volatile is not None else result, bool(error))
    try:
        return result_id(result, error=bool(error)).hex()
    except KeyFailure:
        return None


def tool_message(result: Value) -> Value:
    """What LangChain's tool message says, without its ids and its wrappings; any other result as it is."""
    if not isinstance(result, str) or not result.startswith("{"):
        return result
    value = decoded(result)
    for _ in range(3):
        if not isinstance(value, dict):
            return result
        if value.get("type") == "tool" and "content" in value:
            content = value["content"]
            return content if isinstance(content, str) else str(content)
        value = next((value[inner] for inner in ("output", "data", "kwargs") if inner in value), None)
    return result


def _cut_inside(value: Any) -> bool:
    try:
        return _cut(orjson.dumps(value).decode())
    except TypeError:
        return False
