"""Rows as a few buffers, laid out as Arrow's columns are.

So they go from process to process and into the database without a Python object a value. They are made
without Arrow, which a worker may not need and which takes long to import, and become Arrow's in ways that do
not make it import pandas.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Column = tuple[str, bytes, bytes, bytes | memoryview]
"""Kind, NULLs, values, text. `str`: 32-bit places where each text begins and the last one ends, and the texts
in UTF-8; `int`, `float`: 64 bits; `bool`: a byte; no kind: all are NULL. NULLs are a byte each, 1 for NULL;
nothing where none is. A text may be a view of Arrow's, which `marshal` writes as bytes."""

Packed = dict[str, Column]  # by name; all of one length


def pack(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Packed:
    """Rows whose values stand in the order of `names`."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: pack_column(values) for name, values in zip(names, columns, strict=True)}


def pack_column(values: Sequence[Any]) -> Column:
    """Values of one kind, or None."""
    try:
        return _present(values)
    except TypeError:  # what a None is no value of
        nulls = bytes([value is None for value in values])
    first = next((value for value in values if value is not None), None)
    if first is None:
        return "", nulls, b"", b""
    instead = type(first)()
    kind, _, held, text = _present([instead if value is None else value for value in values])
    return kind, nulls, held, text


def _present(values: Sequence[Any]) -> Column:
    if not values:
        return "", b"", b"", b""
    kind = type(values[0]).__name__
    if kind == "str":
        text = "".join(values)
        lengths = map(len, values if text.isascii() else [value.encode() for value in values])
        return kind, b"", array("i", accumulate(lengths, initial=0)).tobytes(), text.encode()
    if kind == "bool":
        return kind, b"", bytes(values), b""
    return kind, b"", array("q" if kind == "int" else "d", values).tobytes(), b""


def unpack(packed: Packed) -> list[tuple[Any, ...]]:
    """The rows again."""
    return list(zip(*map(_values, packed.values()), strict=True))


def _values(column: Column) -> Sequence[Any]:
    kind, nulls, values, held = column
    found: list[Any]
    if kind == "str":
        text = bytes(held)
        bounds = pairwise(memoryview(values).cast("i"))
        if text.isascii():
            letters = text.decode()
            found = [letters[begin:end] for begin, end in bounds]
        else:
            found = [text[begin:end].decode() for begin, end in bounds]
    elif kind == "bool":
        found = [value == 1 for value in values]
    elif kind:
        found = list(memoryview(values).cast("q" if kind == "int" else "d"))
    else:
        found = [None] * len(nulls)
    place = nulls.find(1)
    while place >= 0:
        found[place] = None
        place = nulls.find(1, place + 1)
    return found


def to_arrow(packed: Packed, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows as a table of Arrow's, over the same bytes."""
    import pyarrow as pa

    arrays = [_to_arrow(column, types[name]) for name, column in packed.items()]
    return pa.Table.from_arrays(arrays, names=list(packed))


def _to_arrow(column: Column, wanted: pa.DataType) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    kind, nulls, values, text = column
    if not kind:
        return pa.nulls(len(nulls), wanted)
    present = _bits(1 - np.frombuffer(nulls, np.uint8)) if nulls else None
    if kind == "str":
        buffers = [present, pa.py_buffer(values), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), len(values) // 4 - 1, buffers)
    if kind == "bool":
        return pa.Array.from_buffers(
            pa.bool_(), len(values), [present, _bits(np.frombuffer(values, np.uint8))]
        )
    type_ = pa.int64() if kind == "int" else pa.float64()
    return pa.Array.from_buffers(type_, len(values) // 8, [present, pa.py_buffer(values)])


def _bits(flags: Any) -> pa.Buffer:
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def of_arrow(table: pa.Table) -> Packed:
    """A table's rows: columns of text and of integers, each in one chunk."""
    return {name: _of_arrow(table.column(name).chunk(0)) for name in table.column_names}


def _of_arrow(column: pa.Array) -> Column:
    import numpy as np

    here = slice(column.offset, column.offset + len(column))
    present, first, *second = column.buffers()
    nulls = b""
    if column.null_count:
        nulls = (1 - np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")[here]).tobytes()
    if not second:
        return "int", nulls, np.frombuffer(first, np.int64)[here].tobytes(), b""
    bounds = np.frombuffer(first, np.int32)[here.start : here.stop + 1]
    text = memoryview(second[0])[bounds[0] : bounds[-1]] if second[0] is not None else b""
    return "str", nulls, (bounds - bounds[0]).tobytes(), text
