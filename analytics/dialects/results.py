"""Results -> their identities, many at once: those of `guard.keys.result_id`, in less than half of its time.

Arrow's engine of regular expressions (RE2) reads many texts in one call, but has no look-around, and only
ASCII's words and digits. `INSIDE` is the guard's own pattern in its terms. It masks as the guard does except
in the texts that `_plain` refuses or `OUTSIDE` finds: those are left to the guard, and so are too few.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise

from guard.keys import HASHED, result_id
from guard.masking import CHARACTERS, MASK, MONTH, VOLATILE

FEW = 1 << 18  # bytes below which the guard is as fast: each call compiles both patterns
MANY = 1 << 22  # bytes from which it is one call more, so that memory stays bounded


class Result:
    """The text of a result (of an error where `error`), until its identity is known; orjson must not know
    how to write it, so it is no dataclass."""

    __slots__ = ("error", "known", "text")

    def __init__(self, text: str, error: bool) -> None:
        self.text = text
        self.error = error
        self.known: str | None = None  # the identity in hexadecimal; then the text is gone

    def identity(self) -> str:
        """The identity, which the guard finds where `identify` did not."""
        if self.known is None:
            self.know(result_id(self.text, error=self.error))
        return self.known or ""

    def know(self, identity: bytes) -> None:
        """Keep the identity in place of the text."""
        self.known, self.text = identity.hex(), ""


def identify(results: Sequence[Result]) -> None:
    """Find the identities of most results, if they are worth it."""
    batch: list[tuple[Result, bytes]] = []
    size = 0
    for one in results:
        if len(one.text) <= CHARACTERS and (data := _plain(one.text)) is not None:
            batch.append((one, data))
            size += len(data)
            if size >= MANY:
                _identify(batch)
                batch, size = [], 0
    if size >= FEW:
        _identify(batch)


# What RE2 takes for something else, or does not take: other digits, and what is an i or s in any case.
_BEYOND = re.compile(r"[\dıſİ]")
_ASCII = bytes(range(128))


def _plain(text: str) -> bytes | None:
    """The text in UTF-8; None where RE2 would not read its characters as the guard does."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    if text.isascii() or not _BEYOND.search(data.translate(None, _ASCII).decode()):
        return data
    return None


def _identify(batch: Sequence[tuple[Result, bytes]]) -> None:
    # Not imported with this module: a worker whose records hold no results has no use for it. The array is
    # made of buffers, because `pa.array` imports pandas.
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = array("i", accumulate((len(data) for _, data in batch), initial=0))
    joined = b"".join(data for _, data in batch)
    texts = pa.StringArray.from_buffers(len(batch), pa.py_buffer(offsets), pa.py_buffer(joined))
    outside = pc.match_substring_regex(texts, pattern=OUTSIDE).to_pylist()
    _, ends, masked = pc.replace_substring_regex(texts, pattern=INSIDE, replacement=MASK).buffers()
    view = memoryview(masked)
    for (one, _), left, (begin, end) in zip(
        batch, outside, pairwise(memoryview(ends).cast("i")), strict=False
    ):
        if not left:
            person = b"error" if one.error else b"result"
            one.know(blake2b(view[begin:end], digest_size=HASHED, person=person).digest())


def _hexadecimal(letters: str) -> str:
    """Seven or more digits and `letters`, with both. The shorter ones are part of the longer ones, because
    the engine is the slower the more it has to tell apart."""
    letter, either = f"[{letters}]", rf"[\d{letters}]"
    found = rf"\d{letter}|{letter}\d"
    for before in ("2", "3", "4", "5", "6,"):  # of one kind, before the first of the other
        found = rf"(?:{found}){either}|\d{{{before}}}{letter}|{letter}{{{before}}}\d"
    return f"(?:{found}){either}*"


def _without_looking_around(pattern: str) -> str:
    """The guard's pattern as RE2 can read it. Each part must be there once, so that none changes alone."""
    pattern = re.sub(r"\s+(?:#.*)?", "", pattern)
    for part, instead in (
        # What only spares Python to look on.
        (r"(?=[\dA-FJM-PSTWa-fp\[])", ""),
        (r"(?=\d)(?:\d{4}", r"(?:\d{4}"),
        ("(?=[A-Z])", ""),
        ("(?=[0-9a-fA-F]{7})", ""),
        # What differs in texts outside: longer words, no digit behind a day, a process id in brackets.
        (r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}", _hexadecimal("a-f")),
        (r"(?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{7,64}", _hexadecimal("A-F")),
        (r"\b(?=,?\x20\d)", r"\b"),
        (r"|(?<=[A-Za-z])\[\d+\](?=:)", ""),
    ):
        if pattern.count(part) != 1:
            raise ValueError(f"the guard's pattern does not hold {part} once")
        pattern = pattern.replace(part, instead)
    return pattern


INSIDE = _without_looking_around(VOLATILE.pattern)

# Beyond ASCII: what may be a letter or a digit, which is to say all but these signs.
_WORD = (
    r"[^\x00-\x7f\x{a0}-\x{a9}\x{ab}-\x{b1}\x{b4}\x{b6}-\x{b8}\x{bb}\x{bf}\x{d7}\x{f7}\x{2010}-\x{205e}"
    r"\x{20a0}-\x{20c0}\x{2190}-\x{245f}\x{2500}-\x{2775}\x{2794}-\x{2bff}\x{3000}-\x{3004}\x{fe00}-\x{fe0f}"
    r"\x{1f300}-\x{1faff}]"
)
OUTSIDE = "|".join(
    [
        # Such a letter or digit before what begins like something volatile, and behind what ends like it.
        rf"{_WORD}(?:\d|[ADFJMNOSTW][a-z][a-z],?\x20|(?i:pid|process)[\x20:=#]|[\da-fA-F]{{7}})",
        rf"(?:\d|\d\x20?µ?[a-z]+|Z|{MONTH}|\b0x[\da-fA-F]+){_WORD}",
        rf"\b[\da-fA-F]{{7}}(?:[\da-fA-F]{{58}}|[\da-fA-F]*{_WORD})",  # or a word that is too long
        # A day of a month with no other digit behind it.
        rf"\b{MONTH}\x20{{1,2}}\d{{1,2}}\b(?:[^,\x20]|,[^\x20]|,?\x20\D|,?\x20?$)",
        r"[A-Za-z]\[\d+\]:",
    ]
)
