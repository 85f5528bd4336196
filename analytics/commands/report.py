"""`turncap report`: a database in, a page, a Markdown text and a JSON document out."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from analytics.commands.arguments import add_database, add_settings
from analytics.database import open_database
from analytics.errors import InputError
from analytics.screen import steps

WORDS = ("too-low", "too-high", "validated", "insufficient-evidence")
QUESTIONS = ("multiplier", "stuck_threshold", "soft_cap")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_database(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("turncap-report"),
        metavar="DIR",
        help="folder for report.html, report.md and report.json (default: %(default)s)",
    )
    parser.add_argument(
        "--week", metavar="WEEK", help="one ISO week, such as 2026-W48, as one look of thirteen"
    )
    parser.add_argument(
        "--as-of",
        metavar="DAY",
        help="the day, such as 2026-12-01, after which a turn without an end may still run",
    )
    parser.add_argument(
        "--fail-on",
        nargs="+",
        type=_named,
        default=[],
        metavar="WORD",
        help=f"exit with 4 if a verdict is one of {', '.join(WORDS)}; "
        "one question alone as QUESTION:WORD, such as stuck_threshold:too-low",
    )
    add_settings(parser)


def _named(text: str) -> tuple[str | None, str]:
    """(question or None for all, word as a verdict writes it) of `WORD` or `QUESTION:WORD`."""
    question, _, word = text.rpartition(":")
    if word not in WORDS or question not in ("", *QUESTIONS):
        raise argparse.ArgumentTypeError(
            f"got {text!r}; accepted: {', '.join(WORDS)}, also after {', '.join(QUESTIONS)} and a colon"
        )
    return question or None, word.replace("-", " ")


def _midnight(day: str | None) -> int | None:
    """Nanoseconds since 1970 at the end of a day in UTC."""
    if day is None:
        return None
    try:
        start = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise InputError(f"--as-of: got {day!r}; accepted: a day such as 2026-12-01") from None
    return (int(start.timestamp()) + 24 * 3600) * 1_000_000_000


def run(args: argparse.Namespace) -> int:
    """Write the three renderings and say where they lie; a look of a week is written to the database."""
    from analytics.cli import ExitCode
    from analytics.report.build import build_report
    from analytics.report.render import write_report
    from analytics.validation.settings import read_settings

    settings, as_of = read_settings(args.settings), _midnight(args.as_of)
    with steps(sys.stderr) as say:
        with open_database(args.db, read_only=args.week is None) as connection:
            report = build_report(
                connection, settings, week=args.week, as_of=as_of, now=time.time_ns(), say=say
            )
        say("drawing")
        written = write_report(report, args.out)
    for path in written.values():
        print(path)
    failed = [
        verdict
        for verdict in report.verdicts
        if {(None, str(verdict.word)), (str(verdict.question), str(verdict.word))} & set(args.fail_on)
    ]
    for verdict in failed:
        print(f"turncap: {verdict.question} is {verdict.word} (--fail-on)", file=sys.stderr)
    return ExitCode.VERDICT if failed else ExitCode.DONE
