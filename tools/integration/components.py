"""Finds the bench's programs in its cache, or builds them from Go modules into it.

The cache lies outside the tree (`$XDG_CACHE_HOME/turncap`, else `~/.cache/turncap`), one folder per set of
versions, so a clean checkout of the same versions builds nothing. A cold build took about ten minutes of
one core; it stops at its own limit and goes on where it was at the next try, since Go caches what it built.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BUILDER_FILE = Path(__file__).with_name("builder.yaml")
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.161.0"
PROMETHEUS = "github.com/prometheus/prometheus@v0.316.0"  # releases 3.16.0
PLUGIN_DUCKDB = "duckdb==1.5.4"  # in motherduck-duckdb-datasource 0.4.5
ROTEL = "rotel==0.0.1a15"  # needs the system's libpython3.11
GO_LEAST = (1, 25)


class MissingComponentError(Exception):
    """A program of the bench cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Paths of the programs."""

    otelcol: Path
    prometheus: Path
    promtool: Path


def cache_folder() -> Path:
    """Where the programs of these versions lie."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turncap"
    asked = f"{BUILDER_FILE.read_text(encoding='utf-8')}{BUILDER}{PROMETHEUS}"
    return base / f"bench-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def find() -> Components | None:
    """The programs, where all are in the cache."""
    found = Components(**{name: cache_folder() / name for name in ("otelcol", "prometheus", "promtool")})
    programs = (found.otelcol, found.prometheus, found.promtool)
    return found if all(os.access(program, os.X_OK) for program in programs) else None


def ensure(minutes: float) -> Components:
    """The programs, built when the cache lacks them; `MissingComponentError` past `minutes` or without Go."""
    found = find()
    if found is not None:
        return found
    go = shutil.which("go")
    if go is None:
        raise MissingComponentError("no Go toolchain to build the Collector and Prometheus with")
    deadline = time.monotonic() + minutes * 60
    version = _output([go, "env", "GOVERSION"], deadline)
    if tuple(int(part) for part in version.removeprefix("go").split(".")[:2]) < GO_LEAST:
        raise MissingComponentError(
            f"Go {version} is too old; {'.'.join(map(str, GO_LEAST))} or newer is needed"
        )
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _build_prometheus(go, Path(scratch) / "prometheus", folder, deadline)
        _build_collector(go, Path(scratch) / "collector", folder, deadline)
    found = find()
    if found is None:
        raise MissingComponentError(f"the build ended without the programs in {folder}")
    return found


def plugin_duckdb() -> Path:
    """A folder with the DuckDB that Grafana's plugin embeds, to put first on a process' PYTHONPATH."""
    return _from_index(PLUGIN_DUCKDB, "duckdb")


def rotel() -> Path:
    """The program of rotel, an OpenTelemetry receiver and exporter in Rust."""
    program = _from_index(ROTEL, "rotel") / "rotel" / "rotel-agent"
    told = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    if told.returncode:
        raise MissingComponentError(f"{ROTEL} does not run here: {told.stderr.strip()}")
    return program


def _from_index(requirement: str, package: str) -> Path:
    """A folder with one package from the index, without what it depends on."""
    folder = cache_folder() / requirement
    if not (folder / package).is_dir():
        target = ("--no-deps", "--target", str(folder), requirement)
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *target], capture_output=True)
        if done.returncode:
            raise MissingComponentError(f"{requirement} cannot be installed")
    return folder


def _build_prometheus(go: str, module: Path, folder: Path, deadline: float) -> None:
    wanted = [name for name in ("prometheus", "promtool") if not (folder / name).exists()]
    if not wanted:
        return
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module bench\n", encoding="utf-8")
    _run([go, "get", PROMETHEUS], module, deadline)
    package = PROMETHEUS.split("@")[0]
    for name in wanted:  # service discovery is most of Prometheus and nothing that the bench uses
        command = ["build", "-mod=mod", "-tags", "remove_all_sd", "-ldflags", "-s -w", "-o", name]
        _run([go, *command, f"{package}/cmd/{name}"], module, deadline)
        _install(module / name, folder)


def _build_collector(go: str, module: Path, folder: Path, deadline: float) -> None:
    if (folder / "otelcol").exists():
        return
    module.mkdir(parents=True)
    shutil.copy(BUILDER_FILE, module)
    sources = module / "sources"
    _run([go, "run", BUILDER, "--config", BUILDER_FILE.name, "--skip-compilation"], module, deadline)
    _run([go, "build", "-trimpath", "-ldflags", "-s -w", "-o", "otelcol", "."], sources, deadline)
    _install(sources / "otelcol", folder)


def _install(program: Path, folder: Path) -> None:
    """In one step, so that an interrupted build leaves no half a program."""
    part = folder / f".{program.name}.part"
    shutil.move(program, part)
    part.replace(folder / program.name)


def _output(command: Sequence[str], deadline: float) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=max(1, deadline - time.monotonic())
    ).stdout.strip()


def _run(command: Sequence[str], folder: Path, deadline: float) -> None:
    print("$", *(Path(command[0]).name, *command[1:]), flush=True)
    # a toolchain that go would fetch by itself is not had everywhere: the one that is here must do
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}
    log = folder / "build.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=max(1, deadline - time.monotonic()))
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise MissingComponentError(
                    "the build of Collector and Prometheus reached its time limit"
                ) from None
            raise
    if code:
        tail = log.read_text(encoding="utf-8").splitlines()[-5:]
        raise MissingComponentError(f"{' '.join(command[:4])} failed: {' / '.join(tail)}")
