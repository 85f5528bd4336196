"""Where the bench's programs cannot be had, the stage says why and skips; where they are, nothing is built."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tools.integration import components
from tools.integration.__main__ import SKIPPED, main

PROGRAMS = ("otelcol", "prometheus", "promtool")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return components.cache_folder()


def test_the_cache_lies_where_the_platform_says_and_changes_with_the_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    assert cache.parent == tmp_path / "turncap"
    monkeypatch.setattr(components, "PROMETHEUS", "github.com/prometheus/prometheus@v0.1.0")
    assert components.cache_folder() != cache


def test_what_is_in_the_cache_is_used_and_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    cache.mkdir(parents=True)
    for name in PROGRAMS:
        (cache / name).touch(mode=0o755)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert components.ensure(minutes=1).promtool == cache / "promtool"


def test_a_program_that_is_missing_is_missed(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "otelcol").touch(mode=0o755)
    assert components.find() is None


def test_without_go_the_stage_skips_with_that_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["integration"])
    assert main() == SKIPPED
    assert "no Go toolchain" in capsys.readouterr().out.splitlines()[-1]


def _go(folder: Path, answer: str) -> Path:
    program = folder / "go"
    program.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("echo go1.19.8", "too old"),
        (
            '[ "$1" = env ] && echo go1.26.1 || { echo "module lookup disabled"; exit 1; }',
            "module lookup disabled",
        ),
        (
            '[ "$1" = env ] && echo go1.26.1 || { echo $$ > "$(dirname "$0")/pid"; exec sleep 30; }',
            "time limit",
        ),
    ],
    ids=["an old toolchain", "a build that fails", "a build that takes too long"],
)
def test_a_build_that_is_not_to_be_had_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, reason: str
) -> None:
    program = _go(tmp_path, answer)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    with pytest.raises(components.MissingComponentError, match=reason):
        components.ensure(minutes=0.02)
    left = tmp_path / "pid"
    if left.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(left.read_text(encoding="utf-8")), 0)
