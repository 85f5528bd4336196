"""What replay says of each turn, as verdicts ask it."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt
import pandas as pd

from analytics.replay import Replay as Recorded
from analytics.validation.population import Counts, Outcome, Turns
from guard.policy import CapPolicy, PolicyKind

KEPT = 24  # outcomes kept in memory: about 12 MB each for a million turns


def places_of(recorded: Recorded, turns: Turns) -> npt.NDArray[np.intp]:
    """The place of each turn among the recorded ones, -1 where it is not among them."""
    ids = pd.Index(turns.frame["turn_id"].to_numpy(object), dtype=object)
    return pd.Index(recorded.turns.turn_id, dtype=object).get_indexer(ids)


class Outcomes:
    """Any policy over the turns of one population, in their order."""

    def __init__(self, recorded: Recorded, turns: Turns) -> None:
        self._recorded = recorded
        self._at = places_of(recorded, turns)
        self._kept: OrderedDict[str, Outcome] = OrderedDict()

    def under(self, policy: CapPolicy) -> Outcome:
        """What `policy` would do to each turn; a turn that replay does not know is unknown."""
        if policy.text not in self._kept:
            self._kept[policy.text] = self._outcome(policy)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(policy.text)
        return self._kept[policy.text]

    def calls_of(self, policy: CapPolicy) -> tuple[Counts, Counts]:
        """The bounds of the halting call of each turn; equal where it is known, huge where none halts."""
        found = self._recorded.halts(policy)
        return found.low[self._at].astype(np.int64), found.high[self._at].astype(np.int64)

    def _outcome(self, policy: CapPolicy) -> Outcome:
        found, at, known = self._recorded.halts(policy), self._at, self._at >= 0
        halts = found.halted[at] & known
        perhaps = (found.perhaps[at] | ~known) & ~halts
        lacking = found.lacking[at] | ~known
        calls = found.calls[at].astype(np.int64)
        limit = policy.backstop if policy.kind is PolicyKind.ADAPTIVE else policy.hard_cap
        return Outcome(
            halts=halts,
            may_halt=perhaps & ~lacking,
            unknown=perhaps & lacking,
            backstop=halts & (found.high[at] > (limit or 0)),
            ran=calls - found.lost()[0][at] * halts,
        )
