"""`make test-all`'s notebook stage: every notebook runs, and no number in it differs from what is committed.

    python -m tools.notebooks          run and compare
    python -m tools.notebooks --write  run and write the outputs back

Pictures and words are not compared. Where the notebook packages cannot be installed the stage skips (exit
code 75).
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.stages import ROOT, SKIPPED

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NEEDED = ("nbclient", "nbformat", "ipykernel", "ipywidgets")
PICTURES = ("image/svg+xml", "image/png")


def main(words: list[str]) -> int:
    """Run each notebook; 1 when one fails or says something else than before."""
    if any(find_spec(name) is None for name in NEEDED):
        install = [sys.executable, "-m", "pip", "install", "-q", "-e", f"{ROOT}[notebooks]"]
        if subprocess.run(install, check=False).returncode:
            print("the notebook packages cannot be installed")
            return SKIPPED
    # The bundled turns as this tree exports, loads and judges them.
    demo = [sys.executable, "-m", "analytics", "demo", "--out", str(ROOT / "build" / "demo")]
    subprocess.run(demo, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    failures = sum(_run(path, write="--write" in words) for path in NOTEBOOKS)
    print(f"{len(NOTEBOOKS) - failures} of {len(NOTEBOOKS)} notebooks show the numbers they showed before")
    moved = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "heavy",
        str(ROOT / "tests/analytics/test_explore.py"),
    ]
    return 1 if failures or subprocess.run(moved, cwd=ROOT, check=False).returncode else 0


def _run(path: Path, *, write: bool) -> bool:
    """Whether the notebook failed, or differs (never when writing)."""
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    before = nbformat.read(path, as_version=4)
    after = nbformat.read(path, as_version=4)
    os.environ["TURNCAP_STATIC"] = "1"
    try:
        nbclient.NotebookClient(
            after, timeout=300, resources={"metadata": {"path": str(path.parent)}}
        ).execute()
    except nbclient.exceptions.CellExecutionError as error:
        print(f"{path.name}: a cell fails: {error}")
        return True
    if write:
        for cell in after.cells:
            cell.metadata.pop("execution", None)
        after.metadata["language_info"] = {"name": "python"}
        nbformat.write(after, path)
        return False
    difference = list(
        difflib.unified_diff(
            numbers(before), numbers(after), f"{path.name}, committed", "now", lineterm="", n=1
        )
    )
    print("\n".join(difference[:60]))
    return bool(difference)


def numbers(notebook: Any) -> list[str]:
    """The numbers a notebook puts out, a line each with its cell; none of pictures."""
    found = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if any(kind in data for kind in PICTURES):
                continue
            text = output.get("text") or data.get("text/plain", "")
            if output.get("name") != "stderr":
                found += [f"cell {number}: {one}" for one in re.findall(r"\d[\d,.]*\d|\d", text)]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
