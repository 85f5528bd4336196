"""`turncap load`: exported telemetry in, a database out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.loading import Summary

SHOWN = 20  # rejects told one by one; the rest are counted


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="file, folder or pattern of exported telemetry; - is standard input",
    )
    parser.add_argument(
        "--db", type=Path, required=True, metavar="FILE", help="database to load into; made when it is absent"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail on the first input that cannot be read, and keep nothing of this load",
    )
    parser.set_defaults(interrupted="what was read is kept, and the same command goes on from there")


def run(args: argparse.Namespace) -> int:
    """Load, say what was recognised, and name what was not."""
    from analytics.cli import ExitCode

    if args.strict:
        args.interrupted = "nothing of this load is kept"
    summary = _load(args)
    for line in summary.lines():
        print(line)
    for reject in summary.rejects[:SHOWN]:
        print(f"turncap: {reject}", file=sys.stderr)
    if len(summary.rejects) > SHOWN:
        print(f"turncap: {len(summary.rejects) - SHOWN} more; all are in table rejects", file=sys.stderr)
    return ExitCode.REJECTS if summary.rejects else ExitCode.DONE


def _load(args: argparse.Namespace) -> Summary:
    from analytics import paths, workers

    files = paths.expand(args.paths)
    with workers.Workers(workers.useful(files)) as helping:
        if workers.foreign(files[0]):
            helping.start()  # they import what they need while this process imports what it needs
        from analytics.loading import load
        from analytics.progress import Progress
        from analytics.warehouse import Warehouse

        progress = Progress(sys.stderr, paths.size(files)) if sys.stderr.isatty() else None
        try:
            with Warehouse.open(args.db) as warehouse:
                try:
                    return load(warehouse, files, workers=helping, strict=args.strict, progress=progress)
                except BaseException:
                    warehouse.discard_if_empty()
                    raise
        finally:
            if progress is not None:
                progress.close()
