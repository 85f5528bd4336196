"""The dashboard files that come with turncap, and what they read of a published snapshot.

Three things can be made: a copy of the files; the answers of the validation dashboard as JSON files, for
where Grafana's DuckDB plugin cannot run; and a few numbers for Prometheus' textfile collector, so that an
alert can say that a verdict worsened or the snapshot is stale.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.errors import InputError

if TYPE_CHECKING:  # copying the files needs nothing but turncap itself
    import duckdb

_FILTER = re.compile(r"\$__timeFilter\(\s*([\w.]+)\s*\)")
_GENERATED_ONLY = shutil.ignore_patterns("data", "__pycache__")


def home() -> Path:
    """The folder of dashboard files: inside the installed package, or at the root of a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "dashboards_files", package.parent / "dashboards"):
        if (folder / "grafana").is_dir():
            return folder
    raise InputError(f"{package}: the dashboard files are missing; reinstall turncap")


def export(target: Path) -> list[Path]:
    """Copy the files to `target` (made if missing) and return the copies; nothing else there is touched."""
    shutil.copytree(home(), target, dirs_exist_ok=True, ignore=_GENERATED_ONLY)
    return sorted(
        target / path.relative_to(home())
        for path in home().rglob("*")
        if path.is_file() and not {"data", "__pycache__"} & set(path.relative_to(home()).parts)
    )


def expand(sql: str, *, period: tuple[str, str] | None = None, **variables: str) -> str:
    """The SQL that Grafana would send: `$__timeFilter` and `${name:sqlstring}` filled in.

    `period` is (from, to) as ISO times in UTC; None takes every time.
    """
    between = "TRUE" if period is None else r"\1 >= '{}' AND \1 <= '{}'".format(*period)
    for name, value in variables.items():
        quoted = "'" + value.replace("'", "''") + "'"
        sql = sql.replace(f"${{{name}:sqlstring}}", quoted)
    return _FILTER.sub(between, sql)


def panels(dashboard: str) -> Iterator[Mapping[str, Any]]:
    """The panels with a query of one committed dashboard."""
    document = json.loads((home() / "grafana" / f"{dashboard}.json").read_text(encoding="utf-8"))
    yield from (panel for panel in document["panels"] if panel.get("targets"))


def open_snapshot(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a published snapshot; `InputError` where the views are missing."""
    import duckdb

    if not path.is_file():
        raise InputError(f"{path}: no such snapshot; publish one with: turncap snapshot")
    try:
        connection = duckdb.connect(str(path), read_only=True)
        connection.execute("SELECT * FROM freshness")
    except duckdb.Error:
        raise InputError(f"{path}: not a published snapshot; give a file of turncap snapshot") from None
    return connection


def write_json(snapshot: Path, target: Path) -> list[Path]:
    """Write the answer of each validation panel to `target`; each file is replaced in one step."""
    names = {panel["title"]: Path(panel["targets"][0]["url"]).name for panel in panels("validation-json")}
    written = []
    with open_snapshot(snapshot) as connection:
        target.mkdir(parents=True, exist_ok=True)
        for panel in panels("validation"):
            result = connection.execute(expand(panel["targets"][0]["rawSql"]))
            columns = [name for name, *_ in result.description]
            rows = [dict(zip(columns, map(_plain, row), strict=True)) for row in result.fetchall()]
            path = target / names[panel["title"]]
            _replace(path, json.dumps(rows, ensure_ascii=False))
            written.append(path)
    return written


def textfile(snapshot: Path) -> str:
    """The state of a snapshot in Prometheus' text format. A verdict's rank is 2 validated, 1 insufficient
    evidence, 0 too low or too high; gauges are left out where nothing is known."""
    with open_snapshot(snapshot) as connection:
        newest = connection.execute("SELECT epoch(newest_turn) FROM freshness").fetchall()[0][0]
        ranks = connection.execute(
            "SELECT DISTINCT question, rank FROM report_verdicts ORDER BY ALL"
        ).fetchall()
    lines = [
        "# HELP turncap_snapshot_published_timestamp_seconds When the snapshot file was written.",
        "# TYPE turncap_snapshot_published_timestamp_seconds gauge",
        f"turncap_snapshot_published_timestamp_seconds {snapshot.stat().st_mtime:.0f}",
    ]
    if newest is not None:
        lines += [
            "# HELP turncap_snapshot_newest_turn_timestamp_seconds When the newest turn in it began.",
            "# TYPE turncap_snapshot_newest_turn_timestamp_seconds gauge",
            f"turncap_snapshot_newest_turn_timestamp_seconds {newest:.0f}",
        ]
    if ranks:
        lines += [
            "# HELP turncap_verdict_rank 2 validated, 1 insufficient evidence, 0 too low or too high.",
            "# TYPE turncap_verdict_rank gauge",
            *(f"turncap_verdict_rank{_labels(question=question)} {rank}" for question, rank in ranks),
        ]
    return "\n".join(lines) + "\n"


def write_textfile(snapshot: Path, target: Path) -> None:
    """Write `textfile` to `target` in one step, as the textfile collector wants it."""
    text = textfile(snapshot)
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, text)


def _labels(**labels: str) -> str:
    escaped = {k: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for k, v in labels.items()}
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"


def _plain(value: object) -> object:
    return value.isoformat() + "Z" if hasattr(value, "isoformat") else value


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
