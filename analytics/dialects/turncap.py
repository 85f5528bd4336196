"""turncap's own telemetry: events by their names, read in bulk into the `raw_*` tables of schema.sql.

Unlike the other dialects it needs no guessing: a record is turncap's when its name starts with
`turncap.`. Each event becomes one row of the raw table named here; copies (log record and span event,
re-sent batches) become equal rows or rows that differ in `source` alone, and the derivation merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.dialects.base import Record, Source
from guard import names

PREFIX = "turncap."
TURN_SOURCE = "turn"  # the source of what a turn's span says in its own attributes

INT, FLOAT, TEXT, BOOL, INTS, TEXTS = "BIGINT", "DOUBLE", "TEXT", "BOOLEAN", "BIGINT[]", "TEXT[]"

_POLICY = {
    names.POLICY_KIND: TEXT,
    names.POLICY_HASH: TEXT,
    names.POLICY_SOFT_CAP: INT,
    names.POLICY_STUCK_AT: INT,
    names.POLICY_BACKSTOP: INT,
    names.POLICY_HARD_CAP: INT,
    names.POLICY_SIGNAL: TEXT,
}
_WHO = {names.CONVERSATION_ID: TEXT, names.AGENT_NAME: TEXT, names.REQUEST_MODEL: TEXT}
_LEVELS = {
    names.LEVEL_REPEAT: INT,
    names.LEVEL_RECENT_REPEAT: INT,
    names.LEVEL_NOVELTY_REPEAT: INT,
    names.LEVEL_SAME_RESULT_REPEAT: INT,
    names.LEVEL_NO_PROGRESS: INT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """The raw table of one event: attribute -> type of its column."""

    name: str
    attributes: Mapping[str, str]
    required: tuple[str, ...] = ()

    def columns(self) -> dict[str, str]:
        """Column -> type, in the table's order."""
        return {**COMMON, **{column(attribute): kind for attribute, kind in self.attributes.items()}}


COMMON = {
    "event_id": TEXT, "turn_id": TEXT, "source": TEXT, "at": INT, "guard_id": TEXT, "seq": INT,
    "schema_version": INT, "guard_version": TEXT,
}  # fmt: skip

