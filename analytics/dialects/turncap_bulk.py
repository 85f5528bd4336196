"""turncap's own telemetry in bulk: whole blocks of lines -> columns, without a Python object an attribute.

A fast path and nothing more: it takes a block only when every part of it has exactly the form that
conforming exporters write and keeps the contract, and then gives the rows that the record by record path
(`turncap.Collector`, which is the meaning of it all) gives. Anything else, and it answers None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from analytics.dialects.base import Source
from analytics.dialects.turncap import BOOL, FLOAT, INT, INTS, TABLES, TEXT, TEXTS, TURN_SOURCE, RawTable
from analytics.otlp.attributes import Attributes, IrregularError, Kind, Skeleton, require
from guard import names

# A pass over the bytes that builds nothing: it proves that a line is JSON, and bounds its nesting.
_skim = msgspec.json.Decoder(msgspec.Raw).decode


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


_TEXT = pa.string()
_ATTRIBUTES = pa.list_(pa.int64())  # a number in place of a run of them
_SCOPE = _struct(name=_TEXT, version=_TEXT)
_IDS = {"traceId": _TEXT, "spanId": _TEXT}
_LOG = _struct(
    timeUnixNano=_TEXT, observedTimeUnixNano=_TEXT, eventName=_TEXT, attributes=_ATTRIBUTES, **_IDS
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

_NAMES = tuple(
    dict.fromkeys(
        [
            *(names.EVENT_ID, names.TURN_ID, names.GUARD_ID, names.TURN_SEQ, names.SCHEMA),
            *(name for table in TABLES.values() for name in table.attributes),
        ]
    )
)
# Raw table -> its attributes and those that every event has, with the type of each.
_COLUMNS = {
    table.name: {
        names.EVENT_ID: TEXT, names.TURN_ID: TEXT, names.GUARD_ID: TEXT, names.TURN_SEQ: INT,
        names.SCHEMA: INT, **table.attributes,
    }
    for table in TABLES.values()
}  # fmt: skip
_KINDS_OF: dict[str, Kind] = {
    TEXT: "text", INT: "integer", BOOL: "truth", FLOAT: "fraction", INTS: "integers", TEXTS: "texts",
}  # fmt: skip
_CODE = {name: code for code, name in enumerate(_NAMES)}


@cache
def _name_set() -> pa.Array:
    """Not made while this is imported: pyarrow's first array imports pandas, which a worker has time for."""
    return pa.array(_NAMES)


@dataclass(slots=True, kw_only=True)
class Bulk:
    """What a block gave: rows of raw tables by the table's name, how many events they tell, and the
    indexes of lines that were left for the record by record path."""

    tables: dict[str, list[pa.Table]]
    events: int
    left: list[int]


def read(lines: Sequence[bytes]) -> Bulk | None:
    """The rows of a block of lines; None when the block as a whole is not regular."""
    left = [index for index, line in enumerate(lines) if not line.startswith(_HEADS)]
    bulk = _read(lines, left)
    if bulk is None:
        # Lines that are no JSON are told from the others only when something is wrong.
        known = set(left)
        left = [index for index, line in enumerate(lines) if index in known or not _is_json(line)]
        bulk = _read(lines, left) if len(left) > len(known) else None
    return bulk


def _is_json(line: bytes) -> bool:
    try:
        _skim(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _read(lines: Sequence[bytes], left: list[int]) -> Bulk | None:
    """The rows of all lines but those that are left; None when one of them is not regular."""
    leaving, bulk = set(left), Bulk(tables={}, events=0, left=left)
    try:
        for head, kind, take_in in _KINDS:
            those = [
                line.removesuffix(b"\r")
                for index, line in enumerate(lines)
                if index not in leaving and line.startswith(head)
            ]
            if those:
                take_in(_parse(those, kind), bulk)
    except (IrregularError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, RecursionError):
        return None
    return bulk


@dataclass(slots=True, kw_only=True)
class _Parsed:
    """Lines of one signal: the column that an envelope holds, and the attributes cut out of it."""

    column: pa.Array
    skeleton: Skeleton
    attributes: Attributes
    code: np.ndarray[Any, Any]  # attribute -> which of the names it has, -1 for another


def _parse(lines: list[bytes], schema: pa.Schema) -> _Parsed:
    attributes = Attributes(lines)
    skeleton = attributes.skeleton()
    for line in skeleton.json.split(b"\n"):
        require(_is_json(line))
    table = pa.json.read_json(
        pa.BufferReader(skeleton.json),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(skeleton.json)),
        parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    require(table.num_rows == len(lines))
    code = pc.index_in(attributes.key, value_set=_name_set()).fill_null(-1).to_numpy()
    return _Parsed(
        column=table.column(0).combine_chunks(), skeleton=skeleton, attributes=attributes, code=code
    )


def _inside(parents: pa.Array, name: str) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    """The elements of a list field of all parents, and which parent each has; none may lack the list."""
    lists = pc.struct_field(parents, name) if name else parents
    if lists.null_count:
        raise IrregularError
    return lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)


