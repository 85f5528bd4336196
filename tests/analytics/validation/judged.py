"""Recorded turns in, everything judged of them out: what the tests of this package look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analytics.database import open_database
from analytics.decision import Costed, Recommendation, over_grid
from analytics.first_screen import FirstScreen, first_screen
from analytics.replay import Replay
from analytics.validation.gates import Gate, Question
from analytics.validation.settings import Settings, read_settings
from analytics.validation.validate import Validation, read_case, validate
from analytics.validation.verdicts import Case, Verdict
from tests.analytics.evidence_db import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All that is said of one database."""

    validation: Validation
    decided: Recommendation
    costed: tuple[Costed, ...]
    screen: FirstScreen

    def verdict(self, question: Question) -> Verdict:
        """The verdict on one question."""
        return verdict(self.validation, question)


def judged(
    path: Path, *, settings: Settings | None = None, week: str | None = None, as_of: int | None = None
) -> Judged:
    """Judge and decide on a database as the report does."""
    with open_database(path) as connection:
        replay = Replay.of(connection)
        found = validate(connection, replay, settings or read_settings(), week=week, as_of=as_of)
        costed, decided = over_grid(replay, found.case)
        return Judged(
            validation=found,
            decided=decided,
            costed=costed,
            screen=first_screen(found.case, found.verdicts, decided),
        )


def validated(path: Path, *, week: str | None = None, as_of: int | None = None) -> Validation:
    """The verdicts of a database."""
    with open_database(path) as connection:
        return validated_in(connection, week=week, as_of=as_of)


def validated_in(
    connection: duckdb.DuckDBPyConnection, *, week: str | None = None, as_of: int | None = None
) -> Validation:
    """The verdicts of an open database."""
    return validate(connection, Replay.of(connection), read_settings(), week=week, as_of=as_of)


def verdict(of: Validation, question: Question) -> Verdict:
    """The verdict on one question."""
    return next(one for one in of.verdicts if one.question is question)


def case(connection: duckdb.DuckDBPyConnection, *, as_of: int | None = None) -> Case:
    """What is to be judged in a database: its turns and gates."""
    return read_case(connection, Replay.of(connection), read_settings(), as_of=as_of)


def gate(of: Case, name: str) -> Gate:
    """One gate by its name."""
    return next(one for one in of.gates if one.name == name)


def turn(
    keys: Sequence[int], *, label: str | None = None, session: int | str = 0,
    results: Sequence[int] | None = None, limited: bool = False, source: str = "my-agent",
) -> dict[str, Any]:  # fmt: skip
    """One recorded turn in the form of the bundled ones; every result is new where none are given."""
    n = len(keys)
    return {
        "source": source, "session": str(session), "length_limited": limited, "outcome": "end_turn",
        "label": label, "tool": ["shell"] * n, "key": list(keys),
        "result_norm": list(range(n)) if results is None else list(results),
        "error": [0] * n, "mutating": [0] * n, "gap_s": [1.0] * n,
    }  # fmt: skip


def diverse(calls: int) -> list[int]:
    """Keys of calls that all differ."""
    return list(range(calls))


def repeating(calls: int, times: int = 6) -> list[int]:
    """Keys of a turn whose first call is repeated at the start, `times` in all, the rest being new."""
    return [0] * times + list(range(1, calls - times + 1))


def database(path: Path, rows: Iterable[dict[str, Any]], *statements: str) -> Path:
    """A database of these turns, then changed by SQL."""
    build(path, rows)
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path
