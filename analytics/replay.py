"""Any policy over recorded turns: exact, bounded or unknown.

A turn under a policy halts at h, the first call past the soft cap S whose level is at least K, or the
first past the backstop H. What was recorded may hide h (an enforced halt, lost data); then it lies
between two bounds. Everything here is about those two numbers a turn, `low` and `high`; they are equal
where the answer is exact, and `NEVER` says that no call halts.

Replay assumes that the agent would have made the same calls; it cannot show what a halted agent does next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import duckdb
import numpy as np
import numpy.typing as npt

from analytics.levels import RESULT_SIGNALS, Levels, levels
from analytics.recording import NEVER, Bools, Ints, Lacking, Places, Recording
from guard.policy import CapPolicy, PolicyKind, Threshold

FURTHEST = NEVER - 2  # larger thresholds are cut to it: no turn is that long


class Badge(StrEnum):
    """How sure an answer is."""

    EXACT = "exact"
    BOUNDED = "bounded"  # an enforced halt or lost data hides the rest: both bounds are given
    UNKNOWN = "unknown"  # the data lacks what the signal needs; the bounds hold all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """A policy as three numbers and a signal; a hard cap N is S = H = N."""

    signal: str
    stuck_at: int
    soft_cap: int
    backstop: int

    @classmethod
    def of(cls, policy: CapPolicy) -> Gates:
        """The numbers of a policy; a disabled one has a backstop that no turn reaches."""
        if policy.kind is PolicyKind.ADAPTIVE:
            soft, stuck, backstop = policy.soft_cap, policy.stuck_at, policy.backstop
        else:
            soft = stuck = backstop = FURTHEST if policy.hard_cap is None else policy.hard_cap
        return cls(
            signal=policy.signal or "repeat",
            stuck_at=min(stuck or 0, FURTHEST),
            soft_cap=min(soft or 0, FURTHEST),
            backstop=min(backstop or 0, FURTHEST),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Halts:
    """What one policy does to each turn, aligned with `Recording.turns`.

    The halting call lies between `low` and `high` (NEVER: no halt, so a `high` of NEVER says that there
    may be none; a `low` past the turn's calls, that nothing seen halts). `lacking`: the data of the turn
    lacks what the signal needs.
    """

    calls: Ints
    low: Ints
    high: Ints
    lacking: Bools

    @property
    def exact(self) -> Bools:
        """Turns whose halting call, or its absence, is known."""
        equal: Bools = self.low == self.high
        return equal

    @property
    def halted(self) -> Bools:
        """Turns halted for certain, at `high` or before."""
        surely: Bools = self.high <= self.calls
        return surely

    @property
    def perhaps(self) -> Bools:
        """Turns of which it is not known whether they are halted."""
        return ~self.exact & ~self.halted

    def badge(self, place: int) -> Badge:
        """How sure the answer for one turn is."""
        if self.low[place] == self.high[place]:
            return Badge.EXACT
        return Badge.UNKNOWN if self.lacking[place] else Badge.BOUNDED

    def call(self, place: int) -> int | None:
        """The halting call of one turn where it is exact; None for no halt, or not known (see `badge`)."""
        call = int(self.high[place])
        return call if call == self.low[place] and call != NEVER else None

    def lost(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Calls from the halting call on, for each turn: at least, and at most among the calls recorded."""
        beyond = self.calls.astype(np.int64) + 1
        return np.maximum(beyond - self.high, 0), np.maximum(beyond - self.low, 0)


class Replay:
    """Recorded turns, ready for any number of policies."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.turns = recording.turns
        self._sorted_milestones = np.argsort(recording.milestones.k, kind="stable")
        self.reached = lru_cache(maxsize=4)(self._reached)
        self.positions = lru_cache(maxsize=4)(self._positions)

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection) -> Replay:
        """Of all turns of a database; the connection must stay open."""
        return cls(Recording(connection))

    @cached_property
    def levels(self) -> Levels:
        """Levels of the turns whose calls must be gone through, worked out on first use."""
        return levels(self.recording)

    def halts(self, policy: CapPolicy) -> Halts:
        """What the policy does to each turn."""
        gates, turns = Gates.of(policy), self.turns
        low, high = self.reached(gates.signal, gates.stuck_at)
        low, high = halting_calls(low, high, turns.calls, turns.cut_short, turns.retries > 0, gates)
        places = self.stepwise(gates.signal, gates.stuck_at)
        if len(places):
            low[places], high[places] = self.walked(places, gates)
        return Halts(calls=turns.calls, low=low, high=high, lacking=self.lacks(gates.signal))

    def lacks(self, signal: str) -> Bools:
        """Turns whose data lacks what the signal needs."""
        least = Lacking.RESULTS if signal in RESULT_SIGNALS else Lacking.KEYS
        return self.turns.lacking >= least

    def stepwise(self, signal: str, stuck_at: int) -> Places:
        """The places of the turns whose calls must be gone through for this level, ascending."""
        turns = self.turns
        low, high = self.reached(signal, stuck_at)
        walk = (turns.rows > 0) & ~turns.without_repeats
        # Where nothing was rolled back, what cannot reach the level, or did at a known call, needs no walk.
        told = (low == high) | (low > turns.calls)
        return np.flatnonzero(walk & ~(told & (turns.retries == 0)))

    def walked(self, places: Places, gates: Gates) -> tuple[Ints, Ints]:
        """The bounds of the halting calls of the turns at `places`, from the levels at their calls."""
        found, turns = self.levels, self.turns
        at = np.searchsorted(found.turn, places)
        calls, cut_short = turns.calls[places], turns.cut_short[places]
        reaching = self.positions(gates.signal, gates.stuck_at)
        stuck = self._first(reaching[found.total[reaching] > gates.soft_cap])[at]
        hidden = found.known[gates.signal][at]
        floor = np.maximum(self.reached(gates.signal, gates.stuck_at)[0][places], gates.soft_cap + 1)
        unseen = stuck >= hidden  # or it was not found at all
        low = np.where(unseen, np.maximum(floor, np.minimum(hidden, calls + 1)), stuck)
        high = np.where(unseen, NEVER, stuck)
        if gates.signal == "repeat":  # what was lost can only have added to its counts
            sure = turns.all_keyed[places] & (turns.retries[places] == 0)
            high = np.where(sure, stuck, high)
        passed = np.full(len(places), gates.backstop + 1, np.int32)
        surely = passed.copy()
        back = np.flatnonzero(turns.retries[places] > 0)
        if len(back):
            first = self._first(np.flatnonzero(found.total > gates.backstop))[at[back]]
            hidden = found.known["total"][at[back]]
            lost = first >= hidden
            passed[back] = np.where(
                lost, np.maximum(passed[back], np.minimum(hidden, calls[back] + 1)), first
            )
            surely[back] = np.where(lost, NEVER, first)
        return _within(np.minimum(low, passed), np.minimum(high, surely), calls, cut_short)

    def ran(self, halts: Halts) -> tuple[Ints, Ints]:
        """Calls that ran in each turn under these halts: at least, and at most (NEVER: no bound)."""
        low = self._before(halts.low, at_least=True)
        return low, np.where(
            halts.high == NEVER,
            np.where(self.turns.cut_short, NEVER, halts.calls),
            self._before(halts.high, at_least=False),
        )

    def thresholds(self, policy: CapPolicy, halts: Halts) -> list[Threshold | None]:
        """The threshold that halts each turn; None where none does or the halting call is not exact.

        A batch is judged by the total after it, so that the backstop may halt one in which a call before
        the backstop is stuck.
        """
        turns = self.turns
        places = np.flatnonzero(halts.halted & halts.exact)
        total = halts.high.astype(np.int64)
        at_end = places[(turns.batches[places] != turns.calls[places]) | (turns.retries[places] > 0)]
        known, _, after = self.recording.batches(at_end, halts.high)
        total[known] = after
        found: list[Threshold | None] = [None] * len(turns)
        for place in places.tolist():
            found[place] = policy.decide(int(total[place]), policy.stuck_at)
        return found

    def _before(self, halting: Ints, *, at_least: bool) -> Ints:
        """Calls that ran before the batch of each turn's halting call; all calls where none halts."""
        turns, told = self.turns, self.recording.milestones
        first = np.minimum(
            halting, turns.calls + 1
        )  # the halting call is a batch of its own, as far as known
        batched = (halting <= turns.calls) & (turns.batches != turns.calls)
        if batched.any():
            at_milestone = (halting[told.turn] == told.call) & batched[told.turn] & (told.batch_first > 0)
            first[told.turn[at_milestone]] = told.batch_first[at_milestone]
            batched[told.turn[at_milestone]] = False
            places, begins, _ = self.recording.batches(np.flatnonzero(batched), halting)
            first[places] = begins
            batched[places] = False
            if at_least:  # the batch is at most so large that the others hold one call each
                largest = turns.calls - np.maximum(turns.batches, 1) + 1
                first[batched] = np.maximum(first - largest + 1, 1)[batched]
        return first - 1

    def _first(self, positions: Places) -> Ints:
        """For each turn of `levels`, the number of the first of its calls that stands at `positions`."""
        first = np.full(len(self.levels.turn), NEVER, np.int32)
        owner = self.levels.owner[positions]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        first[owner[starts]] = self.levels.n[positions[starts]]
        return first

    def _positions(self, signal: str, stuck_at: int) -> Places:
        return np.flatnonzero(self.levels.level[signal] >= stuck_at)

    def _reached(self, signal: str, stuck_at: int) -> tuple[Ints, Ints]:
        """For each turn, bounds of the first call at which the level reached `stuck_at`, without its calls.

        For `repeat` they come from milestones and are equal where those tell. No level is above what its
        definition allows: a signal of keys is at most `repeat`, `no_progress` at most the calls that are
        not the first of their key.
        """
        turns = self.turns
        if signal == "repeat":
            return self._told(stuck_at)
        of_results = signal in RESULT_SIGNALS
        none = np.where(turns.cut_short, turns.calls + 1, NEVER).astype(np.int32)
        if signal == "no_progress":
            keys = np.where(
                turns.distinct_keys >= 0, turns.distinct_keys, turns.calls - turns.rows + turns.keys
            )
            keys = np.where(turns.keys_forgotten > 0, 0, keys)
            low = np.where(turns.calls - keys < stuck_at, none, stuck_at + 2).astype(np.int32)
        else:
            low = self._told(stuck_at + 1 if of_results else stuck_at)[0].copy()
        high = np.full_like(low, NEVER)
        simple = turns.without_repeats
        if stuck_at <= 1 and not of_results:
            low[simple] = high[simple] = 1
        else:
            low[simple] = none[simple]
        return low, high

    def _told(self, stuck_at: int) -> tuple[Ints, Ints]:
        """The first call at which `repeat` reached `stuck_at`, as milestones tell it."""
        turns, told = self.turns, self.recording.milestones
        low = np.full(len(turns), stuck_at, np.int32)  # a level of k needs k calls
        high = np.full(len(turns), NEVER, np.int32)
        tells = turns.plain | turns.without_repeats
        if stuck_at <= 1:
            low[tells] = high[tells] = 1
            return low, high
        low[tells] = np.where(turns.cut_short, turns.calls + 1, NEVER)[tells]
        truncated = turns.plain & (turns.max_repeat >= stuck_at)
        k = told.k[self._sorted_milestones]
        upto, of = np.searchsorted(k, (stuck_at, stuck_at + 1))
        rows = self._sorted_milestones[upto:of]
        low[told.turn[rows]] = high[told.turn[rows]] = told.call[rows]
        truncated[told.turn[rows]] = False
        if truncated.any():
            low[truncated], high[truncated] = stuck_at, turns.calls[truncated]
            rows = self._sorted_milestones[:upto]
            rows = rows[truncated[told.turn[rows]]]
            np.maximum.at(low, told.turn[rows], told.call[rows] + stuck_at - told.k[rows])
        return low, high


def halting_calls(
    low: Ints, high: Ints, calls: Ints, cut_short: Bools, rolls_back: Bools, gates: Gates
) -> tuple[Ints, Ints]:
    """Bounds of h from bounds of the call at which the level was reached for good (as `repeat` reaches it).

    h = min(max(S + 1, t), H + 1), where it is among the calls; `rolls_back`: a retry may have put off
    the backstop. Exact bounds give exact bounds.
    """
    passed = gates.backstop + 1
    low = np.minimum(np.maximum(low, gates.soft_cap + 1), passed)
    high = np.minimum(np.maximum(high, gates.soft_cap + 1), np.where(rolls_back, NEVER, passed))
    return _within(low, high, calls, cut_short)


def _within(low: Ints, high: Ints, calls: Ints, cut_short: Bools) -> tuple[Ints, Ints]:
    """No call past the last halts a turn that ran to its own end; what was cut short may have gone on."""
    low = np.where(((low > calls) & ~cut_short) | (low > FURTHEST), NEVER, low)
    return low, np.where(high > calls, NEVER, high)
