"""Each dashboard keeps the linter's rules and ours; each exclusion has a reason and is still needed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.lint import OUR_OWN, PUBLISHED
from tests.dashboards.reading import FILES, HOME, load, panels

EXCLUSIONS: dict[str, dict[str, str]] = yaml.safe_load((HOME / "grafana/.lint").read_text(encoding="utf-8"))[
    "exclusions"
]
Json = dict[str, Any]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", [*(PUBLISHED.keys() - EXCLUSIONS.keys()), *OUR_OWN])
def test_the_dashboard_keeps_the_rule(path: Path, rule: str) -> None:
    assert list((PUBLISHED | OUR_OWN)[rule](load(path))) == []


@pytest.mark.parametrize("rule", EXCLUSIONS)
def test_an_exclusion_has_a_reason_and_is_still_needed(rule: str) -> None:
    assert len(EXCLUSIONS[rule]["reason"]) > 10
    assert any(list(PUBLISHED[rule](load(path))) for path in FILES)


def test_every_link_leads_to_a_dashboard_that_is_shipped() -> None:
    uids = {load(path)["uid"] for path in FILES}
    links = [link["url"] for path in FILES for link in load(path)["links"]]
    links += [
        value["url"]
        for path in FILES
        for panel in panels(load(path))
        for override in panel["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "links"
        for value in each["value"]
    ]
    assert len(links) > 8
    assert {url.removeprefix("/d/").split("?")[0] for url in links} <= uids


def _break(change: Callable[[Json], None]) -> Json:
    document = copy.deepcopy(load(HOME / "grafana/operations.json"))
    change(document)
    return document


def _first(document: Json) -> Json:
    panel: Json = panels(document)[0]
    return panel


def _five_abreast(document: Json) -> None:
    for panel in panels(document)[:5]:
        panel["type"] = "stat"
        panel["gridPos"]["y"] = 1


BREAKS: list[tuple[str, Callable[[Json], None]]] = [
    ("template-datasource-rule", lambda d: d["templating"]["list"][0].update(label="Metrics")),
    ("template-on-time-change-reload-rule", lambda d: d["templating"]["list"][2].update(refresh=1)),
    ("template-label-promql-rule", lambda d: d["templating"]["list"][2]["query"].update(query="up")),
    ("panel-datasource-rule", lambda d: _first(d)["datasource"].update(uid="prometheus")),
    ("panel-title-description-rule", lambda d: _first(d).update(description="")),
    ("panel-no-targets-rule", lambda d: _first(d).update(targets=[])),
    ("target-promql-rule", lambda d: _first(d)["targets"][0].update(expr="sum(rate(x[5m])")),
    ("uneditable-dashboard-rule", lambda d: d.update(editable=True)),
    ("ids_are_present_and_unique", lambda d: _first(d).update(id=panels(d)[1]["id"])),
    ("references_are_unique", lambda d: panels(d)[1]["targets"][1].update(refId="A")),
    ("grid_fits", lambda d: _first(d)["gridPos"].update(w=25)),
    ("grid_fits", lambda d: _first(d)["gridPos"].update(x=1)),
    ("variables_are_declared", lambda d: _first(d)["targets"][0].update(expr='up{job="$service"}')),
    ("variables_are_used", lambda d: d["templating"]["list"].append({"name": "region", "type": "textbox"})),
    ("stats_start_at_zero", lambda d: _first(d)["targets"][0].update(expr="sum(increase(x_total[1h]))")),
    ("few_numbers_abreast", _five_abreast),
    ("short_uid", lambda d: d.update(uid="T")),
    ("links_keep_time_and_variables", lambda d: d["links"][0].update(keepTime=False)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "change"), BREAKS, ids=[f"{n} {rule}" for n, (rule, _) in enumerate(BREAKS)]
)
def test_the_rule_notices_a_dashboard_that_breaks_it(rule: str, change: Callable[[Json], None]) -> None:
    assert list((PUBLISHED | OUR_OWN)[rule](_break(change)))


def test_every_rule_that_holds_is_shown_to_notice_something() -> None:
    assert {rule for rule, _ in BREAKS} | set(EXCLUSIONS) == set(PUBLISHED) | set(OUR_OWN)