TABLES: dict[str, RawTable] = {
    names.TURN_STARTED: RawTable(
        name="raw_started",
        attributes={
            names.MODE: TEXT,
            **_POLICY,
            names.HOLDOUT_RATE: FLOAT,
            names.CLUSTER_ID: TEXT,
            names.TURN_PARENT_ID: TEXT,
            names.TURN_RESUMED_FROM: TEXT,
            names.TURN_CONTINUES: TEXT,
            names.SAMPLE: TEXT,
            **_WHO,
        },
    ),
    names.TURN_CALLS: RawTable(
        name="raw_chunks",
        attributes={
            names.CHUNK_INDEX: INT,
            names.CHUNK_FIRST_CALL: INT,
            names.TOOLS: TEXTS,
            names.TOOLS_CLASS: TEXTS,
            names.CALLS_KEY: INTS,
            names.CALLS_TOOL: INTS,
            names.CALLS_MUTATING: INTS,
            names.CALLS_OFFSET_MS: INTS,
            names.CALLS_BATCH: INTS,
            names.SETTLED_CALL: INTS,
            names.SETTLED_RESULT: INTS,
            names.SETTLED_ERROR: INTS,
            names.SETTLED_AFTER: INTS,
            names.RETRY_AT: INTS,
            names.RETRY_TOTAL: INTS,
        },
        required=(names.CHUNK_INDEX, names.CHUNK_FIRST_CALL),
    ),
    names.SOFT_CAP_CROSSED: RawTable(
        name="raw_crossed", attributes={names.TOTAL: INT, names.STUCK: BOOL, **_LEVELS}
    ),
    names.LOOP_DETECTED: RawTable(
        name="raw_detected",
        attributes={
            names.THRESHOLD: TEXT,
            names.MODE: TEXT,
            names.ENFORCED: BOOL,
            names.EXPLORED: BOOL,
            names.HOLDOUT_RATE: FLOAT,
            **_POLICY,
            names.CALL_NUMBER: INT,
            names.TOTAL: INT,
            names.SIGNAL: TEXT,
            names.LEVEL: INT,
            names.LIMIT: INT,
            names.REPEAT_COUNT: INT,
            names.REPEAT_TOOL: TEXT,
            names.REPEAT_DIGEST: TEXT,
            names.REPEAT_FIRST_CALL: INT,
            names.REPEAT_LAST_CALL: INT,
            names.DISTINCT_KEYS: INT,
            names.NAME_STREAK_MAX: INT,
            **_LEVELS,
            names.ALSO: TEXTS,
            **_WHO,
        },
        required=(names.THRESHOLD, names.ENFORCED, names.CALL_NUMBER),
    ),
    names.TURN_EXTENDED: RawTable(
        name="raw_extended", attributes={names.GRANTED: INT, names.BY: TEXT, names.TOTAL: INT}
    ),
    names.TURN_ENDED: RawTable(
        name="raw_ended",
        attributes={
            names.OUTCOME: TEXT,
            names.CALLS: INT,
            names.RAN: INT,
            names.TOTAL: INT,
            names.REFUSED: INT,
            names.SETTLED: INT,
            names.ERRORS: INT,
            names.DISTINCT_KEYS: INT,
            names.REPEAT_COUNT: INT,
            names.NAME_STREAK_MAX: INT,
            names.MILESTONES_K: INTS,
            names.MILESTONES_CALL: INTS,
            names.MILESTONES_EPOCH: INTS,
            names.MILESTONES_BATCH_FIRST_CALL: INTS,
            names.BATCHES: INT,
            names.RETRIES: INT,
            names.KEYS_FORGOTTEN: INT,
            names.CHUNKS_SENT: INT,
            names.CHUNKS_ON_SPAN: INT,
            names.CANDIDATES: TEXTS,
            names.CANDIDATES_HALT_CALL: INTS,
            names.DURATION_MS: FLOAT,
            **_WHO,
        },
    ),
    names.TURN_LABELLED: RawTable(
        name="raw_labelled",
        attributes={
            names.LABEL_ID: TEXT,
            names.STUCK: BOOL,
            names.PRODUCTIVE: BOOL,
            names.KIND: TEXT,
            names.TASK_OUTCOME: TEXT,
            names.BY: TEXT,
            names.JUDGE_VERSION: TEXT,
            names.STRATUM: TEXT,
            names.PROBABILITY: FLOAT,
        },
        required=(names.LABEL_ID, names.BY),
    ),
}


def column(attribute: str) -> str:
    """The column of an attribute: its name without `turncap.`, dots as underscores."""
    return attribute.removeprefix(PREFIX).replace(".", "_")


class RejectedError(ValueError):
    """An event of turncap's that does not keep the contract; the message says how."""


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and set(map(type, value)) <= {kind}


_CHECKS: dict[str, Callable[[Any], bool]] = {
    INT: lambda value: type(value) is int,
    FLOAT: lambda value: type(value) in (int, float),
    TEXT: lambda value: type(value) is str,
    BOOL: lambda value: type(value) is bool,
    INTS: _is_list_of(int),
    TEXTS: _is_list_of(str),
}


RowList = tuple[tuple[str, ...], list[tuple[Any, ...]]]  # columns, and rows in their order


