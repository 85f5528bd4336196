"""What a panel's queries answer, as the frames that Grafana's components draw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from analytics.dashboards import expand
from tools.dashboards.promql import filled
from tools.integration.running import fetch

Frame = dict[str, Any]
Json = dict[str, Any]


def _field(name: str, kind: str, values: Sequence[Any], shown: str | None = None) -> Json:
    config = {"displayName": shown} if shown else {}
    return {"name": name, "type": kind, "values": list(values), "config": config}


def of_prometheus(
    address: str, panel: Json, target: Json, begin: float, end: float, step: int
) -> list[Frame]:
    """The frames of one PromQL target between two times."""
    query = filled(target["expr"], span=f"{int(end - begin)}s", rate="16m")
    if target["range"]:
        answer = fetch(f"{address}/api/v1/query_range", query=query, start=begin, end=end, step=step)
    else:
        answer = fetch(f"{address}/api/v1/query", query=query, time=end)
    rows = answer["data"]["result"]
    if target["format"] == "table":
        return _table(panel, rows)
    if target["format"] == "heatmap":
        return _buckets(rows)
    frames = []
    for row in rows:
        samples = row.get("values") or [row["value"]]
        name = _legend(target["legendFormat"], row["metric"])
        numbers = [None if value in ("NaN", "+Inf", "-Inf") else float(value) for _, value in samples]
        times = [float(at) * 1000 for at, _ in samples]
        frames.append({"fields": [_field("time", "time", times), _field("Value", "number", numbers, name)]})
    return frames


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern)


def _buckets(rows: Sequence[Json]) -> list[Frame]:
    """Cumulative buckets taken apart, as Grafana does with the format `heatmap`."""
    edges = [(float(row["metric"]["le"]), float(row["value"][1])) for row in rows]
    frames, before = [], 0.0
    for edge, count in sorted(edges):
        frames.append({"fields": [_field("Value", "number", [count - before], f"{edge:g}")]})
        before = count
    return frames


def _table(panel: Json, rows: Sequence[Json]) -> list[Frame]:
    (organised,) = [each["options"] for each in panel["transformations"] if each["id"] == "organize"]
    names = {k: v for k, v in organised["renameByName"].items() if k not in organised["excludeByName"]}
    fields = []
    for name, shown in names.items():
        if name == "Value":
            fields.append(_field(shown, "number", [float(row["value"][1]) for row in rows]))
        else:
            fields.append(_field(shown, "string", [row["metric"].get(name, "") for row in rows]))
    return [{"fields": fields}] if rows else []


def of_duckdb(
    connection: duckdb.DuckDBPyConnection, target: Json, period: tuple[str, str], **variables: str
) -> list[Frame]:
    """The frame of one SQL target."""
    result = connection.execute(expand(target["rawSql"], period=period, **variables))
    names = [name for name, *_ in result.description]
    rows = result.fetchall()
    if not rows:
        return []
    columns = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    if target["format"] == "time_series":
        return _series(columns)
    return [{"fields": [_column(name, values) for name, values in columns.items()]}]


def _column(name: str, values: Sequence[Any], shown: str | None = None) -> Json:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {datetime}:
        return _field(
            name, "time", [None if v is None else v.replace(tzinfo=UTC).timestamp() * 1000 for v in values]
        )
    if kinds <= {bool}:
        return _field(name, "boolean", values)
    return _field(name, "number" if kinds <= {int, float} else "string", values, shown)


def _series(columns: Mapping[str, Sequence[Any]]) -> list[Frame]:
    """One frame a series: a column of text tells series apart, as Grafana's long-to-wide does."""
    texts = [name for name, values in columns.items() if isinstance(values[0], str)]
    keys = (
        list(zip(*(columns[name] for name in texts), strict=True)) if texts else [()] * len(columns["time"])
    )
    frames = []
    for key in dict.fromkeys(keys):
        here = [n for n, other in enumerate(keys) if other == key]
        for name, values in columns.items():
            if name != "time" and name not in texts:
                shown = " ".join((name, *key))
                times = _column("time", [columns["time"][n] for n in here])
                frames.append({"fields": [times, _column("Value", [values[n] for n in here], shown)]})
    return frames
