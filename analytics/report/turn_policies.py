"""Where each policy would halt one turn and why, what it looks like, and what cannot be known of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from analytics.database import records, select
from analytics.false_stuck import Trace, classify, features
from analytics.replay import Badge, Halts, Replay
from analytics.report.turn import TurnView
from guard.policy import SIGNALS, CapPolicy

RELEASED = CapPolicy.adaptive()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalHalt:
    """One signal on one turn, at the running K and backstop.

    `highest` is its highest level, first reached at call `highest_at`; None where it is not known.
    `after_cap` and `from_first` are the halting calls with the running soft cap and with none (None: no
    halt); the badges say how sure they are, and where they are not exact the call is the earliest possible.
    """

    signal: str
    runs: bool
    highest: int | None
    highest_at: int | None
    after_cap: int | None
    after_cap_badge: Badge
    from_first: int | None
    from_first_badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPolicies:
    """`kind` and `because` are the pattern of the whole turn, by rules that read no label: None where it
    does not look stuck (no call made K times, no halt) or its calls are not known.
    """

    policy: CapPolicy
    signals: tuple[SignalHalt, ...]
    kind: str | None
    because: str | None
    unknown: tuple[str, ...]


def turn_policies(connection: duckdb.DuckDBPyConnection, turn: TurnView) -> TurnPolicies:
    """Replay one turn under each signal; `turn` as `build_turn` gives it."""
    row = _row(connection, turn)
    policy = RELEASED
    if row["policy_kind"] == "adaptive":
        policy = CapPolicy.adaptive(
            signal=row["signal"], stuck_at=row["stuck_at"], soft_cap=row["soft_cap"], backstop=row["backstop"]
        )
    alone = connection.cursor()
    try:
        # Replay reads the table `turns`: a view of that name leaves it nothing but this turn.
        alone.execute(
            "CREATE OR REPLACE TEMP TABLE one AS SELECT * FROM main.turns WHERE turn_id = ?", [turn.turn_id]
        )
        alone.execute("CREATE OR REPLACE TEMP VIEW turns AS SELECT * FROM one")
        replay = Replay.of(alone)
        (found,) = _signals(replay, policy, [0]) if len(replay.turns) else ((),)
    finally:
        alone.close()
    return _told(connection, row, turn, policy, found)


def policies_of(
    connection: duckdb.DuckDBPyConnection, replay: Replay, policy: CapPolicy, turns: Sequence[TurnView]
) -> tuple[TurnPolicies, ...]:
    """The same of several turns on which `policy` ran, or that it stands for; `replay` holds them."""
    places = pd.Index(replay.turns.turn_id).get_indexer(pd.Index([turn.turn_id for turn in turns]))
    return tuple(
        _told(connection, _row(connection, turn), turn, policy, found)
        for turn, found in zip(turns, _signals(replay, policy, places.tolist()), strict=True)
    )


def _row(connection: duckdb.DuckDBPyConnection, turn: TurnView) -> dict[str, Any]:
    return records(select(connection, "one_turn", turn_id=turn.turn_id))[0]


def _told(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], turn: TurnView, policy: CapPolicy,
    found: tuple[SignalHalt, ...],
) -> TurnPolicies:  # fmt: skip
    looks_stuck = bool(turn.halts) or any(one.times >= (policy.stuck_at or 1) for one in turn.repeats[:1])
    kind, because = _pattern(connection, turn.turn_id) if looks_stuck else (None, None)
    return TurnPolicies(
        policy=policy, signals=found, kind=kind, because=because, unknown=tuple(_unknown(row, turn))
    )


def _signals(replay: Replay, policy: CapPolicy, places: Sequence[int]) -> list[tuple[SignalHalt, ...]]:
    """Every signal on the turns at `places` of the replay; nothing of a turn at -1."""
    found: list[list[SignalHalt]] = [[] for _ in places]
    backstop = policy.backstop or 1
    for signal in SIGNALS:
        after, first = (
            replay.halts(
                CapPolicy.adaptive(
                    signal=signal, stuck_at=policy.stuck_at, soft_cap=cap, backstop=max(backstop, cap)
                )
            )
            for cap in (policy.soft_cap or 0, 0)
        )
        for mine, place in zip(found, places, strict=True):
            if place < 0:
                continue
            highest, at = _highest(replay, signal, place)
            mine.append(
                SignalHalt(
                    signal=signal,
                    runs=signal == policy.signal,
                    highest=highest,
                    highest_at=at,
                    after_cap=_call(after, place),
                    after_cap_badge=after.badge(place),
                    from_first=_call(first, place),
                    from_first_badge=first.badge(place),
                )
            )
    return [tuple(mine) for mine in found]


def _call(halts: Halts, place: int) -> int | None:
    """The halting call, or the earliest possible one; None where nothing that was seen halts."""
    call = int(halts.low[place])
    return call if call <= int(halts.calls[place]) else None


def _highest(replay: Replay, signal: str, place: int) -> tuple[int | None, int | None]:
    levels = replay.levels
    among = int(np.searchsorted(levels.turn, place))
    begin, end = np.searchsorted(levels.owner, (among, among + 1)).tolist()
    if among == len(levels.turn) or levels.turn[among] != place or begin == end:
        return None, None
    column = levels.level[signal][begin:end]
    best = int(np.argmax(column))
    return (None, None) if column[best] < 0 else (int(column[best]), int(levels.n[begin + best]))


def _pattern(connection: duckdb.DuckDBPyConnection, turn_id: str) -> tuple[str | None, str | None]:
    rows = records(select(connection, "turn_calls", turn_id=turn_id))
    if not rows or any(row["key"] is None for row in rows):
        return None, None
    columns = {name: [row[name] for row in rows] for name in Trace.__slots__}
    kind, rule = classify(features(Trace(**columns)))
    return str(kind), None if rule is None else rule.because


def _unknown(row: dict[str, Any], turn: TurnView) -> Iterator[str]:
    if row["halted_call"] is not None and not row["extended"]:
        yield f"It was halted at call {row['halted_call']}: what it would have done then was never seen."
    if not row["has_ended"]:
        yield "Its end was not seen: it may have gone on."
    if row["grade"] == "names-only":
        yield "Its arguments were not recorded, so that no repeat can be told."
    elif row["grade"] != "exact":
        yield f"Its data are of the grade {row['grade']}: what the signals of results would say is not known."
    if len(turn.calls) < turn.total_calls:
        yield f"Only {len(turn.calls)} of its {turn.total_calls} calls were loaded."
    if row["keys_forgotten"]:
        yield f"The guard forgot {row['keys_forgotten']} keys: a level may be lower than the truth."
    if turn.calls and all(call.offset_ms is None for call in turn.calls):
        yield "It has no times: an agent that waits for a job cannot be told by its pauses."
    if turn.stuck is None:
        yield "Nobody said whether it was stuck."
    yield "Replay takes the agent to make the same calls up to the halt; what it would do then is open."
