"""One run of the whole pipeline: agents, a Collector, and a Prometheus for each layout of labels."""

from __future__ import annotations

import functools
import http.server
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guard import names
from tools.dashboards.promql import filled
from tools.integration.components import Components
from tools.integration.running import (
    Server,
    agent,
    collector,
    fetch,
    free_port,
    prometheus,
    wait_for,
)

OVERLAY = Path(__file__).with_name("layouts.yaml")
UNLABELLED = {"action": "labeldrop", "regex": "(exported_)?(job|instance)"}
SPAN = "1h"  # what $__range is on the bench
LAYOUTS = {
    "pushed": "metrics pushed to Prometheus' OTLP receiver: job and instance are the agent's",
    "scraped": "the Collector's page scraped: job is the Collector's, the agent's is exported_job",
    "honoured": "the same with honor_labels: job and instance are the agent's",
    "promoted": "no job and no instance, every resource attribute a label, as vmagent writes them",
    "remote-write": "written by the Collector's remote-write exporter",
}
AGENTS: dict[str, dict[str, Any]] = {
    "diverse": {"scenario": "diverse", "rounds": 6, "pace": 1.0},
    "diverse-2": {"scenario": "diverse", "rounds": 6, "pace": 1.0},
    "stuck": {"scenario": "stuck", "rounds": 4, "pace": 1.0},
    "backstop": {"scenario": "backstop", "rounds": 2},
    "explicit": {"scenario": "explicit", "TURNCAP_MAX_TOOL_CALLS_PER_TURN": "5"},
    "shadow": {"scenario": "stuck", "TURNCAP_MODE": "shadow"},
    "holdout": {"scenario": "stuck", "TURNCAP_HOLDOUT_RATE": "1"},
    "spans-only": {"scenario": "stuck", "TURNCAP_EVENTS": "spans"},
    "errors": {"scenario": "errors"},
    "killed": {"scenario": "killed"},
    # its metrics arrive, its events and spans do not: queues of 16 and nobody to send to
    "lossy": {
        "scenario": "diverse",
        "rounds": 20,
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:9/v1/logs",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces",
        "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT": "1",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1",
        "BENCH_LINGER": "4",  # until the failures are in its metrics
        "OTEL_BLRP_MAX_QUEUE_SIZE": "16",
        "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE": "8",
        "OTEL_BSP_MAX_QUEUE_SIZE": "16",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    },
}
# sends often enough to a receiver whose exporters are down for their queues to fill
UNLUCKY: dict[str, Any] = {
    "scenario": "diverse",
    "rounds": 5,
    "pace": 0.6,
    "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
}
SENDS_NO_LOGS = {"lossy", "spans-only"}


@dataclass(slots=True, kw_only=True)
class Bench:
    """What a run left: where each Prometheus answers, the Collector's files, the agents' journals."""

    components: Components
    folder: Path
    prometheus: dict[str, str]
    dotted: str
    collector: Server
    ended: float

    def journal(self, name: str) -> list[tuple[str, str]]:
        """(event id, event name) of what one agent emitted."""
        lines = (self.folder / "agents" / f"{name}.journal").read_text(encoding="utf-8").splitlines()
        return [tuple(line.split(" ", 1)) for line in lines]  # type: ignore[misc]

    def emitted(self, event: str, *, logged_only: bool = False) -> int:
        """How many events of one name all agents emitted."""
        agents = set(AGENTS) - (SENDS_NO_LOGS if logged_only else set())
        return sum(name == event for each in agents for _, name in self.journal(each))

    def ask(self, layout: str, expression: str, *, over: int = 0) -> dict[str, Any]:
        """Prometheus' answer, at the end of the run or (`over` seconds) over time until then."""
        where = self.dotted if layout == "dotted" else self.prometheus[layout]
        query = filled(expression, span=SPAN)
        now = time.time()
        if over:
            answer = fetch(f"{where}/api/v1/query_range", query=query, start=now - over, end=now, step=5)
        else:
            answer = fetch(f"{where}/api/v1/query", query=query, time=now)
        return dict(answer)


