"""Nobody who imports the guard loads a framework, or a file that would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_importing_the_guard_loads_no_integration() -> None:
    say = "import sys, guard.integrations; print([m for m in sys.modules if 'guard.integrations.' in m])"
    done = subprocess.run(
        [sys.executable, "-c", say], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
