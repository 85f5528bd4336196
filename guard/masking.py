"""What is volatile in a result: it changes from one run to the next although nothing happened.

`VOLATILE` says what that is: timestamps, dates, durations, process ids and hexadecimal ids; other digits
stay. Tried at each character it takes most of the time in which a result is read, so `masked` goes another
way to the same text. Nearly everything volatile begins at a digit or a few letters before one: in a copy
whose digits are all `0` the engine of regular expressions leaps from digit to digit. Lines with what is
volatile without such a digit, or with letters beyond ASCII, are left to `VOLATILE`; nothing volatile spans
lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

CHARACTERS = 1 << 18  # of a text, from its beginning, that are masked; what follows stays as it is
MASK = "~"

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_UNIT = "(?:ns|us|{}ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)"
# A match can begin only where the first line's look-ahead holds: most positions of most texts are given
# up there, and the rest is sorted by the first character too.
VOLATILE = re.compile(
    rf"""(?=[\dA-FJM-PSTWa-fp\[])(?:
    \b(?:
      (?=\d)(?:
        \d{{4}}[-/]\d{{2}}[-/]\d{{2}} (?:[T\x20]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?)?
        (?:\x20?(?:Z\b|[+-]\d{{2}}:?\d{{2}}\b))?
      | \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:[.,]\d+)?\b
      | 1[4-9]\d{{8}}(?:\.\d+|\d{{3}}|\d{{6}}|\d{{9}})?\b  # seconds … nanoseconds since 1970
      | (?:\d+h\x20?)?\d+m\x20?\d+(?:\.\d+)?s\b
      | \d+(?:\.\d+)?\x20?{_UNIT.format("µs|")}\b
      | 0x[0-9a-fA-F]+\b
      )
    | (?=[A-Z])(?:
        (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\x20+(?:\d{{1,2}}\x20+)?{MONTH}\b(?:\x20+\d{{1,4}}\b){{0,2}}
      | {MONTH}\x20{{1,2}}\d{{1,2}}\b(?=,?\x20\d)
      )
    | (?i:pid|process)[\x20:=\#]{{1,2}}\d+\b
    | (?=[0-9a-fA-F]{{7}})(?:
        [0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}\b
      | (?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,64}}\b
      | (?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{{7,64}}\b
      )
    )
  | (?<=[A-Za-z])\[\d+\](?=:)  # program[pid]:
    )""",
    re.VERBOSE,
)


def _more(letters: str) -> str:
    """Behind the first digit of a word that begins with letters: as much more as makes seven characters."""
    return "|".join(
        rf"(?<=[{letters}]{{{before}}}0)(?=[0{letters}]{{{6 - before}}})" for before in range(1, 7)
    )


# What begins a known number of characters before a digit: the group's name says how many.
_BEHIND_WORDS = rf"""(?<=[\x20:=\#\[]0)(?:
      (?<=[A-Za-z].0)(?:
        (?<=\b[A-Z][a-z][a-z]\x200)(?<={MONTH}\x200)(?P<day_4>0?)\b(?=,?\x200)
      | (?<=[dD][^\[]0)(?<=\b(?i:pid).0)(?P<pid_4>0*+)\b
      | (?<=[sS][^\[]0)(?<=\b(?i:process).0)(?P<process_8>0*+)\b
      | (?<=\[0)(?P<bracket_1>0*+)\](?=:)
      )
    | (?<=[A-Za-z][\x20:=\#][^\[]0)(?:
        (?<=\b[A-Z][a-z][a-z]\x20\x200)(?<={MONTH}\x20\x200)(?P<day_5>0?)\b(?=,?\x200)
      | (?<=[dD]..0)(?<=\b(?i:pid)..0)(?P<pid_5>0*+)\b
      | (?<=[sS]..0)(?<=\b(?i:process)..0)(?P<process_9>0*+)\b
      )
    ) |"""


def _at_digits(behind_words: str) -> re.Pattern[bytes]:
    """What begins at or before a digit, where every digit is `0`. The name of the group that matched says
    more: how many characters before, or that of a word with `lower`, `upper` or `mixed` letters before; and
    with `ask`, that `VOLATILE` must say whether it is volatile. The order of what begins at the same place is
    that of `VOLATILE`, where it matters."""
    unit = _UNIT.format("")
    return re.compile(
        rf"""0(?:
      (?<=\b0)(?:{behind_words} 0{{0,8}}+(?:
        \x20{unit}\b
      | :(?<!000:)00(?::00)?(?:[.,]0+)?\b
      | [-/](?:
          (?<=\b0000.)00[-/]00 (?:[T\x20]00:00(?::00(?:[.,]0+)?)?)? (?:\x20?(?:Z\b|[+-]00:?00\b))?
        | (?<=\b0{{8}}-)(?P<ask_uuid>)
        )
      | \.0++\x20?{unit}\b
      | [hmnsu](?P<ask_unit>)
      | [a-f][0a-f]*+\b(?:(?=-)(?P<ask_lower>)|(?<=[0a-f]{{7}})(?<![0a-f]{{65}}))
      | [A-F][0A-F]*+\b(?:(?=-)(?P<ask_upper>)|(?<=[0A-F]{{7}})(?<![0A-F]{{65}}))
      | [a-fA-F][0a-fA-F]*+(?=-)(?P<ask_mixed>)
      | [0x](?P<ask_long>)\w*+
      ))
    | (?<=[a-fA-F]0)(?:
        (?<=[a-f]0)(?:{_more("a-f")})[0a-f]{{0,63}}+\b(?P<lower>)
      | (?<=[A-F]0)(?:{_more("A-F")})[0A-F]{{0,63}}+\b(?P<upper>)
      | [0a-fA-F]{{0,7}}+(?=-)(?P<mixed>)
      )
      )""".encode(),
        re.VERBOSE | re.DOTALL,
    )


_PLAIN, _WITH_WORDS = _at_digits(""), _at_digits(_BEHIND_WORDS)

# Words, where the capitals that they begin with are `M`: those before digits, and days of the week, which
# need none. A UUID whose first eight characters are letters has its first digit too late as well.
_WORDS = re.compile(
    rb"M(?:(?P<day>(?:on|ue|ed|hu|ri|at|un)[, ])"
    rb"|(?P<month>(?:an|eb|ar|Mr|ay|un|ul|ug|eM|ct|ov|ec) )|[iI][dDM][ :=#]|[rR][oOM][cC][eE][sSM]{2}[ :=#])"
)
_LETTERS_AND_DASH = re.compile(rb"-(?<=[a-fA-F]{8}-)")

_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_CAPITALS_ALIKE = bytes.maketrans(b"JFASONDTWpP", b"M" * 11)
_LETTERS = {"lower": b"abcdef", "upper": b"ABCDEF", "mixed": b"abcdefABCDEF"}
_ENDS_IN_WORD = re.compile(rb"\w\Z")
_DAYS = frozenset(b"MTWFS")
_MONTHS = frozenset(b"JFMASOND")
_ASCII = bytes(range(128))
_LETTER = re.compile(r"\w")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# What means more than a letter to VOLATILE: digits, the sign of micro, and what is an i or s in any case.
_SPECIAL = re.compile(r"[\dµſıİ]")


def masked(text: str) -> str:
    """`text` with a mask in place of everything volatile.

    Only the first 262,144 characters are masked, so that no result takes unbounded time.
    """
    if len(text) > CHARACTERS:
        return masked(text[:CHARACTERS]) + text[CHARACTERS:]
    if text.isascii():
        flat = text.encode()
    else:
        beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
        beyond_ascii = beyond.decode("utf-8", "surrogatepass")
        if _SPECIAL.search(beyond_ascii):
            return _by_line(text, (found.start() for found in _SPECIAL.finditer(text) if found[0] > "\x7f"))
        if _LETTER.search(beyond_ascii):
            flat = _BEYOND_ASCII.sub(_stand_ins, text).encode()
        else:
            flat = text.encode("ascii", "replace")  # a question mark is no part of a word either
    odd: list[int] = []
    pattern = _WITH_WORDS if b"]:" in flat else _PLAIN
    for found in _WORDS.finditer(flat.translate(_CAPITALS_ALIKE)):
        capital = flat[found.start()]
        if found.lastgroup == "day" and capital in _DAYS:
            odd.append(found.start())
        elif found.lastgroup is None or capital in _MONTHS:
            pattern = _WITH_WORDS
    if flat.count(b"-") > 3:
        odd += [found.start() for found in _LETTERS_AND_DASH.finditer(flat)]
    return _by_line(text, sorted(odd)) if odd else _masked(text, flat, pattern)


def _stand_ins(beyond_ascii: re.Match[str]) -> str:
    """An ASCII character for each: part of a word if it is."""
    return "".join("_" if _LETTER.match(one) else "?" for one in beyond_ascii[0])


def _by_line(text: str, odd: Iterable[int]) -> str:
    """The lines that hold a place of `odd` masked by `VOLATILE`, what lies between by `masked`."""
    pieces: list[str] = []
    done = 0
    for at in odd:
        if at >= done:
            begin, end = text.rfind("\n", done, at) + 1 or done, text.find("\n", at)
            end = len(text) if end < 0 else end
            pieces += (masked(text[done:begin]), VOLATILE.sub(MASK, text[begin:end]))
            done = end
    pieces.append(masked(text[done:]))
    return "".join(pieces)


def _masked(text: str, flat: bytes, pattern: re.Pattern[bytes]) -> str:
    """`masked` for what holds nothing odd; `flat` is the same with a byte a character."""
    pieces: list[str] = []
    done = 0
    alike = flat.translate(_DIGITS_ALIKE)
    finder = pattern.finditer(alike)
    while (found := next(finder, None)) is not None:
        begin, end = found.span()
        if found.lastindex is None:
            pieces.append(text[done:begin])
            done = end
            continue
        kind = str(found.lastgroup)
        if kind[-1].isdigit():
            begin -= int(kind[-1])
        else:
            ask = True
            if kind[:3] != "ask":
                ask = flat[end : end + 1] == b"-"
                begin = _word(flat, begin, _LETTERS["mixed" if ask else kind])
                if begin < 0 or (end - begin > 64 and not ask):
                    continue
            if ask:
                asked = VOLATILE.match(text, begin)
                if asked is None:
                    continue
                end = asked.end()
                finder = pattern.finditer(alike, end)
        pieces.append(text[done:begin])
        done = end
    if not done:
        return text
    pieces.append(text[done:])
    return MASK.join(pieces)


def _word(flat: bytes, at: int, letters: bytes) -> int:
    """Where the word begins that has nothing but some `letters` before `at`; -1 when it has more than those,
    or more than 63 of them: nothing volatile has."""
    before = flat[max(0, at - 64) : at]
    rest = before.rstrip(letters)
    return -1 if _ENDS_IN_WORD.search(rest) or (not rest and at > 63) else at - len(before) + len(rest)
