"""The settings are those written down, and a wrong one is named."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from analytics.errors import InputError
from analytics.validation.settings import read_settings

SHIPPED = (files("analytics") / "validation.toml").read_text(encoding="utf-8")


def test_the_shipped_settings_are_those_of_the_method() -> None:
    settings = read_settings()
    tolerance = settings.tolerance
    assert (tolerance.backstop, tolerance.false_halts) == (0.001, 0.005)
    assert (tolerance.wrong_halts, tolerance.saving) == (0.20, 0.005)
    assert (settings.price.call, settings.price.wrong_halt, settings.price.also_shown) == (1, 200, (50, 1000))
    assert settings.grid.multiplier == (3, 5, 7, 10)
    assert settings.grid.stuck_at == (4, 5, 6, 8, 10, 12, 20)
    assert settings.grid.soft_cap == (0, 50, 75, 100, 150, 200)
    assert (settings.evidence.least_halts, settings.evidence.least_clusters) == (30, 20)


@pytest.mark.parametrize(
    ("find", "put", "said"),
    [
        ("backstop = 0.001", "backstop = 0", "tolerance.backstop: got 0; accepted: a share above 0"),
        ("backstop = 0.001", "backstop = true", "tolerance.backstop: got True"),
        ("wrong_halts = 0.20", "wrong_halt = 0.20", "tolerance.wrong_halt is not known"),
        ("least_halts = 30 ", "", "evidence.least_halts is missing"),
        (
            "least_halts = 30 ",
            "least_halts = 3.5 ",
            "least_halts: got 3.5; accepted: a whole number",
        ),
        ("wrong_halt = 200", "wrong_halt = nan", "price.wrong_halt: got nan"),
        ("stuck_at = [4, 5,", "stuck_at = [0, 5,", "grid.stuck_at: got [0, 5, 6, 8, 10, 12, 20]"),
        ("multiplier = [3, 5, 7, 10]", "multiplier = []", "grid.multiplier: got []"),
        ("sampled_by_head = false", "sampled_by_head = 0", "sampled_by_head: got 0; accepted: true or false"),
        ("[price]", "[prices]", "[prices] is not known"),
        ("[price]", "[price", "not TOML"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_accepted(
    find: str, put: str, said: str, tmp_path: Path
) -> None:
    assert find in SHIPPED
    path = tmp_path / "mine.toml"
    path.write_text(SHIPPED.replace(find, put, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_settings(path)
    assert said in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: no such file"):
        read_settings(tmp_path / "none.toml")
