"""The products whose telemetry and transcripts can be read; `base` says how one is added.

turncap's own telemetry is no member of `DIALECTS`: it is recognised first, by its names, and read in
bulk (`analytics.dialects.turncap`).
"""

from __future__ import annotations

from analytics.dialects.base import Dialect
from analytics.dialects.claude_code import ClaudeCode
from analytics.dialects.claude_transcript import ClaudeTranscript
from analytics.dialects.codex import Codex
from analytics.dialects.codex_rollout import CodexRollout
from analytics.dialects.gemini import GEMINI, QWEN
from analytics.dialects.genai import GenAi
from analytics.dialects.openinference import OpenInference
from analytics.dialects.qwen_transcript import QwenTranscript
from analytics.dialects.sdk_lines import SdkLines

# In the order in which a record is offered to them: the narrower name first.
DIALECTS: tuple[Dialect, ...] = (
    ClaudeCode(),
    Codex(),
    GEMINI,
    QWEN,
    OpenInference(),
    GenAi(),
    ClaudeTranscript(),
    CodexRollout(),
    QwenTranscript(),
    SdkLines(),
)
