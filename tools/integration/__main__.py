"""`make integration`: find or build the programs of the bench, then run the tests on them.

    python -m tools.integration [--build-minutes N] [--build-only] [pytest arguments]

Exit code 75, with the reason in the last line, where the programs cannot be had.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tools.integration.components import MissingComponentError, ensure

SKIPPED = 75  # as tools/stages.py has it


def main() -> int:
    """Build what is missing, run the tests, pass their exit code on."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build-minutes", type=float, default=60, help="stop a cold build after that long (default 60)"
    )
    parser.add_argument("--build-only", action="store_true", help="build what is missing, and stop there")
    args, rest = parser.parse_known_args()
    began = time.monotonic()
    try:
        components = ensure(args.build_minutes)
    except MissingComponentError as error:
        print(f"no Collector and Prometheus to run: {error}")
        return SKIPPED
    print(f"{components.otelcol.parent} ({time.monotonic() - began:.0f} s)", flush=True)
    if args.build_only:
        return 0
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "heavy", "tests/integration", *rest], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
