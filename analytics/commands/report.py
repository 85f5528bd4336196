"""`turncap report`: a database in, a page, a Markdown text and a JSON document out."""

from __future__ import annotations

import argparse
from pathlib import Path

from analytics.database import open_database


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--db", type=Path, required=True, metavar="FILE", help="database that turncap load wrote"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for report.html, report.md and report.json",
    )
    parser.add_argument(
        "--week", metavar="WEEK", help="one ISO week, such as 2026-W48, as one look of thirteen"
    )
    parser.add_argument(
        "--settings", type=Path, metavar="FILE", help="tolerances, prices and grids (validation.toml)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the three renderings and say where they lie."""
    from analytics.report.build import build_report
    from analytics.report.render import write_report
    from analytics.validation.settings import read_settings

    with open_database(args.db) as connection:
        report = build_report(connection, read_settings(args.settings), week=args.week)
    for path in write_report(report, args.out).values():
        print(path)
    return 0
