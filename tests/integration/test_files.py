"""The Collector's files load with nothing lost while it rotates, restarts and is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from guard import names
from tools.integration.bench import SENDS_NO_LOGS, Bench
from tools.integration.components import Components
from tools.integration.running import ROOT, agent, collector, wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

RAW = (
    "raw_started",
    "raw_chunks",
    "raw_crossed",
    "raw_detected",
    "raw_extended",
    "raw_ended",
    "raw_labelled",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What `turncap load` made of a folder of files."""

    database: Path
    code: int
    said: str

    def ids(self) -> set[str]:
        union = " UNION ".join(f"SELECT event_id FROM {table} WHERE source = 'log'" for table in RAW)
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return {row[0] for row in connection.execute(union).fetchall()}

    def one(self, query: str) -> object:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            row = connection.execute(query).fetchone()
        return None if row is None else row[0]


def _load(folder: Path, database: Path) -> Loaded:
    command: Sequence[str | Path] = [sys.executable, "-m", "analytics", "load", folder, "--db", database]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return Loaded(database=database, code=done.returncode, said=done.stdout + done.stderr)


def _emitted(journals: Sequence[Path]) -> set[str]:
    return {line.split(" ")[0] for path in journals for line in path.read_text(encoding="utf-8").splitlines()}


@pytest.fixture(scope="module")
def loaded(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The files of the bench's run, loaded."""
    return _load(bench.folder / "collector/files", tmp_path_factory.mktemp("loaded") / "turns.duckdb")


def test_every_event_that_was_sent_is_loaded_once(bench: Bench, loaded: Loaded) -> None:
    journals = [
        path
        for path in (bench.folder / "agents").glob("*.journal")
        if path.stem not in {*SENDS_NO_LOGS, "unlucky"}
    ]
    assert loaded.code == 0, loaded.said
    assert loaded.ids() == _emitted(journals)


def test_counters_equal_the_turns_in_the_database(loaded: Loaded) -> None:
    counted = loaded.one(f"SELECT sum(value) FROM counters WHERE metric = '{names.M_TURNS}'")
    lossy = loaded.one(
        f"SELECT sum(value) FROM counters WHERE metric = '{names.M_TURNS}' AND resource LIKE '%bench-lossy%'"
    )
    ended = loaded.one("SELECT count(*) FROM turns WHERE has_ended")
    assert isinstance(counted, float)
    assert isinstance(lossy, float)
    assert counted - lossy == ended
    assert lossy > 0


def test_a_killed_process_leaves_a_turn_of_known_least_length(loaded: Loaded) -> None:
    assert loaded.one("SELECT least_calls FROM turns WHERE agent = 'doomed' AND NOT has_ended") == 100


def test_a_turn_known_from_its_span_alone_is_there_and_graded(loaded: Loaded) -> None:
    assert loaded.one("SELECT count(*) FROM turns WHERE grade = 'spans-only'") == 1


def test_nothing_is_lost_while_the_collector_rotates_restarts_and_is_killed(
    components: Components, tmp_path: Path
) -> None:
    files = tmp_path / "collector/files"
    # the Collector's own counters and its metrics go nowhere here: the events are what counts
    server, endpoint = collector(
        components, files.parent, prometheus="http://127.0.0.1:9", TURNCAP_FILE_MEGABYTES="3"
    )
    journals = [tmp_path / f"agent-{n}.journal" for n in range(3)]
    with server:
        agents = [
            agent("diverse", path, endpoint, rounds=150, pace=0.05, OTEL_METRICS_EXPORTER="none",
                  OTEL_EXPORTER_OTLP_TIMEOUT="60", OTEL_BLRP_MAX_QUEUE_SIZE="100000",
                  OTEL_BLRP_MAX_EXPORT_BATCH_SIZE="128")
            for path in journals
        ]  # fmt: skip

        def has_grown(to: int) -> bool:
            return sum(path.stat().st_size for path in files.glob("*.jsonl")) > to

        for by, at in ((signal.SIGTERM, 2_000_000), (signal.SIGKILL, 5_000_000), (signal.SIGKILL, 9_000_000)):
            wait_for(f"{at} bytes of files", lambda at=at: has_grown(at), 120)  # type: ignore[misc]
            server.stop(by)
            server.start()
        assert [process.wait(180) for process in agents] == [0, 0, 0]
    rotated = list(files.glob("events-*.jsonl"))
    result = _load(files, tmp_path / "turns.duckdb")
    lost = _emitted(journals) - result.ids()
    assert rotated, "no file was rotated"
    assert lost == set()
    # a kill may cut a line that was never acknowledged: it is counted, and its events came again
    assert result.code in (0, 3), result.said
    rejects = result.one("SELECT count(*) FROM rejects")
    assert isinstance(rejects, int)
    assert rejects <= 2 * 3, result.said
