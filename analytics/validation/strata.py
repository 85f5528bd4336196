"""Turns that verdicts leave out because of what they are, each group by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from analytics.replay import Replay as Recorded
from analytics.validation.outcomes import Outcomes
from analytics.validation.population import Outcome, Population, Turns
from analytics.validation.rates import Share, halt_rates, share_of
from analytics.validation.verdicts import Case
from guard.policy import CapPolicy

STRATA = ("explicit cap", "sub-agent")  # of population.sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """The turns of one stratum, each under the policy that ran on it, the one in force where no guard ran.

    `halted` is the share of turns that reach a limit of that policy. `fdr` and `fhr` are of all those halts
    for explicit caps, and of stuck halts for sub-agents.
    """

    name: str
    turns: int
    halted: Share
    fdr: Share
    fhr: Share

    @property
    def shares(self) -> tuple[Share, ...]:
        """Every rate, in reading order."""
        return self.halted, self.fdr, self.fhr


def strata(recorded: Recorded, case: Case) -> tuple[Stratum, ...]:
    """The strata that have turns, at the level of the case's look."""
    everything, found = case.population.everything.frame, []
    for name in STRATA:
        turns = Turns(everything[everything["stratum"] == name].reset_index(drop=True))
        if len(turns):
            outcome = _as_it_ran(recorded, turns, case.population)
            if name == "explicit cap":  # its only limit: no other halt to tell it from
                outcome = replace(outcome, backstop=np.zeros(len(turns), dtype=bool))
            found.append(_stratum(name, turns, outcome, case))
    return tuple(found)


def _stratum(name: str, turns: Turns, outcome: Outcome, case: Case) -> Stratum:
    everyone, hidden = np.ones(len(turns), dtype=bool), outcome.may_halt | outcome.unknown
    tail = case.look.level
    rates = halt_rates(turns, outcome, tail=tail, planned=case.planned, holdout=True)
    return Stratum(
        name=name,
        turns=len(turns),
        halted=share_of(
            "halted", least=outcome.halts, most=outcome.halts | hidden, n_least=everyone, n_most=everyone,
            read=None, cluster=turns.cluster, tail=tail, basis="all turns",
        ),
        fdr=rates.fdr,
        fhr=rates.fhr,
    )  # fmt: skip


def _as_it_ran(recorded: Recorded, turns: Turns, population: Population) -> Outcome:
    """What each turn's own policy does to it."""
    asked, own = Outcomes(recorded, turns), turns.frame["policy_hash"]
    columns = {
        name: np.zeros(len(turns), dtype=bool) for name in ("halts", "may_halt", "unknown", "backstop")
    }
    ran = turns.calls.copy()
    for policy_hash in own.unique():
        text, mine = population.policies.get(policy_hash), (own == policy_hash).to_numpy(dtype=bool)
        found = asked.under(CapPolicy.from_text(text) if text else population.policy)
        for name, column in columns.items():
            column[mine] = getattr(found, name)[mine]
        ran[mine] = found.ran[mine]
    return Outcome(**columns, ran=ran)
