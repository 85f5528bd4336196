"""The configurations beside the dashboards fit each other; what only a running Grafana could tell is not here."""

from __future__ import annotations

import runpy
import time
from typing import Any

import pytest
import yaml

from tests.dashboards.reading import FILES, HOME, load
from tools.dashboards.model import PLUGINS
from tools.integration.components import BUILDER_FILE

COMPOSE: dict[str, Any] = yaml.safe_load((HOME / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def _yaml(name: str) -> Any:
    return yaml.safe_load((HOME / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("service", SERVICES)
def test_images_are_pinned_and_what_is_mounted_is_there(service: str) -> None:
    image = SERVICES[service]["image"]
    assert image.rpartition(":")[2] not in ("", "latest")
    for mount in SERVICES[service].get("volumes", []):
        source = mount.split(":")[0]
        if source.startswith("./") and source != "./plugins":  # made by whoever unpacks the DuckDB plugin
            assert (HOME / source).exists(), mount
        elif not source.startswith("."):
            assert source in COMPOSE["volumes"], mount


def test_ports_are_open_on_this_machine_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_setting_of_the_collector_is_one_that_its_configuration_reads() -> None:
    text = "".join(
        (HOME / "collector" / name).read_text(encoding="utf-8") for name in ("config.yaml", "stores.yaml")
    )
    assert [name for name in SERVICES["collector"]["environment"] if f"${{env:{name}:-" not in text] == []


def test_the_collector_of_compose_is_the_release_that_the_bench_runs() -> None:
    built = yaml.safe_load(BUILDER_FILE.read_text(encoding="utf-8"))["dist"]["version"]
    assert SERVICES["collector"]["image"].endswith(f":{built}")


def test_every_kind_of_data_source_that_the_dashboards_choose_from_is_provisioned_or_said_not_to_be() -> None:
    provisioned = {source["type"] for source in _yaml("provisioning/datasources/turncap.yaml")["datasources"]}
    chosen = {
        variable["query"]
        for path in FILES
        for variable in load(path)["templating"]["list"]
        if variable["type"] == "datasource"
    }
    assert chosen - provisioned == {PLUGINS["infinity"]}  # instead of DuckDB, never beside it


def test_data_sources_name_hosts_that_are_there() -> None:
    hosts = set(SERVICES) | {"prometheus"}
    for source in _yaml("provisioning/datasources/turncap.yaml")["datasources"]:
        if "url" in source:
            assert source["url"].split("/")[2].split(":")[0] in hosts


def test_the_provider_reads_where_compose_mounts_the_dashboards() -> None:
    (provider,) = _yaml("provisioning/dashboards/turncap.yaml")["providers"]
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./grafana"] == provider["options"]["path"]


def test_the_sample_workload_plays_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setattr(time, "sleep", slept.append)
    runpy.run_path(str(HOME / "compose/sample.py"))["main"](3)
    assert slept == [1, 1, 1]
