"""Labels that people give: kept as events in a file beside the database, so that rebuilding loses none."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analytics.database import records, select
from analytics.errors import InputError
from analytics.line_file import LineFile
from analytics.paths import unreadable
from guard import names

KINDS = ("stuck", "rerun", "poll", "burst", "other")
BY = ("human", "user", "judge", "import")
_YES, _NO, _UNKNOWN = {"true", "yes", "1", "y"}, {"false", "no", "0", "n"}, {"", "unknown", "null", "?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What one reader says of one turn; None is unknown. `at` is nanoseconds since 1970."""

    turn_id: str
    label_id: str
    by: str
    at: int
    stuck: bool | None = None
    productive: bool | None = None
    kind: str | None = None
    task_outcome: str | None = None
    judge_version: str | None = None
    stratum: str | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A line of a CSV file that is no label, and why."""

    line: int
    reason: str


def label_file(database: Path) -> Path:
    """Where the labels of a database lie: beside it, under its name."""
    return database.with_name(f"{database.stem}.labels.jsonl")


def append_labels(database: Path, connection: duckdb.DuckDBPyConnection, labels: Iterable[Label]) -> int:
    """Append each label to the file beside the database, on disk before the next; how many."""
    labels = list(labels)
    if not labels:
        return 0  # no empty file is left, which a load would refuse
    turns = {str(row["turn_id"]): row for row in records(select(connection, "turn_guards"))}
    path = label_file(database)
    file = LineFile(path.parent, path.stem, max_bytes=1 << 62)
    try:
        for label in labels:
            file.append(json.dumps(_event(label, turns.get(label.turn_id, {})), ensure_ascii=False).encode())
    finally:
        file.close()
    return len(labels)


def read_csv(path: Path, known: set[str], *, by: str, reader: str) -> tuple[list[Label], list[Reject]]:
    """The labels of a CSV file with a header, and the lines that are none.

    Columns: turn_id, and at least one of kind, stuck, productive, task_outcome; also by, judge_version,
    label_id. Where they are absent, `by` and `reader` hold.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, "give a CSV file in UTF-8") from None
    rows = csv.DictReader(text.splitlines())
    columns = set(rows.fieldnames or ())
    if "turn_id" not in columns or not columns & {"kind", "stuck", "productive", "task_outcome"}:
        raise InputError(
            f"{path}: line 1: got the columns {', '.join(rows.fieldnames or ()) or '(none)'}; accepted: "
            "turn_id and at least one of kind, stuck, productive, task_outcome"
        )
    labels: list[Label] = []
    rejects: list[Reject] = []
    at = time.time_ns()
    for row in rows:
        try:
            labels.append(_label(row, known, by=by, reader=reader, at=at + len(labels)))
        except ValueError as error:
            rejects.append(Reject(line=rows.line_num, reason=str(error)))
    return labels, rejects


def _label(row: dict[str, Any], known: set[str], *, by: str, reader: str, at: int) -> Label:
    turn_id = (row.get("turn_id") or "").strip()
    if turn_id not in known:
        raise ValueError(f"turn_id: got {turn_id!r}; accepted: the id of a turn in the database")
    kind = (row.get("kind") or "").strip() or None
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind: got {kind!r}; accepted: {', '.join(KINDS)}, or nothing")
    by = (row.get("by") or "").strip() or by
    if by not in BY:
        raise ValueError(f"by: got {by!r}; accepted: {', '.join(BY)}, or nothing")
    stuck, productive = _truth("stuck", row), _truth("productive", row)
    if kind is not None and stuck is not None and kind != "other" and stuck != (kind == "stuck"):
        raise ValueError(f"kind {kind} and stuck {str(stuck).lower()} contradict each other; accepted: one")
    task_outcome = (row.get("task_outcome") or "").strip() or None
    if kind is None and stuck is None and productive is None and task_outcome is None:
        raise ValueError("says nothing of the turn; accepted: a kind, stuck, productive or task_outcome")
    return Label(
        turn_id=turn_id,
        label_id=(row.get("label_id") or "").strip() or new_label_id(reader, at),
        by=by,
        at=at,
        stuck=stuck if kind is None or stuck is not None else kind == "stuck" if kind != "other" else None,
        productive=productive,
        kind=kind,
        task_outcome=task_outcome,
        judge_version=(row.get("judge_version") or "").strip() or None,
    )


def _truth(name: str, row: dict[str, Any]) -> bool | None:
    given = (row.get(name) or "").strip().lower()
    if given in _YES:
        return True
    if given in _NO:
        return False
    if given in _UNKNOWN:
        return None
    raise ValueError(f"{name}: got {given!r}; accepted: true, false, or nothing where it is unknown")


def new_label_id(reader: str, at: int) -> str:
    """A label's id: who read, and when."""
    return f"{reader}#{at:x}"


def reader_of(label_id: str) -> str:
    """Who gave a label."""
    return label_id.partition("#")[0]


def _event(label: Label, turn: dict[str, Any]) -> dict[str, Any]:
    """The event turncap.turn.labelled as one line of OTLP/JSON."""
    attributes: Sequence[tuple[str, object]] = (
        (names.SCHEMA, names.SCHEMA_VERSION),
        (names.EVENT_ID, f"{label.turn_id}/label/{label.label_id}"),
        (names.GUARD_ID, turn.get("guard_id")),
        (names.TURN_SEQ, turn.get("seq")),
        (names.TURN_ID, label.turn_id),
        (names.LABEL_ID, label.label_id),
        (names.STUCK, label.stuck),
        (names.PRODUCTIVE, label.productive),
        (names.KIND, label.kind),
        (names.TASK_OUTCOME, label.task_outcome),
        (names.BY, label.by),
        (names.JUDGE_VERSION, label.judge_version),
        (names.STRATUM, label.stratum),
        (names.PROBABILITY, label.probability),
    )
    record = {
        "timeUnixNano": str(label.at),
        "observedTimeUnixNano": str(label.at),
        "severityNumber": 9,
        "severityText": "INFO",
        "eventName": names.TURN_LABELLED,
        "attributes": [
            {"key": key, "value": _value(value)} for key, value in attributes if value is not None
        ],
    }
    scope = {"scope": {"name": names.SCOPE}, "logRecords": [record]}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "turncap label"}}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def _value(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
