"""The false-stuck pattern over a database: which turns look stuck, of which kind, and in what shares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analytics.false_stuck import LABELS, Kind, Trace, classify, features
from analytics.recording import Bools, Places
from analytics.replay import FURTHEST, Replay
from analytics.stats import clustered_rate
from guard.policy import STUCK_AT, CapPolicy

HALTED, REPEATED = "halted", "repeated"  # the two populations


def classified(
    replay: Replay, policy: CapPolicy, *, stuck_at: int | None = None, among: Bools | None = None
) -> pd.DataFrame:
    """One row a turn and population: turns that `policy` halts, and all turns in which some key reached K.

    Columns: population; place, in `Replay.turns`; turn_id; call, the halting call or that of the K-th
    repeat; kind, from what came before that call; because, the rule that named it; whole and whole_because,
    the same of the whole turn; label, as a kind. None: `kind` where the turn's calls up to there were not
    recorded or the call is not exactly known; `whole` where an enforced halt or a lost end hides the rest;
    `label` where no label names a kind. K is the policy's own, or 6, unless given.
    """
    reached = policy.stuck_at or STUCK_AT if stuck_at is None else stuck_at
    populations = {
        HALTED: policy,
        REPEATED: CapPolicy.adaptive(soft_cap=0, stuck_at=reached, backstop=FURTHEST),
    }
    turns = replay.turns
    asked = []
    for name, of in populations.items():
        halts = replay.halts(of)
        places = np.flatnonzero(halts.halted if among is None else halts.halted & among)
        known = halts.exact[places] & (turns.rows[places] == turns.calls[places])
        asked.append(
            pd.DataFrame({"population": name, "place": places, "call": halts.high[places], "known": known})
        )
    frame = pd.concat(asked, ignore_index=True)
    frame["turn_id"] = turns.turn_id[frame["place"]]
    frame["label"] = [LABELS.get(kind) for kind in turns.kind[frame["place"]]]
    found = frame.drop(columns="known").join(_kinds(replay, frame[frame["known"]])).astype({"label": object})
    return found.where(found.notna(), None)


def _kinds(replay: Replay, asked: pd.DataFrame) -> pd.DataFrame:
    """Kind and reason up to the call and of the whole turn, with the index of `asked`."""
    calls: dict[int, list[tuple[int, int]]] = {}
    for row, place, call in zip(asked.index.tolist(), asked["place"], asked["call"], strict=True):
        calls.setdefault(int(place), []).append((row, int(call)))
    found: dict[int, tuple[Kind, str | None, Kind | None, str | None]] = {}
    for place, trace in _traces(replay, np.array(sorted(calls), dtype=np.intp)):
        whole = None if replay.turns.cut_short[place] else classify(features(trace))
        for row, call in calls[place]:
            kind, rule = classify(features(trace, call))
            because = None if rule is None else rule.because
            if whole is None:
                found[row] = kind, because, None, None
            else:
                found[row] = kind, because, whole[0], None if whole[1] is None else whole[1].because
    columns = ["kind", "because", "whole", "whole_because"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns, dtype=object)


def _traces(replay: Replay, places: Places) -> Iterator[tuple[int, Trace]]:
    """The calls of the turns at `places`, ascending; turns with an unknown key are left out."""
    for columns in replay.recording.columns(places, "false_stuck_calls"):
        turn, start = np.unique(columns.pop("place"), return_index=True)
        lists = {name: values.tolist() for name, values in columns.items()}  # None where unknown
        ends = [*start[1:].tolist(), len(lists["key"])]
        for place, begin, end in zip(turn.tolist(), start.tolist(), ends, strict=True):
            trace = Trace(**{name: values[begin:end] for name, values in lists.items()})
            if None not in trace.key:
                yield place, trace


def shares(frame: pd.DataFrame, replay: Replay, *, tail: float) -> pd.DataFrame:
    """One row a population and kind: turns, share of the population with its ends, agreement with labels.

    Columns: population, kind (None: calls not recorded), turns, share, low, high (by cluster, `tail` error
    probability on each side), whole (turns of that kind when looked at whole), labelled (of the turns,
    those whose label names a kind) and labelled_agree (of these, those whose label names this kind; by
    the whole turn where it is known).
    """
    cluster = pd.Series(replay.recording.clusters(frame["place"].to_numpy()), index=frame.index)
    decided = frame["whole"].where(frame["whole"].notna(), frame["kind"])
    rows = []
    for population in (HALTED, REPEATED):
        within = frame["population"] == population
        sizes = cluster[within].value_counts()
        for kind in (*Kind, None):
            kept = within & (frame["kind"].isna() if kind is None else frame["kind"] == kind)
            said = within & (decided == kind) & frame["label"].notna()
            events = cluster[kept].value_counts().reindex(sizes.index, fill_value=0)
            rate = clustered_rate(events.tolist(), sizes.tolist(), tail=tail)
            rows.append({
                "population": population, "kind": kind, "turns": int(kept.sum()), "share": rate.estimate,
                "low": rate.low, "high": rate.high, "whole": int((within & (frame["whole"] == kind)).sum()),
                "labelled": int(said.sum()), "labelled_agree": int((said & (frame["label"] == kind)).sum()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def agreement(frame: pd.DataFrame) -> dict[str, int]:
    """Of the turns looked at whole whose label names a kind: how many agree, and how many would if every
    one were called a re-run cycle.
    """
    said = frame[frame["label"].notna() & frame["whole"].notna()].drop_duplicates("place")
    return {
        "labelled": len(said),
        "agree": int((said["whole"] == said["label"]).sum()),
        "always_rerun": int((said["label"] == Kind.RERUN).sum()),
    }
