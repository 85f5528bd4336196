"""The committed files are what the generator writes, and Grafana's own schema knows every key in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard as schema

from tests.dashboards.reading import FILES, HOME, load
from tools.dashboards.__main__ import DASHBOARDS, generated


@pytest.mark.parametrize("name", generated())
def test_generating_anew_gives_the_committed_file(name: str) -> None:
    assert (HOME / name).read_text(encoding="utf-8") == generated()[name], "run: make dashboards"


def test_no_dashboard_is_committed_that_nothing_generates() -> None:
    assert {path.stem for path in FILES} == set(DASHBOARDS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_schema_knows_every_key_and_keeps_every_value(path: Path) -> None:
    assert list(_lost(load(path), _through_the_schema(load(path)))) == []


def test_a_key_that_the_schema_does_not_know_is_noticed() -> None:
    document = load(FILES[0])
    document["panels"][1]["options"]["colourMode"] = "value"
    document["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    lost = list(_lost(document, _through_the_schema(document)))
    assert lost == ["/panels/1/options/colourMode", "/panels/1/fieldConfig/defaults/units"]


@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2")
def _through_the_schema(document: dict[str, Any]) -> Any:
    plugins.register_default_plugins()  # without them unknown options pass
    read = schema.Dashboard.from_json(document)
    return json.loads(encoder.JSONEncoder(sort_keys=True).encode(read))


def _lost(wanted: Any, got: Any, at: str = "") -> Iterator[str]:
    """Where `got` lacks or changes what `wanted` says; what the schema adds by default does not matter."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            if key in got:
                yield from _lost(value, got[key], f"{at}/{key}")
            elif value not in (None, "", [], {}):
                yield f"{at}/{key}"
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _lost(one, other, f"{at}/{number}")
    elif wanted != got:
        yield at
