"""A database in, a WeeklyReport out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import duckdb
import pandas as pd

from analytics.database import records, select
from analytics.evidence import AGENTS, LIMITS
from analytics.report.value import (
    Counts,
    Coverage,
    Halts,
    Length,
    Policy,
    Repeats,
    WeeklyReport,
    at_least,
    percentile,
)

T = TypeVar("T")

# What would have run where no policy is known: the released rule.
RELEASED = Policy(
    kind="adaptive", signal="repeat", soft_cap=100, stuck_at=6, backstop=1000, hard_cap=None, turns=0
)


def build_report(connection: duckdb.DuckDBPyConnection) -> WeeklyReport:
    """Read everything a report says from one open database."""
    policies = records(select(connection, "running_policies"))
    policy = _known(Policy, policies[0]) if policies else RELEASED
    lengths = _counts(select(connection, "calls_per_turn"))
    repeats = _counts(select(connection, "repeats_per_turn"))
    return WeeklyReport(
        policy=policy,
        other_policies=max(len(policies) - 1, 0),
        coverage=_known(Coverage, records(select(connection, "coverage"))[0]),
        length=Length(
            over_soft_cap=None if policy.soft_cap is None else at_least(lengths, policy.soft_cap + 1),
            max=lengths[-1][0] if lengths else None,
            p50=percentile(lengths, 0.50),
            p90=percentile(lengths, 0.90),
            p99=percentile(lengths, 0.99),
            counts=lengths,
        ),
        repeats=Repeats(
            k=policy.stuck_at,
            turns_at_or_over_k=None if policy.stuck_at is None else at_least(repeats, policy.stuck_at),
            counts=repeats,
        ),
        halts=tuple(_known(Halts, row) for row in records(select(connection, "first_halts"))),
        limits=LIMITS if _has_bundled_turns(connection) else (),
    )


def _known(kind: type[T], row: dict[str, Any]) -> T:
    return kind(**{field.name: row[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def _counts(frame: pd.DataFrame) -> Counts:
    return tuple((int(number), int(turns)) for number, turns in frame.itertuples(index=False))


def _has_bundled_turns(connection: duckdb.DuckDBPyConnection) -> bool:
    agents = {agent for (agent,) in connection.execute("SELECT DISTINCT agent FROM turns").fetchall()}
    return bool(agents & AGENTS)
