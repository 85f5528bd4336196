"""The gates of data quality: decided first, and a red one stops the words it names.

Limits are those of a share lost: at most 0.1 % is green and over 1 % is red where a lost turn can hide a
long one; at most 0.5 % and over 2 % where only the calls within a turn are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from analytics import stats
from analytics.database import select


class State(StrEnum):
    """How good the data are in one respect."""

    GREEN = "green"
    AMBER = "amber"
    RED = "red"
    NOT_APPLICABLE = "not applicable"


class Question(StrEnum):
    """What a verdict answers; false-stuck rates have gates but no verdict of their own."""

    MULTIPLIER = "multiplier"
    STUCK_THRESHOLD = "stuck_threshold"
    SOFT_CAP = "soft_cap"
    FALSE_STUCK = "false_stuck"


EVERY = tuple(Question)
STUCK_RULE = (Question.STUCK_THRESHOLD, Question.SOFT_CAP, Question.FALSE_STUCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate: `text` says what was counted, `blocks` which questions it stops when red."""

    name: str
    state: State
    text: str
    blocks: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced:
    """Of the halts that guards logged, how many replay reproduces to the call."""

    logged: int
    same: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Turns that began in [begin, end), nanoseconds since 1970; all turns where both are None."""

    begin: int | None = None
    end: int | None = None


def gate_counts(
    connection: duckdb.DuckDBPyConnection, *, as_of: int, policy_hash: str, mode: str, period: Period
) -> dict[str, int]:
    """The counts of gate_counts.sql."""
    return _row(
        select(
            connection, "gate_counts", as_of=as_of, policy_hash=policy_hash, mode=mode,
            begin=period.begin, end=period.end,
        )
    )  # fmt: skip


def gates(
    connection: duckdb.DuckDBPyConnection, n: dict[str, int], *, signal: str | None,
    reproduced: Reproduced | None, sampled_by_head: bool, period: Period,
) -> tuple[Gate, ...]:  # fmt: skip
    """Every gate, in the order in which data are lost; `n` are the `gate_counts`.

    `reproduced` is None where no halt was logged.
    """
    coins = select(connection, "holdout_coins", begin=period.begin, end=period.end)
    work = _row(select(connection, "label_work"))
    return (
        _ended(n),
        _sequence(n),
        _duplicates(n),
        _chunks(n, signal),
        _sampling(n, sampled_by_head),
        _policies(n),
        _reproduced(reproduced, guarded=n["guarded"] > 0),
        _holdout([(float(rate), int(w), int(e)) for rate, w, e in coins.itertuples(index=False)]),
        _labels(work),
        _maturity(n),
    )


def lost_turns(found: Sequence[Gate], n: dict[str, int]) -> int:
    """Turns known to be lost, to be taken as the worst case; 0 while the gates that count them are green."""
    amber = {gate.name for gate in found if gate.state is State.AMBER}
    lost = n["started"] - n["ended"] if "ended turns" in amber else 0
    return lost + (n["gaps"] if "turn numbers" in amber else 0)


def _row(frame: object) -> dict[str, int]:
    first = frame.iloc[0]  # type: ignore[attr-defined]  # one row, of counts alone
    return {str(name): int(value) for name, value in first.items()}


def _loss(lost: int, of: int, *, green: float, red: float) -> State:
    if of == 0:
        return State.NOT_APPLICABLE
    share = lost / of
    return State.GREEN if share <= green else State.RED if share > red else State.AMBER


def _ended(n: dict[str, int]) -> Gate:
    lost = n["started"] - n["ended"]
    return Gate(
        name="ended turns",
        state=_loss(lost, n["started"], green=0.001, red=0.01),
        text=f"{n['ended']:,} of {n['started']:,} turns have their end; {lost:,} were abandoned or lost it",
        blocks=EVERY,
    )


def _sequence(n: dict[str, int]) -> Gate:
    return Gate(
        name="turn numbers",
        state=_loss(n["gaps"], n["numbered"] + n["gaps"], green=0.001, red=0.01),
        text=f"{n['gaps']:,} turns are missing between the first and last number of their guard"
        if n["numbered"]
        else "no turn carries a number of its guard",
        blocks=EVERY,
    )


def _duplicates(n: dict[str, int]) -> Gate:
    return Gate(
        name="conflicting duplicates",
        state=_loss(n["doubled"], n["numbered"], green=0.0, red=0.001),
        text=f"{n['doubled']:,} numbers were used by more than one turn of one guard",
        blocks=EVERY,
    )


def _chunks(n: dict[str, int], signal: str | None) -> Gate:
    """Repeats are replayed from milestones; every other signal needs the chunks."""
    by_milestones = signal in (None, "repeat")
    return Gate(
        name="call chunks",
        state=_loss(n["chunk_gaps"], n["with_chunks"], green=0.005, red=0.02),
        text=f"{n['chunk_gaps']:,} of {n['with_chunks']:,} turns lack a chunk of their calls",
        blocks=(Question.FALSE_STUCK,) if by_milestones else STUCK_RULE,
    )


def _sampling(n: dict[str, int], by_head: bool) -> Gate:
    spans = n["spans_only"]
    if not spans:
        state, text = State.NOT_APPLICABLE, "no turn is known from spans alone"
    elif by_head:
        state = State.AMBER
        text = f"{spans:,} turns are known from spans alone, declared to be sampled when they began"
    elif spans == n["turns"]:
        state = State.RED
        text = (
            f"all {spans:,} turns are known from spans alone; sampling that looks at a turn's end would bend "
            "every share: set evidence.sampled_by_head where it does not"
        )
    else:
        state = State.AMBER
        text = f"{spans:,} turns are known from spans alone and are left out of every verdict"
    return Gate(name="sampling", state=state, text=text, blocks=EVERY)


def _policies(n: dict[str, int]) -> Gate:
    if not n["guarded"]:
        state, text = State.NOT_APPLICABLE, "no guard ran: the released rule is replayed"
    elif n["policy_unknown"] > 0.01 * n["guarded"]:
        state = State.RED
        text = f"the policy of {n['policy_unknown']:,} turns is unknown: their start was lost"
    elif n["other_policies"] or n["guard_versions"] > 1 or n["policy_unknown"]:
        state = State.AMBER
        text = (
            f"{n['other_policies']:,} turns ran under another policy or mode and are left out; "
            f"{n['guard_versions']:,} guard versions; the policy of {n['policy_unknown']:,} turns is unknown"
        )
    else:
        state, text = State.GREEN, "one policy, one mode, one guard version"
    return Gate(name="mixed policies", state=state, text=text, blocks=EVERY)


def _reproduced(found: Reproduced | None, *, guarded: bool) -> Gate:
    if not guarded or found is None or found.logged == 0:
        state = State.NOT_APPLICABLE
        text = "no halt was logged" if guarded else "no guard ran, so no halt was logged"
    else:
        state = _loss(found.logged - found.same, found.logged, green=0.001, red=0.01)
        text = f"replaying the policy that ran reproduces {found.same:,} of {found.logged:,} logged halts"
    return Gate(name="reproduced halts", state=state, text=text, blocks=EVERY)


def _holdout(coins: list[tuple[float, int, int]]) -> Gate:
    worst, texts = 1.0, []
    for rate, would_halts, explored in coins:
        p = stats.holdout_ratio_p(explored, would_halts, rate)
        worst = min(worst, p)
        texts.append(f"{explored:,} of {would_halts:,} would-be halts ran on at rate {rate:g} (p {p:.2g})")
    if not coins:
        state, text = State.NOT_APPLICABLE, "no would-be halt was enforced with a holdout"
    else:
        state = State.GREEN if worst > 0.01 else State.RED if worst < 0.001 else State.AMBER
        text = "; ".join(texts)
    return Gate(name="holdout ratio", state=state, text=text, blocks=STUCK_RULE)


def _labels(work: dict[str, int]) -> Gate:
    planned, done, pairs = work["planned"], work["done"], work["pairs"]
    kappa = _kappa(work) if pairs else None
    parts = [f"{done:,} of {planned:,} planned turns are read"] if planned else []
    if kappa is not None:
        parts.append(f"two readers of {pairs:,} turns agree with kappa {kappa:.2f}")
    if work["judge_versions"] > 1:
        parts.append(f"{work['judge_versions']:,} versions of the judge")
    if work["disagreements"]:
        parts.append(f"{work['disagreements']:,} turns carry labels that disagree")
    if not planned and kappa is None and not work["judge_versions"]:
        state = State.NOT_APPLICABLE
        parts = ["no reading was planned", *parts]
    elif (
        (planned and done < 0.7 * planned)
        or work["judge_versions"] > 1
        or (kappa is not None and kappa < 0.4)
    ):
        state = State.RED
    elif (planned and done < 0.9 * planned) or (kappa is not None and kappa < 0.6):
        state = State.AMBER
    else:
        state = State.GREEN
    return Gate(
        name="labels", state=state, text="; ".join(parts) or "one judge, one version", blocks=STUCK_RULE
    )


def _kappa(work: dict[str, int]) -> float:
    """Cohen's kappa of two readers; 1 where both say the same of everything."""
    pairs = work["pairs"]
    seen = work["agreed"] / pairs
    first, second = work["first_stuck"] / pairs, work["second_stuck"] / pairs
    chance = first * second + (1 - first) * (1 - second)
    return 1.0 if chance == 1 else (seen - chance) / (1 - chance)


def _maturity(n: dict[str, int]) -> Gate:
    return Gate(
        name="maturity",
        state=State.AMBER if n["still_open"] else State.GREEN,
        text=f"{n['still_open']:,} turns of the last 48 hours have no end yet and are left out",
        blocks=(),
    )
