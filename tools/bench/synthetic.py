"""A database of any number of synthetic turns, to measure with: SIMULATION, it says nothing of thresholds.

Lengths are heavy-tailed as in agents that run unbounded: half of the turns end by call 4, one in a hundred
passes call 300, none passes 1,500. Most turns are diverse; some re-run a command, some poll, a few are stuck.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analytics.warehouse import Warehouse
from guard.policy import CapPolicy

Ints = npt.NDArray[np.int64]
SLICE = 50_000  # turns made at a time
LONGEST = 1_500
USERS = 5_000
WEEKS = 13
BEGAN = 1_767_225_600 * 10**9
DIVERSE, RERUN, POLL, STUCK = range(4)
SHARES = (0.70, 0.20, 0.08, 0.02)
WORDS = np.array(["", "rerun", "poll", "stuck"], dtype=object)


def lengths(rng: np.random.Generator, turns: int) -> Ints:
    """Calls of each turn: a lognormal body and a Pareto tail."""
    body = np.exp(rng.normal(np.log(4), 1.4, turns))
    tail = 60 * (1 + rng.pareto(0.9, turns))
    return np.clip(np.where(rng.random(turns) < 0.04, tail, body), 1, LONGEST).astype(np.int64)


def build(path: Path, *, turns: int, with_calls: int, seed: int = 7) -> Path:
    """Write a new database of `turns` turns, of which `with_calls` have their calls recorded."""
    rng = np.random.default_rng(seed)
    policy = CapPolicy.adaptive()
    share = with_calls / turns
    with Warehouse.open(path) as warehouse:
        connection = warehouse.connection
        connection.execute(
            "INSERT INTO policies VALUES (?, 'adaptive', ?, ?, ?, ?, NULL, ?)",
            [policy.hash, policy.signal, policy.soft_cap, policy.stuck_at, policy.backstop, policy.text],
        )
        for first in range(0, turns, SLICE):
            size = min(SLICE, turns - first)
            for table, frame in _slice(rng, first, size, round(size * share), policy).items():
                connection.register("made", frame)
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM made")
                connection.unregister("made")
    return path


def _slice(
    rng: np.random.Generator, first: int, size: int, with_calls: int, policy: CapPolicy
) -> dict[str, pd.DataFrame]:
    calls = lengths(rng, size)
    kind = rng.choice(4, size, p=SHARES)
    turn, n, key, result, offset_ms = _calls(rng, calls, kind)
    level = _repeat(turn, key)
    new = np.flatnonzero(np.diff(level + turn * (LONGEST + 1), prepend=-1))
    new = new[(level[new] >= 2) & (level[new] <= 64)]
    turn_id = np.array([f"{number:032x}" for number in rng.integers(0, 2**62, size)], dtype=object)
    ends = np.cumsum(calls)
    started = BEGAN + rng.integers(0, WEEKS * 7 * 86_400, size) * 10**9
    halting = np.full(size, LONGEST + 1)
    stuck = np.flatnonzero((level >= (policy.stuck_at or 0)) & (n > (policy.soft_cap or 0)))
    np.minimum.at(halting, turn[stuck], n[stuck])
    np.minimum(halting, (policy.backstop or 0) + 1, out=halting)
    would = halting <= calls
    threshold = np.where(halting > (policy.backstop or 0), "backstop", "soft-stuck").astype(object)
    chunks = -(-calls // 50)
    have = np.arange(size) < with_calls
    rows = have[turn]
    read = (rng.random(size) < 0.02) | (would & (rng.random(size) < 0.3))
    duration = offset_ms[ends - 1]
    frames: dict[str, dict[str, Any]] = {
        "turns": {
            "turn_id": turn_id, "guard_id": "bench", "seq": first + 1 + np.arange(size),
            "cluster_id": [f"user-{user}" for user in (USERS * rng.random(size) ** 2).astype(int)],
            "agent": "bench", "model": "bench", "mode": "shadow", "policy_hash": policy.hash,
            "guard_version": "0", "schema_version": 1, "dialect": "turncap", "grade": "exact",
            "length_limited": False, "started_at": started, "ended_at": started + duration * 10**6,
            "has_started": True, "has_ended": True, "outcome": "completed", "calls": calls, "total": calls,
            "refused": 0, "ran": calls, "settled": calls, "errors": 0,
            "distinct_keys": _distinct(turn, key, size),
            "max_repeat": np.maximum.reduceat(level, ends - calls),
            "name_streak_max": 1, "would_halt_call": pd.array(halting, dtype="Int64"),
            "would_halt_threshold": threshold, "extended": False, "batches": calls, "retries": 0,
            "keys_forgotten": 0, "chunks_sent": chunks, "chunks_seen": np.where(have, chunks, 0),
            "least_calls": calls, "duration_ms": duration.astype(float),
        },
        "milestones": {
            "turn_id": turn_id[turn[new]], "epoch": 0, "k": level[new], "call": n[new],
            "batch_first_call": n[new],
        },
        "calls": {
            "turn_id": turn_id[turn[rows]], "n": n[rows], "epoch": 0, "batch": n[rows], "key": key[rows],
            "result": result[rows], "tool": "shell", "tool_class": "shell", "mutating": False, "error": False,
            "offset_ms": offset_ms[rows], "refused": False, "settled_after": n[rows],
            "settled_order": n[rows] - 1,
        },
        "labels": {
            "label_id": "1", "turn_id": turn_id[read], "stuck": kind[read] == STUCK,
            "productive": kind[read] != STUCK,
            "kind": pd.Series(WORDS[kind[read]], dtype=object).replace("", None), "by": "human",
        },
        "loop_events": {
            "event_id": turn_id[would], "turn_id": turn_id[would], "threshold": threshold[would],
            "mode": "shadow", "enforced": False, "call_number": halting[would], "total": halting[would],
            "signal": "repeat", "level": policy.stuck_at,
        },
    }  # fmt: skip
    made = {table: pd.DataFrame(columns) for table, columns in frames.items()}
    made["turns"].loc[~would, ["would_halt_call", "would_halt_threshold"]] = None
    return made


def _calls(rng: np.random.Generator, calls: Ints, kind: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Turn, number, key, (key, result) pair and offset of every call."""
    total = int(calls.sum())
    turn = np.repeat(np.arange(len(calls)), calls)
    n = np.arange(total) - np.repeat(np.cumsum(calls) - calls, calls) + 1
    of = kind[turn]
    key, result = n.copy(), n + 10_000  # diverse: each call is new, and so is its result …
    again = (of == DIVERSE) & (rng.random(total) < 0.06)  # … but now and then an earlier one is asked again
    key[again] = np.maximum(n[again] - rng.geometric(0.2, int(again.sum())), 1)
    every = rng.integers(3, 13, len(calls))[turn]
    rerun = (of == RERUN) & (n % every == 0)
    key[rerun] = 0
    onset = (rng.uniform(0.2, 0.9, len(calls)) * calls).astype(np.int64)[turn]
    waiting = (of == POLL) & (n > onset)
    key[waiting], result[waiting] = 0, 20_000 + n[waiting] // 4
    stuck = (of == STUCK) & (n > onset)
    key[stuck] = n[stuck] % rng.integers(1, 4, len(calls))[turn][stuck]
    result[stuck] = key[stuck]
    gap = np.where(waiting, rng.integers(30_000, 60_000, total), rng.integers(1_000, 20_000, total))
    passed = np.cumsum(gap)
    return turn, n, key, result, passed - np.repeat(passed[np.cumsum(calls) - calls], calls)


