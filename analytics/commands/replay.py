"""`turncap replay`: what other thresholds would have done to the turns of a database."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from analytics.commands.arguments import add_database, whole
from analytics.database import open_database, records
from analytics.errors import InputError
from guard.policy import SIGNALS, CapPolicy, PolicyKind

# Name -> (least value, meaning)
NUMBERS = {
    "stuck_at": (1, "K: the level at which a turn past the soft cap is halted"),
    "soft_cap": (0, "S: calls up to which no turn is halted"),
    "backstop": (1, "H: calls past which every turn is halted"),
}
COLUMNS = {
    "signal": "signal", "k": "stuck at", "soft_cap": "soft cap", "backstop": "backstop",
    "stuck": "stuck", "not_stuck": "not stuck", "unlabelled": "unread", "calls_saved": "calls saved",
    "calls_cut": "calls cut", "badge": "answer",
}  # fmt: skip
COUNTS = ("stuck", "not_stuck", "unlabelled", "calls_saved", "calls_cut")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_database(parser)
    parser.add_argument(
        "--signal", nargs="+", choices=SIGNALS, metavar="NAME", help=f"any of {', '.join(SIGNALS)}"
    )
    for name, (least, meaning) in NUMBERS.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, nargs="+", type=whole(least), metavar="N", help=f"{meaning}; one or more")
    parser.add_argument("--json", action="store_true", help="print JSON instead of words and a table")
    parser.epilog = (
        "What is not given stays as it ran. Several values are tried in all combinations. "
        "Turns and calls are those of the report: its default stratum, under the policy of most turns."
    )


def run(args: argparse.Namespace) -> int:
    """Replay and print."""
    import pandas as pd

    from analytics.recording import Label
    from analytics.replay import Replay
    from analytics.totals import totals
    from analytics.validation.population import read_population

    with open_database(args.db) as connection:
        population = read_population(connection)
        replay = Replay.of(connection)
        running = population.policy
        asked = list(_asked(args, running))
        among = pd.Index(replay.turns.turn_id).isin(population.turns.frame["turn_id"])
        found = totals(replay, [running, *asked], among=among)
        label = replay.turns.label[among]
        scope: dict[str, Any] = {
            "turns": int(among.sum()),
            "calls": int(replay.turns.calls[among].sum()),
            "stuck": int((label == Label.STUCK).sum()),
            "not_stuck": int((label == Label.NOT_STUCK).sum()),
            "unlabelled": int((label == Label.UNREAD).sum()),
            "running": running.text,
            "guarded": population.guarded,
            "left_out": dict(population.left_out),
        }
    rows = records(found)
    if args.json:
        print(json.dumps({"scope": scope, "running": rows[0], "asked": rows[1:]}, indent=2))
    else:
        print("\n".join(_words(scope, rows)))
    return 0


def _asked(args: argparse.Namespace, running: CapPolicy) -> Iterator[CapPolicy]:
    """The policies asked about, in the order given; none where no option was given."""
    base = running if running.kind is PolicyKind.ADAPTIVE else CapPolicy.adaptive()
    names = ("signal", *NUMBERS)
    if all(getattr(args, name) is None for name in names):
        return
    for values in product(*(getattr(args, name) or [getattr(base, name)] for name in names)):
        policy = dict(zip(names, values, strict=True))
        if policy["backstop"] < policy["soft_cap"]:
            ran = "" if args.backstop else " that ran"
            raise InputError(
                f"--soft-cap: got {policy['soft_cap']}, above the backstop of {policy['backstop']}{ran}; "
                "give --backstop as much or more"
            )
        yield CapPolicy.adaptive(**policy)


def _words(scope: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for reason, turns in scope["left_out"].items():
        yield f"Left out: {turns:,} turns, {reason}."
    if not scope["turns"]:
        yield "No turn with a call is left to replay: load telemetry with turncap load."
        return
    yield (
        f"{scope['turns']:,} turns with {scope['calls']:,} calls; by their labels {scope['stuck']:,} "
        f"are stuck, {scope['not_stuck']:,} are not, {scope['unlabelled']:,} are unread."
    )
    yield "Ran: " + scope["running"] if scope["guarded"] else "No guard ran; the released rule stands first."
    yield ""
    yield from _table(rows, "ran" if scope["guarded"] else "released rule")
    yield ""
    for row in rows[1:4]:
        yield _compared(rows[0], row)
    if len(rows) == 1:
        yield "Ask about other thresholds with --signal, --stuck-at, --soft-cap and --backstop."
    yield (
        "Calls saved are those of stuck turns from the halting call on, calls cut the same of all other "
        "turns. An agent that was halted might have gone another way than it did."
    )
    badges = {row["badge"] for row in rows}
    if "bounded" in badges:
        yield "bounded: an enforced halt or lost data hides the rest of some turns; both bounds are given."
    if "unknown" in badges:
        yield "unknown: the data of some turns lacks what the signal needs, such as results."


def _table(rows: Sequence[dict[str, Any]], first: str) -> Iterator[str]:
    cells = [
        list(COLUMNS.values()),
        *([_cell(row, name) for name in COLUMNS] for row in rows),
    ]
    widths = [max(len(line[place]) for line in cells) for place in range(len(COLUMNS))]
    for number, line in enumerate(cells):
        text = "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield text + (f"  <- {first}" if number == 1 else "")


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name in COUNTS:
        most = row[f"{name}_most"]
        return f"{value:,}" if most == value else f"{value:,}–{most:,}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _compared(ran: dict[str, Any], row: dict[str, Any]) -> str:
    def change(name: str) -> str:
        now, before = _cell(row, name), _cell(ran, name)
        return f"{now} as before" if now == before else f"{now} instead of {before}"

    return (
        f"With {row['signal']} at {row['k']:,} past {row['soft_cap']:,} calls and a backstop of "
        f"{row['backstop']:,}: stuck turns halted {change('stuck')}, turns that are not stuck "
        f"{change('not_stuck')}, unread ones {change('unlabelled')}; calls saved {change('calls_saved')}, "
        f"calls cut {change('calls_cut')}."
    )
