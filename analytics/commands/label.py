"""`turncap label`: people say what turns were, one at a time or from a CSV file."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.commands.arguments import add_database
from analytics.database import open_database
from analytics.labels import BY, Label
from analytics.screen import wants_colour

if TYPE_CHECKING:
    import duckdb

    from analytics.report.turn import TurnView

EPILOG = """\
--plan draws the turns to read: many of the would-be halts, few of the others, each with the probability it
was drawn by, so that what is read speaks for all. Then run it without --plan and answer; every answer is
kept at once, beside the database, and q stops. A tenth comes back to a second reader (another --reader).

A CSV file has a header with turn_id and at least one of kind, stuck, productive, task_outcome.
kinds: stuck · rerun (the same command between changes) · poll (waits for a running job) ·
  burst (errors that it got out of) · other
"""

# Key -> (kind, what it means, whether it is stuck)
ANSWERS = {
    "s": ("stuck", "going round in circles", True),
    "r": ("rerun", "the same command again, between changes", False),
    "p": ("poll", "waiting for a job that runs", False),
    "b": ("burst", "errors that it got out of", False),
    "o": ("other", "none of these, not stuck", False),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_database(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="draw the turns to read, and stop")
    what.add_argument("--csv", type=Path, metavar="FILE", help="take labels from a CSV file")
    what.add_argument("--turn", metavar="ID", help="label this turn, planned or not")
    parser.add_argument("--by", choices=BY, default="human", help="who labels, for --csv (default: human)")
    parser.add_argument(
        "--reader", default=None, metavar="NAME", help="your name or sign (default: your login)"
    )


def run(args: argparse.Namespace) -> int:
    """Plan, take a file, or ask; then load what was said."""
    reader = _reader(args.reader)
    if args.plan:
        return _plan(args.db)
    if args.csv:
        return _take(args, reader)
    return _ask_all(args, reader)


def _reader(given: str | None) -> str:
    name = given if given is not None else getpass.getuser()
    return "".join(letter for letter in name.strip() if letter.isalnum() or letter in "-_.")[:64] or "reader"


def _plan(database: Path) -> int:
    from analytics.label_plan import make_plan, plan_file
    from analytics.replay import Replay
    from analytics.report.words import plural
    from analytics.validation.population import read_population

    with open_database(database, read_only=False) as connection:
        replay = Replay.of(connection)
        halts = replay.halts(read_population(connection).policy)
        drawn = make_plan(connection, database, set(replay.turns.turn_id[halts.halted].tolist()))
        counts = connection.execute(
            "SELECT stratum, count(*), min(probability), max(probability), count(*) FILTER (second_reader) "
            "FROM label_plan GROUP BY stratum ORDER BY stratum"
        ).fetchall()
    print(f"{plural(drawn, 'turn')} drawn now; the plan, kept too in {plan_file(database)}:")
    for stratum, turns, least, most, second in counts:
        share = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
        print(f"  {stratum}: {plural(turns, 'turn')}, drawn with probability {share}; read twice: {second:,}")
    print(f"next: turncap label --db {database}")
    return 0


def _take(args: argparse.Namespace, reader: str) -> int:
    from analytics.cli import ExitCode
    from analytics.labels import append_labels, read_csv
    from analytics.report.words import plural

    with open_database(args.db) as connection:
        known = {turn_id for (turn_id,) in connection.execute("SELECT turn_id FROM turns").fetchall()}
        labels, rejects = read_csv(args.csv, known, by=args.by, reader=reader)
        append_labels(args.db, connection, _with_plan(connection, labels))
    for reject in rejects:
        print(f"turncap: {args.csv}:{reject.line}: {reject.reason}", file=sys.stderr)
    if labels:
        _load(args.db)
    print(f"{plural(len(labels), 'label')} taken, {plural(len(rejects), 'line')} rejected")
    if not labels:
        return ExitCode.FAILED
    return ExitCode.REJECTS if rejects else ExitCode.DONE


def _ask_all(args: argparse.Namespace, reader: str) -> int:
    from analytics.database import records, select
    from analytics.label_plan import restore_plan
    from analytics.labels import append_labels
    from analytics.report.terminal import STRIP_KEY
    from analytics.report.turn import build_turn, find_turn
    from analytics.report.words import plural

    with open_database(args.db, read_only=False) as connection:
        restore_plan(connection, args.db)
    given = 0
    with open_database(args.db) as connection:
        if args.turn:
            turns = [find_turn(connection, args.turn)]
        else:
            turns = [
                str(row["turn_id"]) for row in records(select(connection, "reading_list", reader=reader))
            ]
        if not turns:
            print("nothing to read: the plan is empty or done; turncap label --plan draws from newer turns")
            return 0
        print(STRIP_KEY)
        for key, (kind, text, _) in ANSWERS.items():
            print(f"  {key}  {kind:<6}{text}")
        try:
            for place, turn_id in enumerate(turns, start=1):
                print(f"\n{place} of {len(turns)}")
                label = ask(build_turn(connection, turn_id), reader=reader, say=print, hear=input)
                if label is not None:
                    given += append_labels(args.db, connection, _with_plan(connection, [label]))
        except (EOFError, KeyboardInterrupt, Stop):
            print()
    if given:
        _load(args.db)
    print(f"{plural(given, 'label')} given")
    _print_agreement(args.db)
    return 0


class Stop(Exception):  # noqa: N818 - what the reader asked for is no error
    """The reader wants to stop."""


def ask(
    turn: TurnView, *, reader: str, say: Callable[[str], None], hear: Callable[[str], str]
) -> Label | None:
    """Show one turn and ask; None when it is passed over. Neither class nor signals nor halts are shown."""
    from analytics.labels import new_label_id
    from analytics.report.terminal import show_blind

    say(show_blind(turn, colour=wants_colour(sys.stdout)))
    kinds = "  ".join(f"{key} {kind}" for key, (kind, _, _) in ANSWERS.items())
    kind_key = _answer(hear, f"what was it?  {kinds}  n pass over  q quit: ", [*ANSWERS, "n"])
    if kind_key == "n":
        return None
    productive = _answer(hear, "was it productive?  y yes  n no  ? unknown  q quit: ", ["y", "n", "?"])
    kind, _, stuck = ANSWERS[kind_key]
    at = time.time_ns()
    return Label(
        turn_id=turn.turn_id,
        label_id=new_label_id(reader, at),
        by="human",
        at=at,
        stuck=stuck,
        productive={"y": True, "n": False, "?": None}[productive],
        kind=kind,
    )


def _answer(hear: Callable[[str], str], prompt: str, accepted: list[str]) -> str:
    while True:
        given = hear(prompt).strip().lower()
        if given == "q":
            raise Stop
        if given in accepted:
            return given


def _with_plan(connection: duckdb.DuckDBPyConnection, labels: list[Label]) -> list[Label]:
    """The labels of people with the stratum and probability by which their turn was drawn."""
    rows = connection.execute("SELECT turn_id, stratum, probability FROM label_plan").fetchall()
    plan = {turn_id: (stratum, probability) for turn_id, stratum, probability in rows}
    return [
        replace(label, stratum=plan[label.turn_id][0], probability=plan[label.turn_id][1])
        if label.by == "human" and label.turn_id in plan
        else label
        for label in labels
    ]


def _load(database: Path) -> None:
    from analytics.labels import label_file
    from analytics.loading import load
    from analytics.warehouse import Warehouse

    with Warehouse.open(database) as warehouse:
        load(warehouse, [str(label_file(database))])


def _print_agreement(database: Path) -> None:
    from analytics.database import records, select

    with open_database(database) as connection:
        row = records(select(connection, "agreement"))[0]
    if row["pairs"]:
        print(
            f"two readers read {row['pairs']:,} turns: the same on being stuck in {row['same_stuck']:,}, "
            f"on the kind in {row['same_kind']:,}"
        )
