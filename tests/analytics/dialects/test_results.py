"""Results by the batch have the identities that the guard gives them one by one."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.dialects import results
from analytics.dialects.base import Seen, row
from analytics.dialects.results import OUTSIDE, Result, identify
from guard.keys import result_id
from guard.masking import CHARACTERS
from tests.guard.test_masking import pieces
from tools.bench.products import Writer


@pytest.fixture(autouse=True, scope="module")
def _few() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "FEW", 0)
        yield


def batch(texts: Iterable[str], error: bool = False) -> list[Result]:
    """The texts after `identify`; each has the identity that the guard gives it."""
    texts = list(texts)
    found = [Result(text, error) for text in texts]
    identify(found)
    for one, text in zip(found, texts, strict=True):
        if one.known is not None:
            assert one.text == ""
            assert one.known == result_id(text, error=error).hex(), repr(text)
    return found


def left(found: Sequence[Result]) -> list[str]:
    return [one.text for one in found if one.known is None]


BEYOND = ["…", "—", "✓", "é", "ß", "猫", "ſ", "İ", "µ", "５", "²", "Ⅷ", "\u0301", "🙂", "\u2028", "ª", "_"]


@given(
    st.lists(st.lists(pieces | st.sampled_from(BEYOND), max_size=12).map("".join), max_size=8), st.booleans()
)
@settings(max_examples=1000, deadline=None)
def test_a_batch_gives_what_the_guard_gives(texts: list[str], error: bool) -> None:
    batch(texts, error)


@pytest.mark.parametrize(
    ("alphabet", "longest"),
    [
        pytest.param(
            ["2026-01-02", "T", " ", "12:30", ":15", ".5", ",", "Z", "+01", ":00", "é"], 5, id="times"
        ),
        pytest.param(["2026", "01", "1", "-", "/", "T", ":", "é", "_"], 5, id="dates"),
        pytest.param(["Mon", "Nov", ",", " ", "3", "23", "2026", "12:30", ".", "é"], 5, id="days of months"),
        pytest.param(["1", "h", "m", "s", " ", ".", "µs", "min", "seconds", "é"], 5, id="durations"),
        pytest.param(["pid", "PrOcess", "proceſs", "pıd", " ", ":", "=", "7", "é", "…"], 5, id="process ids"),
        pytest.param(["a", "7", "[", "]", ":", " ", "é"], 6, id="process ids in brackets"),
        pytest.param(["0x", "a", "F", "1", "g", " ", "é", "…"], 5, id="addresses"),
        pytest.param(["1", "4", "700000000", "123", ".5", " ", "é", "a"], 5, id="seconds since 1970"),
        pytest.param(["a", "F", "1", "é"], 8, id="short ids"),
        pytest.param(["abc", "1", "2", "DE", "-", "é", "g"], 6, id="ids"),
        pytest.param(["0123abcd", "-", "4567", "89AB", "0123456789ab", "é", "1"], 6, id="unique ids"),
    ],
)
def test_every_text_near_a_rule(alphabet: list[str], longest: int) -> None:
    words = [list(itertools.product(alphabet, repeat=length)) for length in range(longest + 1)]
    batch("".join(word) for word in itertools.chain(*words))


def test_ids_of_any_length_and_of_any_order_of_letters_and_digits() -> None:
    texts = ["".join(word) for length in range(5, 10) for word in itertools.product("a1", repeat=length)]
    for length in range(60, 70):
        for letter, digit in itertools.permutations("b2"):
            texts += [letter * at + digit + letter * (length - at - 1) for at in range(length)]
    texts += [text.upper() for text in texts]
    contexts = ("{}", "é{}", "{}é", "_{}", "{}_", "-{}-", "{}.", "…{}…", "0x{}", "{}:12:30")
    batch(context.format(text) for context in contexts for text in texts)


def test_every_letter_and_digit_beyond_ascii_is_known_as_such() -> None:
    every = "".join(chr(one) for one in range(128, sys.maxunicode + 1) if not 0xD800 <= one < 0xE000)
    letters = re.findall(r"\w", every)
    assert len(letters) > 100_000
    for context in ("12:30{}", "{}12:30"):
        outside = pc.match_substring_regex(pa.array(map(context.format, letters)), pattern=OUTSIDE)
        assert pc.all(outside).as_py()
    for one in re.findall(r"\d|(?i:[process]|[pid])", every):
        assert left(batch([f"process{one} 12"])) == [f"process{one} 12"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("ran at 12:30 — naïve café, 5 ms … done ✓", id="letters beyond ASCII in other words"),
        pytest.param("5 µs", id="microseconds"),
        pytest.param(
            "-rw-r--r-- 1 root root 20 Dec  1 13:07 a\n-rw-r--r-- 1 root root 20 Dec  1 2026 b", id="files"
        ),
        pytest.param("a[1] = [7]: 0", id="brackets"),
        pytest.param("a" + "f1" * 30, id="a long id"),
    ],
)
def test_what_is_common_is_found_in_the_batch(text: str) -> None:
    assert left(batch([text])) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("é12:30", id="a letter touches"),
        pytest.param("5 msé", id="a letter touches a unit"),
        pytest.param("٣ and 12:30", id="another digit"),
        pytest.param("on Dec 1", id="a day with nothing behind it"),
        pytest.param("sshd[17]: 12:30", id="a process id in brackets"),
        pytest.param("f1" * 33, id="a word too long for an id"),
        pytest.param("\ud800 12:30", id="half a character"),
        pytest.param("12:30 " * (CHARACTERS // 6 + 1), id="a long text"),
    ],
)
def test_what_the_batch_would_read_otherwise_is_left_to_the_guard(text: str) -> None:
    found = batch([text, "12:30", text])
    assert left(found) == [text, text]
    expected = result_id(text).hex()
    assert [one.identity() for one in found] == [expected, result_id("12:30").hex(), expected]
    assert left(batch([text])) == [text]


def test_a_text_ends_where_it_ends() -> None:
    found = batch(["12:", "30", "", "deadbee", "f1", "on", "é", "12:30", "é", "pid", " 7", "Dec 1", ", 2026"])
    assert left(found) == ["Dec 1"]
    assert len({one.identity() for one in found}) == len(found) - 1, "é is there twice"


def test_the_longest_text_of_a_batch() -> None:
    assert left(batch([("12:30 " * (CHARACTERS // 6 + 1))[:CHARACTERS]])) == []


def test_errors_have_identities_of_their_own() -> None:
    found = [Result("at 12:30", True), Result("at 12:30", False), Result("at 12:31", True)]
    identify(found)
    one, other, again = (result.known for result in found)
    assert one == again == result_id("at 12:30", error=True).hex()
    assert other == result_id("at 12:30").hex() != one


def test_no_result_at_all() -> None:
    assert batch([]) == []


def test_much_is_done_in_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MANY", 1000)
    writer = Writer(random.Random(5))
    texts = [writer.result() for _ in range(200)]
    assert left(batch(texts)) == [text for text in texts if left(batch([text]))]


def test_little_is_left_to_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FEW", 11)
    assert left(batch(["12:30", "12:30"])) == ["12:30", "12:30"]
    assert left(batch(["12:30", "12:301"])) == []


def test_only_the_identity_is_stored() -> None:
    for known in (True, False):
        result = Result("the text", False)
        if known:
            identify([result])
        stored = row("d", Seen(group="g", id="i", kind="result", data={"result": result}))
        assert stored[-1] == f'{{"result":"{result_id("the text").hex()}"}}'
        assert result.text == ""


def test_a_process_loads_arrow_for_many_results_only_and_never_pandas() -> None:
    code = (
        "import sys\n"
        "from analytics.dialects.results import Result, identify\n"
        "identify([Result('12:30', False)] * 100)\n"
        "assert 'pyarrow' not in sys.modules\n"
        "many = [Result('12:30 ' * 1000, False) for _ in range(50)]\n"
        "identify(many)\n"
        "assert None not in [one.known for one in many]\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
