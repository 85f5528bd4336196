"""`make pictures`: each dashboard from its committed JSON, with real data, as build/pictures/NAME.png.

    python -m tools.pictures [FOLDER FOR COPIES]

Operations: the bundled turns through real guards, their metrics laid over eight days in a real Prometheus.
Validation and one turn: the bundled turns as a published snapshot, their days spread over twelve weeks. Log
panels show the same events as Loki would be asked for; no Loki runs. No proof that Grafana draws the same.
Before that, LogQL and TraceQL are parsed by Grafana's grammars.
Exit code 75, with the reason in the last line, where a program cannot be had.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from analytics.report.build import build_report
from analytics.report.render import to_json
from analytics.snapshot import publish
from analytics.validation.settings import read_settings
from tests.analytics.evidence_db import build
from tools.browser import chromium
from tools.integration.components import Components, find
from tools.integration.running import free_port, prometheus
from tools.pictures.frames import of_duckdb, of_prometheus
from tools.pictures.history import openmetrics
from tools.stages import ROOT, SKIPPED

FOLDER = ROOT / "build" / "pictures"
HERE = Path(__file__).parent
WEEK = 7 * 86_400
HOURS = 6
Json = dict[str, Any]


def main(copies: str | None = None) -> int:
    """Gather the data, draw, and pass on what the browser says."""
    components, browser = find(), chromium()
    if components is None:
        return _skip("the bench's Prometheus is not built: make integration")
    if browser is None or shutil.which("npm") is None:
        return _skip("there is no Chromium or no npm")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "page.jsx", "shoot.mjs", "grammar.mjs"):
        shutil.copy(HERE / name, FOLDER)
    install = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--silent",
    ]
    if subprocess.run(install, cwd=FOLDER, check=False).returncode:
        return _skip("npm cannot fetch Grafana's components")
    files = sorted((ROOT / "dashboards/grafana").glob("*.json"))
    if subprocess.run(["node", FOLDER / "grammar.mjs", *files], cwd=FOLDER, check=False).returncode:
        return 1
    now = time.time()
    _operations(components, now)
    _of_snapshot(now)
    names = ["operations", "validation", "turn"]
    done = subprocess.run(["node", FOLDER / "shoot.mjs", browser, FOLDER, *names], cwd=FOLDER, check=False)
    if done.returncode == 0 and copies:
        for name in names:
            shutil.copy(FOLDER / f"{name}.png", Path(copies) / f"dashboard-{name}.png")
    return done.returncode


def _write(name: str, dashboard: Json, frames: Json, logs: Json, begin: float, end: float) -> None:
    text = json.dumps(
        {"dashboard": dashboard, "frames": frames, "logs": logs, "from": begin * 1000, "to": end * 1000},
        default=str,
    )
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def _dashboard(name: str) -> Json:
    document: Json = json.loads((ROOT / f"dashboards/grafana/{name}.json").read_text(encoding="utf-8"))
    return document


def _operations(components: Components, now: float) -> None:
    place, port = FOLDER / "prometheus", free_port()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "history.txt").write_text(openmetrics(now), encoding="utf-8")
    make = (str(components.promtool), "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data")
    subprocess.run(make, cwd=place, check=True, stdout=subprocess.DEVNULL)
    dashboard, begin = _dashboard("operations"), now - HOURS * 3600
    with prometheus(components, place, port):
        frames = {
            panel["id"]: [
                frame
                for target in panel["targets"]
                if target["datasource"]["type"] == "prometheus"
                for frame in of_prometheus(f"http://127.0.0.1:{port}", panel, target, begin, now, 240)
            ]
            for panel in dashboard["panels"]
            if panel.get("targets")
        }
    _write("operations", dashboard, frames, _halts(dashboard, begin, now), begin, now)


def _halts(dashboard: Json, begin: float, now: float) -> Json:
    """The bundled turns' halts in the words of the log panel's line, spread over the period."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{_database(now)}' AS turns (READ_ONLY)")
        found = connection.execute("""
            SELECT threshold, call_number, repeat_tool, repeat_count, enforced, turn_id FROM turns.loop_events
            ORDER BY turn_id
        """).fetchall()
    lines = []
    for n, (threshold, call, tool, times, enforced, turn) in enumerate(found, start=1):
        said = f"{threshold} at call {call}: {tool} asked for {times} times, "
        at = now - n * (now - begin) / (len(found) + 1)
        lines.append((at * 1000, f"{said}enforced {str(enforced).lower()}, turn {turn}"))
    return {panel["id"]: lines for panel in dashboard["panels"] if panel["type"] == "logs"}


def _database(now: float) -> Path:
    """The bundled turns, begun over the twelve weeks before `now`."""
    database = FOLDER / "turns.duckdb"
    if not database.exists():
        build(database)
        with duckdb.connect(str(database)) as connection:
            connection.execute(
                "UPDATE turns SET started_at = CAST(? AS BIGINT) + CAST(hash(turn_id) % 1000 * ? AS BIGINT)",
                [int((now - 12 * WEEK) * 1e9), 12 * WEEK * 1_000_000],
            )
            connection.execute(
                "UPDATE turns SET ended_at = started_at + CAST(duration_ms * 1000000 AS BIGINT)"
                " WHERE duration_ms IS NOT NULL"
            )
    return database


def _of_snapshot(now: float) -> None:
    database, snapshot, report = _database(now), FOLDER / "snapshot.duckdb", FOLDER / "report.json"
    with duckdb.connect(str(database), read_only=True) as connection:
        report.write_text(to_json(build_report(connection, read_settings())), encoding="utf-8")
    publish(database, snapshot, report)
    period = (now - 12 * WEEK, now)
    texts = (
        datetime.fromtimestamp(period[0], UTC).isoformat(),
        datetime.fromtimestamp(period[1], UTC).isoformat(),
    )
    with duckdb.connect(str(snapshot), read_only=True) as connection:
        wrong = "would_halt_call IS NOT NULL AND NOT stuck"  # the false-stuck pattern itself
        found = f"SELECT turn_id FROM seen_turns WHERE {wrong} ORDER BY max_repeat DESC, turn_id LIMIT 1"
        ((turn,),) = connection.execute(found).fetchall()
        for name in ("validation", "turn"):
            dashboard = _dashboard(name)
            frames = {
                panel["id"]: [
                    frame
                    for target in panel["targets"]
                    if "rawSql" in target
                    for frame in of_duckdb(connection, target, texts, turn_id=turn)
                ]
                for panel in dashboard["panels"]
                if panel.get("targets")
            }
            _write(name, dashboard, frames, {}, *period)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()


def _skip(reason: str) -> int:
    print(reason)
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
