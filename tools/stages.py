"""`make test-all`: every stage in order, each with its own time limit.

A stage passes with exit code 0, skips with exit code 75 (its last line says why) and fails otherwise.
All stages run whatever became of the earlier ones; the closing lines repeat every skip and failure.
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
    """One command, run from the root of the tree; `minutes` is its time limit."""

    name: str
    command: tuple[str, ...]
    minutes: float


STAGES = (
    Stage(name="lint", command=("make", "lint"), minutes=4),
    Stage(name="test", command=("make", "test"), minutes=5),
    # a cold build of the Collector and Prometheus is cut at 12 minutes; the next run goes on from there
    Stage(name="integration", command=("make", "integration", "BUILD_MINUTES=12"), minutes=20),
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
        command=(sys.executable, "-m", "pytest", "-m", "heavy", "tests/guard", "-o", "timeout=600"),
        minutes=12,
    ),
    Stage(name="integrations", command=(sys.executable, "-m", "tools.integrations"), minutes=25),
)


def run(stage: Stage) -> tuple[int | None, str]:
    """(exit code, last line printed) of one stage; None when it ran out of time."""
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
    deadline = time.monotonic() + stage.minutes * 60
    timer = threading.Timer(stage.minutes * 60, os.killpg, (process.pid, signal.SIGKILL))
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
    for stage in STAGES:
        if names and stage.name not in names:
            continue
        print(f"\n=== {stage.name} (at most {stage.minutes:g} min)", flush=True)
        began = time.monotonic()
        code, last = run(stage)
        took = f"{time.monotonic() - began:.0f} s"
        if code == 0:
            passed.append(stage.name)
        elif code == SKIPPED:
            skipped.append(f"{stage.name}: {last}")
        elif code is None:
            failed.append(f"{stage.name}: stopped after its {stage.minutes:g} minutes")
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
