"""Panels, rows and dashboards as values, and their JSON in Grafana's classic schema.

Only what the three dashboards use. Positions follow from widths and heights, ids from the panel's own
key (so a link or an alert that names a panel keeps its target when panels are moved).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Source = Literal["prometheus", "loki", "tempo", "duckdb", "infinity"]

GRID_COLUMNS = 24
SCHEMA_VERSION = 39  # Grafana 11's; newer ones migrate it when they load it

PLUGINS: Mapping[Source, str] = {
    "prometheus": "prometheus",
    "loki": "loki",
    "tempo": "tempo",
    "duckdb": "motherduck-duckdb-datasource",
    "infinity": "yesoreyeram-infinity-datasource",
}
SOURCE_LABELS: Mapping[Source, str] = {
    "prometheus": "Prometheus data source",
    "loki": "Loki data source",
    "tempo": "Tempo data source",
    "duckdb": "DuckDB data source",
    "infinity": "Infinity data source",
}


def datasource(source: Source) -> Json:
    """The reference by variable: no dashboard names a data source of one installation."""
    return {"type": PLUGINS[source], "uid": f"${{{source}_datasource}}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One query of a panel; `legend` only where series are drawn, `columns` (name: type) only of JSON files."""

    source: Source
    query: str
    legend: str = ""
    shape: Literal["range", "instant", "buckets", "table"] = "range"
    columns: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, ref: str) -> Json:
        """As the data source's own query editor writes it."""
        base: Json = {"refId": ref, "datasource": datasource(self.source)}
        if self.source == "prometheus":
            formats = {"buckets": "heatmap", "table": "table"}
            instant = self.shape != "range"
            base |= {"expr": self.query, "instant": instant, "range": not instant, "editorMode": "code"}
            base |= {"format": formats.get(self.shape, "time_series")}
            return base | {"legendFormat": self.legend or "__auto"}
        if self.source == "loki":
            return base | {"expr": self.query, "queryType": "range", "editorMode": "code"}
        if self.source == "tempo":
            return base | {"query": self.query, "queryType": "traceql", "tableType": "traces", "limit": 20}
        if self.source == "infinity":
            return base | {
                "type": "json",
                "source": "url",
                "parser": "backend",
                "format": "table",
                "url": self.query,
                "url_options": {"method": "GET"},
                "root_selector": "",
                "columns": [
                    {"selector": name, "text": name, "type": kind} for name, kind in self.columns.items()
                ],
                "filters": [],
            }
        return base | {
            "rawSql": self.query,
            "rawQuery": True,
            "editorMode": "code",
            "format": "time_series" if self.shape == "range" else "table",
            "dataset": "default",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """How one field differs from the panel's default: properties by their Grafana id."""

    field: str
    properties: Mapping[str, object]
    regexp: bool = False

    def to_json(self) -> Json:
        matcher = {"id": "byRegexp" if self.regexp else "byName", "options": self.field}
        return {
            "matcher": matcher,
            "properties": [{"id": key, "value": value} for key, value in self.properties.items()],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. `key` never changes: the panel's id is made from it."""

    key: str
    title: str
    description: str
    kind: str
    unit: str
    width: int
    height: int = 8
    targets: Sequence[Target] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    custom: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    overrides: Sequence[Override] = ()
    transformations: Sequence[Json] = ()

    @property
    def id(self) -> int:
        """Stable, and the same on every machine."""
        return zlib.crc32(self.key.encode()) % 1_000_000_000 + 1

    def to_json(self, x: int, y: int) -> Json:
        defaults: Json = {"unit": self.unit, "color": {"mode": "palette-classic"}}
        defaults |= {"thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None}]}}
        defaults |= dict(self.defaults)
        if self.custom:
            defaults["custom"] = dict(self.custom)
        body: Json = {
            "id": self.id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "options": dict(self.options),
            "fieldConfig": {"defaults": defaults, "overrides": [each.to_json() for each in self.overrides]},
            "targets": [target.to_json(chr(ord("A") + n)) for n, target in enumerate(self.targets)],
        }
        if self.targets:
            body["datasource"] = datasource(self.targets[0].source)
        if self.transformations:
            body["transformations"] = list(self.transformations)
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A heading and the panels under it, laid out left to right, wrapping when a line is full."""

    key: str
    title: str
    panels: Sequence[Panel]

    @property
    def id(self) -> int:
        return zlib.crc32(f"row/{self.key}".encode()) % 1_000_000_000 + 1

    def lay_out(self, top: int) -> tuple[list[Json], int]:
        """The JSON of the row from line `top` on, and the first free line below it."""
        head = {"id": self.id, "type": "row", "title": self.title, "collapsed": False, "panels": []}
        placed: list[Json] = [head | {"gridPos": {"x": 0, "y": top, "w": GRID_COLUMNS, "h": 1}}]
        x, y, tallest = 0, top + 1, 0
        for panel in self.panels:
            if x + panel.width > GRID_COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            placed.append(panel.to_json(x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        return placed, y + tallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice at the top of the dashboard: a label's values, or free text."""

    name: str
    label: str
    description: str
    values_of: tuple[Source, str] | None = None
    text: str = ""

    def to_json(self) -> Json:
        base: Json = {"name": self.name, "label": self.label, "description": self.description}
        if self.values_of is None:
            current = {"selected": True, "text": self.text, "value": self.text}
            return base | {"type": "textbox", "query": self.text, "current": current}
        source, query = self.values_of
        return base | {
            "type": "query",
            "datasource": datasource(source),
            "query": {"query": query, "refId": self.name} if source == "prometheus" else query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            # a missing label too: not every route sets a job, not every caller names agent and model
            "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard and the question that it answers."""

    uid: str
    title: str
    description: str
    sources: Sequence[Source]
    variables: Sequence[Variable]
    rows: Sequence[Row]
    period: str
    refresh: str = ""
    annotations: Sequence[Json] = ()
    links: Sequence[Json] = ()

    def panels(self) -> Iterator[Panel]:
        for row in self.rows:
            yield from row.panels

    def to_json(self) -> Json:
        panels: list[Json] = []
        top = 0
        for row in self.rows:
            placed, top = row.lay_out(top)
            panels += placed
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["turncap"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "timezone": "browser",
            "time": {"from": self.period, "to": "now"},
            "refresh": self.refresh,
            "annotations": {"list": list(self.annotations)},
            "links": list(self.links),
            "templating": {
                "list": [_datasource_variable(source) for source in self.sources]
                + [variable.to_json() for variable in self.variables]
            },
            "panels": panels,
        }


def _datasource_variable(source: Source) -> Json:
    return {
        "name": f"{source}_datasource",
        "label": SOURCE_LABELS[source],
        "type": "datasource",
        "query": PLUGINS[source],
        "refresh": 1,
        "hide": 0,
    }


def link_to(uid: str, title: str) -> Json:
    """A link in the dashboard's head that keeps the time range and the variables."""
    return {
        "title": title,
        "type": "link",
        "url": f"/d/{uid}",
        "icon": "dashboard",
        "tooltip": "",
        "tags": [],
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }
