"""`make test-all`: what becomes of a stage that passes, fails, skips or runs out of time."""

from __future__ import annotations

import sys

import pytest

from tools import stages
from tools.stages import Stage


def python(name: str, program: str, minutes: float = 1, counted: bool = True) -> Stage:
    return Stage(name=name, command=(sys.executable, "-c", program), minutes=minutes, counted=counted)


SLOW = "import time; time.sleep(60)"
CASES = [
    ("a stage that passes", python("a", "print('fine')"), 0, "1 passed, 0 failed, 0 skipped"),
    ("a stage that fails", python("a", "raise SystemExit(3)"), 1, "FAILED a: exit code 3"),
    (
        "a stage that skips says why",
        python("a", "print('no Go'); raise SystemExit(75)"),
        0,
        "skipped a: no Go",
    ),
    (
        "a stage that runs out of its time",
        python("a", SLOW, minutes=0.02),
        1,
        "FAILED a: stopped after 0.02 minutes",
    ),
]


@pytest.mark.parametrize(("stage", "code", "said"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_stage(
    stage: Stage, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "STAGES", (stage,))
    assert stages.main([]) == code
    assert said in capsys.readouterr().out


def test_all_stages_run_and_share_one_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "ALL_MINUTES", 0.02)
    monkeypatch.setattr(
        stages,
        "STAGES",
        (python("first", SLOW), python("second", SLOW), python("apart", "print('fine')", counted=False)),
    )
    assert stages.main([]) == 1
    assert "1 passed, 2 failed, 0 skipped" in capsys.readouterr().out


def test_an_unknown_stage_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert stages.main(["tset"]) == 2
    assert "tset" in capsys.readouterr().out


def test_the_limits_of_all_stages_are_named_in_order_of_worth() -> None:
    assert [stage.name for stage in stages.STAGES][:2] == ["lint", "test"]
    assert len({stage.name for stage in stages.STAGES}) == len(stages.STAGES)
