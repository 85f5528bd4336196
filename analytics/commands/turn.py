"""`turncap turn`: one turn on the terminal."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from analytics.commands.arguments import add_database
from analytics.database import open_database
from analytics.screen import wants_colour


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("turn", metavar="ID", help="the turn's id, or enough of its beginning")
    add_database(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write the turn as a page into this folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def run(args: argparse.Namespace) -> int:
    """Print the turn's strip, repeats and halts."""
    from analytics.report.document import plain
    from analytics.report.render import write_page
    from analytics.report.terminal import show_turn
    from analytics.report.turn import build_turn, find_turn
    from analytics.report.turn_policies import turn_policies

    with open_database(args.db) as connection:
        turn = build_turn(connection, find_turn(connection, args.turn))
        found = turn_policies(connection, turn)
    if args.out:
        print(write_page(turn, found, args.out), file=sys.stderr)
    if args.json:
        print(json.dumps(plain({"turn": turn, "policies": found}), ensure_ascii=False))
        return 0
    print(show_turn(turn, found, colour=wants_colour(sys.stdout)), end="")
    return 0
