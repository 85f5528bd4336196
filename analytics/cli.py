"""The command line: parse, call, print. Each command is a module of `analytics.commands`.

Exit codes: 0 done · 1 nothing done, one line on standard error says why · 2 wrong usage ·
3 done, but some input was rejected · 4 a verdict named by --fail-on · 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from enum import IntEnum
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from analytics.errors import is_interrupt
from guard.errors import TurncapError

# In the order of the story: what one line of help says of each.
COMMANDS = {
    "demo": "run the whole path on the bundled real turns",
    "collect": "receive OTLP over HTTP and write files to load",
    "load": "load exported telemetry into a database",
    "report": "write the report of a database",
    "recommend": "say which setting to change, or why the data cannot say",
    "replay": "say what other thresholds would have done",
    "turn": "show one turn",
    "label": "say what turns were: one by one, or from a CSV file",
    "snapshot": "publish a read-only copy of a database for Grafana",
    "dashboards": "write the dashboard files, and what they read of a snapshot",
    "completion": "print what makes your shell complete turncap's words",
}


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REJECTS = 3
    VERDICT = 4
    INTERRUPTED = 130


EPILOG = """\
commands, in the order in which they are needed:
{commands}

first steps:
  turncap demo --out build/demo                  see it work on real turns
  turncap load telemetry/ --db turns.duckdb      read what your guard exported
  turncap report --db turns.duckdb --out report  are 100, 6 and 10× right for you?

turncap COMMAND --help says more of each.

exit codes: 0 done · 1 nothing done, one line on standard error says why · 2 wrong usage ·
  3 done, but some input was rejected · 4 a verdict named by --fail-on · 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest command, option or choice."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"turncap: {_with_hint(message, list(self._option_string_actions))}", file=sys.stderr)
        raise SystemExit(ExitCode.USAGE)


def _with_hint(message: str, options: Sequence[str]) -> str:
    choice = re.search(r"invalid choice: '?(.*?)'? \(choose from (.*)\)", message)
    if message.endswith("required: COMMAND"):
        return "give a command; turncap --help lists them"
    if choice:
        given, choices = choice[1], [one.strip(" '\"") for one in choice[2].split(",")]
        near = difflib.get_close_matches(given, choices, n=1)
        what = "command" if "COMMAND" in message else "choice"
        return f"no {what} {given!r}; " + (
            f"did you mean {near[0]!r}?" if near else f"there are {', '.join(choices)}"
        )
    unknown = re.search(r"unrecognized arguments: (\S+)", message)
    near = difflib.get_close_matches(unknown[1], options, n=1) if unknown else []
    return f"{message}; did you mean {near[0]}?" if near else message


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; arguments are declared only for `only` when it is given."""
    parser = _Parser(
        prog="turncap",
        usage="turncap [-h] [--version] COMMAND ...",
        description="Are your agent's tool-call thresholds right? Measured from the telemetry of its guard.",
        epilog=EPILOG.format(commands="\n".join(f"  {name:<12}{line}" for name, line in COMMANDS.items())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"turncap {version('turncap')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="turncap")
    if only is not None:
        commands.help = (
            argparse.SUPPRESS
        )  # the epilog lists them; a completion script wants argparse's own list
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_line,
            description=f"{help_line[0].upper()}{help_line[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if only in (None, name):
            module = import_module(f"analytics.commands.{name}")
            command.epilog = getattr(module, "EPILOG", None)
            module.configure(command)
            command.set_defaults(run=module.run, parser=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every foreseen error is one line on standard error and exit code 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    named = next((word for word in words if not word.startswith("-")), "")
    hint = ""
    try:
        args, rest = build_parser(only=named if named in COMMANDS else "").parse_known_args(words)
        if rest:
            args.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        hint = getattr(args, "interrupted", "")
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except TurncapError as error:
        print(f"turncap: {error}", file=sys.stderr)
        return ExitCode.FAILED
    except BrokenPipeError:
        # Whoever read has seen enough; the interpreter's own flush at exit must not fail on it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except (KeyboardInterrupt, RuntimeError) as error:
        if not is_interrupt(error):
            raise
        print("turncap: interrupted" + (hint and f"; {hint}"), file=sys.stderr)
        return ExitCode.INTERRUPTED
