"""1,000 policies over a million synthetic turns, beside a plain Python replay of one in a hundred of them.

    python -m tools.bench.replay [--turns N] [--db FILE]

Bars: reading the database and all policies in under 10 s of CPU and 2 GB; every total of the sample equal
to the plain replay's; at least 50 times its rate per evaluation (one policy on one turn), the reading left
out on both sides. The walk through the calls with the guard's own signal and `decide` must agree as well.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from analytics.database import open_database
from analytics.recording import Bools, Label
from analytics.replay import Replay
from analytics.totals import totals
from guard.policy import CapPolicy
from guard.signals import Key, Repeat
from tools.bench.measure import Sheet, peak_gb

STUCK_AT = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30)
SOFT_CAPS = (0, 20, 30, 50, 75, 100, 120, 150, 175, 200)
BACKSTOPS = (200, 300, 400, 500, 600, 700, 800, 900, 1000, 1400)
COLUMNS = ["stuck", "not_stuck", "unlabelled", "calls_saved", "calls_cut"]


def policies() -> list[CapPolicy]:
    """All combinations: 1,000."""
    return [
        CapPolicy.adaptive(stuck_at=k, soft_cap=cap, backstop=backstop)
        for k in STUCK_AT
        for cap in SOFT_CAPS
        for backstop in BACKSTOPS
    ]


def plain(replay: Replay, asked: list[CapPolicy], sample: Bools) -> list[list[int]]:
    """The totals of COLUMNS for each policy, in plain Python from the milestones."""
    turns, told = replay.turns, replay.recording.milestones
    reached: dict[int, dict[int, int]] = {place: {} for place in np.flatnonzero(sample).tolist()}
    rows = sample[told.turn]
    for place, k, call in zip(
        *(column[rows].tolist() for column in (told.turn, told.k, told.call)), strict=True
    ):
        reached[place][k] = call
    listed = [
        (calls, label, reached[place])
        for place, calls, label in zip(
            np.flatnonzero(sample).tolist(),
            turns.calls[sample].tolist(),
            turns.label[sample].tolist(),
            strict=True,
        )
    ]
    found = []
    for policy in asked:
        soft, k, backstop = policy.soft_cap or 0, policy.stuck_at or 0, policy.backstop or 0
        halted = [0, 0, 0]
        saved = cut = 0
        for calls, label, milestones in listed:
            halting = min(max(soft + 1, milestones.get(k, backstop + 1)), backstop + 1)
            if halting <= calls:
                halted[label] += 1
                if label == Label.STUCK:
                    saved += calls - halting + 1
                else:
                    cut += calls - halting + 1
        found.append([halted[Label.STUCK], halted[Label.NOT_STUCK], halted[Label.UNREAD], saved, cut])
    return found


def walked(replay: Replay, asked: list[CapPolicy], sample: Bools) -> tuple[int, int]:
    """Of the sampled turns with calls, each under each policy: how many were walked, how many agree."""
    halts = [replay.halts(policy) for policy in asked]
    places = np.flatnonzero(sample & (replay.turns.rows > 0))
    walks = agree = 0
    for columns in replay.recording.columns(places, "replay_calls"):
        frame = pd.DataFrame({name: columns[name] for name in ("place", "key")})
        for place, keys in frame.groupby("place")["key"]:
            signal, known = Repeat(), {key: Key(b"", key, 0) for key in keys.tolist()}
            levels = [signal.admit(known[key]) for key in keys.tolist()]
            for policy, halt in zip(asked, halts, strict=True):
                walk = enumerate(levels, start=1)
                first = next((n for n, level in walk if policy.decide(n, level)), None)
                walks += 1
                agree += first == halt.call(int(str(place)))
    return walks, agree


def measure(db: Path) -> int:
    """Run on a database that `tools.bench.synthetic` built; the exit code."""
    sheet, asked = Sheet(), policies()
    with open_database(db) as connection:
        connection.execute("SET memory_limit = '512MB'")
        with sheet.lap("read turns and milestones") as read:
            replay = Replay.of(connection)
        with sheet.lap(f"{len(asked):,} policies over {len(replay.turns):,} turns") as fast:
            totals(replay, asked)
        peak = peak_gb()
        sample = np.zeros(len(replay.turns), bool)
        sample[np.random.default_rng(1).choice(len(sample), len(sample) // 100, replace=False)] = True
        with sheet.lap(f"the same in plain Python over {sample.sum():,} turns") as slow:
            expected = plain(replay, asked, sample)
        found = totals(replay, asked, among=sample)[COLUMNS].to_numpy().tolist()
        walks, agree = walked(replay, asked[::50], sample)
    ratio = (slow.cpu_s / sample.sum()) / (fast.cpu_s / len(sample))
    sheet.bar(f"{read.cpu_s + fast.cpu_s:.1f} s of CPU in all, under 10", holds=read.cpu_s + fast.cpu_s < 10)
    sheet.bar(f"{peak:.2f} GB, under 2", holds=peak < 2)
    sheet.bar(f"{ratio:.0f} times the rate of plain Python an evaluation, at least 50", holds=ratio >= 50)
    sheet.bar("every total of the sample equals the plain one", holds=found == expected)
    sheet.bar(f"{agree:,} of {walks:,} walks with the guard's own code agree", holds=0 < agree == walks)
    return sheet.code


def main() -> int:
    """Build what is missing, and measure."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.replay")
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--db", type=Path, help="a database built before; made anew when it is not given")
    args = parser.parse_args()
    if args.db is not None:
        return measure(args.db)
    with tempfile.TemporaryDirectory() as scratch:
        db = Path(scratch) / "bench.duckdb"
        # In a process of its own, so that its memory is not counted here.
        subprocess.run(
            [sys.executable, "-m", "tools.bench.synthetic", str(db), "--turns", str(args.turns)], check=True
        )
        return measure(db)


if __name__ == "__main__":
    sys.exit(main())
