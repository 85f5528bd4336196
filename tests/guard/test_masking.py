"""Masking: the sorted pattern of `guard.keys` masks what the plain list of its alternatives masks."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from guard.keys import masked

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
]
pieces = st.one_of(
    st.sampled_from([*TIMES, *SPANS, *IDS, *REST]),
    st.text(alphabet="0123456789abcdefABCDEF:-[]. xZTpPmsh\n", max_size=6),
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_the_sorted_pattern_masks_what_the_plain_one_does(text: str) -> None:
    assert masked(text) == PLAIN.sub("~", text)
