"""What other products wrote is read the same in processes of its own, and none of these outlives a load."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from analytics import ahead, groups, workers
from analytics.cli import ExitCode, main
from analytics.dialects import DIALECTS
from analytics.dialects.base import Record, row
from analytics.dialects.blocks import Recognised, recognise
from analytics.dialects.results import FEW
from analytics.otlp import read
from analytics.packed import unpack
from analytics.workers import Bytes, Workers
from tests.analytics.dialects.reading import DATA
from tests.analytics.test_load import dump

FILES = sorted(DATA.glob("*.jsonl.gz"))


def pieces(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).split(b"\n")


def unpacked(folder: Path, times: int = 1) -> list[str]:
    """The payloads as plain files, their lines `times` over."""
    out = []
    for path in FILES:
        plain = folder / path.name.removesuffix(".gz")
        plain.write_bytes(gzip.decompress(path.read_bytes()) * times)
        out.append(str(plain))
    return out


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[Workers]:
    """Workers for every block of every load; those that were used."""
    used: list[Workers] = []

    class Kept(Workers):
        def __init__(self, most: int) -> None:
            super().__init__(most)
            used.append(self)

    monkeypatch.setattr(ahead, "TOGETHER", 0)
    monkeypatch.setattr(groups, "PART", 8)
    monkeypatch.setattr(workers, "useful", lambda _: 2)
    monkeypatch.setattr(workers, "Workers", Kept)
    return used


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_a_block_gives_what_its_records_give_one_by_one(path: Path) -> None:
    expected = []
    offset = 0
    for piece in pieces(path):
        for record in read(piece) if piece else ():
            assert isinstance(record, Record)
            record.path, record.offset = str(path), offset
            for dialect in DIALECTS:
                if (seen := dialect.recognise(record)) is not None:
                    expected += [row(dialect.name, one) for one in seen]
                    break
        offset += len(piece) + 1
    (found,) = recognise([(str(path), 0, pieces(path))])
    assert sorted(found.rows) == sorted(expected)
    assert found.left == []


def test_what_is_no_record_of_another_product_is_left() -> None:
    lines = [b"", b"{", b'{"a":1}', b" ", b"[1]", b'{"resourceMetrics":[]}', b'{"type":"tool_use"}']
    (found,) = recognise([("f", 0, lines)])
    assert (found.left, found.records, found.foreign, found.tool_like) == ([1, 4], 0, 2, 1)
    assert found.looks_like == "JSON with the keys a"


def test_a_load_in_workers_comes_to_the_same_tables(
    tmp_path: Path, eager: list[Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = unpacked(tmp_path)
    assert main(["load", *paths, "--db", str(tmp_path / "in.duckdb")]) == 0
    assert [process.returncode for process in eager[0].started] == [0, 0]
    monkeypatch.setattr(workers, "useful", lambda _: 0)
    assert main(["load", *paths, "--db", str(tmp_path / "out.duckdb")]) == 0
    assert eager[1].started == []
    assert dump(tmp_path / "in.duckdb") == dump(tmp_path / "out.duckdb")


def test_small_files_are_handed_over_together(
    tmp_path: Path, eager: list[Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    recognise_as_it_is = Workers.recognise
    asked: list[list[str]] = []

    def noted(self: Workers, parts: Sequence[tuple[str, int, Bytes]]) -> list[Recognised]:
        asked.append([path for path, _, _ in parts])
        return recognise_as_it_is(self, parts)

    monkeypatch.setattr(Workers, "recognise", noted)
    paths = unpacked(tmp_path)
    assert main(["load", *paths, "--db", str(tmp_path / "alone.duckdb")]) == 0
    assert len(asked) >= len(paths)
    asked.clear()
    monkeypatch.setattr(ahead, "TOGETHER", 1 << 40)
    assert main(["load", *paths, "--db", str(tmp_path / "together.duckdb")]) == 0
    assert [sorted(one) for one in asked] == [sorted(paths)]
    assert dump(tmp_path / "alone.duckdb") == dump(tmp_path / "together.duckdb")


def test_a_worker_that_is_killed_costs_time_and_nothing_else(eager: list[Workers]) -> None:
    block = gzip.decompress(FILES[0].read_bytes())
    with Workers(1) as few:
        before = few.recognise([("f", 0, block)])
        few.started[0].kill()
        few.started[0].wait()
        assert few.recognise([("f", 0, block)]) == before
        assert few.recognise([("f", 0, block)]) == before
    (expected,) = recognise([("f", 0, pieces(FILES[0]))])
    assert unpack(before[0].packed[0]) == expected.rows


def test_a_worker_masks_many_long_results_as_this_process_does() -> None:
    results = [f"took {n} ms at 0x{n:08x}\n" * 9_000 for n in range(4)]
    assert sum(map(len, results)) > FEW
    lines = [
        json.dumps(
            {
                "type": "user", "sessionId": "s", "uuid": str(n),
                "message": {"content": [{"type": "tool_result", "tool_use_id": str(n), "content": text}]},
            }
        ).encode()
        for n, text in enumerate(results)
    ]  # fmt: skip
    with Workers(1) as few:
        (found,) = few.recognise([("f", 0, b"\n".join([*lines, b""]))])
        assert few.started[0].poll() is None  # it was the worker that did it
    rows = unpack(found.packed[0])
    assert rows == recognise([("f", 0, lines)])[0].rows
    assert len({json.loads(row[5])["result"] for row in rows}) == 1


def test_an_interrupted_load_leaves_no_worker(
    tmp_path: Path, eager: list[Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    recognise_as_it_is, once = Workers.recognise, threading.Lock()

    def pressed(self: Workers, parts: Sequence[tuple[str, int, Bytes]]) -> list[Recognised]:
        found = recognise_as_it_is(self, parts)
        if once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(Workers, "recognise", pressed)
    paths = unpacked(tmp_path, times=20)
    assert main(["load", *paths, "--db", str(tmp_path / "t.duckdb")]) == ExitCode.INTERRUPTED
    assert eager[0].started
    assert all(process.returncode is not None for process in eager[0].started)


def test_a_worker_ends_when_the_load_is_killed() -> None:
    code = (
        "from analytics.workers import Workers; import time\n"
        "few = Workers(1); few.recognise([('f', 0, b'{}\\n')])\n"
        "print(few.started[0].pid, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as load:
        assert load.stdout is not None
        worker = int(load.stdout.readline())
        load.kill()
    for _ in range(200):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{worker}/stat")
        if state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return  # it has ended, and whoever adopted it has not looked yet
        time.sleep(0.05)
    pytest.fail("the worker outlived the load")


def test_workers_are_of_use_where_there_is_much_to_read_and_another_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.jsonl"
    for processors, size, expected in ((2, 0, 2), (1, 0, 0), (2, -1, 0)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=processors: set(range(n)), raising=False)
        path.write_bytes(b"")
        os.truncate(path, workers.START + size)
        assert workers.useful([str(path)]) == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert workers.useful(["-"]) == 2  # nobody knows how much will come


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"type":"user"}\n', True),
        (b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"turncap.turn.ended"}]}]}]}\n', False),
        (gzip.compress(b'{"type":"user"}\n'), False),
        (b"", False),
    ],
    ids=["another product's", "turncap's own", "packed", "empty"],
)
def test_workers_start_at_once_for_other_products(tmp_path: Path, content: bytes, expected: bool) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    assert workers.foreign(str(path)) == expected


def test_a_pipe_is_not_looked_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not workers.foreign(str(tmp_path / "pipe"))
    assert not workers.foreign("-")
