"""A database of the bundled turns, filled straight from their numbers, for tests of what reads one.

It says what the guard says in shadow mode under the released rule. It is no way into turncap: the
demo's test holds that the real path (guard, OpenTelemetry, load) fills the same tables.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from analytics.evidence import TURNS

SOFT_CAP, STUCK_AT, BACKSTOP = 100, 6, 1000
POLICY_HASH = "0" * 15 + "1"
STARTED = 1_764_547_200_000_000_000  # one fixed date: the bundled turns have none
PRODUCTIVE = {
    **dict.fromkeys(("end_turn", "resolved", "patch", "reward1", "submitted"), True),
    **dict.fromkeys(("unresolved", "nopatch", "patch_error", "reward0", "maxsteps"), False),
}
ABORTED = {"maxsteps", "interrupted", "open"}


def evidence_rows() -> list[dict[str, Any]]:
    """Every bundled turn, as its line says."""
    with TURNS.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def build(path: Path | str, rows: Iterable[dict[str, Any]] | None = None) -> Path:
    """Write a database of `rows` (all bundled turns when None) to `path` and return it."""
    frames: dict[str, list[dict[str, Any]]] = {
        "turns": [], "calls": [], "milestones": [], "labels": [], "loop_events": []
    }  # fmt: skip
    for number, row in enumerate(evidence_rows() if rows is None else rows, start=1):
        _add(frames, f"{number:032x}", number, row)
    connection = duckdb.connect(str(path))
    try:
        connection.execute((Path(__file__).parents[2] / "analytics/schema.sql").read_text(encoding="utf-8"))
        connection.execute(
            "INSERT OR REPLACE INTO meta VALUES ('application', 'turncap'), ('schema_version', '1')"
        )
        connection.execute(
            "INSERT INTO policies VALUES (?, 'adaptive', 'repeat', ?, ?, ?, NULL, ?)",
            [POLICY_HASH, SOFT_CAP, STUCK_AT, BACKSTOP,
             "adaptive signal=repeat soft_cap=100 stuck_at=6 backstop=1000"],
        )  # fmt: skip
        for table, records in frames.items():
            if records:
                connection.register("frame", pd.DataFrame(records, dtype=object))
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM frame")
                connection.unregister("frame")
    finally:
        connection.close()
    return Path(path)


def _add(frames: dict[str, list[dict[str, Any]]], turn_id: str, number: int, row: dict[str, Any]) -> None:
    keys: Sequence[int] = row["key"]
    pairs: dict[tuple[int, int, int], int] = {}
    counts: dict[int, int] = {}
    milestones: dict[int, int] = {}
    crossing: tuple[int, int] | None = None
    offset: float | None = None if row["gap_s"] is None else 0.0
    for n, key in enumerate(keys, start=1):
        counts[key] = counts.get(key, 0) + 1
        milestones.setdefault(counts[key], n)
        if crossing is None and n > SOFT_CAP and STUCK_AT in milestones:
            crossing = (n, max(counts, key=counts.__getitem__))
        gap = None if row["gap_s"] is None else row["gap_s"][n - 1]
        if offset is not None:
            offset += gap or 0.0
        error = row["error"][n - 1]
        pair = pairs.setdefault((key, row["result_norm"][n - 1], error), len(pairs))
        frames["calls"].append({
            "turn_id": turn_id, "n": n, "epoch": 0, "batch": n, "key": key, "result": pair,
            "tool": row["tool"][n - 1], "mutating": bool(row["mutating"][n - 1]), "error": bool(error),
            "offset_ms": None if offset is None else round(offset * 1000), "refused": False,
            "settled_after": n, "settled_order": n - 1,
        })  # fmt: skip
    calls, chunks = len(keys), -(-len(keys) // 50)
    reached = {k: n for k, n in milestones.items() if 2 <= k <= 64}
    for k, n in reached.items():
        frames["milestones"].append(
            {"turn_id": turn_id, "epoch": 0, "k": k, "call": n, "batch_first_call": n}
        )  # fmt: skip
    frames["turns"].append({
        "turn_id": turn_id, "guard_id": "evidence", "seq": number, "cluster_id": row["session"],
        "agent": row["source"], "mode": "shadow", "policy_hash": POLICY_HASH, "guard_version": "0",
        "schema_version": 1, "dialect": "turncap", "grade": "exact", "length_limited": row["length_limited"],
        "sample": "length-limited" if row["length_limited"] else None,
        "started_at": STARTED, "ended_at": None if offset is None else STARTED + round(offset * 1e9),
        "has_started": True, "has_ended": True,
        "outcome": "aborted" if row["outcome"] in ABORTED else "completed", "task_outcome": row["outcome"],
        "calls": calls, "total": calls, "refused": 0, "ran": calls, "settled": calls,
        "errors": sum(row["error"]), "distinct_keys": len(counts), "max_repeat": max(counts.values()),
        "would_halt_call": None if crossing is None else crossing[0],
        "would_halt_threshold": None if crossing is None else "soft-stuck",
        "holdout_rate": 0.0, "extended": False, "batches": calls, "retries": 0, "keys_forgotten": 0,
        "chunks_sent": chunks, "chunks_seen": chunks, "least_calls": calls,
        "duration_ms": None if offset is None else offset * 1000,
    })  # fmt: skip
    if crossing is not None:
        call, key = crossing
        at = [n for n, one in enumerate(keys[:call], start=1) if one == key]
        frames["loop_events"].append({
            "event_id": f"{turn_id}/halt", "turn_id": turn_id, "threshold": "soft-stuck", "mode": "shadow",
            "enforced": False, "call_number": call, "total": call, "signal": "repeat", "level": len(at),
            "limit": SOFT_CAP, "repeat_count": len(at), "repeat_tool": row["tool"][at[0] - 1],
            "repeat_first_call": at[0], "repeat_last_call": at[-1], "distinct_keys": len(set(keys[:call])),
            "level_repeat": len(at),
        })  # fmt: skip
    kind = row["label"]
    productive = False if kind == "stuck" else PRODUCTIVE.get(row["outcome"])
    frames["labels"].append({
        "label_id": "import", "turn_id": turn_id, "stuck": None if kind is None else kind == "stuck",
        "productive": productive, "kind": kind, "task_outcome": row["outcome"], "by": "import",
    })  # fmt: skip
