"""Publish a read-only copy of a database for Grafana, with the views that its dashboards read.

A copy, because DuckDB lets no second process open a file that is being written, and none write one that is
being read: Grafana on the database itself would stop `turncap load`. It is written in the storage format of
DuckDB 1.5, which Grafana's plugin can read and later versions too, and replaces the previous one in one step.
"""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path

import duckdb

from analytics.database import open_database
from analytics.errors import InputError

STORAGE = "v1.5.0"  # what motherduck-duckdb-datasource 0.4 reads
# What dashboards read; what a load keeps for its own use stays behind.
TABLES = (
    "meta", "turns", "calls", "retries", "milestones", "candidates", "policies", "labels", "label_plan",
    "looks", "loop_events", "counters", "files", "rejects",
)  # fmt: skip


def publish(database: Path, target: Path, report: Path | None = None) -> None:
    """Write the copy of `database` to `target`; `report` is the report.json whose verdicts it shows.

    Raises:
        InputError: the database or the report cannot be read, or the target's folder is missing.
    """
    open_database(database).close()  # says in words what is wrong with the file
    if not target.parent.is_dir():
        raise InputError(f"{target}: the directory {target.parent} does not exist; create it or name another")
    if target.exists() and target.samefile(database):
        raise InputError(f"{target}: that is the database itself; name another file for the snapshot")
    told = None if report is None else _read(report)
    beside = target.with_name(f".{target.name}.part")
    beside.unlink(missing_ok=True)
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {_quoted(database)} AS source (READ_ONLY)")
            connection.execute(f"ATTACH {_quoted(beside)} AS snapshot (STORAGE_VERSION '{STORAGE}')")
            connection.execute("USE snapshot")
            connection.execute("BEGIN")
            for script in ("schema.sql", "views.sql"):
                connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"INSERT INTO {table} BY NAME FROM source.{table}")
            if told is not None:
                connection.execute("INSERT INTO report VALUES (?, ?)", [time.time_ns(), told])
            connection.execute("COMMIT")
            connection.execute("USE memory")
            connection.execute("DETACH snapshot")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
        beside.with_name(beside.name + ".wal").unlink(missing_ok=True)


def _read(report: Path) -> str:
    try:
        text = report.read_text(encoding="utf-8")
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise InputError(f"{report}: no report ({error}); give a report.json of turncap report") from None
    if not isinstance(found, dict) or "verdicts" not in found:
        raise InputError(f"{report}: no report of turncap's; give a report.json of turncap report")
    return text


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
