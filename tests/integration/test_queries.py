"""Every PromQL of every panel and rule, executed by a real Prometheus fed by real guards."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from guard import names
from tests.dashboards.reading import FILES, HOME, dissect, load, targets
from tools.dashboards.catalog import GUARD_INFO, HALTS, TURNS, TURNS_STARTED, label
from tools.dashboards.promql import grown, select
from tools.dashboards.rules import ALERTS, RECORDED
from tools.integration.bench import LAYOUTS, Bench
from tools.integration.running import fetch, wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

PANELS = [(where, target) for where, _, target in targets("prometheus")]
ANNOTATIONS = [(each["name"], each["expr"]) for path in FILES for each in load(path)["annotations"]["list"]]
# Right to be empty here: no limit changed in the run.
EMPTY = {"A limit changed"}


def _rows(answer: dict[str, Any], where: str) -> list[Any]:
    assert answer["status"] == "success", f"{where}: {answer}"
    assert not answer.get("warnings"), f"{where}: {answer['warnings']}"
    assert not answer.get("infos"), f"{where}: {answer['infos']}"
    return list(answer["data"]["result"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_panel_shows_data_without_warnings(bench: Bench, layout: str) -> None:
    missing = []
    for where, target in PANELS:
        over = 60 if target["range"] else 0
        if not _rows(bench.ask(layout, target["expr"], over=over), where):
            missing.append(where)
    assert missing == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_annotation_is_a_query_that_runs(bench: Bench, layout: str) -> None:
    for name, expression in ANNOTATIONS:
        assert bool(_rows(bench.ask(layout, expression), name)) is not (name in EMPTY)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_rule_evaluates_and_every_series_it_reads_is_there(bench: Bench, layout: str) -> None:
    for name, expression in [*RECORDED.items(), *((alert.name, alert.expr) for alert in ALERTS)]:
        _rows(bench.ask(layout, expression), name)
        for selector in dissect(expression)[0]:
            if selector.metric and not selector.metric.startswith("job:"):
                there = bench.ask(layout, f"count(last_over_time({selector.metric}[1h]))")
                assert _rows(there, selector.metric), f"{name}: {selector}"
    health = [
        (rule["name"], rule["health"], rule.get("lastError"))
        for group in fetch(f"{bench.prometheus[layout]}/api/v1/rules")["data"]["groups"]
        for rule in group["rules"]
    ]
    assert len(health) == len(RECORDED) + len(ALERTS)
    assert {state for _, state, _ in health} <= {"ok", "unknown"}, (
        health
    )  # unknown: not evaluated since the start


@pytest.mark.parametrize("layout", LAYOUTS)
def test_alerts_that_wait_for_nothing_fire(bench: Bench, layout: str) -> None:
    def firing() -> set[str]:
        found = fetch(f"{bench.prometheus[layout]}/api/v1/alerts")["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}

    wait_for("the backstop's alert", lambda: "TurncapBackstopHit" in firing(), 60)


def test_names_with_dots_are_noticed_and_nothing_else_shows_them(bench: Bench) -> None:
    (alert,) = (alert for alert in ALERTS if alert.name == "TurncapNamesNotTranslated")
    assert _rows(bench.ask("dotted", alert.expr), alert.name)
    assert not _rows(bench.ask("dotted", f"count({select(GUARD_INFO)})"), "translated names")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("counter", "event"),
    [
        (select(TURNS_STARTED), names.TURN_STARTED),
        (select(TURNS), names.TURN_ENDED),
        (select(HALTS), names.LOOP_DETECTED),
    ],
)
def test_counters_equal_the_events_that_were_emitted(
    bench: Bench, layout: str, counter: str, event: str
) -> None:
    # spans-only emits no log records, so its journal is empty: its counts are left out on both sides
    theirs = _rows(bench.ask(layout, grown(counter, "30m", "job, exported_job, service_name")), counter)
    total = sum(
        float(row["value"][1]) for row in theirs if "spans-only" not in "".join(row["metric"].values())
    )
    assert total == bench.emitted(event)


def test_the_committed_rules_are_those_that_were_loaded(bench: Bench) -> None:
    committed = yaml.safe_load((HOME / "prometheus/turncap.alerts.yml").read_text(encoding="utf-8"))
    loaded = fetch(f"{bench.prometheus['pushed']}/api/v1/rules", type="alert")["data"]["groups"]
    assert [rule["name"] for group in loaded for rule in group["rules"]] == [
        rule["alert"] for group in committed["groups"] for rule in group["rules"]
    ]


def test_labels_are_where_each_layout_says(bench: Bench) -> None:
    enforced = select(HALTS, f'{label(names.ENFORCED)}="true"')
    keys = {
        layout: set().union(*(row["metric"] for row in _rows(bench.ask(layout, enforced), layout)))
        for layout in LAYOUTS
    }
    assert all(label(names.THRESHOLD) in found for found in keys.values())
    assert {layout for layout, found in keys.items() if not {"job", "instance"} & found} == {"promoted"}
    assert {layout for layout, found in keys.items() if "exported_job" in found} == {"scraped"}
