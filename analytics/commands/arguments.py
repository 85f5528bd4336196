"""Types of arguments that more than one command takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from guard.policy import LARGEST


def whole(low: int, high: int = LARGEST) -> Callable[[str], int]:
    """A decimal integer from `low` to `high`; what is none is named with what is accepted."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"got {text!r}; accepted: a whole number from {low} to {high}")
        return int(text)

    return read
