"""turncap's own telemetry in bulk: whole blocks of lines -> columns, without a Python object an attribute.

A fast path and nothing more: it takes a block only when every part of it has exactly the form that
conforming exporters write and keeps the contract, and then gives the rows that the record by record path
(`turncap.Collector`, which is the meaning of it all) gives. Anything else, and it answers None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from analytics.dialects.base import Source
from analytics.dialects.turncap import BOOL, FLOAT, INT, INTS, TABLES, TEXT, TEXTS, TURN_SOURCE, RawTable
from guard import names

ARROW: dict[str, pa.DataType] = {
    TEXT: pa.string(),
    INT: pa.int64(),
    FLOAT: pa.float64(),
    BOOL: pa.bool_(),
    INTS: pa.list_(pa.int64()),
    TEXTS: pa.list_(pa.string()),
}


class _Logs(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    resourceLogs: msgspec.Raw  # noqa: N815 - the wire's names


class _Spans(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    resourceSpans: msgspec.Raw  # noqa: N815


# A pass over the bytes that builds nothing: it proves that a line is JSON, and bounds its nesting.
_KINDS = (
    (b'{"resourceLogs":', msgspec.json.Decoder(_Logs).decode),
    (b'{"resourceSpans":', msgspec.json.Decoder(_Spans).decode),
)


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


_TEXT = pa.string()
_ELEMENT = _struct(intValue=_TEXT, stringValue=_TEXT)
_VALUE = _struct(
    stringValue=_TEXT,
    intValue=_TEXT,
    boolValue=pa.bool_(),
    doubleValue=pa.float64(),
    arrayValue=_struct(values=pa.list_(_ELEMENT)),
)
_ATTRIBUTES = pa.list_(_struct(key=_TEXT, value=_VALUE))
_SCOPE = _struct(name=_TEXT, version=_TEXT)
_IDS = {"traceId": _TEXT, "spanId": _TEXT}
_LOG = _struct(
    timeUnixNano=_TEXT,
    observedTimeUnixNano=_TEXT,
    eventName=_TEXT,
    body=_VALUE,
    attributes=_ATTRIBUTES,
    **_IDS,
)
_EVENT = _struct(timeUnixNano=_TEXT, name=_TEXT, attributes=_ATTRIBUTES)
_SPAN = _struct(
    name=_TEXT,
    startTimeUnixNano=_TEXT,
    endTimeUnixNano=_TEXT,
    attributes=_ATTRIBUTES,
    events=pa.list_(_EVENT),
    status=_struct(code=pa.int64()),
    parentSpanId=_TEXT,
    **_IDS,
)
_RESOURCE = _struct(attributes=_ATTRIBUTES)
_LOGS = pa.list_(
    _struct(resource=_RESOURCE, scopeLogs=pa.list_(_struct(scope=_SCOPE, logRecords=pa.list_(_LOG))))
)
_SPANS = pa.list_(
    _struct(resource=_RESOURCE, scopeSpans=pa.list_(_struct(scope=_SCOPE, spans=pa.list_(_SPAN))))
)
_SCHEMAS = (
    pa.schema([("resourceLogs", _LOGS)]),
    pa.schema([("resourceSpans", _SPANS)]),
)

# A list of numbers is an object a number: struck out before parsing, it is one text with commas.
_GLUE, _BARE = b'"},{"intValue":"', b","
_NAMES = tuple(
    dict.fromkeys(
        [
            *(names.EVENT_ID, names.TURN_ID, names.GUARD_ID, names.TURN_SEQ, names.SCHEMA),
            *(name for table in TABLES.values() for name in table.attributes),
        ]
    )
)
_CODE = {name: code for code, name in enumerate(_NAMES)}
_NAME_SET = pa.array(_NAMES)


class _IrregularError(Exception):
    """Something that the record by record path must decide."""


@dataclass(slots=True, kw_only=True)
class Bulk:
    """What a block gave: rows of raw tables by the table's name, how many events they tell, and the
    indexes of lines that were left for the record by record path."""

    tables: dict[str, list[pa.Table]]
    events: int
    left: list[int]


def read(lines: Sequence[bytes]) -> Bulk | None:
    """The rows of a block of lines; None when the block as a whole is not regular."""
    kinds: tuple[list[bytes], list[bytes]] = ([], [])
    left: list[int] = []
    for index, line in enumerate(lines):
        for kind, (head, skim) in zip(kinds, _KINDS, strict=True):
            if line.startswith(head):
                try:
                    skim(line)
                except (msgspec.DecodeError, RecursionError):
                    left.append(index)
                else:
                    kind.append(line)
                break
        else:
            left.append(index)
    bulk = Bulk(tables={}, events=0, left=left)
    try:
        if kinds[0]:
            _logs(_parse(kinds[0], _SCHEMAS[0]), bulk)
        if kinds[1]:
            _spans(_parse(kinds[1], _SCHEMAS[1]), bulk)
    except (_IrregularError, pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return bulk


@dataclass(slots=True, kw_only=True)
class _Parsed:
    column: pa.Array
    struck: int  # how many numbers were glued to the one before


def _parse(lines: list[bytes], schema: pa.Schema) -> _Parsed:
    data = b"\n".join(lines) + b"\n"
    if not data.isascii():
        data.decode()  # Arrow would take bytes that are no UTF-8
    bare = data.replace(_GLUE, _BARE)
    table = pa.json.read_json(
        pa.BufferReader(bare),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(bare)),
        parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise _IrregularError
    struck = (len(data) - len(bare)) // (len(_GLUE) - len(_BARE))
    return _Parsed(column=table.column(0).combine_chunks(), struck=struck)


def _inside(parents: pa.Array, name: str) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    """The elements of a list field of all parents, and which parent each has; none may lack the list."""
    lists = pc.struct_field(parents, name) if name else parents
    if lists.null_count:
        raise _IrregularError
    return lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)


def _versions(scopes: pa.Array, owner: np.ndarray[Any, Any]) -> pa.Array:
    """The library's version of each record."""
    version = pc.struct_field(pc.struct_field(scopes, "scope"), "version")
    version = pc.if_else(pc.equal(version, ""), pa.scalar(None, _TEXT), version)
    return version.take(pa.array(owner))


