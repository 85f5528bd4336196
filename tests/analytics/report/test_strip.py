"""The strip draws what happened, once."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from analytics.report.strip import Strip, letter, strip_svg

STRIP = Strip(turn_id="t", ranks=(None, 0, 1, 0, 1, 0, 9), failed=(3,), changes=(1, 2), halts=(6,))


def _shapes(strip: Strip, cells: int = 50) -> dict[str, int]:
    root = ElementTree.fromstring(strip_svg(strip, alt='a "turn" & <more>', cells=cells))
    return {path.attrib["class"]: path.attrib["d"].count("z") for path in root.iter("path")}


def test_every_call_is_one_cell_and_every_mark_one_shape() -> None:
    assert _shapes(STRIP) == {
        "once": 1, "k0": 3, "k1": 3, "changes": 2, "failed": 1, "halts": 1, "points": 1
    }  # fmt: skip


def test_rows_are_broken_and_no_cell_is_lost() -> None:
    broken = strip_svg(STRIP, alt="", cells=3)
    assert 'viewBox="0 0 37 79"' in broken
    assert _shapes(STRIP, cells=3) == _shapes(STRIP)


def test_letters_stand_in_the_cells_of_repeated_calls() -> None:
    root = ElementTree.fromstring(strip_svg(STRIP, alt=""))
    texts = [(text.text, text.attrib["x"].split()) for text in root.iter("text")]
    assert texts == [("ABABAJ", ["18.5", "30.5", "42.5", "54.5", "66.5", "78.5"])]


@pytest.mark.parametrize(
    ("rank", "text"),
    [
        pytest.param(None, "·", id="a call made once is a dot"),
        pytest.param(0, "A", id="the most repeated is A"),
        pytest.param(51, "z", id="the last letter"),
        pytest.param(52, "+", id="past the alphabet there is one sign for all"),
    ],
)
def test_letters(rank: int | None, text: str) -> None:
    assert letter(rank) == text
