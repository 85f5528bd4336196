"""A database in, everything that can be said of its thresholds out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import duckdb
import numpy as np
import pandas as pd

from analytics import stats
from analytics.database import select
from analytics.replay import Replay as Recorded
from analytics.validation.gates import Period, Reproduced, gate_counts, gates, lost_turns
from analytics.validation.looks import block_of, look_of, numbers, week_number, week_text, weeks
from analytics.validation.outcomes import Outcomes
from analytics.validation.population import MONDAY, WEEK, Population, Turns, latest_time, read_population
from analytics.validation.rates import Planned, Share, halt_rates, length_share
from analytics.validation.settings import Settings
from analytics.validation.strata import Stratum, strata
from analytics.validation.verdicts import Case, Look, Verdict, judge
from guard.policy import CapPolicy

FEW_AGENTS = 5  # under so many, intervals by agent stand beside the pooled one


@dataclass(frozen=True, slots=True, kw_only=True)
class ByAgent:
    """The rates of one agent, or model, alone."""

    agent: str
    turns: int
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What was judged, on what, and what came of it."""

    case: Case
    verdicts: tuple[Verdict, ...]
    by_agent: tuple[ByAgent, ...]
    strata: tuple[Stratum, ...]

    @property
    def population(self) -> Population:
        """The turns in scope."""
        return self.case.population


def validate(
    connection: duckdb.DuckDBPyConnection,
    recorded: Recorded,
    settings: Settings,
    *,
    as_of: int | None = None,
    week: str | None = None,
) -> Validation:
    """Judge the three questions. `as_of` is nanoseconds since 1970 (None: the latest time seen).

    With `week` the turns from the first week of its block up to it are judged at the level of that look;
    without, all turns are looked at once, at 5 %.
    """
    case = read_case(connection, recorded, settings, as_of=as_of, week=week)
    return Validation(
        case=case, verdicts=judge(case), by_agent=_by_agent(case), strata=strata(recorded, case)
    )


def read_case(
    connection: duckdb.DuckDBPyConnection,
    recorded: Recorded,
    settings: Settings,
    *,
    as_of: int | None = None,
    week: str | None = None,
) -> Case:
    """What is to be judged: turns, gates and labels. Arguments as those of `validate`."""
    moment = latest_time(connection) if as_of is None else as_of
    population = read_population(connection, as_of=moment, sampled_by_head=settings.evidence.sampled_by_head)
    look, scope_key, period = Look(level=stats.ONE_LOOK), "", Period()
    if week is not None:
        population, look, scope_key, period = _until(population, week)
    mode = str(population.turns.frame["mode"].iloc[0]) if len(population.turns) else ""
    counts = gate_counts(
        connection, as_of=moment, policy_hash=population.policy_hash, mode=mode, period=period
    )
    found = gates(
        connection,
        counts,
        signal=population.policy.signal,
        reproduced=_reproduced(connection, recorded, population.everything),
        sampled_by_head=settings.evidence.sampled_by_head,
        period=period,
    )
    return Case(
        population=population,
        replay=Outcomes(recorded, population.turns),
        settings=settings,
        look=look,
        gates=found,
        planned=_planned(connection),
        lost=lost_turns(found, counts),
        scope=_scope(population, mode),
        scope_key=scope_key,
    )


def _until(population: Population, week: str) -> tuple[Population, Look, str, Period]:
    asked = week_number(week)
    block = block_of(weeks(population.turns), asked)
    period = Period(begin=MONDAY + block.first * WEEK, end=MONDAY + (asked + 1) * WEEK)

    def within(turns: Turns) -> pd.Series[bool]:
        number = numbers(turns)
        return (number >= block.first) & (number <= asked)

    frame, everything = population.turns.frame, population.everything
    keep = within(population.turns) & (frame["guard_version"] == block.guard_version)
    kept = replace(
        population,
        turns=Turns(frame[keep].reset_index(drop=True)),
        everything=Turns(everything.frame[within(everything)].reset_index(drop=True)),
        left_out={**population.left_out, "another week or guard version": int((~keep).sum())},
    )
    guard = block.guard_version or "none"
    scope = f"{population.policy.text} · guard {guard} · from {week_text(block.first)}"
    return kept, look_of(block, week_text(asked)), scope, period


def _reproduced(connection: duckdb.DuckDBPyConnection, recorded: Recorded, turns: Turns) -> Reproduced | None:
    """Replay each policy that ran on its own turns: the call halted at must be the one logged."""
    logged = same = 0
    frame = turns.frame
    outcomes_at = Outcomes(recorded, turns)
    for policy_hash, text in connection.execute(
        "SELECT policy_hash, text FROM policies WHERE kind <> 'disabled' AND text IS NOT NULL"
    ).fetchall():
        rows = (frame["policy_hash"] == policy_hash).to_numpy(dtype=bool)
        if not rows.any():
            continue
        halt = frame["would_halt_call"].fillna(0).to_numpy(dtype=np.int64)
        low, high = outcomes_at.calls_of(CapPolicy.from_text(text))
        said = rows & (halt > 0)
        invented = rows & (halt == 0) & (high <= turns.calls) & (low == high)
        hidden = said & (low < high) & (low <= halt)  # what was lost hides the call: neither right nor wrong
        logged += int((said & ~hidden).sum() + invented.sum())
        same += int((said & ~hidden & (low == halt) & (high == halt)).sum())
    return Reproduced(logged=logged, same=same) if logged else None


def _planned(connection: duckdb.DuckDBPyConnection) -> dict[str, Planned]:
    frame = select(connection, "planned_labels")
    return {
        str(turn): Planned(judge=_number(judge), human=_number(human), probability=_number(probability))
        for turn, judge, human, probability in frame.itertuples(index=False)
    }


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _scope(population: Population, mode: str) -> Mapping[str, object]:
    frame = population.turns.frame
    started = frame["started_at"].dropna()
    return {
        "policy": population.policy.text,
        "mode": mode or None,
        "guard_versions": sorted(set(frame["guard_version"].unique()) - {""}),
        "agents": sorted(set(frame["agent"].unique()) - {""}),
        "models": sorted(set(frame["model"].unique()) - {""}),
        "from": _day(int(started.min())) if len(started) else None,
        "to": _day(int(started.max())) if len(started) else None,
        "turns": len(frame),
        "clusters": int(frame["cluster"].nunique()),
        "cluster": population.turns.cluster_kind if len(frame) else None,
        "left_out": dict(population.left_out),
    }


def _day(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, tz=UTC).date().isoformat()


def _by_agent(case: Case) -> tuple[ByAgent, ...]:
    """Rates of each agent (of each model where there is one agent), at least two of them and few."""
    frame = case.turns.frame
    few = [name for name in ("agent", "model") if 1 < frame[name].nunique() < FEW_AGENTS]
    if not few:
        return ()
    agents = frame[few[0]]
    names = sorted(agents.unique())
    policy, rows = case.population.policy, []
    outcome, telling = case.replay.under(policy), case.turns.telling(policy.signal)
    for name in names:
        mine = (agents == name).to_numpy(dtype=bool)
        turns = case.turns.where(mine)
        told = mine & telling
        rates = halt_rates(
            case.turns.where(told),
            outcome.where(told),
            tail=case.look.level,
            planned=case.planned,
            holdout=True,
        )
        free = turns.where(~turns.flags("length_limited"))
        shares = [rates.fdr, rates.fhr]
        if len(free) and policy.backstop is not None:
            shares.append(length_share(free, policy.backstop, tail=case.look.level))
        rows.append(ByAgent(agent=str(name), turns=len(turns), shares=tuple(shares)))
    return tuple(rows)
