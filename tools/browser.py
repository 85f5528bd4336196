"""`make test-all`'s browser stage: the report's pages in headless Chromium.

Chromium is Debian's package, driven through playwright-core from npm. Where either cannot be had the
stage skips (exit code 75). Pictures lie in build/browser.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from analytics.database import open_database
from analytics.report.build import build_report
from analytics.report.render import to_html, write_page
from analytics.report.turn import build_turn
from analytics.report.turn_policies import turn_policies
from analytics.validation.settings import read_settings
from tests.analytics.evidence_db import build, evidence_rows
from tools.stages import ROOT, SKIPPED

FOLDER = ROOT / "build" / "browser"
# Eleven weeks of three models, some of it enforced, with names that try to break the page.
WEEKS = """
UPDATE turns SET started_at = started_at + (seq % 11) * 604800000000000, ended_at = NULL,
    agent = ['<script>alert(1)</script>', repeat('long-agent-name-', 6), 'b'][1 + seq % 3],
    model = 'model-' || (seq % 2), cluster_id = 'user-' || (seq % 37);
UPDATE loop_events SET enforced = TRUE, mode = 'enforce'
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Make the pages, open them, and pass on what the check says."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = chromium()
    if program is None:
        return _skip("there is no Chromium, and apt-get cannot install it")
    if shutil.which("npm") is None:
        return _skip("there is no npm to fetch playwright-core with")
    shutil.copy(ROOT / "tests/browser/package.json", FOLDER)
    fetched = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=FOLDER, check=False
    )
    if fetched.returncode:
        return _skip("npm cannot fetch playwright-core")
    check = ROOT / "tests/browser/check.mjs"
    command = ["node", str(check), program, str(FOLDER), str(FOLDER), *map(str, _pages())]
    return subprocess.run(command, check=False).returncode


def chromium() -> str | None:
    """The browser, installed first where this is root on Debian; None where it cannot be had."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], check=False, stdout=subprocess.DEVNULL)
        found = shutil.which("chromium")
    return found


def _pages() -> list[Path]:
    """The report of all bundled turns, of ten turns of somebody else's, of some over weeks, and of none."""
    rows = evidence_rows()
    few = [{**row, "source": "an-agent", "label": None} for row in rows[:10]]
    pages = []
    for name, some in (("bundled", rows), ("few", few), ("weeks", few * 60), ("none", [])):
        database = FOLDER / f"{name}.duckdb"
        database.unlink(missing_ok=True)
        build(database, some)
        if name == "weeks":
            with open_database(database, read_only=False) as connection:
                connection.execute(WEEKS)
        with open_database(database) as connection:
            page = FOLDER / f"{name}.html"
            page.write_text(to_html(build_report(connection, read_settings())), encoding="utf-8")
            pages.append(page)
            if name == "bundled":
                halted = "SELECT turn_id FROM loop_events ORDER BY turn_id LIMIT 1"
                (turn_id,) = connection.execute(halted).fetchone() or ("",)
                turn = build_turn(connection, turn_id)
                pages.append(write_page(turn, turn_policies(connection, turn), FOLDER))
    return pages


def _skip(reason: str) -> int:
    print(reason)
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