@contextmanager
def run(components: Components, folder: Path, textfile: str) -> Iterator[Bench]:
    """Play the workload; while the context is open every server answers. `textfile` is scraped too."""
    with ExitStack() as stack:
        page = stack.enter_context(_page(folder / "page", textfile))
        scraped, promoted, unlucky = free_port(), free_port(), free_port()
        ports = {layout: free_port() for layout in (*LAYOUTS, "dotted")}
        server, endpoint = collector(
            components,
            folder / "collector",
            prometheus=f"http://127.0.0.1:{ports['pushed']}",
            overlays=[OVERLAY],
            BENCH_SCRAPED=f"127.0.0.1:{scraped}",
            BENCH_PROMOTED=f"127.0.0.1:{promoted}",
            BENCH_REMOTE_WRITE=f"http://127.0.0.1:{ports['remote-write']}",
            BENCH_DOTTED=f"http://127.0.0.1:{ports['dotted']}",
            BENCH_UNLUCKY=f"127.0.0.1:{unlucky}",
        )
        own = server.environment["TURNCAP_COLLECTOR_PORT"]
        always = [_scrape("otelcol", f"127.0.0.1:{own}"), _scrape("snapshot", page)]
        agents_page = {
            "scraped": [_scrape("collector", f"127.0.0.1:{scraped}")],
            "honoured": [{**_scrape("collector", f"127.0.0.1:{scraped}"), "honor_labels": True}],
            "promoted": [
                {**_scrape("collector", f"127.0.0.1:{promoted}"), "metric_relabel_configs": [UNLABELLED]}
            ],
        }
        servers = {}
        for layout, port in ports.items():
            translation = "NoTranslation" if layout == "dotted" else None
            jobs = [*always, *agents_page.get(layout, [])]
            place = folder / layout
            servers[layout] = prometheus(components, place, port, scrape=jobs, translation=translation)
            stack.enter_context(servers[layout])
        stack.enter_context(server)
        _play(folder / "agents", endpoint, f"http://127.0.0.1:{unlucky}")
        time.sleep(3)  # two scrapes and an evaluation after the last export
        addresses = {layout: f"http://127.0.0.1:{port}" for layout, port in ports.items()}
        ended = time.time()
        for layout in LAYOUTS:
            _give_history(components, servers[layout], addresses[layout], ended)
        dotted = addresses.pop("dotted")
        yield Bench(
            components=components, folder=folder, prometheus=addresses, dotted=dotted, collector=server,
            ended=ended,
        )  # fmt: skip


def _play(folder: Path, endpoint: str, unlucky: str) -> None:
    """Run every agent to its end, four at a time."""
    waiting = list(AGENTS.items())
    waiting.append(("unlucky", UNLUCKY))
    running: list[tuple[str, subprocess.Popen[bytes]]] = []
    while waiting or running:
        while waiting and len(running) < 4:
            name, settings = waiting.pop(0)
            settings = dict(settings)
            where = unlucky if name == "unlucky" else endpoint
            running.append((name, agent(settings.pop("scenario"), folder / f"{name}.journal", where,
                                        service=f"bench-{name}", **settings)))  # fmt: skip
        for name, process in list(running):
            if process.poll() is not None:
                running.remove((name, process))
                if process.returncode and name != "killed":
                    log = (folder / f"{name}.log").read_text(encoding="utf-8")[-1500:]
                    raise RuntimeError(f"agent {name} ended with code {process.returncode}\n{log}")
        time.sleep(0.1)


def _scrape(job: str, target: str) -> dict[str, Any]:
    return {"job_name": job, "static_configs": [{"targets": [target]}]}


@contextmanager
def _page(folder: Path, text: str) -> Iterator[str]:
    """A web server with `text` at /metrics; gives its host and port."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics").write_text(text, encoding="utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {"": "text/plain; version=0.0.4"}  # noqa: RUF012 - as the base class has it

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _give_history(components: Components, server: Server, address: str, ended: float) -> None:
    """Copy the turns' counters a day and a week back, so that "than usual" has something to compare with."""
    wanted = f'{{__name__=~"{names.M_TURNS.replace(".", "_")}_total"}}'
    series = fetch(f"{address}/api/v1/query", query=wanted)["data"]["result"]
    lines = ["# TYPE turncap_turns counter"]
    for one in series:
        labels = ",".join(f'{k}="{v}"' for k, v in one["metric"].items() if k != "__name__")
        for days in (8, 7, 2, 1):  # a sample a minute over two hours, up to the minute of the end
            for minute in range(-120, 1):
                value = float(one["value"][1]) * (1 + (minute + 120) / 60)
                at = ended - days * 86_400 + minute * 60
                lines.append(f"turncap_turns_total{{{labels}}} {value} {at:.3f}")
    history = server.folder / "history.txt"
    history.write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    server.stop()
    subprocess.run(
        [components.promtool, "tsdb", "create-blocks-from", "openmetrics", history, server.folder / "data"],
        check=True, capture_output=True,
    )  # fmt: skip
    server.start()
    wait_for("the history is there", lambda: bool(
        fetch(f"{address}/api/v1/query", query="count(turncap_turns_total offset 1d)")["data"]["result"]
    ))  # fmt: skip
