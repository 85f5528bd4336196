"""The committed dashboards, taken apart for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser

from tools.dashboards.promql import filled

HOME = Path(__file__).resolve().parents[2] / "dashboards"
FILES = sorted((HOME / "grafana").glob("*.json"))
Json = dict[str, Any]


def load(path: Path) -> Json:
    document: Json = json.loads(path.read_text(encoding="utf-8"))
    return document


def panels(document: Json) -> list[Json]:
    """All panels but the row headings."""
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def targets(kind: str) -> Iterator[tuple[str, Json, Json]]:
    """(file and panel title, panel, target) of every query of one kind of data source."""
    for path in FILES:
        for panel in panels(load(path)):
            for target in panel["targets"]:
                if target["datasource"]["type"] == kind:
                    yield f"{path.stem}: {panel['title']}: {target['refId']}", panel, target


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """One vector selector: its metric, and the labels that it filters by."""

    metric: str
    labels: frozenset[str]


def dissect(expression: str) -> tuple[list[Selector], set[str]]:
    """(selectors, labels grouped by) of a PromQL expression; raises ValueError where it does not parse."""
    selectors: list[Selector] = []
    grouped: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            labels = frozenset(matcher.name for matcher in node.matchers.matchers)
            selectors.append(Selector(metric=node.name or "", labels=labels))
        elif isinstance(node, promql_parser.MatrixSelector):
            visit(node.vector_selector)
        else:
            modifier = getattr(node, "modifier", None)
            grouped.update(getattr(modifier, "labels", None) or ())
            for name in ("expr", "param", "lhs", "rhs"):
                if getattr(node, name, None) is not None:
                    visit(getattr(node, name))
            for argument in getattr(node, "args", None) or ():
                visit(argument)

    visit(promql_parser.parse(filled(expression)))
    return selectors, grouped