def _check_resources(resources: pa.Array) -> int:
    """The commas struck into what producers say of themselves, which only has to be readable."""
    attributes = pc.struct_field(pc.struct_field(resources, "resource"), "attributes")
    return _Values(attributes.flatten()).commas


def _logs(parsed: _Parsed, bulk: Bulk) -> None:
    resources, _ = _inside(parsed.column, "")
    commas = _check_resources(resources)
    scopes, _ = _inside(resources, "scopeLogs")
    logs, owner = _inside(scopes, "logRecords")
    shred = _Shredder(
        names=pc.struct_field(logs, "eventName"),
        attributes=pc.struct_field(logs, "attributes"),
        at=_first_time(pc.struct_field(logs, "timeUnixNano"), pc.struct_field(logs, "observedTimeUnixNano")),
        versions=_versions(scopes, owner),
    )
    if shred.names.null_count or not _every(pc.starts_with(shred.names, "turncap.")):
        raise _IrregularError  # other products' records are among them
    body = pc.struct_field(logs, "body")
    if any(pc.struct_field(body, name).null_count < len(body) for name in ("intValue", "arrayValue")):
        raise _IrregularError
    shred.all_events(Source.LOG, bulk)
    if commas + shred.commas != parsed.struck:
        raise _IrregularError  # a number was struck out of something else


def _spans(parsed: _Parsed, bulk: Bulk) -> None:
    resources, _ = _inside(parsed.column, "")
    commas = _check_resources(resources)
    scopes, _ = _inside(resources, "scopeSpans")
    spans, owner = _inside(scopes, "spans")
    span_names = pc.struct_field(spans, "name")
    if span_names.null_count or not _every(pc.equal(span_names, names.SPAN_TURN)):
        raise _IrregularError
    _first_time(pc.struct_field(spans, "startTimeUnixNano"))
    versions = _versions(scopes, owner)
    own = _Shredder(
        names=pa.array([names.TURN_ENDED] * len(spans), _TEXT),
        attributes=pc.struct_field(spans, "attributes"),
        at=_first_time(pc.struct_field(spans, "endTimeUnixNano")),
        versions=versions,
    )
    own.turn_spans(bulk)
    lists = pc.struct_field(spans, "events")
    events, span = lists.flatten(), pc.list_parent_indices(lists)
    told = _Shredder(
        names=pc.struct_field(events, "name"),
        attributes=pc.struct_field(events, "attributes"),
        at=_first_time(pc.struct_field(events, "timeUnixNano")),
        versions=versions.take(span),
    )
    told.all_events(Source.SPAN, bulk)
    if commas + own.commas + told.commas != parsed.struck:
        raise _IrregularError


