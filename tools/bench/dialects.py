"""`turncap load` of what other products write beside `orjson.loads` over the same lines.

    python -m tools.bench.dialects [--megabytes 500] [--runs 3] [--only PRODUCT]

The files are made by `tools.bench.products`. Every run is a process of its own, start and end included, and
the two kinds take turns. A load is the whole path: identities of arguments and results, ledger, natural keys,
turns assembled, commit. Bars: at least 0.3 times the rate of orjson by the clock on the wall, under 1 GB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.bench.load import Run, measured, median
from tools.bench.measure import Sheet
from tools.bench.products import PRODUCTS, write

PARSE = (
    "import orjson, sys\n"
    "for path in sys.argv[1:]:\n"
    "    with open(path, 'rb') as f:\n"
    "        for line in f: orjson.loads(line)\n"
)
LEAST = 0.3


def load(folder: Path, scratch: Path) -> Run:
    """`turncap load` into a new database."""
    db = scratch / "bench.duckdb"
    db.unlink(missing_ok=True)
    return measured([sys.executable, "-m", "analytics", "load", str(folder), "--db", str(db)])


def main() -> int:
    """Make the files, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.dialects")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=PRODUCTS, metavar="PRODUCT")
    args = parser.parse_args()
    sheet = Sheet()
    peak = 0.0
    print(
        f"{args.megabytes} MB of each, medians of {args.runs}, MB/s by the wall and by CPU, "
        "most memory of a load:"
    )
    for name in args.only or PRODUCTS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "files"
            paths = write(PRODUCTS[name], folder, args.megabytes * 10**6)
            size = sum(path.stat().st_size for path in paths) / 1e6
            parsed: list[Run] = []
            loaded: list[Run] = []
            for _ in range(args.runs):
                parsed.append(measured([sys.executable, "-c", PARSE, *map(str, paths)]))
                loaded.append(load(folder, Path(scratch)))
        for word, runs in (("orjson.loads", parsed), ("load", loaded)):
            wall, cpu = (size / median(runs, what) for what in ("wall_s", "cpu_s"))
            most = f" {max(run.peak_gb for run in runs):.2f} GB" if runs is loaded else ""
            print(f"{name + ', ' + word:34} {wall:5.0f} {cpu:5.0f}{most}", flush=True)
        peak = max(peak, *(run.peak_gb for run in loaded))
        ratio, by_cpu = (median(parsed, what) / median(loaded, what) for what in ("wall_s", "cpu_s"))
        sheet.bar(
            f"{name}: {ratio:.2f} times the rate of orjson.loads ({by_cpu:.2f} by CPU), at least {LEAST}",
            holds=ratio >= LEAST,
        )
    sheet.bar(f"{peak:.2f} GB at most, under 1", holds=peak < 1)
    return sheet.code


if __name__ == "__main__":
    sys.exit(main())
