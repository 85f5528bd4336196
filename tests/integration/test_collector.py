"""The Collector accepts every configuration that is shipped or shown."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.dashboards.reading import HOME
from tools.integration.bench import OVERLAY
from tools.integration.components import Components

pytestmark = [pytest.mark.heavy]

SHIPPED = HOME / "collector"
SHOWN = [
    (path.name, block)
    for path in sorted((HOME.parent / "docs").glob("*.md"))
    for block in re.findall(r"```yaml\n(receivers:.*?)```", path.read_text(encoding="utf-8"), re.S)
]
PORTS = dict.fromkeys(("BENCH_SCRAPED", "BENCH_PROMOTED", "BENCH_UNLUCKY"), "127.0.0.1:0")
ADDRESSES = dict.fromkeys(("BENCH_REMOTE_WRITE", "BENCH_DOTTED"), "http://127.0.0.1:9")


def _validate(components: Components, *files: Path) -> str:
    command = [
        str(components.otelcol),
        "validate",
        *(word for file in files for word in ("--config", str(file))),
    ]
    done = subprocess.run(command, env=PORTS | ADDRESSES, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "more", [[], [SHIPPED / "stores.yaml"], [OVERLAY]], ids=["alone", "with stores", "bench"]
)
def test_what_is_shipped_is_accepted(components: Components, more: list[Path]) -> None:
    assert _validate(components, SHIPPED / "config.yaml", *more) == ""


@pytest.mark.parametrize(("name", "text"), SHOWN, ids=[name for name, _ in SHOWN])
def test_what_a_document_shows_is_accepted(
    components: Components, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    assert _validate(components, tmp_path / "config.yaml") == ""


def test_append_and_rotation_together_are_refused(components: Components, tmp_path: Path) -> None:
    ((_, text),) = [shown for shown in SHOWN if shown[0] == "collect.md"]
    (tmp_path / "config.yaml").write_text(
        text.replace("rotation:", "append: true\n    rotation:"), encoding="utf-8"
    )
    assert "append and rotation" in _validate(components, tmp_path / "config.yaml")
