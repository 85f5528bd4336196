"""What may be written to a stream: colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
from typing import TextIO


def wants_colour(stream: TextIO) -> bool:
    """Whether colours are wanted: NO_COLOR forbids, FORCE_COLOR demands, else a terminal that can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
