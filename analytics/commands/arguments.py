"""Arguments that more than one command takes, and their types."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from guard.policy import LARGEST


def whole(low: int, high: int = LARGEST) -> Callable[[str], int]:
    """A decimal integer from `low` to `high`; what is none is named with what is accepted."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"got {text!r}; accepted: a whole number from {low} to {high}")
        return int(text)

    return read


def add_database(parser: argparse.ArgumentParser) -> None:
    """The database to read."""
    parser.add_argument(
        "--db", type=Path, required=True, metavar="FILE", help="database that turncap load wrote"
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """What verdicts are judged by."""
    parser.add_argument(
        "--settings", type=Path, metavar="FILE", help="tolerances, prices and grids (validation.toml)"
    )