def _every(holds: pa.Array) -> bool:
    """Whether all that are known hold, which none at all do."""
    return bool(pc.all(holds, min_count=0).as_py())


def _numbers(texts: pa.Array) -> pa.Array:
    """Texts of decimal digits as integers."""
    if not _every(pc.match_substring_regex(texts, "^-?[0-9]+$")):
        raise _IrregularError
    return texts.cast(pa.int64())


def _first_time(*candidates: pa.Array) -> pa.Array:
    """The first time that is given and not zero."""
    times = []
    for texts in candidates:
        numbers = texts.cast(pa.int64()) if texts.null_count == len(texts) else _numbers(texts)
        times.append(pc.if_else(pc.equal(numbers, 0), pa.scalar(None, pa.int64()), numbers))
    return pc.coalesce(*times)


class _Values:
    """Attributes with their values, a column a kind. Each must have a key and exactly one value."""

    def __init__(self, pairs: pa.Array) -> None:
        self.key = pc.struct_field(pairs, "key")
        value = pc.struct_field(pairs, "value")
        self.text = pc.struct_field(value, "stringValue")
        self.bool = pc.struct_field(value, "boolValue")
        self.double = pc.struct_field(value, "doubleValue")
        self.int = _numbers(pc.struct_field(value, "intValue")) if len(pairs) else pa.array([], pa.int64())
        arrays = pc.struct_field(value, "arrayValue")
        kinds = (self.text, self.int, self.bool, self.double, arrays)
        members = np.sum([_flags(pc.is_valid(kind)) for kind in kinds], axis=0)
        if self.key.null_count or not np.all(members == 1):
            raise _IrregularError
        self.commas = 0
        self._lists(arrays)

    def _lists(self, arrays: pa.Array) -> None:
        """Lists of numbers and lists of texts. Struck out, a list of numbers holds one text at most."""
        lists = pc.struct_field(arrays, "values")
        elements, parent = lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        numbers, texts = pc.struct_field(elements, "intValue"), pc.struct_field(elements, "stringValue")
        numeric = _flags(pc.is_valid(numbers))
        if not (numeric ^ _flags(pc.is_valid(texts))).all():
            raise _IrregularError
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        of_numbers = np.zeros(len(arrays), dtype=bool)
        of_numbers[parent[numeric]] = True
        if (lengths[of_numbers] > 1).any():
            raise _IrregularError
        numbers = numbers.drop_null()
        if not _every(pc.match_substring_regex(numbers, "^[-0-9,]+$")):
            raise _IrregularError
        split = pc.split_pattern(numbers, ",")
        counts = np.zeros(len(arrays), dtype=np.int64)
        counts[parent[numeric]] = pc.list_value_length(split).to_numpy(zero_copy_only=False)
        self.commas = int(counts.sum()) - int(numeric.sum())
        lacking = _flags(pc.is_null(arrays))
        self.ints = _listed(counts, lacking | (~of_numbers & (lengths > 0)), split.flatten().cast(pa.int64()))
        self.texts = _listed(np.where(of_numbers, 0, lengths), lacking | of_numbers, texts.drop_null())


def _flags(mask: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)


def _listed(counts: np.ndarray[Any, Any], lacking: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """Lists of so many values each, null where the attribute is lacking."""
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(lacking))


