"""An adaptive per-turn tool-call cap for LLM agents, instrumented with OpenTelemetry."""

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
