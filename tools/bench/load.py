"""`turncap load` of turncap's own telemetry beside `orjson.loads` over the same lines.

    python -m tools.bench.load [--megabytes 500] [--large] [--runs 3]

The telemetry is real: the bundled turns go through the guard and the SDK to files once, and are repeated
under new guard ids until the file is as large as asked. Every run is a process of its own, and the two
kinds take turns. A load is the whole path: ledger, natural keys, tables derived, commit. `--large` adds files
of four and eight times the size. Bars: at least 0.7 times the rate of orjson by the clock on the wall, gzip
and zstd at least 0.6 times plain, under 1 GB of memory, and at most 4.4 times the time for 4 times the size.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import zstandard

from tools.bench.measure import UNIT, Sheet

PARSE = "import orjson, sys\nwith open(sys.argv[1], 'rb') as f:\n    for line in f: orjson.loads(line)\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_gb: float


def measured(command: list[str]) -> Run:
    """Run a command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ended with exit code {process.returncode}")
    return Run(wall_s=wall, cpu_s=used.ru_utime + used.ru_stime, peak_gb=used.ru_maxrss * UNIT / 1e9)


def parse(path: Path) -> Run:
    """`orjson.loads` over every line."""
    return measured([sys.executable, "-c", PARSE, str(path)])


def load(path: Path, scratch: Path) -> Run:
    """`turncap load` into a new database."""
    db = scratch / "bench.duckdb"
    db.unlink(missing_ok=True)
    return measured([sys.executable, "-m", "analytics", "load", str(path), "--db", str(db)])


def telemetry(scratch: Path) -> list[bytes]:
    """The telemetry of the bundled turns, one file a signal."""
    out = scratch / "demo"
    subprocess.run(
        [sys.executable, "-m", "analytics", "demo", "--out", str(out)], check=True, stdout=subprocess.DEVNULL
    )
    files = sorted((out / "telemetry").glob("*.jsonl"))
    return [path.read_bytes() for path in files]


def repeat(signals: list[bytes], path: Path, size: int) -> None:
    """Write `size` bytes (less a part of a line) of the telemetry, each repetition under a new guard id."""
    (guard,) = {
        found
        for one in signals
        for found in re.findall(rb'"turncap.guard.id","value":{"stringValue":"(\w+)"', one)
    }
    written = 0
    with path.open("wb") as out:
        while True:
            new = secrets.token_hex(len(guard) // 2).encode()
            for signal in signals:
                for line in signal.replace(guard, new).splitlines(keepends=True):
                    if written + len(line) > size:
                        return
                    written += out.write(line)


def median(runs: list[Run], what: str) -> float:
    """The median of one figure."""
    return float(statistics.median(getattr(run, what) for run in runs))


def main() -> int:
    """Make the files, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.load")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also four and eight times the size")
    args = parser.parse_args()
    sheet = Sheet()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        signals = telemetry(scratch)
        plain = scratch / "plain.jsonl"
        repeat(signals, plain, args.megabytes * 10**6)
        size = plain.stat().st_size / 1e6
        with plain.open("rb") as source, gzip.open(scratch / "packed.gz", "wb", compresslevel=6) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        with plain.open("rb") as source, (scratch / "packed.zst").open("wb") as target:
            zstandard.ZstdCompressor(level=3).copy_stream(source, target)
        files = {"plain": plain, "gzip": scratch / "packed.gz", "zstd": scratch / "packed.zst"}
        busy = os.getloadavg()
        parsed: list[Run] = []
        loaded: dict[str, list[Run]] = {kind: [] for kind in files}
        for _ in range(args.runs):
            parsed.append(parse(plain))
            for kind, path in files.items():
                loaded[kind].append(load(path, scratch))
        before = ", ".join(f"{one:.1f}" for one in busy)
        print(f"load average of {os.cpu_count()} processors before: {before} (1, 5, 15 min)")
        print(f"{size:,.0f} MB, medians of {args.runs}, MB/s by the wall and by CPU, most memory:")
        for word, runs in (
            ("orjson.loads", parsed),
            *((f"load, {kind}", one) for kind, one in loaded.items()),
        ):
            wall, cpu = size / median(runs, "wall_s"), size / median(runs, "cpu_s")
            print(f"{word:14} {wall:6.0f} {cpu:6.0f} {max(run.peak_gb for run in runs):6.2f} GB")
        once = median(loaded["plain"], "wall_s")
        ratio = median(parsed, "wall_s") / once
        cpu = median(parsed, "cpu_s") / median(loaded["plain"], "cpu_s")
        sheet.bar(
            f"{ratio:.2f} times the rate of orjson.loads ({cpu:.2f} by CPU), at least 0.7", holds=ratio >= 0.7
        )
        for kind in ("gzip", "zstd"):
            part = once / median(loaded[kind], "wall_s")
            sheet.bar(f"{kind}: {part:.2f} times the rate of plain, at least 0.6", holds=part >= 0.6)
        peak = max(run.peak_gb for runs in loaded.values() for run in runs)
        for times in (4, 8) if args.large else ():
            repeat(signals, plain, times * args.megabytes * 10**6)
            large = load(plain, scratch)
            peak = max(peak, large.peak_gb)
            print(f"{times} times the size: {large.wall_s:.1f} s, {large.peak_gb:.2f} GB", flush=True)
            if times == 4:
                grown = large.wall_s / once
                sheet.bar(
                    f"4 times the size takes {grown:.2f} times as long, at most 4.4", holds=grown <= 4.4
                )
        sheet.bar(f"{peak:.2f} GB at most, under 1", holds=peak < 1)
    return sheet.code


if __name__ == "__main__":
    sys.exit(main())
