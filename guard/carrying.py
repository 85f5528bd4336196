"""A turn as JSON values, to be carried to another process: numbers, tool names, call ids and hashes."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from guard.counts import Candidate, Counts
from guard.errors import TurncapError
from guard.policy import CapPolicy, Threshold
from guard.verdict import Verdict

STATE_VERSION = 1

# Taken as they are.
_PLAIN = (
    *("calls", "total", "committed", "epoch", "batches", "refused", "unrun", "settled", "errors", "dropped"),
    *("tools", "max_repeat", "top_tool", "top_first", "top_last", "streak_tool", "streak", "streak_max"),
    *("milestones", "crossed", "fired", "bound", "last_explored", "oldest"),
)


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
    """What `restore_counts` needs."""
    state: dict[str, Any] = {name: getattr(counts, name) for name in _PLAIN}
    return state | {
        "candidates": [[c.policy.text, c.halt_call] for c in counts.candidates],
        "keys": counts.keys.to_state(bytes.hex),
        "pairs": counts.pairs.to_state(lambda pair: [pair[0], pair[1].hex()]),
        "chunks": counts.chunks.to_state(),
        "signals": [signal.to_state() for signal in counts.signals],
        "top_identity": counts.top_identity.hex(),
        "first_calls": list(counts.first_calls.items()),
        "ids": [[call_id, list(verdict[1:-1])] for call_id, verdict in counts.ids.items()],
        "outstanding": list(counts.outstanding.items()),
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
    counts.keys.from_state(state["keys"], bytes.fromhex)
    counts.pairs.from_state(state["pairs"], lambda pair: (pair[0], bytes.fromhex(pair[1])))
    counts.chunks.from_state(state["chunks"])
    for signal, saved in zip(counts.signals, state["signals"], strict=True):
        signal.from_state(saved)
    counts.top_identity = bytes.fromhex(state["top_identity"])
    counts.first_calls = dict(state["first_calls"])
    counts.ids = OrderedDict((call_id, _verdict(counts, saved)) for call_id, saved in state["ids"])
    counts.outstanding = dict(state["outstanding"])
    counts.explored = {Threshold(word): value for word, value in state["explored"].items()}
    counts.halt = None if state["halt"] is None else _verdict(counts, state["halt"])
    counts.look_ahead()


def _verdict(counts: Counts, saved: list[Any]) -> Verdict:
    *head, threshold, would_halt, explored = saved
    reached = [None if word is None else Threshold(word) for word in (threshold, would_halt)]
    return Verdict._make([counts.turn_id, *head, *reached, explored, counts.policy])
