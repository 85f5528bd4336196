"""(tool, arguments) -> key, and result -> result id.

A key is the tool's name and the canonical JSON of the arguments, hashed: object keys sorted at every
depth, arrays in order, no text normalised. Equal JSON values give equal keys: 1 and 1.0 are one number,
1, true and "1" are three values. What is no JSON gets a stable tagged form. Plain arguments are written
by orjson where it is installed, else by json, everything else by `_Writer`; all three give the same bytes.
A turn compares short keys as they are, which costs half of hashing them; what leaves the process is hashed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from itertools import count, islice
from json.encoder import encode_basestring
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from guard.masking import masked

try:
    import orjson

    HAS_ORJSON = True
    _dumps, _SORTED = orjson.dumps, orjson.OPT_SORT_KEYS
except ImportError:
    HAS_ORJSON = False

DEEPEST = 1_001  # levels of nesting, with the pair (name, arguments); deeper ones get a key of their own
LARGEST = 1_000_000  # values and containers in one call's arguments; more get a key of their own
PLAIN_DEPTH = 200  # what both json and orjson write without refusing
HASHED, SHORT = 16, 512  # bytes of a hash, and of the longest text that stays as it is

_SCALARS = frozenset({str, int, bool, type(None)})
_WRITTEN_AS_TEXT = (Decimal, date, datetime, time, timedelta, UUID, PurePath, complex, range)
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False)
_INTEGER_BITS = 4096  # longer integers are written tagged: Python refuses to write very long decimals
_INTEGER_DIGITS = 1_234  # an integer with fewer is shorter than that
_DIGITS = re.compile(r"[0-9]+")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in a repr: another one in every process

_alone = count()  # makes a key that no other call has


class KeyFailure(Exception):  # noqa: N818 - it never leaves this package
    """The arguments could not be written; `key` is one that no other call has."""

    def __init__(self, name: str, reason: str) -> None:
        self.key = blake2b(
            f"{name}\0{next(_alone)}".encode("utf-8", "surrogatepass"), digest_size=16, person=b"alone"
        ).digest()
        super().__init__(reason)


def call_key(name: str, args: Any = None, ignored: Collection[str] | None = None) -> bytes:
    """The key of a call, 16 bytes; arguments and errors are those of `short_key`."""
    return hashed(short_key(name, args, ignored))


def hashed(key: bytes) -> bytes:
    """What `short_key` returned as 16 bytes."""
    return key if len(key) == HASHED else blake2b(b"[" + key, digest_size=HASHED).digest()


def short_key(name: str, args: Any = None, ignored: Collection[str] | None = None) -> bytes:
    """The key of a call as it is compared in memory: up to 512 bytes of JSON as they are, else 16 of hash.

    None as arguments is an empty object; `ignored` ones are left out.

    Raises:
        KeyFailure: a cycle, more than 1,000 levels, more than 1,000,000 values, or a value whose
            conversion fails. It carries a key of its own, so that such a call is never a repeat.
    """
    if ignored:
        args = _without(name, args, ignored)
    text = None
    # Nearly all calls: an object of scalars. Its keys are text, or orjson refuses it.
    if HAS_ORJSON and type(args) is dict and _SCALARS.issuperset(map(type, args.values())):
        try:  # noqa: SIM105 - a `with` costs as much as the hashing that is spared
            text = _dumps((name, args), None, _SORTED)
        except TypeError:  # what it refuses, the other path writes
            pass
    if text is None:
        try:
            text = canonical((name, {} if args is None else args))
        except Exception as error:  # noqa: BLE001 - foreign code runs here: whatever it raises, the call goes on
            raise KeyFailure(
                name, f"{type(error).__name__} while writing the arguments of {name!r}"
            ) from None
    # Without its first bracket it is a copy: the text itself holds on to all of orjson's buffer.
    return text[1:] if HASHED + 1 < len(text) <= SHORT else blake2b(text, digest_size=HASHED).digest()


def _without(name: str, args: Any, ignored: Collection[str]) -> Any:
    try:
        if not isinstance(args, Mapping):
            return args
        kept = {
            key: args[key]
            for key in islice(args, LARGEST)
            if not (isinstance(key, str) and str.__str__(key) in ignored)
        }
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        raise KeyFailure(name, f"{type(error).__name__} while leaving out arguments") from None
    return kept


def canonical(value: Any) -> bytes:
    """The canonical JSON of any value.

    Raises:
        Exception: whatever a conversion raises; ValueError where it is too deep or too large.
    """
    fast = _plain(value) if _is_plain(value) else None
    return _Writer().write(value) if fast is None else fast


def result_id(result: Any, *, error: bool = False, mask: Callable[[str], str] | None = None) -> bytes:
    """The identity of what a call returned (of its error where `error`), 16 bytes.

    Text is masked by `mask` (default: `masked`) first. What is no text is written as canonical JSON.

    Raises:
        KeyFailure: the result cannot be written; it carries an id that no other result has.
    """
    try:
        if isinstance(result, str):
            text = result
        elif isinstance(result, BaseException):
            text = f"{type(result).__name__}: {result}"
        elif isinstance(result, bytes | bytearray):
            text = result.decode("utf-8", "backslashreplace")
        else:
            text = canonical(result).decode("utf-8", "surrogatepass")
        text = (masked if mask is None else mask)(text)
        data = text.encode("utf-8", "surrogatepass")
    except Exception as failure:  # noqa: BLE001 - foreign code runs here
        raise KeyFailure("result", f"{type(failure).__name__} while reading a result") from None
    return blake2b(data, digest_size=16, person=b"error" if error else b"result").digest()


def plain_by_json(value: Any) -> bytes | None:
    """Canonical JSON of a plain value by the standard library, or None where it refuses."""
    try:
        text = _ENCODER.encode(value)
        if len(text) >= _INTEGER_DIGITS and any(
            found.end() - found.start() >= _INTEGER_DIGITS for found in _DIGITS.finditer(text)
        ):
            return None  # perhaps an integer that is written tagged
        return text.encode()
    except (ValueError, RecursionError):  # a lone surrogate, an enormous integer, a deep stack
        return None


def plain_by_orjson(value: Any) -> bytes | None:
    """Canonical JSON of a plain value by orjson, or None where it refuses."""
    try:
        return orjson.dumps(value, None, orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, or an integer past 64 bits
        return None


_plain = plain_by_orjson if HAS_ORJSON else plain_by_json


def _is_plain(value: Any) -> bool:
    """Whether both libraries write `value` and write it alike: exact JSON types, no float, not deep.

    Raises:
        ValueError: there are more than `LARGEST` values, as in a structure that holds one part many times.
    """
    level: list[Any] = [value]
    seen = 0
    for _ in range(PLAIN_DEPTH):
        deeper: list[Any] = []
        for item in level:
            kind = type(item)
            if kind in _SCALARS:
                continue
            if kind is dict:
                for key in item:
                    if type(key) is not str:
                        return False
                deeper.extend(item.values())
            elif kind is list or kind is tuple:
                deeper.extend(item)
            else:
                return False
        if not deeper:
            return True
        seen += len(deeper)
        if seen > LARGEST:
            raise ValueError("too many values")
        level = deeper
    return False


class _Writer:
    """Writes any Python value as canonical JSON, without recursion."""

    def __init__(self) -> None:
        self.values = 0

    def write(self, value: Any) -> bytes:
        """The bytes.

        Raises:
            ValueError: it is too deep, too large or holds itself.
        """
        pieces: list[str] = []
        # A stack of what is still to be written: ready text, or (value, depth).
        stack: list[str | tuple[Any, int]] = [(value, 0)]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                pieces.append(top)
                continue
            item, depth = top
            self.values += 1
            text = _scalar(item)
            if text is not None:
                pieces.append(text)
                continue
            parts = self.parts(item)
            if depth >= DEEPEST or self.values + len(parts) > LARGEST:
                raise ValueError("too deep or too large")
            if isinstance(parts, dict):
                stack.append("}")
                entries = sorted(parts.items(), reverse=True)
                for position, (key, child) in enumerate(entries, start=1):
                    stack.append((child, depth + 1))
                    stack.append(("" if position == len(entries) else ",") + encode_basestring(key) + ":")
                stack.append("{")
            else:
                stack.append("]")
                for position in range(len(parts) - 1, -1, -1):
                    stack.append((parts[position], depth + 1))
                    if position:
                        stack.append(",")
                stack.append("[")
        return "".join(pieces).encode("utf-8", "surrogatepass")

    def parts(self, value: Any) -> dict[str, Any] | list[Any] | tuple[Any, ...]:
        """What a value with parts is made of: JSON's own as they are, all else tagged with its type."""
        if isinstance(value, Mapping):
            return self.named(value)
        if isinstance(value, list | tuple):
            return value
        kind = type(value)
        tag = f"\0{kind.__module__}.{kind.__qualname__}"
        if isinstance(value, Enum):
            return {tag: value.value}
        if isinstance(value, bytes | bytearray | memoryview):
            return {tag: bytes(value).hex()}
        if isinstance(value, Set):
            return {tag: sorted(self.digest(item) for item in value)}
        if isinstance(value, _WRITTEN_AS_TEXT):
            return {tag: str(value)}
        if is_dataclass(value) and not isinstance(value, type):
            return {tag: {field.name: getattr(value, field.name) for field in fields(value)}}
        if isinstance(value, type):
            return {tag: f"{value.__module__}.{value.__qualname__}"}
        # Pydantic models, without importing them; asked of the type, as a mock has every attribute.
        if callable(getattr(kind, "model_dump", None)):
            return {tag: cast(Any, value).model_dump()}
        if isinstance(value, Sequence):
            return {tag: list(islice(value, LARGEST))}
        with suppress(TypeError):
            view = memoryview(value)  # an array: its repr may leave out most of it
            return {tag: [view.format, list(view.shape or ()), blake2b(view.tobytes()).hexdigest()]}
        if cast(Any, kind).__repr__ is not object.__repr__:
            return {tag: _ADDRESS.sub("", repr(value))}
        if hasattr(value, "__dict__"):
            return {tag: dict(vars(value))}
        raise ValueError("a value with no form of its own")

    def named(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        """A mapping with text as keys: other keys are tagged, so that 1 and "1" stay apart."""
        named: dict[str, Any] = {}
        for key in islice(value, LARGEST):
            name = str.__str__(key) if isinstance(key, str) else "\0key:" + self.digest(key)
            named[name] = value[key]
        return named

    def digest(self, value: Any) -> str:
        """A value inside a name or a set: nested as text it would double with every level."""
        return blake2b(self.write(value), digest_size=16).hexdigest()


def _scalar(value: Any) -> str | None:
    """JSON of a scalar; None for what has parts."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_basestring(str.__str__(value))
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return "null"
        return _integer(int(number)) if number.is_integer() else repr(number)
    return None


def _integer(value: int) -> str:
    # A float is never longer than 1,024 bits.
    return str(value) if value.bit_length() <= _INTEGER_BITS else encode_basestring(f"\0int:{value:x}")
