"""What may be written to a stream: colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO


def wants_colour(stream: TextIO) -> bool:
    """Whether colours are wanted: NO_COLOR forbids, FORCE_COLOR demands, else a terminal that can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def steps(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """Says on a terminal what is being done, one line over the other, and leaves nothing behind."""
    if not stream.isatty():
        yield lambda text: None
        return

    def say(text: str) -> None:
        stream.write(f"\r\x1b[K{text} …")
        stream.flush()

    try:
        yield say
    finally:
        stream.write("\r\x1b[K")
        stream.flush()
