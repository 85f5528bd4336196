"""`turncap recommend`: the setting to change and the evidence for it, or why the data cannot say."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from analytics.commands.arguments import add_database, add_settings
from analytics.database import open_database

if TYPE_CHECKING:
    from analytics.decision import Costed, Recommendation
    from analytics.first_screen import FirstScreen

COLUMNS = ("", "stuck", "others", "calls saved", "calls cut", "cost")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_database(parser)
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, as in report.json, instead of words")


def run(args: argparse.Namespace) -> int:
    """Print the recommendation and what it rests on."""
    from analytics.decision import over_grid
    from analytics.first_screen import first_screen
    from analytics.replay import Replay
    from analytics.report.document import recommendation
    from analytics.validation.settings import read_settings
    from analytics.validation.validate import validate

    with open_database(args.db) as connection:
        recorded = Replay.of(connection)
        found = validate(connection, recorded, read_settings(args.settings))
        _, decision = over_grid(recorded, found.case)
        screen = first_screen(found.case, found.verdicts, decision)
    if args.json:
        print(json.dumps(recommendation(decision), indent=2, ensure_ascii=False))
    else:
        print("\n".join(recommendation_lines(decision, screen)))
    return 0


def recommendation_lines(decision: Recommendation, screen: FirstScreen) -> Iterator[str]:
    """The answer, the settings to change, the policies compared, and what is still needed."""
    yield f"{decision.answer}: {decision.reason}"
    if decision.settings:
        yield "\nset:"
        yield from (f"  {name}={value}" for name, value in decision.settings.items())
    rows = [("what runs", decision.running)]
    if decision.leading and decision.leading.policy != decision.running.policy:
        rows.append(("cheapest here", decision.leading))
    rows += [("on the frontier", one) for one in decision.frontier if one.policy != rows[-1][1].policy]
    price = decision.price.wrong_halt
    yield f"\non the same {screen.effect.turns:,} turns, a wrong halt costing {price:g} calls:"
    yield from _table([COLUMNS, *(_row(name, one) for name, one in rows)])
    if decision.saves is not None and len(rows) > 1:
        yield (
            f"the cheapest would have cost {decision.saves.total:,.0f} calls less than what runs, "
            f"{decision.saves.low:,.0f} to {decision.saves.high:,.0f} by resampled users"
        )
    yield "\nverdicts:"
    yield from (f"  {word}" for word in screen.words)
    yield "\nstill needed:"
    yield from (f"  {wait}" for wait in screen.waits)


def _row(name: str, one: Costed) -> tuple[str, ...]:
    return (
        f"{name}: {one.policy.text}",
        f"{one.stuck:,}",
        f"{one.others:,}",
        f"{one.calls_saved:,}",
        f"{one.calls_cut:,}",
        f"{one.cost:,.0f}",
    )


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for first, *numbers in rows:
        cells = [first.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True))]
        yield "  " + "  ".join(cells)
