"""`turncap demo`: recorded turns in, telemetry, a database and a report out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--turns",
        type=Path,
        metavar="FILE",
        help="recorded turns, JSON lines, plain or gzip (default: the 4,018 that come with turncap)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("turncap-demo"),
        metavar="DIR",
        help="folder for the telemetry, turns.duckdb and the report (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Send, load, report; what an earlier run left in the folder is replaced."""
    from analytics.cli import main
    from analytics.demo import clear, read_turns, send
    from analytics.evidence import TURNS

    source = TURNS if args.turns is None else args.turns
    turns = list(read_turns(source))
    telemetry, database = clear(args.out), args.out / "turns.duckdb"
    send(iter(turns), telemetry, lambda line: print(line, file=sys.stderr))
    for words in (
        ["load", str(telemetry), "--db", str(database)],
        ["report", "--db", str(database), "--out", str(args.out)],
    ):
        code = main(words)
        if code:
            return code
    print(f"the report is {args.out / 'report.html'}")
    return 0
