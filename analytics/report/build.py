"""A database in, a WeeklyReport out: what others computed, brought together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import duckdb
import pandas as pd

from analytics.database import records, select
from analytics.decision import Costed, over_grid
from analytics.evidence import AGENTS, LIMITS
from analytics.false_stuck_turns import agreement, classified, shares
from analytics.first_screen import first_screen
from analytics.recording import Bools
from analytics.replay import Replay
from analytics.report.mind import would_change
from analytics.report.strip import strip_of
from analytics.report.trend import SHOWN, build_trend
from analytics.report.turn import TurnView, build_turn
from analytics.report.turn_policies import policies_of
from analytics.report.value import (
    Counts,
    Coverage,
    Drawn,
    Example,
    Halts,
    Length,
    Pattern,
    Policy,
    Repeats,
    Side,
    Step,
    WeeklyReport,
    at_least,
    percentile,
)
from analytics.side_by_side import kinds_seen, signals
from analytics.validation.looks import block_of, keep_once, week_number, weeks
from analytics.validation.population import MONDAY, UNREAD, WEEK, read_population
from analytics.validation.settings import Settings
from analytics.validation.validate import Validation, validate
from guard.policy import CapPolicy

T = TypeVar("T")
EXAMPLES = 5  # turns drawn of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """Turns that began in [begin, end), nanoseconds since 1970; all turns where both are None."""

    begin: int | None = None
    end: int | None = None

    def as_parameters(self) -> dict[str, int | None]:
        """For the SELECTs."""
        return {"begin": self.begin, "end": self.end}


def build_report(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    *,
    week: str | None = None,
    as_of: int | None = None,
    now: int | None = None,
    say: Callable[[str], None] = lambda step: None,
) -> WeeklyReport:
    """Read everything a report says from one open database.

    With `week` (an ISO week) it speaks of the turns from the first week of that look's block up to it.
    `as_of` and `now` are nanoseconds since 1970: the latest time seen where None, and the time at which
    the look of the week is written down, unless it was before (None: it is not written). `say` is told each
    of the long steps.
    """
    say("reading the turns")
    replay = Replay.of(connection)
    say("judging the thresholds")
    validation = validate(connection, replay, settings, week=week, as_of=as_of)
    if week is not None and now is not None:
        looked = keep_once(connection, validation.verdicts, scope=validation.case.scope_key, now=now)
        validation = replace(validation, verdicts=looked)
    when = _range(connection, settings, week, as_of).as_parameters()
    running = validation.population.policy
    ran = records(select(connection, "running_policies", **when))
    lengths = _counts(select(connection, "calls_per_turn", **when))
    repeats = _counts(select(connection, "repeats_per_turn", **when))
    among = pd.Index(replay.turns.turn_id).isin(validation.population.turns.frame["turn_id"])
    say("replaying every policy of the grid")
    costed, decision = over_grid(replay, validation.case)
    seen = kinds_seen(replay, among)
    say("looking at what looks stuck")
    looks_stuck = classified(replay, running, among=among)
    first = first_screen(validation.case, validation.verdicts, decision)
    say("bringing it together")
    near = [one.turn_id for one in (*first.repetitive, *first.longest)]
    examples = _examples(looks_stuck)
    views = {
        turn_id: build_turn(connection, turn_id)
        for turn_id in dict.fromkeys([*near, *(row["turn_id"] for row in examples)])
    }
    found = policies_of(connection, replay, running, list(views.values()))
    return WeeklyReport(
        week=week,
        policy=_policy(running, len(validation.population.turns)),
        other_policies=max(len(ran) - 1, 0),
        coverage=_known(Coverage, records(select(connection, "coverage", **when))[0]),
        length=_length(lengths, running),
        repeats=Repeats(
            k=running.stuck_at,
            turns_at_or_over_k=None if running.stuck_at is None else at_least(repeats, running.stuck_at),
            counts=repeats,
        ),
        halts=tuple(_known(Halts, row) for row in records(select(connection, "first_halts", **when))),
        kinds=seen,
        waterfall=_waterfall(connection, validation, replay, when),
        first=first,
        drawn=tuple(Drawn(turn=turn, found=one) for turn, one in zip(views.values(), found, strict=True)),
        gates=tuple(validation.case.gates),
        look=validation.case.look,
        scope=validation.case.scope,
        verdicts=validation.verdicts,
        by_agent=validation.by_agent,
        strata=validation.strata,
        decision=decision,
        costed=costed,
        grid=tuple(_of(costed, running, "signal", "backstop")),
        backstops=tuple(_of(costed, running, "signal", "stuck_at", "soft_cap")),
        signals=tuple(_sides(replay, running, among)),
        false_stuck=tuple(_known(Pattern, row) for row in records(shares(looks_stuck, replay, tail=SHOWN))),
        agreement=agreement(looks_stuck),
        examples=tuple(_drawn_example(row, views[row["turn_id"]]) for row in examples),
        would_change=tuple(would_change(validation.verdicts, decision, validation.case.gates, seen)),
        trend=build_trend(connection, soft_cap=running.soft_cap or 0, **when),
        settings=settings,
        limits=LIMITS if _has_bundled_turns(connection) else (),
    )


def _range(
    connection: duckdb.DuckDBPyConnection, settings: Settings, week: str | None, as_of: int | None
) -> _Range:
    if week is None:
        return _Range()
    population = read_population(connection, as_of=as_of, sampled_by_head=settings.evidence.sampled_by_head)
    block = block_of(weeks(population.turns), week_number(week))
    return _Range(begin=MONDAY + block.first * WEEK, end=MONDAY + (week_number(week) + 1) * WEEK)


def _policy(policy: CapPolicy, turns: int) -> Policy:
    return Policy(
        kind=str(policy.kind),
        signal=policy.signal,
        soft_cap=policy.soft_cap,
        stuck_at=policy.stuck_at,
        backstop=policy.backstop,
        hard_cap=policy.hard_cap,
        turns=turns,
    )


def _length(counts: Counts, policy: CapPolicy) -> Length:
    return Length(
        over_soft_cap=None if policy.soft_cap is None else at_least(counts, policy.soft_cap + 1),
        max=counts[-1][0] if counts else None,
        p50=percentile(counts, 0.50),
        p90=percentile(counts, 0.90),
        p99=percentile(counts, 0.99),
        counts=counts,
    )


def _waterfall(
    connection: duckdb.DuckDBPyConnection, validation: Validation, replay: Replay, when: dict[str, int | None]
) -> tuple[Step, ...]:
    """From every turn that is known down to the turns that were read, each step a part of the one before."""
    population = validation.population
    turns = population.turns
    at = pd.Index(replay.turns.turn_id).get_indexer(pd.Index(turns.frame["turn_id"]))
    whole = (replay.turns.rows == replay.turns.calls)[at] & (at >= 0)
    read = whole & (turns.truth != UNREAD)
    left = _known(Coverage, records(select(connection, "coverage", begin=None, end=None))[0]).turns
    steps = [Step(name="turns known", turns=left, lost=0)]
    steps.append(_step("asked for at least one call", left, len(population.everything)))
    for reason, lost in population.left_out.items():
        steps.append(_step(f"not: {reason}", steps[-1].turns, steps[-1].turns - lost))
    steps.append(_step("every call seen", steps[-1].turns, int(whole.sum())))
    steps.append(_step("labelled stuck or not stuck", steps[-1].turns, int(read.sum())))
    return tuple(steps)


def _step(name: str, before: int, after: int) -> Step:
    return Step(name=name, turns=after, lost=before - after)


def _of(costed: Iterable[Costed], running: CapPolicy, *same: str) -> Iterable[Costed]:
    """The policies that are as the running one in the fields `same`."""
    return (
        one for one in costed if all(getattr(one.policy, name) == getattr(running, name) for name in same)
    )


def _sides(replay: Replay, running: CapPolicy, among: Bools) -> Iterable[Side]:
    if running.soft_cap is None or running.backstop is None:
        return ()
    frame = signals(replay, soft_cap=running.soft_cap, backstop=running.backstop, among=among)
    return (_known(Side, row) for row in records(frame))


def _examples(found: pd.DataFrame) -> list[dict[str, Any]]:
    """Up to five turns of each kind in each population, those that were judged earliest; ties by id."""
    decided = found.assign(
        decided=found["whole"].where(found["whole"].notna(), found["kind"]),
        why=found["whole_because"].where(found["whole"].notna(), found["because"]),
    )
    first = decided.sort_values(["call", "turn_id"]).groupby(["population", "decided"], sort=False)
    return records(first.head(EXAMPLES))


def _drawn_example(row: dict[str, Any], turn: TurnView) -> Example:
    return Example(
        population=row["population"],
        kind=str(row["decided"]),
        because=row["why"],
        label=row["label"],
        strip=replace(strip_of(turn), halts=(row["call"],)),
    )


def _known(kind: type[T], row: dict[str, Any]) -> T:
    return kind(**{field.name: row[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def _counts(frame: pd.DataFrame) -> Counts:
    return tuple((int(number), int(turns)) for number, turns in frame.itertuples(index=False))


def _has_bundled_turns(connection: duckdb.DuckDBPyConnection) -> bool:
    agents = {agent for (agent,) in connection.execute("SELECT DISTINCT agent FROM turns").fetchall()}
    return bool(agents & AGENTS)
