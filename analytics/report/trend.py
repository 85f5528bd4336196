"""How two shares go from week to week, and differ between agents and models."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pandas as pd

from analytics import stats
from analytics.database import select

SHOWN = 0.025  # tail of the two-sided 95 % intervals that are shown
MOST_GROUPS = 12  # the largest are shown by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share with its two-sided 95 % interval, users taken as clusters; None without turns."""

    events: int
    estimate: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The turns of one week, or of one agent and model. `long`: past the soft cap; `halted`: would-be too."""

    name: str
    turns: int
    clusters: int
    long: Share
    halted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """`weeks` ascending; `groups` by their turns, the largest first; `other_groups` are not shown."""

    weeks: tuple[Group, ...]
    groups: tuple[Group, ...]
    other_groups: int


def build_trend(
    connection: duckdb.DuckDBPyConnection, *, soft_cap: int, begin: int | None = None, end: int | None = None
) -> Trend:
    """Read both comparisons; `soft_cap` is the running one."""
    weekly = select(connection, "weekly", soft_cap=soft_cap, begin=begin, end=end)
    by_agent = select(connection, "by_agent", soft_cap=soft_cap, begin=begin, end=end)
    named = by_agent.assign(
        name=[_named(*pair) for pair in zip(by_agent["agent"], by_agent["model"], strict=True)]
    )
    groups = sorted(_groups(named, "name"), key=lambda group: (-group.turns, group.name))
    return Trend(
        weeks=tuple(_groups(weekly, "week")),
        groups=tuple(groups[:MOST_GROUPS]),
        other_groups=max(0, len(groups) - MOST_GROUPS),
    )


def _named(agent: str, model: str) -> str:
    return agent if model == "unknown" else f"{agent} · {model}"


def _groups(frame: pd.DataFrame, by: str) -> list[Group]:
    return [
        Group(
            name=str(name),
            turns=int(rows["turns"].sum()),
            clusters=len(rows),
            long=_share(rows, "long"),
            halted=_share(rows, "halted"),
        )
        for name, rows in frame.groupby(by, sort=True)
    ]


def _share(rows: pd.DataFrame, column: str) -> Share:
    rate = stats.clustered_rate(rows[column].tolist(), rows["turns"].tolist(), tail=SHOWN)
    return Share(events=int(rows[column].sum()), estimate=rate.estimate, low=rate.low, high=rate.high)
