"""What the guard is asked, and what it says of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from guard.errors import TurnHalted
from guard.policy import CapPolicy, Threshold

_SEEN = {
    "repeat": "`{tool}` has been called {level} times with the same arguments",
    "recent_repeat": "the same call was made {level} times in the last 20",
    "novelty_repeat": "the same call was made {level} times with nothing new asked for in between",
    "same_result_repeat": "the same call returned the same result {level} times in a row",
    "no_progress": "{level} calls in a row brought nothing new",
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch: the tool, its arguments, the id it is settled by, whether it changes state."""

    name: str
    args: Any = None
    call_id: str | None = None
    mutating: bool | None = None


class Verdict(NamedTuple):
    """What the guard says of one call, with every number that led to it.

    `total_calls`, `level` and `max_repeat` include the call, and in a batch the whole batch. `level` is
    None while the policy's signal is unknown. `limit` is the number of calls that was passed, or if the
    call is allowed the next one ahead (None when disabled).
    """

    turn_id: str
    call_number: int
    total_calls: int
    signal: str | None
    level: int | None
    max_repeat: int
    repeated_tool: str | None
    limit: int | None
    threshold: Threshold | None
    would_halt: Threshold | None
    explored: bool | None
    policy: CapPolicy

    @property
    def halted(self) -> bool:
        """Whether the call must not run."""
        return self.threshold is not None

    @property
    def allowed(self) -> bool:
        """Whether the call may run."""
        return self.threshold is None

    @property
    def message(self) -> str:
        """The verdict in words that a person or a model can act on."""
        if self.threshold is None:
            return self._allowed_message()
        policy = self.policy
        head = f"Stopped at tool call {self.call_number}: this turn has asked for {_calls(self.total_calls)}"
        most = f"The most repeated call, to `{self.repeated_tool}`, was made {self.max_repeat} times."
        if self.max_repeat < 2:
            most = "No call was made twice."
        if self.threshold is Threshold.SOFT_STUCK:
            seen = _SEEN[self.signal or "repeat"].format(tool=self.repeated_tool, level=self.level)
            also = "" if self.signal == "repeat" else f" {most}"
            return (
                f"{head}, past the soft cap of {self.limit}, and {seen} "
                f"(stuck from {policy.stuck_at} on).{also} "
                f"If that is intended, raise TURNCAP_STUCK_AT (stuck_at, now {policy.stuck_at}) "
                f"or TURNCAP_SOFT_CAP (soft_cap, now {policy.soft_cap})."
            )
        if self.limit != policy.limit_of(self.threshold):
            return f"{head}, past the {_calls(self.limit or 0)} to which it was extended. {most}"
        if self.threshold is Threshold.BACKSTOP:
            return (
                f"{head}, past the backstop of {self.limit}. {most} If such long turns are intended, raise "
                f"TURNCAP_BACKSTOP (backstop, now {policy.backstop})."
            )
        return (
            f"{head}, past its limit of {self.limit}. {most} The limit is set by "
            f"TURNCAP_MAX_TOOL_CALLS_PER_TURN (max_tool_calls, now {policy.hard_cap}); raise it, or unset it "
            "for the adaptive rule."
        )

    def _allowed_message(self) -> str:
        ahead = "no limit is set" if self.limit is None else f"the next limit is {self.limit}"
        if self.would_halt is None:
            return f"Allowed: {_calls(self.total_calls)} in this turn, {ahead}."
        return (
            f"Let run: {_calls(self.total_calls)} in this turn, which {self.would_halt} would have stopped; "
            f"{ahead}."
        )

    def raise_for_halt(self) -> None:
        """Raise `TurnHalted` if the call must not run."""
        if self.threshold is not None:
            raise TurnHalted(self)


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"
