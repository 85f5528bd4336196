"""A turn drawn as a strip: one cell a call, coloured and lettered by key, so that repetition is seen.

A call made once is pale. A bar above a cell: the call failed; a bar below it: it changes files or
state. The (would-be) halting call is framed and pointed at.
"""

from __future__ import annotations

import html
import string
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.report.turn import TurnView

LETTERS = string.ascii_uppercase + string.ascii_lowercase
COLOURS = 8  # --k0 … --k7 in the page's style
CELL, HIGH, ROW = 12, 15, 25  # pixels: a cell with its gap, its height, a row with its marks
WIDE, NARROW = 50, 25  # cells a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """What is drawn of a turn. `ranks` has one entry a call, in order: 0 for the most repeated key,
    1 for the next …, None for a key seen once; the others hold call numbers, which start at 1.
    """

    turn_id: str
    ranks: tuple[int | None, ...]
    failed: tuple[int, ...]
    changes: tuple[int, ...]
    halts: tuple[int, ...]


def strip_of(turn: TurnView) -> Strip:
    """The strip of a turn whose calls were loaded."""
    return Strip(
        turn_id=turn.turn_id,
        ranks=tuple(call.rank for call in turn.calls),
        failed=tuple(call.n for call in turn.calls if call.error),
        changes=tuple(call.n for call in turn.calls if call.mutating),
        halts=tuple(halt.call_number for halt in turn.halts if halt.call_number is not None),
    )


def letter(rank: int | None) -> str:
    """How a call is written: a letter for each repeated key, a dot for one made once."""
    if rank is None:
        return "·"
    return LETTERS[rank] if rank < len(LETTERS) else "+"


def strip_svg(strip: Strip, *, alt: str, cells: int = WIDE) -> str:
    """The strip as SVG, `cells` to a row."""
    shapes: defaultdict[str, list[str]] = defaultdict(list)
    letters = []
    for index, rank in enumerate(strip.ranks):
        x, y = _corner(index, cells)
        shapes["once" if rank is None else f"k{rank % COLOURS}"].append(_box(x, y))
        if rank is not None:
            letters.append((x + (CELL - 1) / 2, y + 11, letter(rank)))
    for call in strip.changes:
        x, y = _corner(call - 1, cells)
        shapes["changes"].append(f"M{x} {y + HIGH + 1}h{CELL - 1}v2h-{CELL - 1}z")
    for call in strip.failed:
        x, y = _corner(call - 1, cells)
        shapes["failed"].append(f"M{x} {y - 4}h{CELL - 1}v3h-{CELL - 1}z")
    for call in strip.halts:
        x, y = _corner(call - 1, cells)
        shapes["halts"].append(_box(x, y))
        shapes["points"].append(f"M{x} {y - 7}h{CELL - 1}l-{(CELL - 1) / 2} 6z")
    width = min(len(strip.ranks), cells) * CELL + 1
    height = -(-len(strip.ranks) // cells) * ROW + 4
    paths = "".join(f'<path class="{kind}" d="{"".join(shapes[kind])}"/>' for kind in shapes)
    return (
        f'<svg class="strip" viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" '
        f'aria-label="{html.escape(alt)}">{paths}{_text(letters)}</svg>'
    )


def _corner(index: int, cells: int) -> tuple[int, int]:
    return 1 + index % cells * CELL, 9 + index // cells * ROW


def _box(x: float, y: float) -> str:
    return f"M{x} {y}h{CELL - 1}v{HIGH}h-{CELL - 1}z"


def _text(letters: Sequence[tuple[float, float, str]]) -> str:
    lines: defaultdict[float, list[tuple[float, str]]] = defaultdict(list)
    for x, y, text in letters:
        lines[y].append((x, text))
    return "".join(
        f'<text y="{y}" x="{" ".join(f"{x:g}" for x, _ in line)}">{"".join(text for _, text in line)}</text>'
        for y, line in lines.items()
    )
