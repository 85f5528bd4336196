"""Which turns a verdict speaks of, and what a policy would do to each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from analytics.database import select
from guard.policy import CapPolicy
from guard.signals import BY_NAME

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

STUCK, NOT_STUCK, UNREAD = 1, 0, -1  # of the column `truth`
WEEK = 7 * 24 * 3600 * 1_000_000_000  # nanoseconds
MONDAY = 4 * 24 * 3600 * 1_000_000_000  # 1970-01-05, the first Monday


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one policy would do to each turn; arrays in the order of the turns asked about.

    `halts`: it halts the turn. `may_halt`: what would happen lies behind an enforced halt, lost chunks or
    forgotten keys. `unknown`: the data lack what the signal needs. At most one of the three is true.
    `backstop`: the halt is by the backstop. `ran`: calls that would have run of those that are known.
    """

    halts: Flags
    may_halt: Flags
    unknown: Flags
    backstop: Flags
    ran: Counts

    def where(self, keep: Flags) -> Outcome:
        """The outcome of the turns for which `keep` is true."""
        return Outcome(
            halts=self.halts[keep], may_halt=self.may_halt[keep], unknown=self.unknown[keep],
            backstop=self.backstop[keep], ran=self.ran[keep],
        )  # fmt: skip


class Replay(Protocol):
    """Any policy over the recorded turns."""

    def under(self, policy: CapPolicy) -> Outcome:
        """What `policy` would do to the turns this was made for, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of one reading, as columns of `frame` (see population.sql), in the order of turn_id."""

    frame: pd.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    def where(self, keep: Flags) -> Turns:
        """The turns for which `keep` is true."""
        return Turns(self.frame[keep])

    def flags(self, column: str) -> Flags:
        """A column of truths."""
        return self.frame[column].to_numpy(dtype=bool)

    def telling(self, signal: str | None) -> Flags:
        """Turns whose grade has what a signal needs: keys, and results where it counts them.

        The grade is a property of who wrote the turn. What else hides a halt may hang on the turn itself and
        is a bound, never left out.
        """
        lacking = {"names-only", "no-results"} if BY_NAME[signal or "repeat"].of_results else {"names-only"}
        return ~self.frame["grade"].isin(lacking).to_numpy(dtype=bool)

    @property
    def calls(self) -> Counts:
        """Calls asked for; the least that is known where the end was lost or an enforced halt hides it."""
        return self.frame["calls"].to_numpy(dtype=np.int64)

    @property
    def truth(self) -> Counts:
        """STUCK, NOT_STUCK or UNREAD."""
        return self.frame["truth"].to_numpy(dtype=np.int64)

    @property
    def success(self) -> Counts:
        """By the task's own outcome: 1 it succeeded, 0 it did not, -1 unknown."""
        return self.frame["success"].to_numpy(dtype=np.int64)

    @property
    def cluster(self) -> Counts:
        """A number a user (installation, else session, else turn)."""
        return self.frame["cluster"].to_numpy(dtype=np.int64)

    @property
    def cluster_kind(self) -> str:
        """What a cluster is: user, session or turn; the weakest that is used for over a tenth."""
        shares = self.frame["cluster_kind"].value_counts(normalize=True)  # of no turns: "user"
        return next((kind for kind in ("turn", "session") if shares.get(kind, 0) > 0.1), "user")

    @property
    def weeks(self) -> float | None:
        """How many weeks the turns span by their starts; None when they span less than a day."""
        started = self.frame["started_at"].dropna()
        span = (int(started.max()) - int(started.min())) / WEEK if len(started) else 0.0
        return span if span >= 1 / 7 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The turns in scope and how many were left out, by reason; `policy` is what ran on them.

    `policies` has the text of every recorded policy by its hash.
    `guarded`: a guard ran, so that halts were recorded and can be reproduced.
    """

    turns: Turns
    everything: Turns
    policy: CapPolicy
    policy_hash: str
    policies: Mapping[str, str]
    guarded: bool
    left_out: Mapping[str, int]


def latest_time(connection: duckdb.DuckDBPyConnection) -> int:
    """The last moment that any turn speaks of, in nanoseconds since 1970; 0 where there are no times."""
    row = connection.execute("SELECT max(greatest(started_at, ended_at)) FROM turns").fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def read_population(
    connection: duckdb.DuckDBPyConnection, *, as_of: int | None = None, sampled_by_head: bool = False
) -> Population:
    """The turns a verdict may speak of: default stratum, and the policy and mode of most of them.

    `as_of` (nanoseconds since 1970) decides which open turns are abandoned; None is the latest time seen.
    """
    frame = select(connection, "population", as_of=latest_time(connection) if as_of is None else as_of)
    everything = Turns(frame)
    keep = frame["stratum"] == "default"
    left_out = {str(name): int(n) for name, n in frame.loc[~keep, "stratum"].value_counts().items()}
    if not sampled_by_head:
        sampled = keep & (frame["grade"] == "spans-only")
        if sampled.any():
            left_out["known from sampled spans alone"] = int(sampled.sum())
        keep &= ~sampled
    known = connection.execute("SELECT policy_hash, text FROM policies WHERE text IS NOT NULL").fetchall()
    policies: dict[str, str] = dict(known)
    groups = frame[keep].groupby(["policy_hash", "mode"]).size().sort_values(ascending=False, kind="stable")
    policy_hash, mode = groups.index[0] if len(groups) else ("", "")
    others = int(groups.iloc[1:].sum())
    if others:
        left_out["another policy or mode"] = others
        keep &= (frame["policy_hash"] == policy_hash) & (frame["mode"] == mode)
    text = policies.get(policy_hash)
    return Population(
        turns=Turns(frame[keep].reset_index(drop=True)),
        everything=everything,
        policy=CapPolicy.from_text(text) if text else CapPolicy.adaptive(),
        policy_hash=policy_hash,
        policies=policies,
        guarded=bool(policy_hash),
        left_out=left_out,
    )
