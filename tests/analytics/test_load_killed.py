"""A load that is killed or interrupted at any moment: the next one comes to what a clean load comes to."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analytics.cli import main
from tests.analytics.evidence_db import evidence_rows
from tests.analytics.telemetry import log_line
from tests.analytics.test_load import dump, query, telemetry

pytestmark = pytest.mark.heavy

# With commits often enough that a load of 100 MB is killed between them, and in them.
LOAD = (
    "import sys; from analytics import cli, loading, slices; "
    "loading.SLICE, slices.COMMIT = 4 << 20, 16 << 20; sys.exit(cli.main(sys.argv[1:]))"
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 100 MB: the bundled turns three times, under three guards."""
    path = tmp_path_factory.mktemp("killed") / "telemetry.jsonl"
    with path.open("wb") as out:
        for guard in ("a", "b", "c"):
            events, spans = telemetry(evidence_rows(), guard)
            for at in range(0, len(events), 512):
                out.write(log_line(events[at : at + 512]))
            out.write(b"".join(spans))
    return path


@pytest.fixture(scope="module")
def clean(exported: Path) -> tuple[Path, float]:
    """The database of one clean load in a process of its own, and the seconds it took from opening it."""
    db = exported.with_name("clean.duckdb")
    process = _start(exported, db)
    _await(db)
    began = time.monotonic()
    assert process.wait() == 0
    return db, time.monotonic() - began


def _start(path: Path, db: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LOAD, "load", str(path), "--db", str(db)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _await(db: Path) -> None:
    while not db.exists():
        time.sleep(0.01)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_moment(seed: int, exported: Path, clean: tuple[Path, float], tmp_path: Path) -> None:
    db, (good, seconds) = tmp_path / "t.duckdb", clean
    chance = random.Random(seed)
    for _ in range(2):
        process = _start(exported, db)
        try:
            process.wait(chance.uniform(0.05, 0.95) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
    assert main(["load", str(exported), "--db", str(db)]) == 0
    assert dump(db) == dump(good)
    assert query(db, "SELECT count(*) FROM pending") == [(0,)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_interrupted_it_says_so_and_can_go_on(
    share: float, exported: Path, clean: tuple[Path, float], tmp_path: Path
) -> None:
    db, (good, seconds) = tmp_path / "t.duckdb", clean
    process = _start(exported, db)
    _await(db)
    try:
        process.wait(share * seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    # Its work done, it may be interrupted while Python is leaving: then nothing is left that could speak.
    assert (process.returncode, told.splitlines()[-1:]) in (
        (130, ["turncap: interrupted; what was read is kept, and the same command goes on from there"]),
        (-signal.SIGINT, []),
        (0, []),
    )
    assert main(["load", str(exported), "--db", str(db)]) == 0
    assert dump(db) == dump(good)
