"""Weekly looks: which one a week is, at what level it judges, and the row that is written of it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import duckdb
import pandas as pd

from analytics import stats
from analytics.errors import InputError
from analytics.validation.population import MONDAY, WEEK, Turns
from analytics.validation.verdicts import Look, Verdict, Word

NEW_MODEL_SHARE = 0.10  # of a week's turns: below it a model is being tried out, not taken into use


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """One week of turns: `number` counts weeks since 1970, `models` are those in use in it."""

    number: int
    guard_version: str
    models: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Up to 13 weeks of one guard version and the same models, from week number `first` on."""

    first: int
    guard_version: str
    look: int


def week_number(text: str) -> int:
    """Weeks since 1970 of an ISO week such as `2026-W49`.

    Raises:
        InputError: it is no such week.
    """
    try:
        monday = datetime.strptime(f"{text}-1", "%G-W%V-%u").replace(tzinfo=UTC)
    except ValueError:
        raise InputError(f"--week: got {text!r}; accepted: an ISO week such as 2026-W49") from None
    return (monday.date() - date(1970, 1, 5)).days // 7


def week_text(number: int) -> str:
    """The ISO week of a number of weeks since 1970."""
    year, week, _ = (date(1970, 1, 5) + timedelta(weeks=number)).isocalendar()
    return f"{year}-W{week:02d}"


def numbers(turns: Turns) -> pd.Series[int]:
    """The week of each turn by its start; turns without a time have none (-1) and are in no week."""
    started = turns.frame["started_at"]
    return ((started - MONDAY) // WEEK).fillna(-1).astype("int64")


def weeks(turns: Turns) -> list[Week]:
    """The weeks with turns, in order."""
    frame = turns.frame.assign(week=numbers(turns))
    found = []
    for number, week in frame[frame["week"] >= 0].groupby("week"):
        shares = week["model"].value_counts(normalize=True)
        found.append(
            Week(
                number=int(str(number)),
                guard_version=str(week["guard_version"].value_counts(sort=True).index[0]),
                models=frozenset(str(model) for model, share in shares.items() if share >= NEW_MODEL_SHARE),
            )
        )
    return found


def block_of(known: Sequence[Week], asked: int) -> Block:
    """The block that the week `asked` belongs to, and which look of it the week is (1 … 13).

    A block ends with a new guard version, a model not used in it before, or its 13th week. Weeks without
    data count as looks not taken, which leaves the later ones on the safe side.
    """
    first, models, version = -1, frozenset[str](), ""
    for week in known:
        if week.number > asked:
            break
        ended = week.number - first >= stats.PLANNED_LOOKS or week.guard_version != version
        if first < 0 or ended or week.models - models:
            first, models, version = week.number, week.models, week.guard_version
        models |= week.models
        if week.number == asked:
            return Block(first=first, guard_version=version, look=asked - first + 1)
    there = f"{week_text(known[0].number)} to {week_text(known[-1].number)}" if known else "none"
    raise InputError(f"--week {week_text(asked)}: no turn in scope began in it; weeks with turns: {there}")


def look_of(block: Block, week: str) -> Look:
    """The look of a week at its planned level."""
    return Look(level=stats.look_levels()[block.look - 1], week=week, number=block.look)


def keep_once(
    connection: duckdb.DuckDBPyConnection, verdicts: Sequence[Verdict], *, scope: str, now: int
) -> tuple[Verdict, ...]:
    """The verdicts of a week as first written; those not yet written are written at time `now` (ns)."""
    kept = []
    for verdict in verdicts:
        look, share = verdict.look, verdict.first
        key = [look.week, str(verdict.question), scope]
        written = recall(connection, key)
        if written is None:
            row = (look.number, look.level, now, str(verdict.word), share.estimate, share.low, share.high)
            connection.execute(
                "INSERT INTO looks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [*key, *row],
            )
            kept.append(verdict)
        else:
            kept.append(as_written(verdict, written))
    return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One row of `looks`."""

    word: Word
    estimate: float | None
    low: float | None
    high: float | None
    looked_at: int


def recall(connection: duckdb.DuckDBPyConnection, key: Sequence[object]) -> Written | None:
    """The row of (week, question, scope), if it was written."""
    row = connection.execute(
        "SELECT verdict, estimate, low, high, looked_at FROM looks WHERE (week, question, scope) = (?, ?, ?)",
        list(key),
    ).fetchone()
    if row is None:
        return None
    return Written(word=Word(row[0]), estimate=row[1], low=row[2], high=row[3], looked_at=int(row[4]))


def as_written(verdict: Verdict, written: Written) -> Verdict:
    """The verdict with the word and the numbers of its row: a look is taken once."""
    day = datetime.fromtimestamp(written.looked_at / 1e9, tz=UTC).date().isoformat()
    first = replace(
        verdict.first,
        estimate=written.estimate,
        low=0.0 if written.low is None else written.low,
        high=1.0 if written.high is None else written.high,
    )
    return replace(
        verdict,
        word=written.word,
        shares=(first, *verdict.shares[1:]),
        reasons=(f"look {verdict.look.number} was taken on {day} and stands as written", *verdict.reasons),
    )
