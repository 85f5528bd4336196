"""The levels of every signal at every call of recorded turns, by the guard's own signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.recording import NEVER, CallRows, Ints, Lacking, Recording, Turns
from guard.policy import SIGNALS
from guard.signals import BY_NAME, UNSETTLED_CALLS, Key, Pair, Signal

REMEMBERED = 10_000  # keys, and (key, result) pairs, that a guard remembers of a turn
RESULT_SIGNALS = tuple(name for name in SIGNALS if BY_NAME[name].of_results)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """Levels at admit of the calls of some turns, in the order (turn, n).

    `turn` are the turns' places in the recording, ascending; `owner` is the place in `turn` of each
    call. In a batch the level is the largest so far in it, as the batch is refused whole; -1 where the
    guard knows none. `known` is, for each turn and signal, the first call whose level is hidden by lost or
    missing data; `known["total"]` the same for `total`. NEVER where nothing is hidden.
    """

    turn: Ints
    owner: Ints
    n: Ints
    total: Ints
    level: dict[str, Ints]
    known: dict[str, Ints]


def levels(recording: Recording) -> Levels:
    """The levels of all turns whose calls the recording holds and that are not `without_repeats`."""
    parts = [_part(rows, recording.turns) for rows in recording.call_rows()]
    owner, base = [], 0
    for part in parts:
        owner.append(part.owner + base)
        base += len(part.turn)
    return Levels(
        turn=_joined([p.turn for p in parts]),
        owner=_joined(owner),
        n=_joined([p.n for p in parts]),
        total=_joined([p.total for p in parts]),
        level={name: _joined([p.level[name] for p in parts]) for name in SIGNALS},
        known={name: _joined([p.known[name] for p in parts]) for name in ("total", *SIGNALS)},
    )


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32)


def _part(rows: CallRows, turns: Turns) -> Levels:
    columns: tuple[list[int], ...] = tuple([] for _ in SIGNALS)
    known: dict[str, list[int]] = {name: [] for name in ("total", *SIGNALS)}
    for i, place in enumerate(rows.turn.tolist()):
        at = slice(int(rows.start[i]), int(rows.start[i + 1]))
        n, key, result = rows.n[at], rows.key[at], rows.result[at]
        after = np.where(rows.settled_after[at] >= 0, rows.settled_after[at], n)
        order = np.lexsort((rows.settled_order[at], after))
        order = order[result[order] >= 0]
        settles = np.stack((after[order], key[order], result[order]), axis=1).tolist()
        found = turn_levels(
            n.tolist(), rows.epoch[at].tolist(), rows.batch[at].tolist(), key.tolist(), settles
        )
        for column, values in zip(columns, found, strict=True):
            column.extend(values)
        for name, call in _known(place, n, key, after[order], turns).items():
            known[name].append(call)
    size = np.diff(rows.start)
    return Levels(
        turn=rows.turn,
        owner=np.repeat(np.arange(len(rows.turn), dtype=np.int32), size),
        n=rows.n,
        total=rows.total,
        level={name: np.array(column, np.int32) for name, column in zip(SIGNALS, columns, strict=True)},
        known={name: np.array(calls, np.int32) for name, calls in known.items()},
    )


def turn_levels(
    n: Sequence[int],
    epoch: Sequence[int],
    batch: Sequence[int],
    key: Sequence[int],
    settles: Sequence[Sequence[int]],
) -> tuple[list[int], ...]:
    """The level at each call of one turn, a list for each signal.

    `settles` are (calls admitted when it settled, key, result) in settle order. What settled between the
    calls of one batch counts after the batch, since the batch was decided at once.
    """
    signals = [BY_NAME[name]() for name in SIGNALS]
    repeat, recent, novelty, same_result, no_progress = (signal.admit for signal in signals)
    settle_result, settle_progress = signals[3].settle, signals[4].settle
    out: tuple[list[int], ...] = tuple([] for _ in SIGNALS)
    repeats, recents, novelties, same_results, progresses = (column.append for column in out)
    keys = {number: Key(b"", number, 0) for number in {*key, *(settled for _, settled, _ in settles)}}
    pairs = {
        pair: Pair(number) for number, pair in enumerate({(settled, got) for _, settled, got in settles})
    }
    settling = [(after, keys[settled], pairs[settled, got]) for after, settled, got in settles]
    done, last_epoch, last_batch = 0, 0, None
    peak_recent = peak_novelty = peak_same = 0
    for number, era, group, asked in zip(n, epoch, batch, map(keys.__getitem__, key), strict=True):
        if group != last_batch or era != last_epoch:
            while done < len(settling) and settling[done][0] < number:
                _, settled_key, pair = settling[done]
                settle_result(settled_key, pair)
                settle_progress(settled_key, pair)
                done += 1
            if era != last_epoch:
                cleared: list[Signal | Key | Pair] = [*signals, *keys.values(), *pairs.values()]
                for part in cleared:
                    part.clear()
            last_epoch, last_batch = era, group
            peak_recent = peak_novelty = peak_same = 0
        repeats(repeat(asked))
        level = recent(asked)
        if level > peak_recent:
            peak_recent = level
        recents(peak_recent)
        level = novelty(asked)
        if level > peak_novelty:
            peak_novelty = level
        novelties(peak_novelty)
        if number > UNSETTLED_CALLS and not done:
            same_results(-1)
            progresses(-1)
        else:
            level = same_result(asked)
            if level > peak_same:
                peak_same = level
            same_results(peak_same)
            progresses(no_progress(asked))
    return out


def _known(place: int, n: Ints, key: Ints, after: Ints, turns: Turns) -> dict[str, int]:
    """The first call whose level is hidden, by signal, and whose total is (NEVER: none is)."""
    gaps = np.flatnonzero(n != np.arange(1, len(n) + 1))
    total = int(gaps[0]) + 1 if len(gaps) else len(n) + 1 if len(n) < turns.calls[place] else NEVER
    unkeyed = np.flatnonzero(key < 0)
    keys = min(total, int(n[unkeyed[0]]) if len(unkeyed) else NEVER)
    if turns.keys_forgotten[place]:
        keys = min(keys, REMEMBERED + 1)
    results = keys
    if turns.lacking[place] != Lacking.NOTHING:
        results = 1
    elif turns.chunks_lost[place] or total != NEVER:
        # Settled calls that did not fit into their chunk stand in the next one, which may be the lost one.
        before = after[after < total]
        results = min(results, int(before.max(initial=0)) + 1)
    return {
        "total": total,
        **{name: results if name in RESULT_SIGNALS else keys for name in SIGNALS},
    }