def _order(turn: Ints, key: Ints) -> tuple[Ints, Ints]:
    """Calls by (turn, key) in call order, and which of them are the first of their key."""
    place = turn * 100_000 + key
    order = np.argsort(place, kind="stable")
    return order, np.flatnonzero(np.diff(place[order], prepend=-1))


def _repeat(turn: Ints, key: Ints) -> Ints:
    """The level of `repeat` at each call, by sorting: another way than the guard's."""
    order, firsts = _order(turn, key)
    count = np.empty(len(key), np.int64)
    count[order] = np.arange(len(key)) - np.repeat(firsts, np.diff(firsts, append=len(key))) + 1
    lift = turn * (LONGEST + 1)
    return np.maximum.accumulate(count + lift) - lift


def _distinct(turn: Ints, key: Ints, size: int) -> Ints:
    order, firsts = _order(turn, key)
    return np.bincount(turn[order[firsts]], minlength=size)


def main() -> int:
    """`python -m tools.bench.synthetic FILE`."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.synthetic", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--with-calls", type=int, help="turns whose calls are recorded (default: a tenth)")
    args = parser.parse_args()
    if args.file.exists():
        print(f"{args.file}: exists; name another file", file=sys.stderr)
        return 1
    build(args.file, turns=args.turns, with_calls=args.with_calls or args.turns // 10)
    return 0


if __name__ == "__main__":
    sys.exit(main())
