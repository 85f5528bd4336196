"""A report of a million synthetic turns, a tenth of them with calls: time, memory, and what each part costs.

    python -m tools.bench.scale [--turns N] [--db FILE]

Bars: `turncap report` in under 60 s and 4 GB. Seconds are of CPU, of all threads together: on a quiet
machine the clock shows no more. The parts are measured one after another on one `Replay`, as the report does.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from analytics.database import open_database
from analytics.decision import over_grid
from analytics.false_stuck_turns import classified, shares
from analytics.first_screen import first_screen
from analytics.replay import Replay
from analytics.side_by_side import signals
from analytics.validation.settings import read_settings
from analytics.validation.validate import validate
from tools.bench.measure import Sheet, peak_gb

SECONDS, GIGABYTES = 60, 4


def parts(db: Path, sheet: Sheet) -> None:
    """What the report is made of, each part timed."""
    settings = read_settings()
    with open_database(db) as connection:
        with sheet.lap("read turns and milestones"):
            replay = Replay.of(connection)
        with sheet.lap("levels of the recorded calls") as walked:
            calls = len(replay.levels.n)
        turns, each = len(replay.levels.turn), walked.cpu_s / calls * 1e6
        print(f"  {calls:,} calls of {turns:,} turns, {each:.1f} µs a call")
        with sheet.lap("gates and verdicts"):
            validation = validate(connection, replay, settings)
        case = validation.case
        among = pd.Index(replay.turns.turn_id).isin(case.turns.frame["turn_id"])
        running = case.population.policy
        with sheet.lap("grid and decision"):
            _, decision = over_grid(replay, case)
        with sheet.lap("signals side by side"):
            signals(replay, soft_cap=running.soft_cap or 0, backstop=running.backstop or 1000, among=among)
        with sheet.lap("what looks stuck, classified"):
            looks = classified(replay, running, among=among)
            shares(looks, replay, tail=case.look.level)
        named = looks["kind"].notna().sum()
        print(f"  {len(looks):,} turns in both populations, {named:,} of them with calls")
        with sheet.lap("first screen"):
            first_screen(case, validation.verdicts, decision)
    print(f"  most memory held: {peak_gb():.2f} GB")


def report(db: Path, out: Path, sheet: Sheet) -> None:
    """The command itself, in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "analytics", "report", "--db", str(db), "--out", str(out)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    peak = peak_gb(resource.RUSAGE_CHILDREN)  # of all children: the one that built the database holds less
    print(f"turncap report: {cpu:.1f} s of CPU, {wall:.1f} s on the clock, {peak:.2f} GB")
    sheet.bar(f"{cpu:.1f} s of CPU, under {SECONDS}", holds=cpu < SECONDS)
    sheet.bar(f"{peak:.2f} GB, under {GIGABYTES}", holds=peak < GIGABYTES)


def main() -> int:
    """Build the database, time the report, then its parts."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.scale")
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--db", type=Path, help="a database that tools.bench.synthetic built before")
    args = parser.parse_args()
    sheet = Sheet()
    with tempfile.TemporaryDirectory() as scratch:
        db = args.db
        if db is None:
            db = Path(scratch) / "bench.duckdb"
            made = [sys.executable, "-m", "tools.bench.synthetic", str(db), "--turns", str(args.turns)]
            subprocess.run(made, check=True)
        report(db, Path(scratch) / "report", sheet)
        parts(db, sheet)
    return sheet.code


if __name__ == "__main__":
    sys.exit(main())
