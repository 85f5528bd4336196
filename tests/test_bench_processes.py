"""What the bench starts does not outlive it, even where the bench is killed and can clean up nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.integration.running import ROOT, bound

PARENT = """
import subprocess, sys
from tools.integration.running import bound
child = subprocess.Popen(bound([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]))
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_program_dies_with_the_bench_that_started_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as said:
        child = max(int(said.readline()), int(said.readline()))  # the child says 1 once it runs
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def test_without_setpriv_a_program_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert bound(["true", Path("a")]) == ["true", "a"]


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
