"""The DuckDB file: opened, checked, written. Its tables are described in schema.sql and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from analytics.database import SCHEMA_VERSION, check, check_format
from analytics.errors import InputError
from analytics.packed import Packed, to_arrow

if TYPE_CHECKING:  # reading begins while Arrow is not there yet
    import pyarrow as pa

APPLICATION = "turncap"
SCHEMA = Path(__file__).with_name("schema.sql")
MEMORY = "384MB"  # for DuckDB; it spills beyond


@cache
def _arrow_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "VARCHAR": pa.string(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "BIGINT[]": pa.list_(pa.int64()),
        "VARCHAR[]": pa.list_(pa.string()),
    }


class Warehouse:
    """An open database of turncap's. Use `Warehouse.open`; a context manager that closes it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, created: bool) -> None:
        self.connection = connection
        self.path = path
        self.created = created
        self._kinds: dict[str, dict[str, str]] = {}

    @classmethod
    def open(cls, path: Path) -> Warehouse:
        """Open `path` for writing, creating it when it is absent. InputError says why it cannot be."""
        created = not path.exists()
        if created and not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist; make it or name another")
        if path.is_dir():
            raise InputError(f"{path}: a folder; give the name of a file for the database")
        if not created:
            check_format(path)
        connection = connect(path)
        try:
            # Without a single table it is as good as new: a load was killed before it made them.
            if not connection.execute("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchall():
                connection.execute("BEGIN")
                connection.execute(SCHEMA.read_text(encoding="utf-8"))
                connection.execute(
                    "INSERT INTO meta VALUES ('application', ?), ('schema_version', ?)",
                    [APPLICATION, str(SCHEMA_VERSION)],
                )
                connection.execute("COMMIT")
            check(connection, path)
        except BaseException:
            connection.close()
            if created:
                path.unlink(missing_ok=True)
            raise
        return cls(connection, path, created)

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def discard_if_empty(self) -> None:
        """Close the file, and remove it when this process made it and nothing was committed to it."""
        empty = self.created and not self.rows("FROM files LIMIT 1")
        self.close()
        if empty:
            self.path.unlink(missing_ok=True)
            self.path.with_name(self.path.name + ".wal").unlink(missing_ok=True)

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """All or nothing of what is done inside."""
        self.begin()
        try:
            yield self.connection
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def begin(self) -> None:
        """Begin a transaction."""
        self.connection.execute("BEGIN")

    def commit(self) -> None:
        """Commit the transaction that is open."""
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        """Give up the transaction that is open, if one is."""
        with suppress(duckdb.Error):  # none was open
            self.connection.execute("ROLLBACK")

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.connection.execute(query, list(parameters)).fetchall()

    def kinds(self, table: str) -> dict[str, str]:
        """Column -> type of a table, as schema.sql declares it."""
        if table not in self._kinds:
            self._kinds[table] = {name: kind for name, kind, *_ in self.rows(f"DESCRIBE {table}")}
        return self._kinds[table]

    def arrow(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """Rows of `table`, their values in the order of `names`, as columns of the table's types."""
        import pyarrow as pa

        kinds, of_kind = self.kinds(table), _arrow_types()
        columns = zip(names, zip(*rows, strict=True), strict=True)
        return pa.table({name: pa.array(values, type=of_kind[kinds[name]]) for name, values in columns})

    def unpacked(self, table: str, parts: Sequence[Packed]) -> pa.Table:
        """Packed rows of `table`, one part or more, as columns of the table's types."""
        import pyarrow as pa

        kinds, of_kind = self.kinds(table), _arrow_types()
        types = {name: of_kind[kinds[name]] for name in parts[0]}
        return pa.concat_tables([to_arrow(part, types) for part in parts])

    def append(self, table: str, data: pa.Table) -> None:
        """Append rows."""
        with self.staged(data):
            self.connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM staged")

    @contextmanager
    def staged(self, data: pa.Table) -> Iterator[None]:
        """Make `data` readable as the view `staged`."""
        self.connection.register("staged", data)
        try:
            yield
        finally:
            self.connection.unregister("staged")

    def fold(self, table: str, data: pa.Table, key: tuple[str, ...]) -> None:
        """Add to `table` the rows of `data` that are new, one a natural key.

        Equal rows fold into one. Of rows that tell the same thing differently the one with the smaller
        text stays, whatever came first, and the others are noted in `conflicts`.
        """
        with self.staged(data):
            self._fold(table, key)

    def _fold(self, table: str, key: tuple[str, ...]) -> None:
        keys = ", ".join(key)
        ((clash,),) = self.rows(
            f"SELECT (SELECT count(*) <> count(DISTINCT hash({keys})) FROM staged) OR "
            f"EXISTS (FROM {table} SEMI JOIN staged USING ({keys}))"
        )
        if not clash:
            statements = [f"INSERT INTO {table} BY NAME SELECT * FROM staged"]
        else:
            statements = [
                f"CREATE OR REPLACE TEMP TABLE clashing AS SELECT {keys} FROM staged GROUP BY ALL "
                f"HAVING count(*) > 1 UNION SELECT {keys} FROM {table} SEMI JOIN staged USING ({keys})",
                f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT DISTINCT * FROM staged "
                f"SEMI JOIN clashing USING ({keys})",
                f"INSERT INTO fresh BY NAME SELECT * FROM {table} SEMI JOIN clashing USING ({keys})",
                "CREATE OR REPLACE TEMP TABLE ranked AS SELECT *, row_number() OVER "
                f"(PARTITION BY {keys} ORDER BY told) AS place FROM (SELECT f.*, to_json(f) AS told FROM "
                "(SELECT DISTINCT * FROM fresh) f)",
                f"INSERT OR IGNORE INTO conflicts SELECT concat_ws('/', {', '.join(key[:-1])}), {key[-1]}, "
                "md5(told) FROM ranked WHERE place > 1",
                f"DELETE FROM {table} WHERE ({keys}) IN (SELECT ({keys}) FROM clashing)",
                f"INSERT INTO {table} BY NAME SELECT * EXCLUDE (told, place) FROM ranked WHERE place = 1",
                f"INSERT INTO {table} BY NAME SELECT * FROM staged ANTI JOIN clashing USING ({keys})",
            ]
        for statement in statements:
            self.connection.execute(statement)


def connect(path: Path, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection to `path`; InputError when it is locked or no DuckDB file."""
    try:
        return duckdb.connect(
            str(path),
            read_only=read_only,
            config={"memory_limit": MEMORY, "preserve_insertion_order": "false"},
        )
    except duckdb.Error as error:
        raise InputError(f"{path}: {_reason(str(error))}") from None


def _reason(message: str) -> str:
    """DuckDB's message in one line of ours."""
    if "Could not set lock" in message or "Conflicting lock" in message:
        holder = re.search(r"PID (\d+)", message)
        by = f"process {holder[1]}" if holder else "another program"
        return (
            f"{by} has this database open; wait until it is done, or let readers open a copy that "
            "`turncap snapshot` publishes"
        )
    first = message.strip().splitlines()[0]
    return f"cannot be opened as a database: {first}"
