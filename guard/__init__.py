"""An adaptive per-turn tool-call cap for LLM agents, instrumented with OpenTelemetry."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guard.errors import PolicyError, TurncapError, TurnHalted
    from guard.events import LoopDetectedEvent
    from guard.policy import CapPolicy, Threshold
    from guard.tool_call_guard import ToolCallGuard
    from guard.turn import Turn
    from guard.verdict import ToolCall, Verdict

__all__ = [
    "CapPolicy",
    "LoopDetectedEvent",
    "PolicyError",
    "Threshold",
    "ToolCall",
    "ToolCallGuard",
    "Turn",
    "TurnHalted",
    "TurncapError",
    "Verdict",
]

# Each from where it is made, when it is first asked for: who needs a part alone does not wait for the others.
_HOMES = {
    "errors": ("PolicyError", "TurncapError", "TurnHalted"),
    "events": ("LoopDetectedEvent",),
    "policy": ("CapPolicy", "Threshold"),
    "tool_call_guard": ("ToolCallGuard",),
    "turn": ("Turn",),
    "verdict": ("ToolCall", "Verdict"),
}


def __getattr__(name: str) -> Any:
    for home, exported in _HOMES.items():
        if name in exported:
            value = globals()[name] = getattr(import_module(f"guard.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
