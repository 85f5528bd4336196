"""Attributes of OTLP/JSON -> columns, cut out of the text by arithmetic on the places of its quotes.

Nearly all of telemetry is attributes, and every exporter writes them in one form:
`{"key":"…","value":{"intValue":"…"}}`. Where all of a text's attributes have it, their values are given as
columns, and a skeleton is left: the same JSON with a number in place of each run of attributes. What was
cut out is compared byte by byte, so that whoever parses the skeleton as JSON has proved the whole text.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

Places = np.ndarray[Any, np.dtype[np.int64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]
Kind = Literal["text", "integer", "truth", "fraction", "texts", "integers"]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_LONGEST = 2**31 - 256  # bytes that 32-bit offsets can tell apart
# Around the text, so that a look some bytes or some quotes ahead or back stays inside, and finds nothing.
_BEFORE, _BEHIND = b" " * 32, b" " * 32 + b'"' * 16 + b" " * 32
_QUOTE, _BACKSLASH, _COMMA = b'"\\,'

_KEY = b'{"key":"'
_TEXT, _INT, _BOOL, _DOUBLE, _LIST = (
    b'","value":{"' + kind
    for kind in (b'stringValue":"', b'intValue":"', b'boolValue":', b'doubleValue":', b'arrayValue":{')
)
_MEMBERS = b'"values":['
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


class IrregularError(Exception):
    """Something that reading record by record must decide."""


def require(holds: Any) -> None:
    """IrregularError unless it holds, of every element where there are many."""
    if not np.all(holds):
        raise IrregularError


def _word(literal: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(literal[:8], "little"))


class _Text:
    """Bytes that can be compared at many places at once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, np.uint8)
        self._words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, 0, (1,))

    def words(self, at: Places) -> Words:
        """The eight bytes at each place."""
        return self._words[at]

    def holds(self, literal: bytes, at: Places) -> Flags:
        """Whether the literal stands at each place."""
        if len(literal) < 8:
            mask = np.uint64((1 << 8 * len(literal)) - 1)
            return np.asarray((self.words(at) & mask) == _word(literal))
        found = np.asarray(self.words(at) == _word(literal))
        for skipped in {*range(8, len(literal) - 8, 8), len(literal) - 8} - {0}:
            found = found & (self.words(at + skipped) == _word(literal[skipped:]))
        return found

    def slices(self, begin: Places, end: Places) -> pa.Array:
        """The texts between places, which stand in their order and do not overlap."""
        offsets = _paired(begin, end)
        every = pa.Array.from_buffers(
            pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        return every.take(_evens(len(begin)))

    def tokens(self, lines: Places) -> tuple[Places, Places, Places]:
        """Where texts begin and end (their quotes), and the places of backslashes; `lines` end at these."""
        quotes = np.flatnonzero(self.bytes == _QUOTE)
        backslashes = quotes[:0]
        if b"\\" in self.data:
            # A quote is escaped when the run of backslashes before it is of odd length.
            backslashes = np.flatnonzero(self.bytes == _BACKSLASH)
            first = np.diff(backslashes, prepend=-2) > 1
            run = np.maximum.accumulate(np.where(first, backslashes, 0))
            behind = np.flatnonzero(self.bytes[quotes - 1] == _BACKSLASH)
            begun = run[np.searchsorted(backslashes, quotes[behind] - 1)]
            quotes = np.delete(quotes, behind[(quotes[behind] - begun) % 2 == 1])
        # No text goes over a line's end, nor holds another character that JSON would write as an escape.
        require(np.searchsorted(quotes, lines) % 2 == 0)
        require(np.count_nonzero(self.bytes < 32) == len(lines))
        return quotes[:-1:2], quotes[1::2], backslashes


def _paired(begin: Places, end: Places) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Offsets of begin, end, begin, end …, which every other of is a slice."""
    offsets = np.zeros(2 * len(begin) + 1, np.int32)
    offsets[:-1:2], offsets[1::2], offsets[-1] = begin, end, end[-1] if len(end) else 0
    require(np.diff(offsets) >= 0)
    return offsets


class _Elements:
    """The values of one kind in a text, whether in a list or alone: `{"intValue":"…"`."""

    def __init__(self, text: _Text, begin: Places, end: Places, opening: Words, kind: bytes) -> None:
        head = b'{"' + kind + b'":"'
        named = np.flatnonzero(opening == _word(head))
        require(text.holds(head[-8:], begin[named] + (len(head) - 9)))  # kinds are of 8 to 16 bytes with this
        self.token = named + 1
        self.end = end[self.token]  # where the closing quote stands
        self.values = text.slices(begin[self.token] + 1, self.end)
        self.number = np.full(len(begin), -1)  # of the token that names the kind -> number of its value
        self.number[named] = np.arange(len(named))
        more = text.words(self.end) == _word(b'"},{"' + kind)  # another follows in the same list
        require(not more[-1:].any() and (named[1:] - named[:-1])[more[:-1]] == 2)
        self._closing = np.flatnonzero(~more)

    def last(self, number: Places) -> Places:
        """The number of the last value of the list in which each value stands."""
        return self._closing[np.searchsorted(self._closing, number)]


class Attributes:
    """The attributes of some lines of JSON, numbered in their order from 0.

    IrregularError where one of them has another form.
    """

    def __init__(self, lines: Sequence[bytes]) -> None:
        ends = np.cumsum([len(line) + 1 for line in lines]) + (len(_BEFORE) - 1)
        require(ends[-1] < _LONGEST)
        data = b"\n".join((_BEFORE + lines[0], *lines[1:], _BEHIND))
        if not data.isascii():
            data.decode()  # Arrow would take bytes that are no UTF-8
        self._text = text = _Text(data)
        begin, end, backslashes = text.tokens(ends)
        escaped = np.unique(np.searchsorted(begin, backslashes) - 1)  # tokens
        opening = text.words(begin - 1)
        key = np.flatnonzero(opening == _word(_KEY))
        require(~np.isin(key + 1, escaped))
        self._begin, self._named = begin[key] - 1, end[key + 1]
        self._end = np.zeros(len(key), np.int64)  # 0 while unproved
        self.key = text.slices(begin[key + 1] + 1, self._named)
        self._kind = text.words(self._named + 8)
        texts = _Elements(text, begin, end, opening, b"stringValue")
        texts.values = _unescaped(texts.values, np.flatnonzero(np.isin(texts.token, escaped)))
        ints = _Elements(text, begin, end, opening, b"intValue")
        ints.values = _whole(ints.values)
        truths, truth_at = self._truths()
        fractions, fraction_at = self._fractions(begin[key + 4])
        int_at = self._alone(_INT, ints, key)
        # A float must be able to tell an integer that stands for a fraction.
        whole = ints.values.to_numpy(zero_copy_only=False)
        told = np.append((whole >= -(2**53)) & (whole <= 2**53), False)[int_at]
        # Kind -> its values, and which of them each attribute has; -1 for those of another kind.
        self._columns = {
            "text": (texts.values, self._alone(_TEXT, texts, key)),
            "integer": (ints.values, int_at),
            "truth": (truths, truth_at),
            "fraction": (
                pa.concat_arrays([fractions, ints.values.cast(pa.float64(), safe=False)]),
                np.where(told, int_at + len(fractions), fraction_at),
            ),
        }
        self._columns["texts"], self._columns["integers"] = self._lists(texts, ints, key, begin)
        require(self._end > 0)

    def __len__(self) -> int:
        return len(self._end)

    def column(self, kind: Kind, which: Places) -> pa.Array:
        """The values of these attributes; null where it is -1 or the attribute has another kind."""
        values, at = self._columns[kind]
        number = np.where(which < 0, -1, at[which]) if len(at) else np.full(len(which), -1)
        return values.take(pa.array(number, mask=number < 0))

    def skeleton(self) -> Skeleton:
        """The lines with a number in place of each run of attributes."""
        data, first = self._text.data, self._begin[:0]
        if len(self):
            commas = self._text.bytes[self._end[:-1]] == _COMMA
            alone = ~(commas & (self._begin[1:] == self._end[:-1] + 1))
            first = np.append(0, np.flatnonzero(alone) + 1)
        behind = np.append(first[1:], len(self))
        # A number that no text can know of: what stands in an attribute's place there is told apart.
        salt = secrets.randbits(61)
        parts: list[bytes] = []
        at = len(_BEFORE)
        for run, (begin, end) in enumerate(
            zip(self._begin[first].tolist(), self._end[behind - 1].tolist() if len(self) else [], strict=True)
        ):
            parts += data[at:begin], b"%d" % (salt + run)
            at = end
        parts.append(data[at : -len(_BEHIND) - 1])
        return Skeleton(json=b"".join(parts), salt=salt, first=first, behind=behind)

    def _of(self, literal: bytes) -> Places:
        """The attributes whose value begins with the literal, all of it."""
        which = np.flatnonzero(self._kind == _word(literal[8:]))
        require(self._text.holds(literal, self._named[which]))
        return which

    def _alone(self, literal: bytes, elements: _Elements, key: Places) -> Places:
        """Where the value of each attribute of this kind is among the elements, -1 for others."""
        which = self._of(literal)
        number = elements.number[key[which] + 3]
        close = elements.end[number]
        require(self._text.holds(b'"}}', close))
        self._end[which] = close + 3
        return _spread(which, number, len(self))

    def _truths(self) -> tuple[pa.Array, Places]:
        which = self._of(_BOOL)
        at = self._named[which] + len(_BOOL)
        true, false = self._text.holds(b"true}}", at), self._text.holds(b"false}}", at)
        require(true | false)
        self._end[which] = at + np.where(true, 6, 7)
        return pa.array(true), _spread(which, np.arange(len(which)), len(self))

    def _fractions(self, after: Places) -> tuple[pa.Array, Places]:
        which = self._of(_DOUBLE)
        at = self._named[which] + len(_DOUBLE)
        parts = pc.split_pattern(self._text.slices(at, after[which]), "}}", max_splits=1)
        require(pc.list_value_length(parts).to_numpy(zero_copy_only=False) == 2)
        numbers = parts.flatten().take(_evens(len(which)))
        require(pc.match_substring_regex(numbers, _NUMBER).to_numpy(zero_copy_only=False))
        self._end[which] = at + pc.binary_length(numbers).to_numpy() + 2
        return numbers.cast(pa.float64()), _spread(which, np.arange(len(which)), len(self))

    def _lists(
        self, texts: _Elements, ints: _Elements, key: Places, begin: Places
    ) -> list[tuple[pa.Array, Places]]:
        """The lists of texts and of integers, and which of them each attribute has; a list of nothing may be
        either."""
        which = self._of(_LIST)
        at = self._named[which] + len(_LIST)
        absent = self._text.holds(b"}}}", at)
        empty = self._text.holds(_MEMBERS + b"]}}}", at)
        self._end[which[absent]] = at[absent] + 3
        self._end[which[empty]] = at[empty] + len(_MEMBERS) + 4
        nothing = which[absent | empty]
        full = ~(absent | empty)
        which, at = which[full], at[full]
        require(self._text.holds(_MEMBERS, at))
        first = key[which] + 5
        require(begin[first] - 2 == at + len(_MEMBERS) - 1)
        found = []
        for elements in (texts, ints):
            number = elements.number[first]
            of_kind = number >= 0
            number, lists = number[of_kind], which[of_kind]
            last = elements.last(number)
            require(self._text.holds(b'"}]}}}', elements.end[last]))
            self._end[lists] = elements.end[last] + 6
            low, high = np.append(number, len(elements.values)), np.append(last + 1, len(elements.values))
            every = pa.ListArray.from_arrays(pa.array(_paired(low, high)), elements.values)
            at_list = _spread(lists, np.arange(len(lists)), len(self))
            at_list[nothing] = len(lists)
            found.append((every.take(_evens(len(low))), at_list))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """JSON without its attributes: where a list of them stood there is a list of one number."""

    json: bytes
    salt: int
    first: Places  # run -> its first attribute
    behind: Places  # run -> the one behind its last

    def owned(self, lists: pa.Array) -> tuple[Places, Places]:
        """The attributes that these lists of numbers stand for, and the index of the list of each."""
        numbers, parent = lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        run = numbers.to_numpy(zero_copy_only=False) - self.salt
        require(numbers.null_count == 0 and (np.diff(parent) > 0).all())
        require((run >= 0) & (run < len(self.first)))
        run = run.astype(np.int64)
        counts = self.behind[run] - self.first[run]
        before = np.cumsum(counts) - counts
        within = np.arange(counts.sum()) - np.repeat(before, counts)
        return np.repeat(self.first[run], counts) + within, np.repeat(parent, counts)


def _spread(which: Places, values: Places, count: int) -> Places:
    """The values at their places among so many, -1 elsewhere."""
    spread = np.full(count, -1)
    spread[which] = values
    return spread


def _evens(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2))


def _whole(texts: pa.Array) -> pa.Array:
    """Texts of decimal digits as integers."""
    letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    require((letters - 48 < 10) | (letters == 45))
    return texts.cast(pa.int64())


def _unescaped(texts: pa.Array, which: Places) -> pa.Array:
    """The texts, of which these hold escapes."""
    if not len(which):
        return texts
    try:
        found = [orjson.loads(f'"{text}"') for text in texts.take(pa.array(which)).to_pylist()]
    except orjson.JSONDecodeError:
        raise IrregularError from None
    mask = np.zeros(len(texts), bool)
    mask[which] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(found, pa.string()))
