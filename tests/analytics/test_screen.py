"""Colours on a terminal, plain text elsewhere, and as the environment asks."""

from __future__ import annotations

import io

import pytest

from analytics.screen import wants_colour


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        pytest.param(_Terminal(), {"TERM": "xterm"}, True, id="a terminal"),
        pytest.param(_Terminal(), {"TERM": "dumb"}, False, id="a dumb terminal"),
        pytest.param(_Terminal(), {"NO_COLOR": "1"}, False, id="NO_COLOR forbids"),
        pytest.param(io.StringIO(), {}, False, id="a pipe"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, True, id="FORCE_COLOR demands"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="both: no"),
    ],
)
def test_colours(
    stream: io.StringIO, environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(stream) is wanted
