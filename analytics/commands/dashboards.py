"""`turncap dashboards`: copy the dashboard files, or write what they read of a snapshot."""

from __future__ import annotations

import argparse
from pathlib import Path

from analytics import dashboards


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="copy dashboards, rules, provisioning and compose files")
    export.add_argument("dir", type=Path, metavar="DIR", help="where to; made if missing")
    answers = actions.add_parser("json", help="write the validation panels' answers as JSON files")
    answers.add_argument("snapshot", type=Path, help="a file of turncap snapshot")
    answers.add_argument("dir", type=Path, metavar="DIR", help="where to; made if missing")
    text = actions.add_parser("textfile", help="write freshness and verdicts for a textfile collector")
    text.add_argument("snapshot", type=Path, help="a file of turncap snapshot")
    text.add_argument("file", type=Path, metavar="FILE", help="where to; name it *.prom")


def run(args: argparse.Namespace) -> int:
    """Do what was asked and say what was written."""
    if args.action == "export":
        for path in dashboards.export(args.dir):
            print(path)
    elif args.action == "json":
        for path in dashboards.write_json(args.snapshot, args.dir):
            print(path)
    else:
        dashboards.write_textfile(args.snapshot, args.file)
        print(args.file)
    return 0