def _versions(scopes: pa.Array, owner: np.ndarray[Any, Any]) -> pa.Array:
    """The library's version of each record."""
    version = pc.struct_field(pc.struct_field(scopes, "scope"), "version")
    version = pc.if_else(pc.equal(version, ""), pa.scalar(None, _TEXT), version)
    return version.take(pa.array(owner))


def _check_resources(resources: pa.Array, parsed: _Parsed) -> None:
    """What producers say of themselves only has to be readable."""
    parsed.skeleton.owned(pc.struct_field(pc.struct_field(resources, "resource"), "attributes"))


def _logs(parsed: _Parsed, bulk: Bulk) -> None:
    resources, _ = _inside(parsed.column, "")
    _check_resources(resources, parsed)
    scopes, _ = _inside(resources, "scopeLogs")
    logs, owner = _inside(scopes, "logRecords")
    shred = _Shredder(
        parsed,
        names=pc.struct_field(logs, "eventName"),
        attributes=pc.struct_field(logs, "attributes"),
        at=_first_time(pc.struct_field(logs, "timeUnixNano"), pc.struct_field(logs, "observedTimeUnixNano")),
        versions=_versions(scopes, owner),
    )
    require(shred.names.null_count == 0)
    require(_every(pc.starts_with(shred.names, "turncap.")))  # else other products' are among them
    shred.all_events(Source.LOG, bulk)


def _spans(parsed: _Parsed, bulk: Bulk) -> None:
    resources, _ = _inside(parsed.column, "")
    _check_resources(resources, parsed)
    scopes, _ = _inside(resources, "scopeSpans")
    spans, owner = _inside(scopes, "spans")
    span_names = pc.struct_field(spans, "name")
    require(span_names.null_count == 0 and _every(pc.equal(span_names, names.SPAN_TURN)))
    _first_time(pc.struct_field(spans, "startTimeUnixNano"))
    versions = _versions(scopes, owner)
    own = _Shredder(
        parsed,
        names=pa.array([names.TURN_ENDED] * len(spans), _TEXT),
        attributes=pc.struct_field(spans, "attributes"),
        at=_first_time(pc.struct_field(spans, "endTimeUnixNano")),
        versions=versions,
    )
    own.turn_spans(bulk)
    lists = pc.struct_field(spans, "events")
    events, span = lists.flatten(), pc.list_parent_indices(lists)
    told = _Shredder(
        parsed,
        names=pc.struct_field(events, "name"),
        attributes=pc.struct_field(events, "attributes"),
        at=_first_time(pc.struct_field(events, "timeUnixNano")),
        versions=versions.take(span),
    )
    told.all_events(Source.SPAN, bulk)


_KINDS = (
    (b'{"resourceLogs":', pa.schema([("resourceLogs", _LOGS)]), _logs),
    (b'{"resourceSpans":', pa.schema([("resourceSpans", _SPANS)]), _spans),
)
_HEADS = tuple(head for head, _, _ in _KINDS)


def _every(holds: pa.Array) -> bool:
    """Whether all that are known hold, which none at all do."""
    return bool(pc.all(holds, min_count=0).as_py())


def _numbers(texts: pa.Array) -> pa.Array:
    """Texts of decimal digits as integers."""
    if not _every(pc.match_substring_regex(texts, "^-?[0-9]+$")):
        raise IrregularError
    return texts.cast(pa.int64())


