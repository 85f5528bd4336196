"""The table of docs/quarter.md: in which week of a quarter a threshold can first be validated.

    python -m tools.quarter_table          # print it
    python -m tools.quarter_table --write  # put it between the marks in docs/quarter.md

The most favourable case: turns of different users, none past the backstop, no wrong halt. Every real
event, and users who return, make it later.
"""

from __future__ import annotations

import re
import sys

from analytics.stats import PLANNED_LOOKS, look_levels, turns_for_zero_events
from analytics.validation.needed import least_halts
from analytics.validation.settings import read_settings
from tools.registry_table import ROOT

PAGE = ROOT / "docs" / "quarter.md"
MARKS = re.compile(r"(?s)(<!-- quarter -->\n).*?(<!-- /quarter -->)")
TURNS_A_WEEK = (100, 300, 1_000, 3_000, 10_000, 30_000)
HALTED = 10 / 4_018  # of the bundled turns by the default rule
HOLDOUTS = (("shadow, every halt read", 1.0), ("holdout 0.20", 0.20), ("holdout 0.05", 0.05))


def table() -> str:
    """A row for each rate of turns, a column for each question and way of looking."""
    settings = read_settings()
    levels = look_levels()

    def week(a_week: float, needed: list[int]) -> str:
        """The first look by which enough has come."""
        for look, enough in enumerate(needed, start=1):
            if a_week * look >= enough:
                return str(look)
        return f"after {PLANNED_LOOKS}"

    length = [turns_for_zero_events(settings.tolerance.backstop, tail=level) for level in levels]
    halts = [least_halts(settings, level) for level in levels]
    lines = ["| turns a week | backstop | " + " | ".join(f"K, {name}" for name, _ in HOLDOUTS) + " |"]
    lines.append("|---:|" + "---:|" * (1 + len(HOLDOUTS)))
    for turns in TURNS_A_WEEK:
        cells = [week(turns, length), *(week(turns * HALTED * share, halts) for _, share in HOLDOUTS)]
        lines.append(f"| {turns:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Print the table, or write it into the page."""
    if words == ["--write"]:
        PAGE.write_text(MARKS.sub(lambda found: found[1] + table() + found[2], PAGE.read_text()))
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