class _Shredder:
    """Records with their attributes, from which columns are picked by event and name."""

    def __init__(self, *, names: pa.Array, attributes: pa.Array, at: pa.Array, versions: pa.Array) -> None:
        self.names = names
        self._at, self._versions = at, versions
        self._values = _Values(attributes.flatten())
        self.commas = self._values.commas
        parent = pc.list_parent_indices(attributes).to_numpy(zero_copy_only=False)
        codes = pc.index_in(self._values.key, value_set=_NAME_SET)
        known = np.flatnonzero(_flags(pc.is_valid(codes)))
        code = codes.drop_null().to_numpy(zero_copy_only=False)
        # Where each record has each attribute: one row a record, −1 where it has none.
        self._where = np.full((len(names), len(_NAMES)), -1, dtype=np.int32)
        self._where[parent[known], code] = known
        if int((self._where >= 0).sum()) != len(known):
            raise _IrregularError  # a key twice in one record

    def all_events(self, source: str, bulk: Bulk) -> None:
        """The rows of every event that has a table; those of other names are no fault."""
        if len(self.names) == 0:
            return
        code = pc.index_in(self.names, value_set=pa.array(list(TABLES))).fill_null(-1)
        of_table = code.to_numpy(zero_copy_only=False)
        for number, table in enumerate(TABLES.values()):
            rows = np.flatnonzero(of_table == number)
            if len(rows):
                self._table(table, rows, source, self._picked(names.EVENT_ID, TEXT, rows), bulk)

    def turn_spans(self, bulk: Bulk) -> None:
        """The rows that the turns' spans themselves give, as a last copy of their ends."""
        rows = np.arange(len(self.names))
        for name in (names.TURN_ID, names.GUARD_ID, names.TURN_SEQ):
            if (self._where[:, _CODE[name]] < 0).any():
                raise _IrregularError  # its events would have to say
        turn = self._picked(names.TURN_ID, TEXT, rows)
        event_id = pc.binary_join_element_wise(turn, "span", "/")
        self._table(TABLES[names.TURN_ENDED], rows, TURN_SOURCE, event_id, bulk)

    def _table(
        self, table: RawTable, rows: np.ndarray[Any, Any], source: str, event_id: pa.Array, bulk: Bulk
    ) -> None:
        for name in table.required:
            if (self._where[rows, _CODE[name]] < 0).any():
                raise _IrregularError
        turn_id = self._picked(names.TURN_ID, TEXT, rows)
        version = self._picked(names.SCHEMA, INT, rows)
        lacking = event_id.null_count or turn_id.null_count
        if lacking or pc.any(pc.or_(pc.equal(event_id, ""), pc.equal(turn_id, ""))).as_py():
            raise _IrregularError
        if pc.any(pc.greater(version, names.SCHEMA_VERSION)).as_py():
            raise _IrregularError
        taken = pa.array(rows)
        columns = [
            event_id, turn_id, pa.array([source] * len(rows), _TEXT), self._at.take(taken),
            self._picked(names.GUARD_ID, TEXT, rows), self._picked(names.TURN_SEQ, INT, rows), version,
            self._versions.take(taken),
            *(self._picked(name, kind, rows) for name, kind in table.attributes.items()),
        ]  # fmt: skip
        arrow = pa.Table.from_arrays(columns, names=list(table.columns()))
        bulk.tables.setdefault(table.name, []).append(arrow)
        bulk.events += len(rows)

    def _picked(self, name: str, kind: str, rows: np.ndarray[Any, Any]) -> pa.Array:
        """One attribute of some records; every one that is there must be of its kind."""
        where = self._where[rows, _CODE[name]]
        lacking = where < 0
        absent = int(lacking.sum())
        if absent == len(rows):
            return pa.nulls(len(rows), ARROW[kind])
        taken = pa.array(where, mask=lacking)
        values = self._values
        match kind:
            case "TEXT":
                found = values.text.take(taken)
            case "BIGINT":
                found = values.int.take(taken)
            case "BOOLEAN":
                found = values.bool.take(taken)
            case "DOUBLE":
                found = pc.coalesce(values.double.take(taken), values.int.take(taken).cast(pa.float64()))
            case "BIGINT[]":
                found = values.ints.take(taken)
            case _:
                found = values.texts.take(taken)
        if found.null_count != absent:
            raise _IrregularError
        return found
