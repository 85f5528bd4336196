"""The house rules: what stands where."""

from __future__ import annotations

from pathlib import Path

import analytics
import guard


def test_guard_and_analytics_resolve_inside_this_tree() -> None:
    root = Path(__file__).resolve().parent.parent
    for package in (guard, analytics):
        assert Path(str(package.__file__)).resolve().is_relative_to(root)
