"""Colours on a terminal, plain text elsewhere, and as the environment asks."""

from __future__ import annotations

import io

import pytest

from analytics.screen import steps, wants_colour


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


def _interrupted(stream: io.StringIO) -> None:
    with steps(stream) as say:
        say("replaying")
        raise KeyboardInterrupt


def test_steps_are_told_on_a_terminal_and_wiped_away() -> None:
    terminal, pipe = _Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with pytest.raises(KeyboardInterrupt):
            _interrupted(stream)
    assert terminal.getvalue() == "\r\x1b[Kreplaying …\r\x1b[K"
    assert pipe.getvalue() == ""
