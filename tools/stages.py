"""`make test-all`: every stage in order, each with its own time limit.

A stage passes with exit code 0, skips with exit code 75 (its last line says why) and fails otherwise.
All stages run whatever became of the earlier ones, within 45 minutes together; the closing lines repeat every
skip and failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 75  # EX_TEMPFAIL: what the stage needs cannot be had on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command, run from the root of the tree; `minutes` is its own time limit."""

    name: str
    command: tuple[str, ...]
    minutes: float
    counted: bool = True  # towards the time of all stages together


ALL_MINUTES = 45  # for all stages that are counted

STAGES = (
    Stage(name="lint", command=("make", "lint"), minutes=4),
    Stage(name="test", command=("make", "test"), minutes=5),
    Stage(
        name="load",
        command=(
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "heavy",
            "tests/analytics/test_load_killed.py",
            "tests/analytics/test_oracle.py",
        ),
        minutes=8,
    ),
    # Once a machine; what is built is kept, and a build that is cut goes on from there the next time.
    Stage(
        name="build the Collector and Prometheus",
        command=(sys.executable, "-m", "tools.integration", "--build-only", "--build-minutes", "14"),
        minutes=15,
        counted=False,
    ),
    Stage(name="integration", command=("make", "integration", "BUILD_MINUTES=0.1"), minutes=12),
    Stage(
        name="demo",
        command=(sys.executable, "-m", "pytest", "-m", "heavy", "tests/analytics/test_demo_replay.py"),
        minutes=5,
    ),
    Stage(name="replay bench", command=(sys.executable, "-m", "tools.bench.replay"), minutes=5),
    Stage(name="notebooks", command=(sys.executable, "-m", "tools.notebooks"), minutes=5),
    Stage(name="browser", command=(sys.executable, "-m", "tools.browser"), minutes=4),
    Stage(name="pictures", command=("make", "pictures"), minutes=8),
    Stage(
        name="guard",  # long turns, every policy on the evidence, failing collectors, the wheel
        command=(
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "heavy",
            "tests/guard",
            "tests/test_architecture.py",
            "-o",
            "timeout=600",
        ),
        minutes=12,
    ),
    Stage(name="compiled guard", command=(sys.executable, "-m", "tools.compiled"), minutes=5),
    Stage(name="integrations", command=(sys.executable, "-m", "tools.integrations"), minutes=25),
)


def run(stage: Stage, minutes: float) -> tuple[int | None, str]:
    """(exit code, last line printed) of one stage; None when it ran out of its `minutes`."""
    last = ""
    process = subprocess.Popen(
        stage.command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    deadline = time.monotonic() + minutes * 60
    timer = threading.Timer(minutes * 60, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line.strip() or last
        code: int | None = process.wait()
    finally:
        timer.cancel()
    return (None if time.monotonic() >= deadline else code), last


def main(names: list[str]) -> int:
    """Run the named stages (all of them when none is named); 1 when one failed."""
    unknown = set(names) - {stage.name for stage in STAGES}
    if unknown:
        print(f"no such stage: {', '.join(sorted(unknown))}; there are {', '.join(s.name for s in STAGES)}")
        return 2
    passed, failed, skipped = [], [], []
    left = float(ALL_MINUTES)
    for stage in STAGES:
        if names and stage.name not in names:
            continue
        minutes = min(stage.minutes, left) if stage.counted else stage.minutes
        print(f"\n=== {stage.name} (at most {minutes:.3g} min)", flush=True)
        began = time.monotonic()
        code, last = run(stage, minutes)
        seconds = time.monotonic() - began
        left -= seconds / 60 if stage.counted else 0
        took = f"{seconds:.0f} s"
        if code == 0:
            passed.append(stage.name)
        elif code == SKIPPED:
            skipped.append(f"{stage.name}: {last}")
        elif code is None:
            failed.append(f"{stage.name}: stopped after {minutes:.3g} minutes")
        else:
            failed.append(f"{stage.name}: exit code {code}")
        print(f"=== {stage.name}: {took}", flush=True)
    for line in skipped:
        print(f"skipped {line}")
    for line in failed:
        print(f"FAILED {line}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
