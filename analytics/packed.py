"""Rows of `raw_seen` as a few buffers, laid out as Arrow's columns are.

So they go from process to process and into the database without a Python object a value. Workers have no
Arrow, which takes longer to import than they take to start.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Text = tuple[bytes, bytes]  # where each value begins and the last one ends (32-bit), and the values in UTF-8
Whole = tuple[bytes, bytes]  # values (64-bit), and for each a byte that is 1 where it is NULL
Packed = tuple[Text, Text, Text, Text, Whole, Text]

SEEN = ("group_id", "dialect", "seen_id", "kind", "at", "data")
NOTHING: Packed = (
    *((array("i", [0]).tobytes(), b""),) * 4, (b"", b""), (array("i", [0]).tobytes(), b""),
)  # fmt: skip


def pack(rows: Sequence[tuple[Any, ...]]) -> Packed:
    """Rows whose values stand in the order of SEEN."""
    if not rows:
        return NOTHING
    group, dialect, seen_id, kind, at, data = zip(*rows, strict=True)
    times = array("q", [0 if value is None else value for value in at]).tobytes()
    absent = bytes([value is None for value in at])
    return _text(group), _text(dialect), _text(seen_id), _text(kind), (times, absent), _text(data)


def unpack(packed: Packed) -> list[tuple[Any, ...]]:
    """The rows again."""
    group, dialect, seen_id, kind, (times, absent), data = packed
    at = [None if no else value for value, no in zip(memoryview(times).cast("q"), absent, strict=True)]
    columns = (*map(_values, (group, dialect, seen_id, kind)), at, _values(data))
    return list(zip(*columns, strict=True))


def _text(values: Sequence[str]) -> Text:
    joined = "".join(values)
    lengths = map(len, values if joined.isascii() else [value.encode() for value in values])
    return array("i", accumulate(lengths, initial=0)).tobytes(), joined.encode()


def _values(column: Text) -> list[str]:
    bounds, data = memoryview(column[0]).cast("i"), column[1]
    if data.isascii():
        text = data.decode()
        return [text[begin:end] for begin, end in pairwise(bounds)]
    return [data[begin:end].decode() for begin, end in pairwise(bounds)]


def to_arrow(packed: Packed) -> pa.Table:
    """The rows as a table of Arrow's, over the same bytes."""
    import numpy as np
    import pyarrow as pa

    columns = []
    for name, (first, second) in zip(SEEN, packed, strict=True):
        if name == "at":
            mask = np.frombuffer(second, np.bool_)
            columns.append(pa.array(np.frombuffer(first, np.int64), mask=mask))
        else:
            buffers = [None, pa.py_buffer(first), pa.py_buffer(second)]
            columns.append(pa.Array.from_buffers(pa.string(), len(first) // 4 - 1, buffers))
    return pa.table(columns, names=list(SEEN))


def of_arrow(table: pa.Table) -> Packed:
    """A table's rows; its columns are those of SEEN in their order, each in one chunk."""
    return tuple(_of_arrow(column.chunk(0)) for column in table.columns)  # type: ignore[return-value]


def _of_arrow(column: pa.Array) -> tuple[bytes, bytes]:
    import numpy as np
    import pyarrow as pa

    if pa.types.is_int64(column.type):
        absent = column.is_null().to_numpy(zero_copy_only=False)
        return column.fill_null(0).to_numpy().tobytes(), absent.tobytes()
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    text = memoryview(data)[bounds[0] : bounds[-1]].tobytes() if data is not None else b""
    return (bounds - bounds[0]).tobytes(), text
