"""Masking: the fast way and the sorted pattern that it asks mask what the plain list of alternatives does."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from guard.masking import CHARACTERS, VOLATILE, masked
from tools.bench.products import Writer

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
PLAIN = re.compile(
    rf"""\b(?:
    \d{{4}}[-/]\d{{2}}[-/]\d{{2}} (?:[T\x20]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?)?
    (?:\x20?(?:Z\b|[+-]\d{{2}}:?\d{{2}}\b))?
  | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\x20+(?:\d{{1,2}}\x20+)?{MONTH}\b(?:\x20+\d{{1,4}}\b){{0,2}}
  | {MONTH}\x20{{1,2}}\d{{1,2}}\b(?=,?\x20\d)
  | \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:[.,]\d+)?\b
  | 1[4-9]\d{{8}}(?:\.\d+|\d{{3}}|\d{{6}}|\d{{9}})?\b
  | (?:\d+h\x20?)?\d+m\x20?\d+(?:\.\d+)?s\b
  | \d+(?:\.\d+)?\x20?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b
  | (?i:pid|process)[\x20:=\#]{{1,2}}\d+\b
  | (?<=[A-Za-z])\[\d+\](?=:)
  | 0x[0-9a-fA-F]+\b
  | [0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}\b
  | (?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,64}}\b
  | (?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{{7,64}}\b
    )""",
    re.VERBOSE,
)

TIMES = ["2026-01-02", "T03:04:05", ".678", "Z", "+01:00", "Mon,", "Tue", "Jan", " 12", "2026", "1:02"]
SPANS = ["1500000000", "123", "5m 3.2s", "1h", "17 ms", "µs", "sec", "pid", "PID: ", "Process=", "#", "42"]
IDS = ["sshd", "[17]", "0x", "7f3a", "0XFF", "deadbeef1", "DEADBEEF", "1234567a", "1234567"]
EDGES = [
    "Dec",
    "Nov  ",
    "Sep 1",
    "Fri Oct",
    "Sat, 3 Mar",
    "abcdefab-",
    "1234-",
    "-abcd-abcd-abcd-abcdefabcdef",
]
EDGES += [
    "a1",
    "abcde1",
    "1a2b3c4",
    "0x",
    "0000",
    "1700000000.5",
    "1700000000000",
    ".5",
    "T",
    "h ",
    "m ",
    " s",
]
EDGES += [
    "pid ",
    "process: ",
    "PROCESS= ",
    "pıd 5",
    "proceſſ 3",
    "pid#",
    "]:",
    "::",
    "e5",
    "x86",
    "12.",
    "…",
    "１",
]
REST = [
    "0123abcd-0123-4567-89ab-0123456789ab",
    ":",
    " ",
    "-",
    "_",
    "\n",
    "٣",
    "é",
    "[",
    "word",
    "P",
    "f",
    "3",
    "\ud800",
]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
pieces = st.one_of(
    st.sampled_from([*TIMES, *SPANS, *IDS, *EDGES, *MONTHS, *REST]),
    st.text(alphabet="0123456789abcdefABCDEF:-[]. xZTpPmsh\n", max_size=6),
)


@given(st.lists(pieces, max_size=12).map("".join))
@settings(max_examples=2000, deadline=None)
@example("1700000000.5.678h ]:+0100")  # what is asked for ends behind what the fast way passed
@example("Cabcde1f-abcd-abcd-abcd-abcdefabcdef")
@example("abcdefab-abcd-abcd-abcd-abcdefabcdef and Mon Jan without a digit")
def test_every_way_masks_what_the_plain_one_does(text: str) -> None:
    expected = PLAIN.sub("~", text)
    assert masked(text) == expected
    assert VOLATILE.sub("~", text) == expected


@pytest.mark.parametrize("text", ["%s 3, 2026", "%s  3 04:05", "Sun, 3 %s 2026", "Wed %s", "on%s 3 4"])
@pytest.mark.parametrize("month", MONTHS)
def test_every_month_is_known(text: str, month: str) -> None:
    expected = PLAIN.sub("~", text % month)
    assert masked(text % month) == expected
    assert ("~" in expected) == (not text.startswith("on"))


@pytest.mark.parametrize("day", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
def test_every_day_is_known(day: str) -> None:
    assert masked(f"a\n{day}, 3 Jun 2026\nb {day} May 4") == "a\n~\nb ~"


def test_results_as_tools_give_them_are_masked_alike() -> None:
    writer = Writer(random.Random(11))
    for _ in range(300):
        text = writer.result()
        assert masked(text) == PLAIN.sub("~", text)


@pytest.mark.parametrize(
    "text",
    ["a0" * 60_000 + "g", "1" * 120_000, "1.1" * 40_000, "1m " * 40_000, "Mon " * 30_000, "f-" * 60_000,
     "é\n" * 40_000, "pid " * 30_000, "0x" * 60_000, "abcdefab-" * 14_000, "[1]:" * 30_000, "h[1]:" * 24_000],
    ids=lambda text: text[:4],
)  # fmt: skip
def test_hostile_texts_take_no_more_than_their_length(text: str) -> None:
    assert masked(text) == PLAIN.sub("~", text)


def test_what_follows_the_first_characters_stays() -> None:
    text = "12:30 " * (CHARACTERS // 6 + 20)
    assert masked(text) == PLAIN.sub("~", text[:CHARACTERS]) + text[CHARACTERS:]
