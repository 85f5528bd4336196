"""The rules name only what exists, lead to panels and runbooks that exist, and quote the same limits."""

from __future__ import annotations

import re

import pytest

from tests.dashboards.reading import FILES, HOME, dissect, load
from tools.dashboards import limits
from tools.dashboards.catalog import FOREIGN, OWN, label
from tools.dashboards.rules import ALERTS, RECORDED

SERIES = {series: metric for metric in (*OWN.values(), *FOREIGN) for series in metric.series()}
EXPRESSIONS = [*RECORDED.items(), *((alert.name, alert.expr) for alert in ALERTS)]
RUNBOOKS = (HOME / "runbooks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS, ids=[name for name, _ in EXPRESSIONS])
def test_metrics_and_labels_are_in_the_catalogue(name: str, expression: str) -> None:
    selectors, grouped = dissect(expression)
    allowed = {"job", "instance"}
    for selector in selectors:
        if selector.metric in SERIES:
            allowed |= {label(attribute) for attribute in SERIES[selector.metric].attributes}
        else:
            dotted = selector.metric == "" and selector.labels == {"__name__"}
            assert selector.metric in RECORDED or dotted, selector
        assert selector.labels <= allowed | {"__name__"}, selector
    assert grouped <= allowed


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert re.findall(r"^## (\w+)$", RUNBOOKS, re.M) == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_leads_to_a_panel_and_its_runbook(alert: object) -> None:
    assert isinstance(alert, type(ALERTS[0]))
    rule = alert.to_rule()
    annotations = rule["annotations"]
    panels = {
        (document["uid"], str(panel["id"])) for document in map(load, FILES) for panel in document["panels"]
    }
    assert (annotations["__dashboardUid__"], annotations["__panelId__"]) in panels
    assert annotations["dashboard"].endswith(annotations["__panelId__"])
    assert annotations["runbook_url"] == f"runbooks.md#{alert.name.lower()}"
    assert rule["labels"]["severity"] in ("info", "warning", "critical")


@pytest.mark.parametrize(
    ("section", "quoted"),
    [
        ("TurncapHaltShareHigh", f"{limits.HALT_SHARE:.0%}".replace("%", " %")),
        ("TurncapHaltShareHigh", f"at least {limits.HALT_SHARE_TURNS} turns"),
        ("TurncapHaltsAboveUsual", f"{limits.HALTS_FACTOR} times"),
        ("TurncapHaltsAboveUsual", f"at least {limits.HALTS_LEAST}"),
        ("TurncapTurnsDoNotEnd", f"{limits.SILENT_TURNS} turns"),
        ("TurncapGuardFaults", f"{limits.ERRORS_HOURLY} faults"),
        ("TurncapSnapshotStale", f"{limits.SNAPSHOT_DAYS} days"),
    ],
)
def test_a_runbook_quotes_the_limit_that_is_in_force(section: str, quoted: str) -> None:
    text = RUNBOOKS.split(f"## {section}\n")[1].split("\n## ")[0]
    assert quoted in " ".join(text.split())
