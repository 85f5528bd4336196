"""A turn as JSON values, to be carried to another process: numbers, tool names, call ids and hashes."""

from __future__ import annotations

import json
from typing import Any

from guard.counts import Candidate, Counts
from guard.errors import TurncapError
from guard.keys import hashed
from guard.outstanding import MOST_IDS, Outstanding
from guard.policy import CapPolicy, Threshold
from guard.signals import Key, Pair
from guard.verdict import Verdict

STATE_VERSION = 2

# Taken as they are.
_PLAIN = (
    *("calls", "total", "committed", "epoch", "batches", "refused", "unrun", "settled", "errors"),
    *("tools", "max_repeat", "top_tool", "top_last", "tool", "streak_from", "streak_max"),
    *("milestones", "crossed", "fired", "bound", "last_explored"),
)
_OF_KEY = ("number", "first_call", "count", "since", "pair", "streak", "again")


def read_state(state: bytes) -> dict[str, Any]:
    """The parts of a state.

    Raises:
        TurncapError: it is none, or a newer version's.
    """
    try:
        found = json.loads(state)
        version = found["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TurncapError(
            "restore_turn: got bytes that are no state of a turn; give what Turn.to_state() returned"
        ) from None
    if version != STATE_VERSION:
        raise TurncapError(
            f"restore_turn: got a state of version {version}, accepted is {STATE_VERSION}; update turncap"
        )
    return dict(found)


def counts_to_state(counts: Counts) -> dict[str, Any]:
    """What `restore_counts` needs; keys are hashed, so that nothing but numbers and names is carried."""
    counts.catch_up()
    top = counts.repeat.top
    state: dict[str, Any] = {name: getattr(counts, name) for name in _PLAIN}
    return state | {
        "candidates": [[c.policy.text, c.halt_call] for c in counts.candidates],
        "keys": counts.keys.to_state(lambda _, key: _key_row(key)),
        "pairs": counts.pairs.to_state(_pair_row),
        "chunks": counts.chunks.to_state(),
        "repeat": [counts.repeat.peak, None if top is None else _key_row(top)],
        "recent": list(counts.recent.window),
        "novelty": counts.novelty.base,
        "no_progress": counts.no_progress.stale,
        "outstanding": _outstanding_state(counts.outstanding),
        "explored": {str(threshold): value for threshold, value in counts.explored.items()},
        "halt": None if counts.halt is None else list(counts.halt[1:-1]),
    }


def restore_counts(counts: Counts, state: dict[str, Any]) -> None:
    """Let new counts take up what `counts_to_state` returned.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the state is damaged.
    """
    for name in _PLAIN:
        value = state[name]
        if type(getattr(counts, name)) is int and type(value) is not int:
            raise TypeError(f"{name} is no integer")
        setattr(counts, name, value)
    counts.milestones = [tuple(row) for row in state["milestones"]]
    counts.fired = [Threshold(word) for word in state["fired"]]
    counts.would_halt = counts.fired[-1] if counts.fired else None
    counts.candidates = [Candidate(CapPolicy.from_text(text), call) for text, call in state["candidates"]]
    counts.keys.from_state(state["keys"], _read_key)
    counts.pairs.from_state(state["pairs"], _read_pair)
    counts.chunks.from_state(state["chunks"])
    counts.repeat.peak, top = state["repeat"]
    counts.repeat.top = None if top is None else _known_key(counts, top)
    counts.recent.window.extend(state["recent"])
    counts.novelty.base, counts.no_progress.stale = state["novelty"], state["no_progress"]
    _restore_outstanding(counts, state["outstanding"])
    counts.explored = {Threshold(word): value for word, value in state["explored"].items()}
    counts.halt = None if state["halt"] is None else _verdict(counts, state["halt"])
    counts.look_ahead()


def _key_row(key: Key) -> list[Any]:
    return [hashed(key.identity).hex(), *(getattr(key, name) for name in _OF_KEY)]


def _read_key(row: list[Any]) -> tuple[bytes, Key]:
    written, *numbers = row
    if [type(number) for number in numbers] != [*[int] * (len(_OF_KEY) - 1), bool]:
        raise TypeError("a key whose counts are no integers")
    key = Key(bytes.fromhex(written), 0, 0)
    for name, number in zip(_OF_KEY, numbers, strict=True):
        setattr(key, name, number)
    return key.identity, key


def _known_key(counts: Counts, row: list[Any]) -> Key:
    """The turn's own record of a key, or where it is forgotten one that nobody else holds."""
    identity, key = _read_key(row)
    known = counts.keys.known.get(identity)
    return known if known is not None and known.number == key.number else key


def _pair_row(identity: tuple[int, bytes], pair: Pair) -> list[Any]:
    return [identity[0], identity[1].hex(), pair.number, pair.seen, pair.again]


def _read_pair(row: list[Any]) -> tuple[tuple[int, bytes], Pair]:
    key, result, number, seen, again = row
    if type(number) is not int:
        raise TypeError("a pair whose number is no integer")
    pair = Pair(number)
    pair.seen, pair.again = bool(seen), bool(again)
    return (key, bytes.fromhex(result)), pair


def _outstanding_state(outstanding: Outstanding) -> dict[str, Any]:
    calls = enumerate(outstanding.keys, start=outstanding.oldest)
    return {
        "ids": [[call_id, list(verdict[1:-1])] for call_id, verdict in outstanding.ids.items()],
        "calls": [[call, _key_row(key)] for call, key in calls if key is not None],
        "oldest": outstanding.oldest,
        "dropped": outstanding.dropped,
    }


def _restore_outstanding(counts: Counts, state: dict[str, Any]) -> None:
    outstanding, rows = counts.outstanding, dict(state["calls"])
    calls = range(state["oldest"], counts.calls + 1)
    if len(calls) > MOST_IDS or not rows.keys() <= set(calls):
        raise ValueError("calls that were never made are outstanding")
    outstanding.ids.update((call_id, _verdict(counts, saved)) for call_id, saved in state["ids"])
    outstanding.keys.extend(_known_key(counts, rows[call]) if call in rows else None for call in calls)
    outstanding.oldest, outstanding.dropped = state["oldest"], int(state["dropped"])


def _verdict(counts: Counts, saved: list[Any]) -> Verdict:
    *head, threshold, would_halt, explored = saved
    reached = [None if word is None else Threshold(word) for word in (threshold, would_halt)]
    return Verdict._make([counts.turn_id, *head, *reached, explored, counts.policy])
