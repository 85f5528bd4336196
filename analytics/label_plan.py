"""Which turns people should read: a random sample by stratum, each with the probability it was drawn by.

Shares by stratum are those of Horvitz and Thompson's design for a difference estimator: many of the halts
that look wrong, few of those that look right, very few of the turns that nobody stopped, and at least
thirty of each. A turn is drawn where a hash of its id lies below the share, so that planning again draws
the same turns: as a stratum grows its share only falls, so a turn that was passed over stays so, and one
that was drawn keeps the probability of the plan that drew it.
"""

from __future__ import annotations

import csv
import hashlib
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import duckdb
import pandas as pd

from analytics.database import records, select

# Stratum -> share that is read. `halted`: a judge says not stuck, or none judged.
SHARES = {"halted": 0.40, "halted, judged stuck": 0.10, "not halted": 0.02}
LEAST = 30  # expected to be drawn of each stratum, where it has so many
SECOND = 0.10  # share that a second reader reads too


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One turn to read. `priority`: by how much it moves its rate if it is the other way than thought."""

    turn_id: str
    stratum: str
    probability: float
    planned_at: int
    priority: float
    second_reader: bool


def plan_file(database: Path) -> Path:
    """Where the plan of a database is kept too: beside it, under its name."""
    return database.with_name(f"{database.stem}.label-plan.csv")


def draw(strata: Sequence[tuple[str, str]], *, at: int) -> list[Planned]:
    """Draw from (turn_id, stratum); `at` is nanoseconds since 1970."""
    sizes = Counter(stratum for _, stratum in strata)
    halts = sum(size for stratum, size in sizes.items() if stratum != "not halted")
    drawn = []
    for turn_id, stratum in strata:
        size = sizes[stratum]
        probability = max(SHARES[stratum], min(1.0, LEAST / size))
        if _uniform("draw", turn_id) < probability:
            of = size if stratum == "not halted" else halts
            drawn.append(
                Planned(
                    turn_id=turn_id,
                    stratum=stratum,
                    probability=probability,
                    planned_at=at,
                    priority=1 / (probability * of),
                    second_reader=_uniform("second", turn_id) < SECOND,
                )
            )
    return drawn


def make_plan(connection: duckdb.DuckDBPyConnection, database: Path, halted: Collection[str]) -> int:
    """Draw from the turns that are not in the plan yet; how many were drawn. `halted` holds turn ids."""
    restore_plan(connection, database)
    strata = [
        (
            turn_id,
            ("halted, judged stuck" if row["judged_stuck"] else "halted")
            if turn_id in halted
            else "not halted",
        )
        for row in records(select(connection, "turns_to_read"))
        if (turn_id := str(row["turn_id"]))
    ]
    planned = {turn_id for (turn_id,) in connection.execute("SELECT turn_id FROM label_plan").fetchall()}
    drawn = [one for one in draw(strata, at=time.time_ns()) if one.turn_id not in planned]
    if drawn:
        _insert(connection, drawn)
    if drawn or (planned and not plan_file(database).is_file()):
        frame = connection.execute("SELECT * FROM label_plan ORDER BY planned_at, turn_id").df()
        frame.to_csv(plan_file(database), index=False)
    return len(drawn)


def restore_plan(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Take up the plan beside a database that was rebuilt since."""
    ((rows,),) = connection.execute("SELECT count(*) FROM label_plan").fetchall()
    if rows or not plan_file(database).is_file():
        return
    with plan_file(database).open(encoding="utf-8", newline="") as lines:
        _insert(
            connection,
            [
                Planned(
                    turn_id=row["turn_id"],
                    stratum=row["stratum"],
                    probability=float(row["probability"]),
                    planned_at=int(row["planned_at"]),
                    priority=float(row["priority"]),
                    second_reader=row["second_reader"] == "True",
                )
                for row in csv.DictReader(lines)
            ],
        )


def _insert(connection: duckdb.DuckDBPyConnection, rows: Sequence[Planned]) -> None:
    frame = pd.DataFrame([asdict(row) for row in rows], columns=[field.name for field in fields(Planned)])
    connection.register("drawn", frame)
    connection.execute("INSERT OR IGNORE INTO label_plan BY NAME SELECT * FROM drawn")
    connection.unregister("drawn")


def _uniform(purpose: str, turn_id: str) -> float:
    digest = hashlib.blake2b(f"{purpose}/{turn_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
