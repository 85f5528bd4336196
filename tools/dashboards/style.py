"""How panels look: one short call a kind of panel, with the options and colours that dashboards share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tools.dashboards.model import Override, Panel, Target

Shape = Literal["range", "instant", "buckets", "table"]
THRESHOLD_COLOURS = {"soft-stuck": "orange", "backstop": "red", "explicit-hard": "purple"}
LOG_SCALE = {"scaleDistribution": {"type": "log", "log": 10}}
REDUCE_LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
REDUCE_ALL_FIELDS = {"calcs": ["lastNotNull"], "fields": "/.*/", "values": True}
LOG_LINES = {
    "showTime": True, "wrapLogMessage": True, "enableLogDetails": True, "dedupStrategy": "none",
    "prettifyLogMessage": False, "showLabels": False, "showCommonLabels": False,
}  # fmt: skip
PLAIN = {"color": {"mode": "fixed", "fixedColor": "text"}}


def prom(query: str, legend: str = "", shape: Shape = "range") -> Target:
    """A query to Prometheus."""
    return Target(source="prometheus", query=query, legend=legend, shape=shape)


def duck(query: str, *, over_time: bool = False) -> Target:
    """A query to the published DuckDB snapshot; `over_time`: a first column `time`, then series."""
    return Target(source="duckdb", query=query.strip(), shape="range" if over_time else "table")


def colours(chosen: Mapping[str, str]) -> list[Override]:
    """The same colour for the same thing on every panel."""
    return [
        Override(field=name, properties={"color": {"mode": "fixed", "fixedColor": colour}})
        for name, colour in chosen.items()
    ]


def limit_lines(chosen: Mapping[str, str]) -> list[Override]:
    """Limits drawn as dashed lines, so that nobody takes them for a measurement."""
    return [
        Override(
            field=name,
            properties={
                "color": {"mode": "fixed", "fixedColor": colour},
                "custom.lineStyle": {"fill": "dash", "dash": [10, 6]},
                "custom.lineWidth": 2,
                "custom.fillOpacity": 0,
                "custom.stacking": {"mode": "none", "group": "A"},
            },
        )
        for name, colour in chosen.items()
    ]


def stat(
    key: str, title: str, description: str, targets: Sequence[Target], *, unit: str = "none", width: int = 6,
    names: bool = True, height: int = 5, all_fields: bool = False, **defaults: Any,
) -> Panel:  # fmt: skip
    """One or a few large numbers; `all_fields` shows every column of a one-row answer."""
    return Panel(
        key=key, title=title, description=description, kind="stat", unit=unit, width=width, height=height,
        targets=targets, defaults={"decimals": 0} | PLAIN | defaults,
        options={
            "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
            "textMode": "value_and_name" if names else "value", "wideLayout": True,
            "reduceOptions": REDUCE_ALL_FIELDS if all_fields else REDUCE_LAST,
        },
    )  # fmt: skip


def series(
    key: str, title: str, description: str, targets: Sequence[Target], *, unit: str = "none", width: int = 8,
    height: int = 8, stacked: bool = False, log: bool = False, stepped: bool = False,
    overrides: Sequence[Override] = (), **defaults: Any,
) -> Panel:  # fmt: skip
    """Lines over time; counts start at zero unless the scale is logarithmic."""
    custom: dict[str, object] = {"lineWidth": 2, "fillOpacity": 8, "showPoints": "never", "spanNulls": False}
    if stacked:
        custom |= {"lineWidth": 1, "fillOpacity": 40, "stacking": {"mode": "normal", "group": "A"}}
    if unit == "none" and not log:
        custom |= {"axisSoftMax": 5}  # a line at zero is no line at a hundred
    if log:
        custom |= LOG_SCALE
    if stepped:
        custom |= {"lineInterpolation": "stepAfter", "fillOpacity": 0}
    return Panel(
        key=key, title=title, description=description, kind="timeseries", unit=unit, width=width, height=height,
        targets=targets, overrides=overrides, custom=custom, defaults=({} if log else {"min": 0}) | defaults,
        options={
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    )  # fmt: skip


def bars(
    key: str, title: str, description: str, targets: Sequence[Target], *, width: int = 8, height: int = 8,
    rows: bool = False, **defaults: Any,
) -> Panel:  # fmt: skip
    """Horizontal bars with their numbers; `rows` draws one bar a row of a table, not one a series."""
    return Panel(
        key=key, title=title, description=description, kind="bargauge", unit="none", width=width, height=height,
        targets=targets, defaults={"min": 0, "decimals": 0} | defaults,
        options={
            "displayMode": "basic", "orientation": "horizontal", "showUnfilled": False, "valueMode": "color",
            "namePlacement": "left", "sizing": "auto", "minVizHeight": 12, "maxVizHeight": 300, "minVizWidth": 8,
            "reduceOptions": REDUCE_LAST | {"values": rows},
        },
    )  # fmt: skip


def table(
    key: str, title: str, description: str, target: Target, *, width: int = 24, height: int = 9,
    overrides: Sequence[Override] = (), transformations: Sequence[dict[str, Any]] = (), **defaults: Any,
) -> Panel:  # fmt: skip
    """Rows as they come; `overrides` give columns their units and links."""
    return Panel(
        key=key, title=title, description=description, kind="table", unit="none", width=width, height=height,
        targets=[target], overrides=overrides, transformations=transformations, defaults=PLAIN | defaults,
        custom={"filterable": True}, options={"showHeader": True, "cellHeight": "sm"},
    )  # fmt: skip


def column(name: str, **properties: object) -> Override:
    """How one column of a table differs: `unit`, `links`, `custom.width` …"""
    return Override(field=name, properties=properties)


def columns(pattern: str, **properties: object) -> Override:
    """The same for every column whose name matches."""
    return Override(field=pattern, properties=properties, regexp=True)


def link(title: str, url: str) -> dict[str, object]:
    """A data link of a field."""
    return {"title": title, "url": url, "targetBlank": False}
