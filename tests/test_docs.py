"""Every page: links lead somewhere, pages are found, and commands are as they are written."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.cli import COMMANDS, build_parser
from tools.stages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("dashboards/**/*.md")])
LINK = re.compile(r"\]\(((?!https?://|#)[^)#]+)")
CODE = re.compile(r"(?m)^```[a-z]*\n((?:(?!```).*\n)*)```|((?:^ {4}.*\n)+)|`([^`]+)`")
COMMAND = re.compile(r"\bturncap ([a-z]+)([^|&;#\n]*)")
OPTION = re.compile(r"(?<=\s)--[a-z-]+")
MADE = re.compile(r"(?m)^\s*make ([a-z][a-z-]*)\b(?!=)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code(page: Path) -> Iterator[str]:
    """What is set as code; a break inside a span is a space."""
    for block, indented, span in CODE.findall(page.read_text(encoding="utf-8")):
        yield block or indented or span.replace("\n", " ")


def options(command: str) -> set[str]:
    """Every option of a command, those of its actions included."""
    parsers = [build_parser(only=command)]
    found: set[str] = set()
    while parsers:
        parser = parsers.pop()
        for action in parser._actions:
            found.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                inner = action.choices.items()
                parsers += [one for key, one in inner if key == command or key not in COMMANDS]
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_is_led_to() -> None:
    led_to = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert [name(page) for page in PAGES if page.name != "README.md" and page not in led_to] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_are_as_written(page: Path) -> None:
    for text in code(page):
        for command, rest in COMMAND.findall(text):
            assert command in COMMANDS, text
            assert set(OPTION.findall(rest)) <= options(command), text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_targets_of_make_are_there(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert {target for text in code(page) for target in MADE.findall(text)} <= targets