class Rows:
    """The rows of one raw table that wait to be written, as tuples in the order of `columns`.

    The types of a row's values are looked up as a whole: a combination that passed once passes again. Only
    lists are looked into, unless the decoder made them of integers.
    """

    def __init__(self, table: RawTable) -> None:
        self.table = table
        self.columns = tuple(table.columns())
        self.rows: list[tuple[Any, ...]] = []
        self._names = (
            names.EVENT_ID, names.TURN_ID, names.GUARD_ID, names.TURN_SEQ, names.SCHEMA, *table.attributes
        )  # fmt: skip
        self._kinds = (TEXT, TEXT, TEXT, INT, INT, *table.attributes.values())
        self._required = {names.EVENT_ID, names.TURN_ID, *table.required}
        self._passed: set[tuple[type, ...]] = set()

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, attributes: Mapping[str, Any], source: str, at: int | None, version: str) -> None:
        """Append one event; RejectedError when it lacks an identity or a value has the wrong type."""
        values = tuple(map(attributes.get, self._names))
        types = tuple(map(type, values))
        if types not in self._passed:
            self._check(values)
            if list not in types:
                self._passed.add(types)
        event_id, turn_id, guard_id, seq, schema_version, *rest = values
        if schema_version is not None and schema_version > names.SCHEMA_VERSION:
            raise RejectedError(f"{names.SCHEMA} {schema_version} is newer than this turncap reads")
        if not event_id or not turn_id:
            raise RejectedError(f"attribute {names.EVENT_ID} or {names.TURN_ID} is empty")
        self.rows.append(
            (event_id, turn_id, source, at, guard_id, seq, schema_version, version or None, *rest)
        )

    def _check(self, values: tuple[Any, ...]) -> None:
        for name, kind, value in zip(self._names, self._kinds, values, strict=True):
            if value is None:
                if name in self._required:
                    raise RejectedError(f"attribute {name} is missing")
            elif not _CHECKS[kind](value):
                raise RejectedError(f"attribute {name} has a value of the wrong type")


class Collector:
    """Collects turncap's events as rows of the raw tables."""

    def __init__(self) -> None:
        self.rows = {name: Rows(table) for name, table in TABLES.items()}
        self.events = 0  # how many were taken in
        self.problems: list[str] = []  # why others were not; whoever adds a record empties it

    def add(self, record: Record) -> bool:
        """Take in a record; False when it is not turncap's. Bad events of it are left in `problems`."""
        if not record.name.startswith(PREFIX):
            return False
        if record.source is Source.LOG:
            # An unknown event is no fault: version 1 may gain events.
            self._event(record.name, record.attributes, Source.LOG, record.at, record)
        elif record.name == names.SPAN_LABEL:
            self._event(names.TURN_LABELLED, record.attributes, Source.SPAN, record.at, record)
        elif record.name == names.SPAN_TURN:
            self._turn_span(record)
        return True

    def _turn_span(self, record: Record) -> None:
        """The span's events, and its own final counts as a last copy of the turn's end."""
        known: Mapping[str, Any] = {}
        for event in record.events:
            self._event(event.name, event.attributes, Source.SPAN, event.at, record)
            known = event.attributes if event.name in self.rows else known
        turn_id = record.attributes.get(names.TURN_ID) or known.get(names.TURN_ID)
        own = {name: known[name] for name in (names.GUARD_ID, names.TURN_SEQ) if name in known}
        own |= {**record.attributes, names.TURN_ID: turn_id, names.EVENT_ID: f"{turn_id}/span"}
        self._event(names.TURN_ENDED, own, TURN_SOURCE, record.at, record)

    def _event(
        self, name: str, attributes: Mapping[str, Any], source: str, at: int | None, record: Record
    ) -> None:
        rows = self.rows.get(name)
        if rows is None:
            return
        try:
            rows.add(attributes, source, at, record.scope_version)
            self.events += 1
        except RejectedError as error:
            self.problems.append(f"event {name}: {error}")

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def take(self) -> dict[str, RowList]:
        """Give away the rows, by raw table."""
        taken = {}
        for rows in self.rows.values():
            if rows.rows:
                taken[rows.table.name] = (rows.columns, rows.rows)
                rows.rows = []
        return taken
