"""Settings from arguments and environment: who beats whom, what is accepted, what is said of the rest."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import pytest

from guard import CapPolicy, PolicyError, ToolCallGuard
from guard.policy import Mode
from guard.settings import VARIABLES, Settings, resolve

HARD = "TURNCAP_MAX_TOOL_CALLS_PER_TURN"
DEFAULT = CapPolicy.adaptive()


def settings(environ: dict[str, str], policy: CapPolicy | None = None, **arguments: Any) -> Settings:
    return resolve(arguments, environ, policy)


POLICIES: list[tuple[str, dict[str, str], dict[str, Any], CapPolicy]] = [
    ("nothing said: the released rule", {}, {}, DEFAULT),
    ("None as argument is nothing said", {}, {"max_tool_calls": None, "soft_cap": None}, DEFAULT),
    ("empty in the environment is nothing said", {HARD: "", "TURNCAP_SOFT_CAP": "  "}, {}, DEFAULT),
    ("an explicit 100 is hard", {HARD: "100"}, {}, CapPolicy.hard(100)),
    ("blanks around a number are allowed", {HARD: "  7\t"}, {}, CapPolicy.hard(7)),
    ("a sign is allowed", {HARD: "+7"}, {}, CapPolicy.hard(7)),
    ("0 switches off", {HARD: "0"}, {}, CapPolicy.disabled()),
    ("less than 0 switches off", {HARD: "-1"}, {}, CapPolicy.disabled()),
    ("an argument of 0 switches off", {}, {"max_tool_calls": 0}, CapPolicy.disabled()),
    ("an argument beats the environment", {HARD: "5"}, {"max_tool_calls": 9}, CapPolicy.hard(9)),
    (
        "an argument beats even what the environment says badly",
        {"TURNCAP_SOFT_CAP": "many"},
        {"soft_cap": 9},
        CapPolicy.adaptive(soft_cap=9),
    ),
    (
        "setting by setting",
        {"TURNCAP_SOFT_CAP": "50", "TURNCAP_STUCK_AT": "4"},
        {"stuck_at": 7},
        CapPolicy.adaptive(soft_cap=50, stuck_at=7),
    ),
    (
        "every adaptive setting by the environment",
        {
            "TURNCAP_SOFT_CAP": "0",
            "TURNCAP_STUCK_AT": "8",
            "TURNCAP_BACKSTOP": "1000",
            "TURNCAP_SIGNAL": "no_progress",
        },
        {},
        CapPolicy.adaptive(soft_cap=0, stuck_at=8, backstop=1000, signal="no_progress"),
    ),
    (
        "the multiplier by the environment",
        {"TURNCAP_BACKSTOP_MULTIPLIER": "3"},
        {"soft_cap": 20},
        CapPolicy.adaptive(soft_cap=20, backstop=60),
    ),
    ("the largest count", {HARD: str(2**53)}, {}, CapPolicy.hard(2**53)),
]


@pytest.mark.parametrize(
    ("environ", "arguments", "expected"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES]
)
def test_the_policy_in_force(environ: dict[str, str], arguments: dict[str, Any], expected: CapPolicy) -> None:
    assert settings(environ, **arguments).policy == expected


REFUSED: list[tuple[str, dict[str, str], dict[str, Any], tuple[str, ...]]] = [
    ("no integer", {HARD: "2.5"}, {}, (HARD, "'2.5'", "decimal integer")),
    ("no decimal integer", {HARD: "0x10"}, {}, (HARD,)),
    ("underscores", {HARD: "1_000"}, {}, (HARD,)),
    ("digits of another script", {HARD: "１００"}, {}, (HARD,)),
    ("two numbers", {"TURNCAP_SOFT_CAP": "1 2"}, {}, ("TURNCAP_SOFT_CAP",)),
    ("past the largest", {HARD: str(2**53 + 1)}, {}, (HARD, str(2**53))),
    ("far past the largest", {"TURNCAP_STUCK_AT": "9" * 400}, {}, ("TURNCAP_STUCK_AT",)),
    ("out of range names the variable", {"TURNCAP_STUCK_AT": "0"}, {}, ("TURNCAP_STUCK_AT", "from 1")),
    ("a bool as argument", {}, {"max_tool_calls": True}, ("max_tool_calls", "True")),
    ("a float as argument", {}, {"max_tool_calls": 100.0}, ("max_tool_calls", "100.0")),
    ("NaN as argument", {}, {"soft_cap": float("nan")}, ("soft_cap", "nan")),
    ("text as argument", {}, {"stuck_at": "6"}, ("stuck_at", "'6'")),
    (
        "hard and adaptive, both by the environment",
        {HARD: "5", "TURNCAP_SOFT_CAP": "5"},
        {},
        (HARD, "TURNCAP_SOFT_CAP"),
    ),
    (
        "hard by argument, adaptive by the environment",
        {"TURNCAP_BACKSTOP": "50"},
        {"max_tool_calls": 5},
        ("max_tool_calls", "TURNCAP_BACKSTOP"),
    ),
    (
        "hard by the environment, adaptive by argument",
        {HARD: "5"},
        {"signal": "no_progress"},
        (HARD, "signal"),
    ),
    ("switched off and adaptive", {HARD: "0"}, {"stuck_at": 5}, (HARD, "stuck_at")),
    (
        "multiplier and backstop from two sources",
        {"TURNCAP_BACKSTOP_MULTIPLIER": "3"},
        {"backstop": 50},
        ("TURNCAP_BACKSTOP_MULTIPLIER", "backstop"),
    ),
    ("soft cap 0 without a backstop", {"TURNCAP_SOFT_CAP": "0"}, {}, ("TURNCAP_SOFT_CAP", "backstop")),
    ("a backstop below the soft cap", {"TURNCAP_BACKSTOP": "99"}, {}, ("TURNCAP_BACKSTOP", "from 100")),
    ("an unknown signal", {"TURNCAP_SIGNAL": "repeats"}, {}, ("TURNCAP_SIGNAL", "repeat, recent_repeat")),
    ("an unknown mode", {"TURNCAP_MODE": "Shadow"}, {}, ("TURNCAP_MODE", "enforce or shadow")),
    ("a mode that is no text", {}, {"mode": 1}, ("mode", "enforce or shadow")),
    ("unknown events", {"TURNCAP_EVENTS": "metrics"}, {}, ("TURNCAP_EVENTS", "both or logs or spans")),
    ("a rate past 1", {"TURNCAP_HOLDOUT_RATE": "5"}, {}, ("TURNCAP_HOLDOUT_RATE", "from 0 to 1")),
    ("a rate below 0", {}, {"backstop_holdout_rate": -0.1}, ("backstop_holdout_rate",)),
    ("a rate that is no number", {"TURNCAP_BACKSTOP_HOLDOUT_RATE": "5%"}, {}, ("TURNCAP_BACKSTOP_HOLDOUT",)),
    ("a rate that is NaN", {"TURNCAP_HOLDOUT_RATE": "nan"}, {}, ("TURNCAP_HOLDOUT_RATE",)),
    ("a rate as text", {}, {"holdout_rate": "0.1"}, ("holdout_rate", "'0.1'")),
    ("a rate that is a bool", {}, {"holdout_rate": True}, ("holdout_rate",)),
    ("an empty secret", {}, {"digest_secret": ""}, ("digest_secret", "not empty")),
]


@pytest.mark.parametrize(
    ("environ", "arguments", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_is_refused_names_the_setting_by_its_source(
    environ: dict[str, str], arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(PolicyError) as caught:
        settings(environ, **arguments)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.setting
    assert caught.value.accepted
    assert len(str(caught.value)) < 400


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(PolicyError) as caught:
        settings({}, digest_secret=["hunter2"])
    assert "hunter2" not in str(caught.value)


OTHERS: list[tuple[str, dict[str, str], dict[str, Any], str, Any]] = [
    ("enforce by default", {}, {}, "mode", Mode.ENFORCE),
    ("shadow by the environment", {"TURNCAP_MODE": " shadow "}, {}, "mode", Mode.SHADOW),
    ("an argument beats it", {"TURNCAP_MODE": "shadow"}, {"mode": "enforce"}, "mode", Mode.ENFORCE),
    ("a Mode is a mode", {}, {"mode": Mode.SHADOW}, "mode", Mode.SHADOW),
    ("nothing is held out by default", {}, {}, "holdout_rate", 0.0),
    ("a rate by the environment", {"TURNCAP_HOLDOUT_RATE": "0.25"}, {}, "holdout_rate", 0.25),
    ("a rate of 1", {}, {"holdout_rate": 1}, "holdout_rate", 1.0),
    ("a rate as a Decimal", {}, {"holdout_rate": Decimal("0.5")}, "holdout_rate", 0.5),
    (
        "the backstop's own",
        {"TURNCAP_BACKSTOP_HOLDOUT_RATE": ".5"},
        {},
        "backstop_holdout_rate",
        0.5,
    ),
    ("no backstop is held out by default", {}, {}, "backstop_holdout_rate", 0.0),
    ("a salt", {"TURNCAP_HOLDOUT_SALT": "eu"}, {}, "holdout_salt", "eu"),
    ("a secret", {"TURNCAP_DIGEST_SECRET": "s"}, {}, "digest_secret", b"s"),
    ("a secret in bytes", {}, {"digest_secret": b"\xff"}, "digest_secret", b"\xff"),
    ("events go both ways by default", {}, {}, "events", "both"),
    ("events to logs", {"TURNCAP_EVENTS": "logs"}, {}, "events", "logs"),
]


@pytest.mark.parametrize(
    ("environ", "arguments", "field", "expected"), [r[1:] for r in OTHERS], ids=[r[0] for r in OTHERS]
)
def test_the_other_settings(
    environ: dict[str, str], arguments: dict[str, Any], field: str, expected: Any
) -> None:
    assert getattr(settings(environ, **arguments), field) == expected


def test_without_a_secret_the_process_has_one_and_a_long_one_is_cut_by_hashing() -> None:
    assert settings({}).digest_secret == settings({}).digest_secret
    assert len(settings({}).digest_secret) == 32
    long = settings({}, digest_secret="x" * 1_000).digest_secret
    assert len(long) == 64
    assert long != settings({}, digest_secret="x" * 1_001).digest_secret


def test_a_policy_stands_for_all_of_its_settings() -> None:
    policy = CapPolicy.hard(3)
    assert settings({HARD: "bad", "TURNCAP_SOFT_CAP": "5"}, policy).policy == policy
    with pytest.raises(PolicyError, match=r"soft_cap.*not both"):
        settings({}, policy, soft_cap=5)
    with pytest.raises(PolicyError, match="policy"):
        ToolCallGuard(policy="adaptive")  # type: ignore[arg-type]


def test_the_environment_reaches_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HARD, "2")
    monkeypatch.setenv("TURNCAP_MODE", "shadow")
    guard = ToolCallGuard()
    assert (guard.policy, guard.mode) == (CapPolicy.hard(2), Mode.SHADOW)
    assert ToolCallGuard(mode="enforce").mode is Mode.ENFORCE
    assert ToolCallGuard(policy=CapPolicy.disabled()).policy == CapPolicy.disabled()
    with pytest.raises(PolicyError, match=f"{HARD} and soft_cap"):
        ToolCallGuard(soft_cap=5)


def test_an_unknown_variable_warns_once_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guard.settings._warned", set())
    environ = {"TURNCAP_SOFTCAP": "9", "TURNCAP_STUCK": "9", "SOFT_CAP": "9"}
    with caplog.at_level(logging.WARNING, "turncap"):
        assert settings(environ).policy == DEFAULT
        settings(environ)
    assert [record.getMessage() for record in caplog.records] == [
        "TURNCAP_SOFTCAP is no setting of turncap and was ignored; the nearest is TURNCAP_SOFT_CAP",
        "TURNCAP_STUCK is no setting of turncap and was ignored; the nearest is TURNCAP_STUCK_AT",
    ]


def test_the_variables_are_the_contracts() -> None:
    assert set(VARIABLES) == {
        "TURNCAP_MAX_TOOL_CALLS_PER_TURN",
        "TURNCAP_SOFT_CAP",
        "TURNCAP_STUCK_AT",
        "TURNCAP_BACKSTOP_MULTIPLIER",
        "TURNCAP_BACKSTOP",
        "TURNCAP_SIGNAL",
        "TURNCAP_MODE",
        "TURNCAP_HOLDOUT_RATE",
        "TURNCAP_HOLDOUT_SALT",
        "TURNCAP_BACKSTOP_HOLDOUT_RATE",
        "TURNCAP_DIGEST_SECRET",
        "TURNCAP_EVENTS",
    }
