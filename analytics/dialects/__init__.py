"""The products whose telemetry and transcripts can be read; `base` says how one is added.

turncap's own telemetry is no member of `DIALECTS`: it is recognised first, by its names, and read in
bulk (`analytics.dialects.turncap`).
"""

from __future__ import annotations

from analytics.dialects.base import Dialect, Record, Source
from analytics.dialects.claude_code import ClaudeCode
from analytics.dialects.claude_transcript import ClaudeTranscript
from analytics.dialects.codex import Codex
from analytics.dialects.codex_rollout import CodexRollout
from analytics.dialects.gemini import GEMINI, QWEN
from analytics.dialects.gemini_session import GeminiSession
from analytics.dialects.genai import GenAi
from analytics.dialects.openinference import OpenInference
from analytics.dialects.qwen_transcript import QwenTranscript
from analytics.dialects.sdk_lines import SdkLines

# In the order in which a record is offered to them: the narrower name first.
OTLP: tuple[Dialect, ...] = (ClaudeCode(), Codex(), GEMINI, QWEN, OpenInference(), GenAi())
LINES: tuple[Dialect, ...] = (
    ClaudeTranscript(),
    CodexRollout(),
    QwenTranscript(),
    GeminiSession(),
    SdkLines(),
)
DIALECTS = OTLP + LINES
BY_SOURCE: dict[Source, tuple[Dialect, ...]] = {Source.SPAN: OTLP, Source.LOG: OTLP, Source.LINE: LINES}

_TOOL_WORDS = ("tool_call", "tool_result", "tool_use", "tool.call", "tool.name", "tool_name", "execute_tool")


def tool_like(record: Record) -> bool:
    """Whether a record that no dialect knows looks as if it told of a tool call: a dialect may be missing."""
    words = [record.name, *map(str, record.attributes)]
    if isinstance(record.body, dict):
        words += [*map(str, record.body), str(record.body.get("type"))]
    return any(known in word.lower() for word in words for known in _TOOL_WORDS)


def likeness(record: Record) -> str:
    """What a record that no dialect knows looks like, in words; none of its values but its name and scope."""
    if record.source is Source.LINE:
        keys = ", ".join(str(key)[:40] for key in list(record.body)[:6])
        return f"JSON with the keys {keys}"
    return f"OTLP {record.source}s such as {record.name!r} of {record.scope or 'no scope'}"