def _first_time(*candidates: pa.Array) -> pa.Array:
    """The first time that is given and not zero."""
    times = []
    for texts in candidates:
        numbers = texts.cast(pa.int64()) if texts.null_count == len(texts) else _numbers(texts)
        times.append(pc.if_else(pc.equal(numbers, 0), pa.scalar(None, pa.int64()), numbers))
    return pc.coalesce(*times)


class _Shredder:
    """Records with their attributes, from which columns are picked by event and name."""

    def __init__(
        self, parsed: _Parsed, *, names: pa.Array, attributes: pa.Array, at: pa.Array, versions: pa.Array
    ) -> None:
        self.names = names
        self._at, self._versions = at, versions
        self._attributes = parsed.attributes
        which, parent = parsed.skeleton.owned(attributes)
        code = parsed.code[which]
        known = code >= 0
        # Where each record has each attribute: one row a record, −1 where it has none.
        self._where = np.full((len(names), len(_NAMES)), -1)
        self._where[parent[known], code[known]] = which[known]
        require(np.count_nonzero(self._where >= 0) == np.count_nonzero(known))  # no key twice in one record

    def all_events(self, source: str, bulk: Bulk) -> None:
        """The rows of every event that has a table; those of other names are no fault."""
        if len(self.names) == 0:
            return
        code = pc.index_in(self.names, value_set=pa.array(list(TABLES))).fill_null(-1)
        of_table = code.to_numpy(zero_copy_only=False)
        for number, table in enumerate(TABLES.values()):
            rows = np.flatnonzero(of_table == number)
            if len(rows):
                self._table(table, rows, source, self._picked(rows, _COLUMNS[table.name]), bulk)

    def turn_spans(self, bulk: Bulk) -> None:
        """The rows that the turns' spans themselves give, as a last copy of their ends."""
        rows = np.arange(len(self.names))
        table = TABLES[names.TURN_ENDED]
        for name in (names.TURN_ID, names.GUARD_ID, names.TURN_SEQ):
            require(self._where[:, _CODE[name]] >= 0)  # else its events would have to say
        picked = self._picked(rows, {**_COLUMNS[table.name], names.EVENT_ID: None})
        picked[names.EVENT_ID] = pc.binary_join_element_wise(picked[names.TURN_ID], "span", "/")
        self._table(table, rows, TURN_SOURCE, picked, bulk)

    def _table(
        self,
        table: RawTable,
        rows: np.ndarray[Any, Any],
        source: str,
        picked: dict[str, pa.Array],
        bulk: Bulk,
    ) -> None:
        for name in table.required:
            require(self._where[rows, _CODE[name]] >= 0)
        for name in (names.EVENT_ID, names.TURN_ID):
            require(picked[name].null_count == 0 and not pc.any(pc.equal(picked[name], "")).as_py())
        require(not pc.any(pc.greater(picked[names.SCHEMA], names.SCHEMA_VERSION)).as_py())
        taken = pa.array(rows)
        columns = [
            picked[names.EVENT_ID], picked[names.TURN_ID], pa.repeat(source, len(rows)),
            self._at.take(taken), picked[names.GUARD_ID], picked[names.TURN_SEQ], picked[names.SCHEMA],
            self._versions.take(taken), *(picked[name] for name in table.attributes),
        ]  # fmt: skip
        arrow = pa.Table.from_arrays(columns, names=list(table.columns()))
        bulk.tables.setdefault(table.name, []).append(arrow)
        bulk.events += len(rows)

    def _picked(self, rows: np.ndarray[Any, Any], wanted: Mapping[str, str | None]) -> dict[str, pa.Array]:
        """Attributes of some records, by name; every one that is there must be of its kind."""
        picked: dict[str, pa.Array] = {}
        of_kind: dict[str, list[str]] = {}
        for name, kind in wanted.items():
            if kind is not None:
                of_kind.setdefault(kind, []).append(name)
        for kind, those in of_kind.items():
            # One column after the other in a single one: a step costs more than most columns.
            codes = np.array([_CODE[name] for name in those])
            where = self._where[np.ix_(rows, codes)].T.ravel()
            found = self._attributes.column(_KINDS_OF[kind], where)
            require(found.null_count == np.count_nonzero(where < 0))
            for number, name in enumerate(those):
                picked[name] = found.slice(number * len(rows), len(rows))
        return picked
