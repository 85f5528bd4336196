"""`python -m tools.bench [--only NAME …] [--write]`: every measurement, one after the other.

Each is a module of this package with a `main()` and is run as a process of its own. `--write` keeps what it
prints in docs/bench/<name>.md. The exit code is 1 when a bar was missed.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from pathlib import Path

# Name -> module and its arguments, in the order in which they run.
BENCHES = {
    "guard": ["tools.bench.guard"],
    "load": ["tools.bench.load", "--large"],
    "dialects": ["tools.bench.dialects"],
    "replay": ["tools.bench.replay"],
    "scale": ["tools.bench.scale"],
}
WRITES_ITSELF = {"guard"}  # a table and JSON, with `--write`
DOCS = Path(__file__).resolve().parents[2] / "docs" / "bench"


def run(name: str, *, write: bool) -> int:
    """Run one measurement, show what it prints, and keep it where that is wanted; its exit code."""
    print(f"== {name}", flush=True)
    printed: list[str] = []
    itself = name in WRITES_ITSELF
    command = [sys.executable, "-m", *BENCHES[name], *(["--write"] if write and itself else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            printed.append(line)
    if write and not itself:
        DOCS.mkdir(parents=True, exist_ok=True)
        where = f"{platform.machine()}, Python {platform.python_version()}"
        head = f"# {name}\n\nWritten by `python -m tools.bench --only {name} --write` ({where}).\n\n```\n"
        (DOCS / f"{name}.md").write_text(head + "".join(printed) + "```\n", encoding="utf-8")
    return process.returncode


def main() -> int:
    """Run all, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench")
    parser.add_argument("--only", action="append", choices=BENCHES, metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--write", action="store_true", help="keep the results in docs/bench")
    args = parser.parse_args()
    codes = [run(name, write=args.write) for name in args.only or BENCHES]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
