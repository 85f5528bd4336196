"""Opening a turncap database, and running the SELECTs of `analytics/sql` on it."""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from analytics.errors import InputError

if TYPE_CHECKING:  # a load needs none, and they take a while to import
    import pandas as pd

SCHEMA_VERSION = 1  # of schema.sql


def open_database(path: Path | str, *, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    """A connection to an existing turncap database; `InputError` says what is wrong with the file."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: a folder; give a database, the file that turncap load wrote")
    if not path.is_file():
        raise InputError(f"{path}: no such database{_nearest(path)}")
    check_format(path)
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.IOException as error:
        if "lock" in str(error).lower():
            raise InputError(f"{path}: another process is writing it; try again when it is done") from None
        raise InputError(f"{path}: not a DuckDB database; give a file that turncap load wrote") from None
    try:
        check(connection, path)
    except InputError:
        connection.close()
        raise
    return connection


def check_format(path: Path) -> None:
    """`InputError` unless the file is DuckDB's: asked to open another format, DuckDB would fetch a driver."""
    with path.open("rb") as file:
        head = file.read(12)
    if head and head[8:] != b"DUCK":
        raise InputError(f"{path}: not a DuckDB database; give a file that turncap load wrote")


def check(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """`InputError` unless the database is turncap's and of a schema that this version reads."""
    try:
        meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    except duckdb.Error:
        meta = {}
    version = meta.get("schema_version", "")
    if meta.get("application") != "turncap" or not version.isdecimal():
        raise InputError(f"{path}: a database of another program; give a file that turncap load wrote")
    if int(version) > SCHEMA_VERSION:
        raise InputError(
            f"{path}: written by a newer turncap (schema {version}, this one reads up to {SCHEMA_VERSION}); "
            "upgrade turncap, or load the exported files into a new database"
        )


def select(connection: duckdb.DuckDBPyConnection, name: str, **parameters: object) -> pd.DataFrame:
    """The rows of `analytics/sql/<name>.sql`; its `$names` are filled from `parameters`."""
    query = files("analytics").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return connection.execute(query, parameters or None).df()


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The frame's rows as mappings of plain Python values, with None for unknown."""
    import pandas as pd

    return [
        {
            str(name): None if pd.isna(value) else getattr(value, "item", lambda v=value: v)()
            for name, value in row.items()
        }
        for row in frame.astype(object).to_dict("records")
    ]


def _nearest(path: Path) -> str:
    folder = path.parent
    names = [found.name for found in folder.glob("*.duckdb")] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return (
        f"; did you mean {folder / near[0]}?" if near else f"; make one with: turncap load PATH… --db {path}"
    )
