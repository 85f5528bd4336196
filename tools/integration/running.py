"""The bench's programs as running processes: started with the shipped configurations, and watched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from tools.integration.components import Components

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "dashboards"


class BenchError(Exception):
    """A program of the bench did not do what it is there for; the message has the end of its log."""


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, done: Callable[[], bool], seconds: float = 30) -> None:
    """Poll until `done`; BenchError past the limit."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


def fetch(url: str, **parameters: str | float) -> Any:
    """The JSON of a GET request, an error's body too."""
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    try:
        with urllib.request.urlopen(url + query, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.loads(error.read() or b"{}")


def is_up(url: str) -> bool:
    """Whether the address answers, be it that there is nothing at that path."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
    return True


def bound(command: Sequence[str | Path]) -> list[str]:
    """The command as one that the system kills when the thread that starts it is gone, however that ended.

    Where setpriv (util-linux) is absent it is left as it is.
    """
    setpriv = shutil.which("setpriv")
    words = [str(word) for word in command]
    return [setpriv, "--pdeathsig", "KILL", "--", *words] if setpriv else words


@dataclass(slots=True, kw_only=True)
class Server:
    """A process that runs until it is stopped or killed, its output in a file."""

    command: Sequence[str | Path]
    folder: Path
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                bound(self.command),
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(f"{self.command[0]} answers at {self.ready}", self._answers)
        except BenchError as error:
            self.stop()
            tail = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-1500:]
            raise BenchError(f"{error}\n{tail}") from None
        return self

    def _answers(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise BenchError(f"{self.command[0]} ended with code {self.process.returncode}")
        return is_up(self.ready)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stop it (SIGKILL: kill it) and wait until it is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(by)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> Self:
        return self if self.process is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def collector(
    components: Components,
    folder: Path,
    *,
    prometheus: str,
    overlays: Sequence[Path] = (),
    **environment: str,
) -> tuple[Server, str]:
    """The shipped Collector configuration, its files in `folder`/files; (server, its OTLP/HTTP address)."""
    http, grpc, own = free_port(), free_port(), free_port()
    command: list[str | Path] = [components.otelcol, "--config", SHIPPED / "collector" / "config.yaml"]
    for overlay in overlays:
        command += ["--config", overlay]
    address = f"http://127.0.0.1:{http}"
    server = Server(
        command=command,
        folder=folder,
        ready=address,
        environment={
            "TURNCAP_OTLP_HTTP": f"127.0.0.1:{http}",
            "TURNCAP_OTLP_GRPC": f"127.0.0.1:{grpc}",
            "TURNCAP_COLLECTOR_PORT": str(own),
            "TURNCAP_FILES": str(folder / "files"),
            "TURNCAP_PROMETHEUS": prometheus,
            **environment,
        },
    )
    return server, address


def prometheus(
    components: Components, folder: Path, port: int, *, scrape: Sequence[Mapping[str, Any]] = (),
    translation: str | None = None,
) -> Server:  # fmt: skip
    """The shipped Prometheus configuration and rules, evaluated every second, with these scrape jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    shipped = SHIPPED / "prometheus"
    configuration = yaml.safe_load((shipped / "prometheus.yml").read_text(encoding="utf-8"))
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(shipped / name) for name in configuration["rule_files"]]
    configuration["scrape_configs"] = list(scrape)
    if translation:
        configuration["otlp"]["translation_strategy"] = translation
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return Server(
        command=[
            components.prometheus,
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-otlp-receiver",
            "--web.enable-remote-write-receiver",
            "--storage.tsdb.retention.time=30d",
            "--log.level=warn",
        ],
        folder=folder,
        ready=f"http://127.0.0.1:{port}/-/ready",
    )


def agent(
    scenario: str,
    journal: Path,
    endpoint: str,
    *,
    rounds: int = 1,
    pace: float = 0.0,
    service: str = "",
    **environment: str,
) -> subprocess.Popen[bytes]:
    """Start one process of the scripted workload, exporting every second."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "30",  # seconds of retries: more than a restart of the Collector takes
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_BLRP_SCHEDULE_DELAY": "100",
        "OTEL_SERVICE_NAME": service or f"bench-{scenario}",
        "OTEL_RESOURCE_ATTRIBUTES": "service.namespace=acme",
        "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true",
        **environment,
    }
    with journal.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            bound(
                [
                    sys.executable,
                    "-m",
                    "tools.integration.workload",
                    scenario,
                    journal,
                    str(rounds),
                    str(pace),
                ]
            ),
            cwd=ROOT,
            env={**os.environ, **settings},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
