"""The bundled real turns as numbers; README.md beside this file describes them and their limits."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

# One JSON object a line, one object a turn.
TURNS: Traversable = files(__name__) / "turns.jsonl.gz"
