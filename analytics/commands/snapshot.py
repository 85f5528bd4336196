"""`turncap snapshot`: publish a read-only copy for Grafana."""

from __future__ import annotations

import argparse
from pathlib import Path

from analytics.commands.arguments import add_database


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_database(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to; replaced at once")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="report.json whose verdicts and signals it is to show"
    )


def run(args: argparse.Namespace) -> int:
    """Publish, and say where."""
    from analytics.snapshot import publish

    publish(args.db, args.out, args.report)
    print(args.out)
    return 0
