"""The command line: parse, call, print. Each command is a module of `analytics.commands`.

Exit codes: 0 done · 1 nothing done, one line on standard error says why · 2 wrong usage ·
3 done, but some input was rejected · 4 a verdict named by --fail-on · 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from enum import IntEnum
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from guard.errors import TurncapError

# In the order of the story: what one line of help says of each.
COMMANDS = {
    "demo": "run the whole path on the bundled real turns",
    "collect": "receive OTLP over HTTP and write files to load",
    "load": "load exported telemetry into a database",
    "report": "write the report of a database",
    "replay": "say what other thresholds would have done",
    "turn": "show one turn",
    "dashboards": "write the dashboard files, and what they read of a snapshot",
}


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REJECTS = 3
    VERDICT = 4
    INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest command."""

    def error(self, message: str) -> NoReturn:
        for word in sys.argv[1:2]:
            near = difflib.get_close_matches(word, COMMANDS, n=1)
            if word not in COMMANDS and near:
                message = f"no command {word!r}; did you mean {near[0]!r}?"
        self.print_usage(sys.stderr)
        print(f"turncap: {message}", file=sys.stderr)
        raise SystemExit(ExitCode.USAGE)


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; arguments are declared only for `only` when it is given."""
    parser = _Parser(prog="turncap", description="Are your agent's tool-call thresholds right?")
    parser.add_argument("--version", action="version", version=f"turncap {version('turncap')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line.capitalize() + ".")
        if only in (None, name):
            module = import_module(f"analytics.commands.{name}")
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every foreseen error is one line on standard error and exit code 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    named = next((word for word in words if not word.startswith("-")), "")
    try:
        args = build_parser(only=named if named in COMMANDS else "").parse_args(words)
        return int(args.run(args))
    except TurncapError as error:
        print(f"turncap: {error}", file=sys.stderr)
        return ExitCode.FAILED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.DONE
    except KeyboardInterrupt:
        print("turncap: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
