"""The registry, the names in code and the contract's literals say the same; the README is held by its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from guard import names
from tests.guard.contract import EVENTS, HARD_ONLY, METRICS
from tests.guard.receiving import Receiver
from tests.guard.test_wire import everything

ROOT = Path(__file__).resolve().parents[2]
GROUPS: list[dict[str, Any]] = yaml.safe_load((ROOT / "guard" / "registry.yaml").read_text("utf-8"))["groups"]
ATTRIBUTES = {
    attribute["id"]: attribute
    for group in GROUPS
    if group["type"] == "attribute_group"
    for attribute in group["attributes"]
}
BORROWED = {"gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.request.model"}  # of others, by reference


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    named = "metric_name" if kind == "metric" else "name"
    return {group[named]: group for group in GROUPS if group["type"] == kind}


def refs(group: dict[str, Any]) -> dict[str, str]:
    """Attributes of a group and how much they are required."""
    return {a.get("ref", a.get("id")): a["requirement_level"] for a in group["attributes"]}


def constants(prefix: str = "") -> set[str]:
    return {
        value
        for name, value in vars(names).items()
        if name.isupper() and name.startswith(prefix) and isinstance(value, str) and "://" not in value
    }


def test_the_names_in_code_are_the_registrys() -> None:
    events, spans, metrics = of_type("event"), of_type("span"), of_type("metric")
    own = {a["id"] for group in metrics.values() for a in group["attributes"] if "id" in a}
    registry = {*ATTRIBUTES, *BORROWED, *events, *spans, *metrics, *own, "turncap"}
    assert constants() == registry
    assert constants("M_") == set(metrics)
    assert constants("SPAN_") == set(spans)


def test_the_registrys_events_are_the_contracts() -> None:
    found = of_type("event")
    assert set(found) == set(EVENTS)
    for name, group in found.items():
        wanted = EVENTS[name] | (HARD_ONLY if "turncap.policy.kind" in EVENTS[name] else {})
        assert set(refs(group)) == set(wanted), name
        for attribute, kind in wanted.items():
            if attribute not in BORROWED:
                assert ATTRIBUTES[attribute]["type"] == kind, attribute


def test_the_registrys_metrics_are_the_contracts() -> None:
    found = of_type("metric")
    kinds = {"counter": "sum", "histogram": "histogram", "gauge": "gauge"}
    who = {"gen_ai.agent.name", "gen_ai.request.model"}
    assert {
        name: (kinds[group["instrument"]], group["unit"], set(refs(group)) - who)
        for name, group in found.items()
    } == {name: (kind, unit, own) for name, kind, unit, own in METRICS}


def test_every_attribute_has_a_type_a_meaning_and_a_use() -> None:
    used = {ref for group in GROUPS if group["type"] != "attribute_group" for ref in refs(group)}
    assert set(ATTRIBUTES) <= used
    for name, attribute in ATTRIBUTES.items():
        assert attribute["type"] in {"string", "int", "double", "boolean", "string[]", "int[]"}, name
        assert attribute["brief"].endswith("."), name


def test_what_is_required_always_comes() -> None:
    receiver = Receiver()
    everything(receiver)
    events = of_type("event")
    for event in receiver.logs:
        required = {name for name, level in refs(events[event.name]).items() if level == "required"}
        assert required <= set(event.attributes), event.name
    for span in receiver.spans:
        assert set(span.attributes) <= set(refs(of_type("span")[span.name]))
    for name, group in of_type("metric").items():
        for attributes, _ in receiver.points(name):
            levels = refs(group)
            assert set(attributes) <= set(levels)
            assert {n for n, level in levels.items() if level == "required"} <= set(attributes), name
