"""One turn as text: colours on a terminal, the same letters without them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analytics.report.strip import letter
from analytics.report.turn import Call, TurnView
from analytics.report.turn_policies import TurnPolicies
from analytics.report.words import (
    UNKNOWN,
    number,
    pattern,
    reader_facts,
    signal_heads,
    signal_rows,
    turn_facts,
    turn_halts,
)

STRIP_KEY = (
    "A letter is one call made more than once, a dot a call made once.\n"
    "Below it: x failed, w changes files or state, r refused"
)
ROW = 50  # cells a line; with the ruler this fits 80 columns
# 256-colour codes that differ in lightness too, for eyes that do not tell hues apart.
COLOURS = (208, 39, 35, 227, 175, 25, 167, 250)


def show_turn(turn: TurnView, found: TurnPolicies, *, colour: bool) -> str:
    """The strip, the repeats, the halts, what each signal says, and what cannot be known of one turn."""
    lines = [f"turn {turn.turn_id}", *(f"  {name:<8}{value}" for name, value in turn_facts(turn)), ""]
    if turn.calls:
        lines += [*_strip(turn, colour=colour), ""]
        lines.append(f"{STRIP_KEY}, ^ the call that halts.")
        lines += ["", *_repeats(turn, colour=colour)]
    else:
        lines.append("No call of this turn was loaded: only its end is known.")
    lines += ["", *turn_halts(turn)]
    if found.signals:
        lines += ["", *_table([signal_heads(found), *signal_rows(found)], numbers=4)]
    if said := pattern(found):
        lines += ["", said]
    return "\n".join([*lines, "", "What cannot be known:", *(f"  {one}" for one in found.unknown)]) + "\n"


def show_blind(turn: TurnView, *, colour: bool) -> str:
    """The strip and the repeats for a reader who is to judge: no label, outcome, signal or halt."""
    lines = [f"turn {turn.turn_id}"]
    lines += [f"  {name:<14}{value}" for name, value in reader_facts(turn)]
    lines += ["", *_strip(replace(turn, halts=()), colour=colour), "", *_repeats(turn, colour=colour)]
    return "\n".join(lines) + "\n"


def _strip(turn: TurnView, *, colour: bool) -> list[str]:
    halting = {halt.call_number for halt in turn.halts}
    lines = []
    for start in range(0, len(turn.calls), ROW):
        row = turn.calls[start : start + ROW]
        lines.append(f"{row[0].n:>6}  " + "".join(_cell(call, colour=colour) for call in row))
        marks = "".join(_mark(call, call.n in halting) for call in row).rstrip()
        if marks:
            lines.append(" " * 8 + marks)
    return lines


def _cell(call: Call, *, colour: bool) -> str:
    text = letter(call.rank)
    if not colour:
        return text
    return f"\x1b[2m{text}\x1b[0m" if call.rank is None else _painted(text, call.rank)


def _painted(text: str, rank: int) -> str:
    return f"\x1b[1;38;5;{COLOURS[rank % len(COLOURS)]}m{text}\x1b[0m"


def _mark(call: Call, halting: bool) -> str:
    if halting:
        return "^"
    if call.refused:
        return "r"
    if call.error:
        return "x"
    return "w" if call.mutating else " "


def _repeats(turn: TurnView, *, colour: bool) -> list[str]:
    if not turn.repeats:
        return ["No call was made twice."]
    rows: list[Sequence[str]] = [("", "tool", "times", "first", "last", "results", "failed")]
    for one in turn.repeats[:10]:
        rows.append(
            (
                letter(one.rank), one.tool or UNKNOWN, number(one.times), number(one.first_call),
                number(one.last_call), number(one.results), number(one.errors),
            )
        )  # fmt: skip
    lines = _table(rows, numbers=2)
    if colour:
        lines[1:] = [
            line.replace(letter(one.rank), _painted(letter(one.rank), one.rank), 1)
            for line, one in zip(lines[1:], turn.repeats, strict=False)
        ]
    if len(turn.repeats) > 10:
        lines.append(f"  and {len(turn.repeats) - 10} more that repeat")
    return lines


def _table(rows: Sequence[Sequence[str]], *, numbers: int) -> list[str]:
    """Rows in columns; those from `numbers` on are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            text.ljust(width) if column < numbers else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
