"""Small policies, and how tests ask a turn about calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard import ToolCall, Turn, Verdict

SMALL: dict[str, Any] = {"soft_cap": 4, "stuck_at": 3, "backstop": 8}


def run(turn: Turn, keys: Iterable[object]) -> tuple[int, str] | None:
    """The call at which the turn halted, and why; the first halt only."""
    for number, key in enumerate(keys, start=1):
        verdict = turn.admit("tool", {"key": key})
        if verdict.threshold is not None:
            assert verdict.call_number == number
            return number, str(verdict.threshold)
    return None


def batch(turn: Turn, keys: Iterable[object]) -> list[Verdict]:
    return turn.admit_batch([ToolCall("tool", {"key": key}) for key in keys])
