"""rotel between an agent and `turncap collect`: what a guard emits there arrives, and loads as its turns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from analytics.cli import main
from analytics.collect import Collector
from tools.integration.components import MissingComponentError, rotel
from tools.integration.running import free_port, is_up, wait_for

pytestmark = pytest.mark.heavy

TURNS = 30
AGENT = f"""
from guard import ToolCallGuard
from guard.export import set_up
set_up(service_name="agent")
guard = ToolCallGuard()
for n in range({TURNS}):
    with guard.turn() as turn:
        for call in range(n + 1):
            turn.settle(turn.admit("Bash", {{"n": call % 7}}), result=str(call))
"""


def test_a_guard_s_telemetry_passes_through_rotel(tmp_path: Path) -> None:
    try:
        program = rotel()
    except MissingComponentError as error:
        pytest.skip(str(error))
    port = free_port()
    with Collector(tmp_path / "telemetry") as collector:
        ends = [
            option
            for signal in ("traces", "logs", "metrics")
            for option in (f"--otlp-exporter-{signal}-endpoint", f"{collector.url}/v1/{signal}")
        ]
        addresses = (
            "--otlp-http-endpoint",
            f"127.0.0.1:{port}",
            "--otlp-grpc-endpoint",
            f"127.0.0.1:{free_port()}",
        )
        to = ("--exporter", "otlp", "--otlp-exporter-protocol", "http", *ends)
        command = [str(program), "start", *addresses, *to]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("rotel", lambda: is_up(f"http://127.0.0.1:{port}/"))
            settings = {
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            }
            subprocess.run(
                [sys.executable, "-c", AGENT], env={**os.environ, **settings}, check=True, timeout=60
            )
            wait_for(
                "the last turn's end", lambda: collector.counts.events.get("turncap.turn.ended") == TURNS
            )
            wait_for("the spans", lambda: collector.counts.spans == TURNS)
        finally:
            process.terminate()
            process.wait(30)
        assert collector.counts.refused == {}
    db = tmp_path / "t.duckdb"
    assert main(["load", str(tmp_path / "telemetry"), "--db", str(db)]) == 0
    with duckdb.connect(str(db), read_only=True) as connection:
        found = connection.execute("SELECT calls, outcome FROM turns ORDER BY calls").fetchall()
    assert found == [(n + 1, "completed") for n in range(TURNS)]
