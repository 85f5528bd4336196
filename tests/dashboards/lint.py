"""dashboard-linter's published rules re-stated, and some of our own: each yields what is wrong, in words.

The real linter (grafana/dashboard-linter) is a Go program that these tests cannot count on. Its exclusions
are read from the file that it reads itself, `grafana/.lint`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.dashboards.reading import dissect, panels
from tools.dashboards.model import GRID_COLUMNS

Json = dict[str, Any]
Rule = Callable[[Json], Iterator[str]]
SELF_KNOWN = {
    "__rate_interval",
    "__range",
    "__interval",
    "__timeFilter",
    "__url_time_range",
    "__value",
    "__all",
}


def _variables(document: Json) -> dict[str, Json]:
    return {variable["name"]: variable for variable in document["templating"]["list"]}


def _prom(document: Json) -> Iterator[tuple[str, str]]:
    for panel in panels(document):
        for target in panel["targets"]:
            if target["datasource"]["type"] == "prometheus":
                yield panel["title"], target["expr"]


def _reads_prometheus(document: Json) -> bool:
    return any(True for _ in _prom(document))


def template_datasource(document: Json) -> Iterator[str]:
    for variable in document["templating"]["list"]:
        if variable["type"] == "datasource" and not variable["label"].endswith(" data source"):
            yield f"{variable['name']} has the label {variable['label']!r}"
    kinds = {target["datasource"]["type"] for panel in panels(document) for target in panel["targets"]}
    chosen = {v["query"] for v in document["templating"]["list"] if v["type"] == "datasource"}
    if kinds != chosen:
        yield f"queries read {sorted(kinds)}, variables choose {sorted(chosen)}"


def _template(name: str) -> Rule:
    def rule(document: Json) -> Iterator[str]:
        if not _reads_prometheus(document):
            return
        variable = _variables(document).get(name)
        if variable is None or not variable["multi"] or variable["allValue"] != ".+":
            yield f"variable {name} must exist, be multi and have allValue .+"

    return rule


def template_reload(document: Json) -> Iterator[str]:
    for variable in document["templating"]["list"]:
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"{variable['name']} does not refresh when the time range changes"


def template_promql(document: Json) -> Iterator[str]:
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            if not found:
                yield f"{variable['name']}: {variable['query']}"
            else:
                dissect(found[1])


def panel_datasource(document: Json) -> Iterator[str]:
    for panel in panels(document):
        for reference in [panel["datasource"], *(target["datasource"] for target in panel["targets"])]:
            if not re.fullmatch(r"\$\{\w+_datasource\}", reference["uid"]):
                yield f"{panel['title']} names {reference['uid']}"


def panel_title_description(document: Json) -> Iterator[str]:
    for panel in panels(document):
        if not panel["title"].strip() or len(panel["description"]) < 30:
            yield f"{panel['title']!r}: {panel['description']!r}"


def panel_units(document: Json) -> Iterator[str]:
    for panel in panels(document):
        if panel["fieldConfig"]["defaults"].get("unit") in (None, "", "none"):
            yield panel["title"]


def panel_no_targets(document: Json) -> Iterator[str]:
    for panel in panels(document):
        if not panel["targets"]:
            yield panel["title"]


def target_promql(document: Json) -> Iterator[str]:
    for title, expression in _prom(document):
        try:
            dissect(expression)
        except ValueError as error:
            yield f"{title}: {error}"


def target_rate_interval(document: Json) -> Iterator[str]:
    for title, expression in _prom(document):
        for window in re.findall(r"(?:rate|increase)\([^\[]*\[([^\]]+)\]", expression):
            if window != "$__rate_interval":
                yield f"{title}: [{window}]"


def _target_label(name: str) -> Rule:
    def rule(document: Json) -> Iterator[str]:
        for title, expression in _prom(document):
            for selector in dissect(expression)[0]:
                if name not in selector.labels:
                    yield f"{title}: {selector.metric} is not filtered by {name}"

    return rule


def target_counter_agg(document: Json) -> Iterator[str]:
    for title, expression in _prom(document):
        bare = re.sub(r"(?:rate|irate|increase)\([^()]*(?:\{[^}]*\})?\[[^\]]+\][^()]*\)", "", expression)
        if re.search(r"_total\b", bare):
            yield title


def uneditable(document: Json) -> Iterator[str]:
    if document["editable"]:
        yield "the dashboard can be edited"


def ids_are_present_and_unique(document: Json) -> Iterator[str]:
    seen: set[int] = set()
    for panel in document["panels"]:
        if not panel.get("id") or panel["id"] in seen:
            yield f"{panel['title']}: id {panel.get('id')}"
        seen.add(panel["id"])


def references_are_unique(document: Json) -> Iterator[str]:
    for panel in panels(document):
        names = [target["refId"] for target in panel["targets"]]
        if len(names) != len(set(names)):
            yield f"{panel['title']}: {names}"


def grid_fits(document: Json) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in document["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > GRID_COLUMNS or place["w"] < 1 or place["h"] < 1:
            yield f"{panel['title']} does not fit: {place}"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    yield f"{panel['title']} lies on {other}"
                    return


def variables_are_declared(document: Json) -> Iterator[str]:
    declared = set(_variables(document)) | SELF_KNOWN
    for text in _strings(document):
        for name in re.findall(r"\$\{?([A-Za-z_]\w*)", text):
            if name not in declared:
                yield f"${name} in {text[:80]!r}"


def variables_are_used(document: Json) -> Iterator[str]:
    text = "\n".join(_strings({key: value for key, value in document.items() if key != "templating"}))
    chained = "\n".join(_strings(document["templating"]))
    for name in _variables(document):
        if not re.search(rf"\$\{{?{name}\b", text + chained):
            yield name


def stats_start_at_zero(document: Json) -> Iterator[str]:
    """A counter that has not been born is an answer of zero, not a gap."""
    for panel in panels(document):
        if panel["type"] == "stat":
            for target in panel["targets"]:
                expression = target.get("expr", "")
                if "increase(" in expression and "vector(0)" not in expression:
                    yield f"{panel['title']}: {target['refId']}"


def few_numbers_abreast(document: Json) -> Iterator[str]:
    lines: dict[int, int] = {}
    for panel in panels(document):
        if panel["type"] == "stat":
            lines[panel["gridPos"]["y"]] = lines.get(panel["gridPos"]["y"], 0) + 1
    if any(count > 4 for count in lines.values()):
        yield "more than four numbers in a row"


def short_uid(document: Json) -> Iterator[str]:
    if not re.fullmatch(r"[a-z-]{1,40}", document["uid"]):
        yield document["uid"]


def links_keep_time_and_variables(document: Json) -> Iterator[str]:
    for link in document["links"]:
        if not (link["includeVars"] and link["keepTime"]):
            yield link["title"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


PUBLISHED: dict[str, Rule] = {
    "template-datasource-rule": template_datasource,
    "template-job-rule": _template("job"),
    "template-instance-rule": _template("instance"),
    "template-on-time-change-reload-rule": template_reload,
    "template-label-promql-rule": template_promql,
    "panel-datasource-rule": panel_datasource,
    "panel-title-description-rule": panel_title_description,
    "panel-units-rule": panel_units,
    "panel-no-targets-rule": panel_no_targets,
    "target-promql-rule": target_promql,
    "target-rate-interval-rule": target_rate_interval,
    "target-job-rule": _target_label("job"),
    "target-instance-rule": _target_label("instance"),
    "target-counter-agg-rule": target_counter_agg,
    "uneditable-dashboard-rule": uneditable,
}
OUR_OWN: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        ids_are_present_and_unique,
        references_are_unique,
        grid_fits,
        variables_are_declared,
        variables_are_used,
        stats_start_at_zero,
        few_numbers_abreast,
        short_uid,
        links_keep_time_and_variables,
    )
}
