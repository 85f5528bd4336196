"""What many policies do to all recorded turns together: counts and calls, exact or with both bounds.

Policies of one signal and K share one table of distinct turns (calls, first call at K, label) with the
number of turns of each; every (S, H) is then arithmetic on that table. Only turns whose calls must be
gone through are taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analytics.recording import NEVER, Bools, Ints, Label
from analytics.replay import Badge, Gates, Replay, halting_calls
from guard.policy import CapPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """One policy over all turns, in turns and calls.

    `stuck`, `not_stuck` and `unlabelled` are turns halted for certain, by what their labels say;
    `calls_saved` are calls in stuck turns from the halting call on, `calls_cut` the same in all others.
    With `_most` at the end: the most that the recorded calls allow. `undecided` turns have a halting
    call that is not exact; the data of `unknown` of them lacks what the signal needs.
    """

    signal: str
    k: int
    soft_cap: int
    backstop: int
    turns: int
    stuck: int
    not_stuck: int
    unlabelled: int
    calls_saved: int
    calls_cut: int
    stuck_most: int
    not_stuck_most: int
    unlabelled_most: int
    calls_saved_most: int
    calls_cut_most: int
    undecided: int
    unknown: int
    badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Turns alike in all that matters, with the number of them."""

    calls: Ints
    low: Ints
    high: Ints
    cut_short: Bools
    rolls_back: Bools
    label: Ints
    lacking: Bools
    count: npt.NDArray[np.int64]


def totals(replay: Replay, policies: Iterable[CapPolicy], *, among: Bools | None = None) -> pd.DataFrame:
    """One row a policy, in the order given, with the columns of `Totals`; over the turns `among` only."""
    chosen = np.ones(len(replay.turns), bool) if among is None else among
    asked = [Gates.of(policy) for policy in policies]
    rows: dict[Gates, Totals] = {}
    groups: dict[tuple[str, int], list[Gates]] = {}
    for gates in asked:
        groups.setdefault((gates.signal, gates.stuck_at), []).append(gates)
    for (signal, stuck_at), group in groups.items():
        walk = replay.stepwise(signal, stuck_at)
        direct = chosen.copy()
        direct[walk] = False
        cells = _cells(replay, signal, stuck_at, direct)
        walk = walk[chosen[walk]]
        one_by_one = _Cells(
            calls=replay.turns.calls[walk],
            low=np.zeros(0, np.int32),
            high=np.zeros(0, np.int32),
            cut_short=replay.turns.cut_short[walk],
            rolls_back=replay.turns.retries[walk] > 0,
            label=replay.turns.label[walk],
            lacking=replay.lacks(signal)[walk],
            count=np.ones(len(walk), np.int64),
        )
        for gates in group:
            low, high = halting_calls(
                cells.low, cells.high, cells.calls, cells.cut_short, cells.rolls_back, gates
            )
            sums = _sums(cells, low, high)
            if len(walk):
                sums = sums + _sums(one_by_one, *replay.walked(walk, gates))
            rows[gates] = _totals(gates, int(chosen.sum()), sums)
    return pd.DataFrame([asdict(rows[gates]) for gates in asked])


def _cells(replay: Replay, signal: str, stuck_at: int, among: Bools) -> _Cells:
    turns = replay.turns
    low, high = replay.reached(signal, stuck_at)
    # Past the longest turn only two things matter: whether a call is beyond it, and whether it never comes.
    longest = int(turns.calls.max(initial=0))
    spread = longest + 3
    columns = [
        (turns.calls, spread),
        (np.where(low == NEVER, longest + 2, np.minimum(low, longest + 1)), spread),
        (np.where(high == NEVER, longest + 2, np.minimum(high, longest + 1)), spread),
        (turns.cut_short, 2),
        (turns.retries > 0, 2),
        (turns.label, len(Label)),
        (replay.lacks(signal), 2),
    ]
    code = np.zeros(int(among.sum()), np.int64)
    for values, size in columns:
        code *= size
        code += values[among]
    code, count = np.unique(code, return_counts=True)
    found = []
    for _, size in reversed(columns):
        code, value = np.divmod(code, size)
        found.append(value.astype(np.int32))
    lacking, label, rolls_back, cut_short, high, low, calls = found
    return _Cells(
        calls=calls,
        low=np.where(low == longest + 2, NEVER, low).astype(np.int32),
        high=np.where(high == longest + 2, NEVER, high).astype(np.int32),
        cut_short=cut_short.astype(bool),
        rolls_back=rolls_back.astype(bool),
        label=label,
        lacking=lacking.astype(bool),
        count=count,
    )


def _sums(cells: _Cells, low: Ints, high: Ints) -> npt.NDArray[np.int64]:
    """Row by row, for each label: turns halted, calls lost, the most of either; undecided; unknown."""
    halted = np.flatnonzero(high <= cells.calls)
    perhaps = np.flatnonzero(low != high)
    reached = np.flatnonzero(low <= cells.calls)
    beyond = cells.calls.astype(np.int64) + 1
    unsure = cells.count[perhaps]

    def by_label(at: npt.NDArray[np.intp], weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # Sums of whole numbers below 2^53 are exact in a double.
        return np.bincount(cells.label[at], weights, len(Label)).astype(np.int64)

    rarely = perhaps[high[perhaps] > cells.calls[perhaps]]
    return np.stack([
        by_label(halted, cells.count[halted]),
        by_label(halted, cells.count[halted] * (beyond[halted] - high[halted])),
        by_label(rarely, cells.count[rarely]),
        by_label(reached, cells.count[reached] * (beyond[reached] - low[reached])),
        by_label(perhaps, unsure),
        by_label(perhaps, unsure * cells.lacking[perhaps]),
    ])  # fmt: skip


def _totals(gates: Gates, turns: int, sums: npt.NDArray[np.int64]) -> Totals:
    halted, lost, perhaps, lost_most, undecided, unknown = sums.tolist()
    most = [sure + maybe for sure, maybe in zip(halted, perhaps, strict=True)]
    others = (Label.NOT_STUCK, Label.UNREAD)
    badge = Badge.UNKNOWN if sum(unknown) else Badge.BOUNDED if sum(undecided) else Badge.EXACT
    return Totals(
        signal=gates.signal,
        k=gates.stuck_at,
        soft_cap=gates.soft_cap,
        backstop=gates.backstop,
        turns=turns,
        stuck=halted[Label.STUCK],
        not_stuck=halted[Label.NOT_STUCK],
        unlabelled=halted[Label.UNREAD],
        calls_saved=lost[Label.STUCK],
        calls_cut=sum(lost[label] for label in others),
        stuck_most=most[Label.STUCK],
        not_stuck_most=most[Label.NOT_STUCK],
        unlabelled_most=most[Label.UNREAD],
        calls_saved_most=lost_most[Label.STUCK],
        calls_cut_most=sum(lost_most[label] for label in others),
        undecided=sum(undecided),
        unknown=sum(unknown),
        badge=badge,
    )
