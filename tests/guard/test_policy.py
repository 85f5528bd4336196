"""The behaviour matrix and what a policy accepts."""

from __future__ import annotations

from typing import Any

import pytest

from guard.errors import PolicyError
from guard.policy import CapPolicy, PolicyKind, Threshold

DEFAULT = CapPolicy.adaptive()
MATRIX: list[tuple[str, CapPolicy, int, int | None, Threshold | None]] = [
    ("a hard cap allows its own number, however stuck", CapPolicy.hard(5), 5, 99, None),
    ("a hard cap halts one past it, however diverse", CapPolicy.hard(5), 6, 1, Threshold.EXPLICIT_HARD),
    ("the soft cap itself is allowed, however stuck", DEFAULT, 100, 50, None),
    ("past the soft cap five repeats are allowed", DEFAULT, 101, 5, None),
    ("past the soft cap six repeats halt", DEFAULT, 101, 6, Threshold.SOFT_STUCK),
    ("an unknown level never gates", DEFAULT, 101, None, None),
    ("the backstop itself is allowed", DEFAULT, 1000, 5, None),
    ("the backstop itself halts a stuck turn as stuck", DEFAULT, 1000, 6, Threshold.SOFT_STUCK),
    ("one past the backstop halts a diverse turn", DEFAULT, 1001, 1, Threshold.BACKSTOP),
    ("one past the backstop is the backstop's, stuck or not", DEFAULT, 1001, 6, Threshold.BACKSTOP),
    ("one past the backstop halts at an unknown level", DEFAULT, 1001, None, Threshold.BACKSTOP),
    ("disabled never halts", CapPolicy.disabled(), 10**9, 10**9, None),
    (
        "soft cap 0 lets the signal alone decide",
        CapPolicy.adaptive(soft_cap=0, backstop=9),
        1,
        6,
        Threshold.SOFT_STUCK,
    ),
]


@pytest.mark.parametrize(
    ("policy", "total", "level", "expected"), [row[1:] for row in MATRIX], ids=[r[0] for r in MATRIX]
)
def test_decide(policy: CapPolicy, total: int, level: int | None, expected: Threshold | None) -> None:
    assert policy.decide(total, level) is expected


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a bool is no count", {"soft_cap": True}, "soft_cap"),
    ("a float is no count", {"stuck_at": 6.0}, "stuck_at"),
    ("text is no count", {"backstop": "1000"}, "backstop"),
    ("NaN is no count", {"backstop_multiplier": float("nan")}, "backstop_multiplier"),
    ("a negative soft cap", {"soft_cap": -1}, "soft_cap"),
    ("stuck at none", {"stuck_at": 0}, "stuck_at"),
    ("a multiplier of 0", {"backstop_multiplier": 0}, "backstop_multiplier"),
    ("a backstop below the soft cap", {"soft_cap": 50, "backstop": 49}, "backstop"),
    ("a backstop of 0", {"soft_cap": 0, "backstop": 0}, "backstop"),
    ("soft cap 0 without a backstop", {"soft_cap": 0}, "soft_cap"),
    (
        "multiplier and backstop together",
        {"backstop": 1000, "backstop_multiplier": 10},
        "backstop_multiplier",
    ),
    ("past the largest exact count", {"soft_cap": 2**53 + 1}, "soft_cap"),
    ("a product past the largest exact count", {"soft_cap": 2**53}, "backstop_multiplier"),
    ("an unknown signal", {"signal": "reapeat"}, "signal"),
    ("a signal that is no text", {"signal": ["repeat"]}, "signal"),
]


@pytest.mark.parametrize(("arguments", "named"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_refused_says_which_setting_what_and_what_is_accepted(
    arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        CapPolicy.adaptive(**arguments)
    assert named in caught.value.setting
    assert caught.value.accepted
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "100", None])
def test_a_hard_cap_is_a_positive_integer(value: Any) -> None:
    with pytest.raises(PolicyError, match="max_tool_calls"):
        CapPolicy.hard(value)


def test_defaults_are_the_released_rule() -> None:
    assert (DEFAULT.soft_cap, DEFAULT.stuck_at, DEFAULT.backstop, DEFAULT.signal) == (100, 6, 1000, "repeat")
    assert DEFAULT.kind is PolicyKind.ADAPTIVE


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            CapPolicy.adaptive(signal="no_progress", stuck_at=8, soft_cap=0, backstop=1000),
            "adaptive signal=no_progress soft_cap=0 stuck_at=8 backstop=1000",
        ),
        (CapPolicy.hard(7), "hard hard_cap=7"),
        (CapPolicy.disabled(), "disabled"),
    ],
)
def test_a_policy_and_its_text_name_each_other(policy: CapPolicy, text: str) -> None:
    assert policy.text == text
    assert CapPolicy.from_text(text) == policy
    assert len(policy.hash) == 16
    assert CapPolicy.from_text(text).hash == policy.hash


@pytest.mark.parametrize(
    "text", ["", "hard", "adaptive", "hard hard_cap=x", "adaptive signal=repeat", "soft", "hard hard_cap"]
)
def test_a_text_that_names_no_policy_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        CapPolicy.from_text(text)


def test_the_limit_ahead() -> None:
    assert [DEFAULT.next_limit(total) for total in (1, 100, 101, 1000, 1001)] == [100, 100, 1000, 1000, 1000]
    assert CapPolicy.hard(7).next_limit(9) == 7
    assert CapPolicy.disabled().next_limit(9) is None
