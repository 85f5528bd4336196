"""Recorded turns as arrays: what replay reads, whatever database or list it came from.

Arrays are aligned: place i of each is the same turn. Inside arrays -1 is unknown and `NEVER` is a call
that does not come; both stay in here and in `analytics.replay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
NEVER = int(np.iinfo(np.int32).max)  # the number of a call that does not come
CALLS_AT_ONCE = 2_000_000  # rows of `calls` held in memory at a time, about 150 MB


class Label(IntEnum):
    """What the labels of a turn decide."""

    UNREAD = 0
    NOT_STUCK = 1
    STUCK = 2


class Lacking(IntEnum):
    """What the grade of a turn's data lacks."""

    NOTHING = 0
    RESULTS = 1
    KEYS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Milestones:
    """Milestones of `repeat`, one row each; `turn` is a place, `batch_first` 0 where unknown."""

    turn: Ints
    k: Ints
    call: Ints
    batch_first: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallRows:
    """Calls of some turns in the order (turn, n); `start` holds where each turn's rows begin, and the end.

    `turn` are the places of the turns, ascending. `total` is the budget count at the call. A call that
    did not settle, or whose key, result or place in the order is unknown, has -1 there.
    """

    turn: Ints
    start: npt.NDArray[np.int64]
    n: Ints
    epoch: Ints
    batch: Ints
    key: Ints
    result: Ints
    settled_after: Ints
    settled_order: Ints
    total: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """The turns of a recording, one place each; every turn has at least one call.

    `calls`: numbered calls, as far as known. `cut_short`: an enforced halt or a lost end hides the rest.
    `has_milestones`: the turn's end told its milestones. `lacking`, `label`: values of `Lacking`, `Label`.
    `max_repeat`, `distinct_keys`, `batches`: as the turn's end says, -1 unknown. `rows`, `keys`: calls
    that were seen and the distinct keys among them; `all_keyed`: each seen call's key is known.
    """

    turn_id: npt.NDArray[np.object_]
    calls: Ints
    cut_short: Bools
    has_milestones: Bools
    lacking: Ints
    retries: Ints
    keys_forgotten: Ints
    max_repeat: Ints
    distinct_keys: Ints
    batches: Ints
    chunks_lost: Bools
    rows: Ints
    keys: Ints
    all_keyed: Bools
    label: Ints
    kind: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.calls)

    @property
    def plain(self) -> Bools:
        """Turns whose milestones tell all there is to know of `repeat`."""
        tells: Bools = self.has_milestones & (self.retries == 0) & (self.keys_forgotten == 0)
        tells &= self.lacking != Lacking.KEYS
        return tells

    @property
    def without_repeats(self) -> Bools:
        """Turns all of whose calls are known to differ: the levels of every signal are plain."""
        differ: Bools = (self.rows == self.calls) & (self.keys == self.rows) & self.all_keyed
        differ |= self.plain & (self.max_repeat == 1)
        differ &= self.retries == 0
        return differ


class Recording:
    """Turns, their milestones, and the calls of those turns whose levels must be worked out.

    Calls are read when they are asked for, a part at a time; the connection must stay open until then.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        frame = connection.execute(_sql("replay_turns")).df()
        self.turns = Turns(
            turn_id=frame["turn_id"].to_numpy(object),
            kind=frame["kind"].to_numpy(object),
            **{name: frame[name].to_numpy(bool) for name in _FLAGS},
            **{name: frame[name].to_numpy(np.int32) for name in _COUNTS},
        )
        plain = np.flatnonzero(self.turns.plain & (self.turns.max_repeat != 1))
        with self._listed(plain):
            told = connection.execute(_sql("replay_milestones")).fetchnumpy()
        self.milestones = Milestones(
            turn=_ints(told["place"]), k=_ints(told["k"]), call=_ints(told["call"]),
            batch_first=_ints(told["batch_first"]),
        )  # fmt: skip

    def call_rows(self) -> Iterator[CallRows]:
        """The calls of all turns that have any and are not `without_repeats`, some turns at a time."""
        places = np.flatnonzero((self.turns.rows > 0) & ~self.turns.without_repeats)
        for read in self.columns(places, "replay_calls"):
            columns = {name: _ints(values) for name, values in read.items()}
            turn, start = np.unique(columns.pop("place"), return_index=True)
            yield CallRows(turn=turn, start=np.append(start, len(columns["n"])), **columns)

    def columns(self, places: Places, name: str) -> Iterator[dict[str, Any]]:
        """The columns of a SELECT over the calls of the turns at `places`, some turns at a time."""
        part = np.cumsum(self.turns.rows[places], dtype=np.int64) // CALLS_AT_ONCE
        for number in np.unique(part):
            with self._listed(places[part == number]):
                yield self._connection.execute(_sql(name)).fetchnumpy()

    def clusters(self, places: Places) -> npt.NDArray[np.object_]:
        """The user, else session, else turn that each turn at `places` belongs to."""
        listed, back = np.unique(places, return_inverse=True)
        with self._listed(listed):
            clusters = self._connection.execute(_sql("replay_clusters")).df()["cluster"].to_numpy(object)
        return clusters[back]

    def batches(self, places: Places, calls: Ints) -> tuple[Ints, Ints, Ints]:
        """The batches that hold call number `calls[place]` of the turns at `places`, where it was seen.

        The places of those turns, the first calls of the batches, and the totals after them.
        """
        with self._listed(places, calls):
            read = self._connection.execute(_sql("replay_batches")).fetchnumpy()
        return _ints(read["place"]), _ints(read["first"]), _ints(read["total"])

    @contextmanager
    def _listed(self, places: Places, calls: Ints | None = None) -> Iterator[None]:
        """The turns at `places` (with a call each) as the table `listed` of the SELECTs."""
        frame = pd.DataFrame({"turn_id": self.turns.turn_id[places], "place": places.astype(np.int32)})
        if calls is not None:
            frame["call"] = calls[places]
        self._connection.register("listed", frame)
        try:
            yield
        finally:
            self._connection.unregister("listed")


_FLAGS = ("cut_short", "has_milestones", "chunks_lost", "all_keyed")
_COUNTS = (
    "calls", "lacking", "retries", "keys_forgotten", "max_repeat", "distinct_keys", "batches", "rows", "keys",
    "label",
)  # fmt: skip


def _ints(values: Any) -> Ints:
    return np.ma.filled(values, -1).astype(np.int32)


def _sql(name: str) -> str:
    return files("analytics").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
