"""The bundled real turns as numbers; README.md beside this file describes them and their limits."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

# One JSON object a line, one object a turn.
TURNS: Traversable = files(__name__) / "turns.jsonl.gz"

# The agent populations, as turns name them.
AGENTS = frozenset({"claude-code/a", "tau2-bench/a", "trae/a", "mini-swe-agent/a"})

# To be said wherever a figure from these turns is shown.
LIMITS = (
    "About a quarter of the labelled turns were read in full; the others were labelled from features of the "
    "turn (repeats, distinct results, edits, outcome), the same evidence the signals use. Agreement with the "
    "labels shows that code is consistent, not that it is right. Only turns with six repeats were read; "
    "stuck turns without them are not known.",
    "The 10 stuck turns come from two of the four populations (7 and 3): one agent's simulations, and one "
    "model in one harness. No polling turn is among the labelled ones.",
    "Turns from transcripts over 4 MiB are missing, so the longest are under-represented; three of the four "
    "sources are length-limited.",
    "The inner calls of sub-agents are mostly absent. There are no dates. Sessions stand for users.",
)
